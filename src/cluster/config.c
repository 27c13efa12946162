/* config.c - finds the description of a cluster, and checks what holds for all of them. */
#include "cluster/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cluster/parse.h"
#include "link/address.h"

static const char *const type_names[TDI_TASK_TYPES] = {"chief", "worker", "ps", "evaluator"};

/* What others call a type, or what is easily written for it. */
static const struct type_alias {
    const char *name;
    tdi_task_type type;
} aliases[] = {{"master", TDI_CHIEF},
               {"chiefs", TDI_CHIEF},
               {"leader", TDI_CHIEF},
               {"coordinator", TDI_CHIEF},
               {"workers", TDI_WORKER},
               {"wroker", TDI_WORKER},
               {"work", TDI_WORKER},
               {"worker_0", TDI_WORKER},
               {"server", TDI_PS},
               {"servers", TDI_PS},
               {"pss", TDI_PS},
               {"parameter_server", TDI_PS},
               {"eval", TDI_EVALUATOR},
               {"evaluators", TDI_EVALUATOR},
               {"evaluater", TDI_EVALUATOR}};

const char *tdi_task_type_name(tdi_task_type type)
{
    return type_names[type];
}

bool tdi_task_type_of(const char *name, tdi_task_type *type)
{
    for (int i = 0; i < TDI_TASK_TYPES; i++)
        if (strcmp(name, type_names[i]) == 0) {
            *type = (tdi_task_type)i;
            return true;
        }
    return false;
}

const char *tdi_task_type_near(const char *name)
{
    for (int i = 0; i < TDI_TASK_TYPES; i++)
        if (strcasecmp(name, type_names[i]) == 0)
            return type_names[i];
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strcasecmp(name, aliases[i].name) == 0)
            return type_names[aliases[i].type];
    return NULL;
}

const char *tdi_task_name(const tdi_task *task, char name[TDI_TASK_NAME])
{
    bool single = task->type == TDI_CHIEF || task->type == TDI_EVALUATOR;
    snprintf(name, TDI_TASK_NAME, single && task->index == 0 ? "%s" : "%s %d", type_names[task->type], task->index);
    return name;
}

int tdi_cluster_count(const tdi_cluster_config *config, tdi_task_type type)
{
    int count = 0;
    for (int i = 0; i < config->count; i++)
        count += config->tasks[i].type == type;
    return count;
}

int tdi_cluster_find(const tdi_cluster_config *config, tdi_task_type type, int index)
{
    for (int i = 0; i < config->count; i++)
        if (config->tasks[i].type == type && config->tasks[i].index == index)
            return i;
    return -1;
}

td_status tdi_cluster_add(tdi_cluster_config *config, tdi_task_type type, int index, const char *address)
{
    tdi_task task = {type, index, address ? strdup(address) : NULL};
    tdi_task *tasks = realloc(config->tasks, ((size_t)config->count + 1) * sizeof *tasks);
    if (tasks)
        config->tasks = tasks;
    if (!tasks || (address && !task.address)) {
        free(task.address);
        return TD_NO_MEMORY;
    }
    tasks[config->count++] = task;
    return TD_OK;
}

void tdi_cluster_config_free(tdi_cluster_config *config)
{
    for (int i = 0; i < config->count; i++)
        free(config->tasks[i].address);
    free(config->tasks);
    free(config->rendezvous);
    *config = (tdi_cluster_config){.self = -1, .on_host = 1};
}

bool tdi_whole_number(const char *text, int *number)
{
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 9 || text[digits])
        return false;
    *number = atoi(text);
    return true;
}

/* ---- what holds for all ---- */

static bool same_place(const char *a, const char *b)
{
    return a && b && strcasecmp(a, b) == 0;
}

static void check_address(const tdi_cluster_config *config, int t, tdi_mistakes *mistakes)
{
    char name[TDI_TASK_NAME], other[TDI_TASK_NAME];
    const tdi_task *task = &config->tasks[t];
    tdi_address parsed;
    tdi_error why = {0};
    tdi_task_name(task, name);
    if (tdi_address_parse(task->address, &parsed, &why) != TD_OK) {
        tdi_mistake(mistakes, "%s: %s", name, why.message);
        return;
    }
    for (int i = 0; i < t; i++)
        if (same_place(config->tasks[i].address, task->address)) {
            tdi_mistake(mistakes, "%s and %s both are %s; give each process a host or a port of its own",
                        tdi_task_name(&config->tasks[i], other), name, tdi_word_of(task->address).text);
            return;
        }
}

