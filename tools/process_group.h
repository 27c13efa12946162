/* process_group.h - processes of this host that run one command together: started, watched, and ended together. */
#ifndef TOOL_PROCESS_GROUP_H
#define TOOL_PROCESS_GROUP_H

#include <stdbool.h>

/* What the processes have in common, and what each has of its own. */
struct process_spec {
    int count;
    char *const *words; /* the command's, after "tandem", or a program by its path and its
                         * arguments; NULL at the end */
    void (*prepare)(const struct process_spec *, int i); /* in process i before the command: its environment */
    const void *user;
};

/* Runs the command in `count` processes until all have ended. The first, the chief, has this process's standard input,
 * output and error; of the others, standard error comes line by line behind "worker 1: ", and the rest is dropped.
 *
 * Signals that ask this process to end, stop or go on are passed on to all of them. When one fails the others are asked
 * to end, and after ten seconds killed; when this process dies they are killed.
 *
 * Returns the exit status: 0 when all have succeeded, else that of the first that failed, 128 + its number for a
 * signal. */
int process_group_run(const struct process_spec *spec);

#endif
