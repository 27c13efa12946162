/* lint.c - looks for what is wrong with configurations that can be read. */
#include "cluster/lint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cluster/parse.h"
#include "link/address.h"
#include "link/secret.h"

/* ---- several tasks' configurations ---- */

/* "worker 1", or the file where that does not say which task it is. */
static const char *who_says(const tdi_cluster_config *config, char name[TDI_SOURCE])
{
    if (config->self < 0)
        return config->source;
    char task[TDI_TASK_NAME];
    snprintf(name, TDI_SOURCE, "%s", tdi_task_name(&config->tasks[config->self], task));
    return name;
}

static bool other_address(const tdi_task *a, const tdi_task *b)
{
    return a->address && b->address && strcasecmp(a->address, b->address) != 0;
}

/* Compares the tasks of a type; an evaluator need not stand in each configuration. True after a mistake. */
static bool disagree_about(const tdi_cluster_config *a, const tdi_cluster_config *b, tdi_task_type type,
                           tdi_mistakes *mistakes)
{
    char one[TDI_SOURCE], other[TDI_SOURCE], task[TDI_TASK_NAME];
    const char *remedy = "give all the same \"cluster\"", *name = tdi_task_type_name(type);
    int mine = tdi_cluster_count(a, type), theirs = tdi_cluster_count(b, type);
    if (mine != theirs && type != TDI_EVALUATOR) {
        tdi_mistake(mistakes, "tasks disagree: %s lists %d %s%s, %s %d; %s", who_says(b, other), theirs, name,
                    theirs == 1 || type == TDI_PS ? "" : "s", who_says(a, one), mine, remedy);
        return true;
    }
    for (int i = 0; i < mine && i < theirs; i++) {
        const tdi_task *x = &a->tasks[tdi_cluster_find(a, type, i)], *y = &b->tasks[tdi_cluster_find(b, type, i)];
        if (other_address(x, y)) {
            tdi_mistake(mistakes, "tasks disagree: %s has %s at %s, %s at %s; %s", who_says(b, other),
                        tdi_task_name(x, task), tdi_word_of(y->address).text, who_says(a, one),
                        tdi_word_of(x->address).text, remedy);
            return true;
        }
    }
    return false;
}

static void check_agreement(const tdi_cluster_lint_spec *spec, tdi_mistakes *mistakes)
{
    for (int c = 1; c < spec->count; c++)
        for (int t = 0; t < TDI_TASK_TYPES; t++)
            if (disagree_about(&spec->configs[0], &spec->configs[c], (tdi_task_type)t, mistakes))
                break;
}

static bool same_task(const tdi_cluster_config *a, const tdi_cluster_config *b)
{
    return a->self >= 0 && b->self >= 0 && a->tasks[a->self].type == b->tasks[b->self].type &&
           a->tasks[a->self].index == b->tasks[b->self].index;
}

static void check_twins(const tdi_cluster_lint_spec *spec, tdi_mistakes *mistakes)
{
    char name[TDI_TASK_NAME];
    for (int c = 1; c < spec->count; c++)
        for (int other = 0; other < c; other++)
            if (same_task(&spec->configs[c], &spec->configs[other])) {
                const tdi_cluster_config *config = &spec->configs[c];
                tdi_mistake(mistakes, "two files are task %s: %.200s and %.200s; give each process a task of its own",
                            tdi_task_name(&config->tasks[config->self], name), spec->configs[other].source,
                            config->source);
                break;
            }
}

/* ---- hosts ---- */

/* A host's name, and what is found behind it. */
typedef struct known_host {
    const tdi_task *task; /* the first with this host */
    tdi_address at;
    tdi_addresses found;
} known_host;

typedef tdi_vec(known_host) known_hosts;

static const known_host *find_host(const known_hosts *hosts, const char *name)
{
    for (int i = 0; i < hosts->count; i++)
        if (strcasecmp(hosts->at[i].at.host, name) == 0)
            return &hosts->at[i];
    return NULL;
}

static void learn_hosts(const tdi_cluster_lint_spec *spec, const tdi_cluster_config *config, known_hosts *hosts,
                        tdi_mistakes *mistakes)
{
    for (int i = 0; i < config->count; i++) {
        known_host host = {.task = &config->tasks[i]};
        if (!host.task->address || tdi_address_parse(host.task->address, &host.at, NULL) != TD_OK ||
            find_host(hosts, host.at.host))
            continue;
        spec->host->resolve(host.at.host, &host.found);
        if (host.found.count == 0)
            tdi_mistake(mistakes, "%s has no address here; write it into /etc/hosts or DNS, or give the address itself",
                        host.at.host);
        if (!tdi_push(hosts, host))
            mistakes->no_memory = true;
    }
}