static void check_single(const tdi_cluster_config *config, tdi_task_type type, tdi_mistakes *mistakes)
{
    int count = tdi_cluster_count(config, type);
    if (count > 1)
        tdi_mistake(mistakes, "%s: %d addresses; a cluster has one%s", type_names[type], count,
                    type == TDI_CHIEF ? ", and the others are workers" : "");
}

static void check_tasks(const tdi_cluster_config *config, tdi_mistakes *mistakes)
{
    check_single(config, TDI_CHIEF, mistakes);
    check_single(config, TDI_EVALUATOR, mistakes);
    if (config->count && config->tasks[0].type > TDI_WORKER)
        tdi_mistake(mistakes, "there is neither a chief nor a worker, so nobody trains; add \"worker\": "
                              "[\"host:port\", ...]");
    for (int i = 0; i < config->count; i++)
        if (config->tasks[i].address)
            check_address(config, i, mistakes);
}

/* The tasks that share this one's host, by their addresses; launchers say it themselves. */
static void count_on_host(tdi_cluster_config *config)
{
    tdi_address mine, other;
    const char *address = config->self < 0 ? NULL : config->tasks[config->self].address;
    if (config->on_host > 1 || !address || tdi_address_parse(address, &mine, NULL) != TD_OK)
        return;
    config->on_host = 0;
    for (int i = 0; i < config->count; i++)
        config->on_host += config->tasks[i].address &&
                           tdi_address_parse(config->tasks[i].address, &other, NULL) == TD_OK &&
                           strcasecmp(mine.host, other.host) == 0;
}

static const char *set_variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static td_status look(const tdi_cluster_request *request, const char *text, tdi_cluster_config *config,
                      tdi_mistakes *mistakes)
{
    if (request->rendezvous && (request->cluster || text))
        tdi_mistake(mistakes, "the addresses are known by %s; leave out --rendezvous",
                    request->cluster ? "--cluster" : "TF_CONFIG");
    if (request->cluster)
        return tdi_tf_config_file(request, config, mistakes);
    if (!text)
        return tdi_environment_read(request, config, mistakes);
    return tdi_tf_config_parse(text, false, request, config, mistakes);
}

/* Looks with the text of TF_CONFIG, if there is one, and its name for sentences. */
static td_status look_with(const tdi_cluster_request *request, const char *text, const char *name,
                           tdi_cluster_config *config, tdi_mistakes *mistakes)
{
    *config = (tdi_cluster_config){.self = -1, .on_host = 1};
    if (text)
        snprintf(config->source, sizeof config->source, "%s", name);
    mistakes->source = config->source;
    td_status status = look(request, text, config, mistakes);
    if (status == TD_OK)
        check_tasks(config, mistakes);
    if (status == TD_OK)
        count_on_host(config);
    mistakes->source = NULL;
    return mistakes->no_memory ? TD_NO_MEMORY : status;
}

td_status tdi_cluster_config_look(const tdi_cluster_request *request, tdi_cluster_config *config,
                                  tdi_mistakes *mistakes)
{
    return look_with(request, set_variable("TF_CONFIG"), "TF_CONFIG", config, mistakes);
}

td_status tdi_tf_config_check(const char *text, tdi_cluster_config *config, tdi_error *error)
{
    tdi_mistakes mistakes = {0};
    td_status status = look_with(&(tdi_cluster_request){0}, text, "", config, &mistakes);
    if (status != TD_OK)
        tdi_no_memory(error);
    else if (mistakes.list.count)
        status = tdi_fail(error, TD_INVALID_ARGUMENT, "%s", mistakes.list.at[0]);
    tdi_mistakes_free(&mistakes);
    return status;
}

td_status tdi_cluster_config_read(const tdi_cluster_request *request, tdi_cluster_config *config, tdi_error *error)
{
    tdi_mistakes mistakes = {0};
    td_status status = tdi_cluster_config_look(request, config, &mistakes);
    status = status == TD_OK ? tdi_mistakes_fail(&mistakes, error) : tdi_no_memory(error);
    tdi_mistakes_free(&mistakes);
    if (status == TD_OK && config->count && config->self < 0)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s does not say which task this process is; give --task worker:0, or another of its tasks",
                        config->source);
    return status;
}
