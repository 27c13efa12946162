/* doctor.c - `tandem doctor --cluster`: who is who, and what is wrong with that. */
#include <stdio.h>
#include <stdlib.h>
#include <tandem/cluster.h>

#include "base/context.h"
#include "cluster/lint.h"
#include "cluster/parse.h"

/* The configurations of one call: the environment's, or one a file. */
typedef struct checkup {
    tdi_cluster_config *configs; /* [count] */
    int count, readable;         /* those without mistakes stand first */
    tdi_mistakes mistakes;
} checkup;

static td_status read_all(checkup *c, const char *const *files)
{
    for (int i = 0; i < c->count; i++) {
        int before = c->mistakes.list.count;
        tdi_cluster_request request = {.cluster = files ? files[i] : NULL};
        TDI_TRY(tdi_cluster_config_look(&request, &c->configs[c->readable], &c->mistakes));
        bool good = c->configs[c->readable].count && c->mistakes.list.count == before;
        if (good)
            c->readable++;
        else
            tdi_cluster_config_free(&c->configs[c->readable]);
    }
    return TD_OK;
}

static void print_task(const tdi_cluster_config *config, int t, bool here, FILE *out)
{
    char name[TDI_TASK_NAME];
    const tdi_task *task = &config->tasks[t];
    fprintf(out, "  %-12s %s%s%s\n", tdi_task_name(task, name),
            task->address ? task->address : "(address not known yet)",
            t == 0 && task->type != TDI_CHIEF ? ", the chief" : "", here && t == config->self ? ", this process" : "");
}

static void print_config(const tdi_cluster_config *config, bool here, FILE *out)
{
    fprintf(out, "Cluster of %d task%s, by %s:\n", config->count, config->count == 1 ? "" : "s", config->source);
    for (int t = 0; t < config->count; t++)
        print_task(config, t, here, out);
    if (config->rendezvous)
        fprintf(out, "  tasks meet in %s\n", config->rendezvous);
}

static void print_report(const checkup *c, FILE *out)
{
    if (c->readable)
        print_config(&c->configs[0], c->count == 1, out);
    for (int i = 0; i < c->readable && c->count > 1; i++) {
        char name[TDI_TASK_NAME];
        const tdi_cluster_config *config = &c->configs[i];
        fprintf(out, "%s: %s\n", config->source,
                config->self < 0 ? "does not say which task it is" : tdi_task_name(&config->tasks[config->self], name));
    }
    for (int i = 0; i < c->mistakes.list.count; i++)
        fprintf(out, "Wrong: %s\n", c->mistakes.list.at[i]);
    if (c->mistakes.list.count == 0)
        fputs("Nothing wrong is to be seen without connecting.\n", out);
}

static td_status examine(checkup *c, const char *const *files, FILE *out)
{
    TDI_TRY(read_all(c, files));
    if (c->readable == 0 && c->mistakes.list.count == 0)
        tdi_mistake(&c->mistakes, "nothing describes a cluster, so this would train alone; set TF_CONFIG, or start by "
                                  "srun or mpirun, or give a file");
    tdi_cluster_lint(
        &(tdi_cluster_lint_spec){
            .configs = c->configs, .count = c->readable, .here = c->count == 1, .host = &tdi_this_host},
        &c->mistakes);
    print_report(c, out);
    return c->mistakes.no_memory ? TD_NO_MEMORY : TD_OK;
}

static td_status finish(const checkup *c, td_status status, FILE *out, tdi_error *error)
{
    int count = c->mistakes.list.count;
    if (status != TD_OK)
        return tdi_no_memory(error);
    if (fflush(out) != 0)
        return tdi_fail(error, TD_IO, "the report could not be written");
    if (count)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "the description of the cluster has %d mistake%s", count,
                        count == 1 ? "" : "s");
    return TD_OK;
}

td_status td_doctor_cluster(td_context *context, const char *const *files, int count, FILE *out)
{
    if (!context)
        return TD_INVALID_ARGUMENT;
    if (!out || count < 0 || (count > 0 && !files))
        return tdi_fail(&context->error, TD_INVALID_ARGUMENT,
                        "td_doctor_cluster: a FILE to write to and %d paths were expected", count < 0 ? 0 : count);
    checkup c = {.count = count ? count : 1};
    c.configs = calloc((size_t)c.count, sizeof *c.configs);
    td_status status = c.configs ? examine(&c, count ? files : NULL, out) : TD_NO_MEMORY;
    for (int i = 0; c.configs && i < c.readable; i++)
        tdi_cluster_config_free(&c.configs[i]);
    free(c.configs);
    status = finish(&c, status, out, &context->error);
    tdi_mistakes_free(&c.mistakes);
    return status;
}

td_status td_cluster_check(td_context *context, const char *tf_config)
{
    tdi_cluster_config config;
    if (!context)
        return TD_INVALID_ARGUMENT;
    if (!tf_config)
        return tdi_fail(&context->error, TD_INVALID_ARGUMENT, "td_cluster_check: the text of TF_CONFIG was expected");
    td_status status = tdi_tf_config_check(tf_config, &config, &context->error);
    tdi_cluster_config_free(&config);
    return status;
}
