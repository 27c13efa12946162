/* doctor.c - `tandem doctor`: reports what this machine offers. */
#include <stdio.h>

#include "options.h"
#include "session.h"

/* The report stands on standard output, and says what is wrong; standard error, that something is. */
static int check_cluster(const struct options *options)
{
    struct session session = {0};
    int status = session_open(options, &session);
    if (status == TOOL_DONE &&
        td_doctor_cluster(session.context, options->arguments, options->n_arguments, stdout) != TD_OK)
        status = session_failed(&session);
    session_close(&session);
    return status;
}

static int run(const struct options *options)
{
    struct session session = {0};
    if (options->cluster)
        return check_cluster(options);
    if (options->argument)
        return tool_refuse(
            "expected options only, got '%s'; leave it out, or write tandem doctor --cluster %s to check "
            "the cluster that it describes",
            options->argument, options->argument);
    int status = session_open(options, &session);
    if (status == TOOL_DONE && td_doctor(session.context, stdout) != TD_OK)
        status = session_failed(&session);
    session_close(&session);
    return status;
}

static const struct argp_option options[] = {
    {"cluster", KEY_CLUSTER, NULL, 0,
     "Check the description of a cluster instead: of each FILE with the JSON of TF_CONFIG, or the environment's", 0},
    OPTIONS_END};

const struct command doctor_command = {"doctor",
                                       "[FILE...]",
                                       "what this machine offers, and what is missing", /* */
                                       "Prints what training can use here: the processor's features, the cores this "
                                       "process may use, the libraries found, and "
                                       "what each of them would give.\n\n"
                                       "With --cluster it says who is who in a cluster, and what is wrong with its "
                                       "description, as far as that shows without connecting to anybody: an address "
                                       "that is not this host's, a name that has none, tasks that disagree. The exit "
                                       "status is 1 then.\v"
                                       "Examples:\n"
                                       "\n"
                                       "  Before asking why something is slow:\n"
                                       "    tandem doctor\n"
                                       "\n"
                                       "  What one core would see:\n"
                                       "    taskset -c 0 tandem doctor\n"
                                       "\n"
                                       "  Before a start on several hosts, on each of them:\n"
                                       "    tandem doctor --cluster worker-1.json\n"
                                       "\n"
                                       "  Whether the descriptions of all tasks agree:\n"
                                       "    tandem doctor --cluster cluster/*.json\n",
                                       options,
                                       run};
