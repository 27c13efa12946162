/* cluster.c - `tandem cluster`: what processes that train together need before they start. */
#include <stdio.h>
#include <string.h>

#include "cluster_config.h"
#include "nearest_word.h"
#include "options.h"
#include "session.h"

static const char *const tasks[] = {"secret", "config"};

static int refuse_task(const char *task)
{
    const char *near = nearest_word(task, tasks, 2);
    if (near && strcmp(near, "config") == 0)
        return tool_refuse("expected secret or config, got '%s'; did you mean tandem cluster config?", task);
    return tool_refuse("expected secret or config, got '%s'; %s tandem cluster secret FILE%s", task,
                       near ? "did you mean" : "try", near ? "?" : "");
}

static int check_secret(const struct options *options)
{
    if (options->chief || options->workers || options->ps || options->evaluator || options->output)
        return tool_refuse("secret: expected the name of a file alone; addresses and --output belong to tandem cluster "
                           "config");
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

static int make_secret(const struct options *options)
{
    struct session session = {0};
    int status = check_secret(options);
    if (status == TOOL_DONE)
        status = write_secret(options, &session, options->arguments[1]);
    session_close(&session);
    return status;
}

static int run(const struct options *options)
{
    const char *task = options->arguments[0];
    if (strcmp(task, "secret") == 0)
        return make_secret(options);
    if (strcmp(task, "config") != 0)
        return refuse_task(task);
    if (options->n_arguments > 1)
        return tool_refuse(
            "config: expected options only, got '%s'; addresses go with --workers, the folder of the files "
            "with --output",
            options->arguments[1]);
    return cluster_config(options);
}

static const struct argp_option options[] = {
    {"workers", KEY_WORKERS, "LIST", 0,
     "config: the workers' addresses, as node1:2222,node2:2222; without a port, 2222 or the next that is free in the "
     "list",
     0},
    {"chief", KEY_CHIEF, "ADDRESS", 0, "config: the chief's; default: worker 0 is the chief", 0},
    {"ps", KEY_PS, "LIST", 0, "config: the parameter servers', for programs that have some", 0},
    {"evaluator", KEY_EVALUATOR, "ADDRESS", 0, "config: the evaluator's", 0},
    {"output", KEY_OUTPUT, "DIR", 0, "config: where the files go (default: here)", 0},
    {"quiet", KEY_QUIET, NULL, 0, "Print nothing", 0},
    OPTIONS_END};

const struct command cluster_command = {
    "cluster",
    "secret FILE | config",
    "the secret and the description of processes that train together", /* */
    "secret writes a new secret, 32 random bytes, to a file that only its owner can read. Processes that train "
    "together "
    "know each other by it: each gets a copy, and refuses whoever has another. A file that exists is left as it is.\n\n"
    "config writes a file for each task of a cluster, with the JSON of TF_CONFIG: who is in the cluster, and which "
    "task the process is that gets the file. Files of these names are replaced.\v"
    "Examples:\n"
    "\n"
    "  A secret, and a copy of it for another host:\n"
    "    tandem cluster secret cluster.secret\n"
    "    scp -p cluster.secret node2:\n"
    "\n"
    "  Two workers on two hosts, of which the first is the chief:\n"
    "    tandem cluster config --workers node1,node2\n"
    "    scp worker-1.json node2:\n"
    "\n"
    "  In a folder, with an evaluator; whether it is right:\n"
    "    tandem cluster config --workers a:1,b:1 --evaluator c:1 --output tasks\n"
    "    tandem doctor --cluster tasks/*.json\n",
    options,
    run};
