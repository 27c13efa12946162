/* cluster.c - `tandem cluster`: what processes that train together need before they start. */
#include <stdio.h>
#include <string.h>

#include "nearest_word.h"
#include "options.h"
#include "session.h"

/* So far there is one. */
static const char *const tasks[] = {"secret"};

static int check_words(const struct options *options)
{
    const char *task = options->arguments[0];
    if (strcmp(task, tasks[0]) != 0) {
        const char *near = nearest_word(task, tasks, 1);
        return tool_refuse("expected secret, got '%s'; %s tandem cluster secret FILE", task,
                           near ? "did you mean" : "try");
    }
    if (options->n_arguments < 2)
        return tool_refuse(
            "secret: expected the name of a new file, got none; try tandem cluster secret cluster.secret");
    if (options->n_arguments > 2)
        return tool_refuse("secret: expected one file, got '%s' after '%s'; the hosts get copies of one secret",
                           options->arguments[2], options->arguments[1]);
    return TOOL_DONE;
}

static int write_secret(const struct options *options, struct session *session, const char *path)
{
    int status = session_open(options, session);
    if (status != TOOL_DONE)
        return status;
    if (td_cluster_write_secret(session->context, path) != TD_OK)
        return session_refused(session);
    if (!options->quiet)
        printf("Saved %s: a secret of 32 bytes. Copy it to every host of the cluster, readable by its owner alone.\n",
               path);
    return TOOL_DONE;
}

static int run(const struct options *options)
{
    struct session session = {0};
    int status = check_words(options);
    if (status == TOOL_DONE)
        status = write_secret(options, &session, options->arguments[1]);
    session_close(&session);
    return status;
}

static const struct argp_option options[] = {{"quiet", KEY_QUIET, NULL, 0, "Print nothing", 0}, OPTIONS_END};

const struct command cluster_command = {
    "cluster",
    "secret FILE",
    "the secret of processes that train together", /* */
    "Writes a new secret, 32 random bytes, to a file that only its owner can read. Processes that train together "
    "know each other by it: each gets a copy, and refuses whoever has another. A file that exists is left as it is.\v"
    "Examples:\n"
    "\n"
    "  A secret, and a copy of it for another host:\n"
    "    tandem cluster secret cluster.secret\n"
    "    scp -p cluster.secret node2:\n"
    "\n"
    "  In a script:\n"
    "    tandem cluster secret ~/.tandem-secret --quiet\n",
    options,
    run};
