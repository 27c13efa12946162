/* deal_files.c - --auto-shard file: the files of a pattern or a list are dealt out to the processes in turn. What names
 * one file or folder stays as it is: every process has its own there. */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"

/* A pattern, or a list of files with records or rows; "x.npy,y.npy" and "images,labels" are one thing each. */
static bool names_several(const char *path)
{
    bool list = strchr(path, ',') && (strstr(path, ".tfrec") || strstr(path, ".csv"));
    return strpbrk(path, "*?[") != NULL || list;
}

/* All files of the list, in its order. False when memory is out. */
static bool expand(const char *list, glob_t *found)
{
    bool good = true;
    char *copy = strdup(list), *rest = NULL;
    *found = (glob_t){0};
    for (char *word = copy ? strtok_r(copy, ",", &rest) : NULL; word && good; word = strtok_r(NULL, ",", &rest))
        good = glob(word, GLOB_NOCHECK | (found->gl_pathc ? GLOB_APPEND : 0), NULL, found) == 0;
    free(copy);
    return copy && good;
}

/* "a,d,g"; malloc'd. */
static char *join_own(const glob_t *found, int process, int processes)
{
    size_t size = 1;
    for (size_t i = (size_t)process; i < found->gl_pathc; i += (size_t)processes)
        size += strlen(found->gl_pathv[i]) + 1;
    char *list = calloc(1, size), *at = list;
    for (size_t i = (size_t)process; list && i < found->gl_pathc; i += (size_t)processes)
        at += sprintf(at, "%s%s", at == list ? "" : ",", found->gl_pathv[i]);
    return list;
}

static int deal(const char *path, struct session *session, char **own)
{
    glob_t found;
    int processes = td_cluster_size(session->cluster), process = td_cluster_task(session->cluster);
    int status = expand(path, &found) ? TOOL_DONE : tool_fail("out of memory");
    if (status == TOOL_DONE && found.gl_pathc < (size_t)processes)
        status =
            tool_refuse("--auto-shard file: %s has no file of --train %s: %zu are too few for %d processes; let all "
                        "read all of them (--auto-shard data)",
                        td_cluster_task_name(session->cluster, (int)found.gl_pathc), path, found.gl_pathc, processes);
    if (status == TOOL_DONE && !(*own = join_own(&found, process, processes)))
        status = tool_fail("out of memory");
    globfree(&found);
    return status;
}

int session_deal_files(struct options *options, struct session *session)
{
    int status = TOOL_DONE;
    for (int i = 0; i < options->n_train && status == TOOL_DONE; i++) {
        if (!names_several(options->train[i]))
            continue;
        status = deal(options->train[i], session, &session->dealt[i]);
        options->train[i] = session->dealt[i] ? session->dealt[i] : options->train[i];
    }
    return status;
}
