/* tool.h - the subcommands of the `tandem` command, and how they end. */
#ifndef TOOL_H
#define TOOL_H

#include <argp.h>
#include <tandem/tandem.h>

/* Exit statuses; after a signal it is 128 + its number. */
enum { TOOL_DONE = 0, TOOL_FAILED = 1, TOOL_REFUSED = 2 };

struct options;

struct command {
    const char *name;                          /* "fit" */
    const char *argument;                      /* the argument after the options, "MODEL.keras"; NULL: none */
    const char *summary;                       /* a line for `tandem help` */
    const char *help;                          /* for argp: description, \v, examples */
    const struct argp_option *options;         /* NULL: none */
    int (*run)(const struct options *options); /* does the work; returns the exit status */
};

extern const struct command fit_command, evaluate_command, predict_command, summary_command, new_command,
    explain_command, doctor_command, plot_command, find_lr_command, generate_command, cluster_command, launch_command;

/* TOOL_DONE when there is a command of this name, else TOOL_REFUSED after a sentence. */
int tool_check_command(const char *name);

/* Print "tandem fit: " and the sentence on stderr. tool_refuse returns TOOL_REFUSED (the arguments are wrong),
 * tool_fail TOOL_FAILED (the work failed). */
__attribute__((format(printf, 1, 2))) int tool_refuse(const char *format, ...);
__attribute__((format(printf, 1, 2))) int tool_fail(const char *format, ...);
/* Says on stderr what the user should know. Control characters, which names of files may have, are written as \x1B. */
__attribute__((format(printf, 1, 2))) void tool_say(const char *format, ...);

#endif
