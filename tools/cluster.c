/* cluster.c - `tandem cluster`: what processes that train together need before they start. */
#include <string.h>

#include "cluster_config.h"
#include "nearest_word.h"
#include "options.h"

static const char *const tasks[] = {"config"};

static int run(const struct options *options)
{
    const char *task = options->argument;
    if (strcmp(task, "config") == 0)
        return cluster_config(options);
    const char *near = nearest_word(task, tasks, sizeof tasks / sizeof *tasks);
    return tool_refuse("expected config, got '%s'; %s", task,
                       near ? "did you mean tandem cluster config?" : "try tandem cluster config --workers a:1,b:1");
}

static const struct argp_option options[] = {
    {"workers", KEY_WORKERS, "LIST", 0,
     "config: the workers' addresses, as node1:2222,node2:2222; without a port, 2222 or "
     "the next that is free in the list",
     0},
    {"chief", KEY_CHIEF, "ADDRESS", 0, "config: the chief's; default: worker 0 is the chief", 0},
    {"ps", KEY_PS, "LIST", 0, "config: the parameter servers', for programs that have some", 0},
    {"evaluator", KEY_EVALUATOR, "ADDRESS", 0, "config: the evaluator's", 0},
    {"output", KEY_OUTPUT, "DIR", 0, "config: where the files go (default: here)", 0},
    {"quiet", KEY_QUIET, NULL, 0, "Print nothing", 0},
    OPTIONS_END};

const struct command cluster_command = {
    "cluster",
    "config",
    "what processes of a cluster need before they start", /* */
    "config writes a file for each task of a cluster, with the JSON of TF_CONFIG: who is in the cluster, and which "
    "task the process is that gets the file. Files of these names are replaced.\v"
    "Examples:\n"
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