static bool is_loopback(const known_host *host)
{
    return host->found.count > 0 && tdi_is_loopback(host->found.at[0]);
}

/* A loopback address says "myself" to each host. A name may stand for one too, in the /etc/hosts of its own host. */
static void check_loopback(const known_hosts *hosts, tdi_mistakes *mistakes)
{
    char name[TDI_TASK_NAME];
    const known_host *loopback = NULL;
    int others = 0;
    for (int i = 0; i < hosts->count; i++) {
        bool is = is_loopback(&hosts->at[i]);
        others += !is;
        loopback = is && !loopback ? &hosts->at[i] : loopback;
    }
    if (!loopback || !others)
        return;
    const char *host = loopback->at.host, *address = loopback->found.at[0];
    tdi_task_name(loopback->task, name);
    if (strcasecmp(host, "localhost") == 0 || strcmp(host, address) == 0)
        tdi_mistake(mistakes,
                    "%s is %s in a cluster of several hosts: the others would find themselves; write the name "
                    "that they know it by",
                    name, host);
    else
        tdi_mistake(mistakes,
                    "%s is at %s, which is %s here and reaches no other host; take that out of /etc/hosts, or "
                    "write its address",
                    name, host, address);
}

/* ---- this host ---- */

static bool is_own(const tdi_addresses *own, const char *address)
{
    bool mine = tdi_is_loopback(address);
    for (int i = 0; i < own->count && !mine; i++)
        mine = strcmp(own->at[i], address) == 0;
    return mine;
}

/* This host's first address that others reach, or its first. */
static const char *main_address(const tdi_addresses *own)
{
    for (int i = 0; i < own->count; i++)
        if (!tdi_is_loopback(own->at[i]))
            return own->at[i];
    return own->count ? own->at[0] : "none is known";
}

static void check_self(const tdi_cluster_lint_spec *spec, const known_hosts *hosts, tdi_mistakes *mistakes)
{
    const tdi_cluster_config *config = &spec->configs[0];
    const tdi_task *task = config->self < 0 ? NULL : &config->tasks[config->self];
    tdi_address at;
    tdi_addresses own;
    char name[TDI_TASK_NAME], who[TDI_ADDRESS];
    if (!task || !task->address || tdi_address_parse(task->address, &at, NULL) != TD_OK)
        return;
    const known_host *host = find_host(hosts, at.host);
    if (!host || host->found.count == 0)
        return;
    spec->host->own(&own);
    const char *mine = NULL;
    for (int i = 0; i < host->found.count && !mine; i++)
        mine = is_own(&own, host->found.at[i]) ? host->found.at[i] : NULL;
    if (!mine)
        tdi_mistake(mistakes, "%s is %s, which is no address of this host (%s): the index is wrong, or give --bind",
                    tdi_task_name(task, name), host->found.at[0], main_address(&own));
    else if (spec->host->in_use(mine, at.port, who))
        tdi_mistake(mistakes, "port %d of %s is in use by %s; end that, or give %s another port", at.port, at.host, who,
                    tdi_task_name(task, name));
}

static void check_secret(tdi_mistakes *mistakes)
{
    const char *path = getenv("TANDEM_SECRET_FILE");
    tdi_secret secret;
    tdi_error error = {0};
    if (path && *path && tdi_secret_read(path, &secret, &error) != TD_OK)
        tdi_mistake(mistakes, "%s", error.message);
    tdi_secret_forget(&secret);
}

static void check_servers(const tdi_cluster_config *config, tdi_mistakes *mistakes)
{
    int servers = tdi_cluster_count(config, TDI_PS);
    if (servers)
        tdi_mistake(mistakes,
                    "the cluster has %d ps, which would idle: workers add up their gradients among themselves; "
                    "leave \"ps\" out",
                    servers);
}

void tdi_cluster_lint(const tdi_cluster_lint_spec *spec, tdi_mistakes *mistakes)
{
    known_hosts hosts = {0};
    if (spec->count == 0)
        return;
    check_agreement(spec, mistakes);
    check_twins(spec, mistakes);
    check_servers(&spec->configs[0], mistakes);
    for (int c = 0; c < spec->count; c++)
        learn_hosts(spec, &spec->configs[c], &hosts, mistakes);
    check_loopback(&hosts, mistakes);
    if (spec->here) {
        check_self(spec, &hosts, mistakes);
        check_secret(mistakes);
    }
    tdi_vec_free(&hosts);
}
