/* cluster_config.c - writes the description of a cluster for each of its tasks: the JSON of TF_CONFIG. */
#include "cluster_config.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "options.h"
#include "output_path.h"
#include "session.h"

enum { TYPES = 4, FIRST_PORT = 2222 };

static const char *const types[TYPES] = {"chief", "worker", "ps", "evaluator"};

static const char *list_of(const struct options *options, int type)
{
    const char *const lists[TYPES] = {options->chief, options->workers, options->ps, options->evaluator};
    return lists[type];
}

/* ---- addresses ---- */

/* "node1" and "[::1]" have no port, "node1:" one that is wrong: the library refuses it. */
static bool has_port(const char *address)
{
    const char *bracket = strrchr(address, ']');
    return strchr(bracket ? bracket : address, ':') != NULL;
}

static bool is_taken(const json_t *cluster, const char *address)
{
    const char *type;
    json_t *addresses, *other;
    size_t i;
    json_object_foreach((json_t *)cluster, type, addresses)
    {
        json_array_foreach(addresses, i, other)
        {
            if (strcasecmp(json_string_value(other), address) == 0)
                return true;
        }
    }
    return false;
}

/* The address with a port: the first from 2222 on that no other task of the host has. */
static json_t *address_with_port(const json_t *cluster, const char *given)
{
    char address[OUTPUT_SIZE];
    int port = FIRST_PORT;
    do {
        if (!*given || has_port(given))
            snprintf(address, sizeof address, "%s", given);
        else
            snprintf(address, sizeof address, "%s:%d", given, port);
    } while (*given && !has_port(given) && is_taken(cluster, address) && ++port);
    return json_string(address);
}

static void add_addresses(json_t *cluster, const char *type, const char *list)
{
    json_t *addresses = json_array();
    char *copy = strdup(list), *rest = copy;
    json_object_set_new(cluster, type, addresses);
    for (char *word; (word = strsep(&rest, ","));)
        json_array_append_new(addresses, address_with_port(cluster, word));
    free(copy);
}

static json_t *make_cluster(const struct options *options)
{
    json_t *cluster = json_object();
    for (int t = 0; t < TYPES; t++)
        if (list_of(options, t))
            add_addresses(cluster, types[t], list_of(options, t));
    return cluster;
}

/* ---- files ---- */

static char *text_of(json_t *cluster, int type, size_t index)
{
    json_t *root =
        json_pack("{s: O, s: {s: s, s: i}}", "cluster", cluster, "task", "type", types[type], "index", (int)index);
    char *text = json_dumps(root, JSON_INDENT(1));
    json_decref(root);
    return text;
}

/* The first mistake ends it: nothing is written then. */
static int check(struct session *session, json_t *cluster)
{
    bool workers = json_object_get(cluster, "worker") || json_object_get(cluster, "chief");
    if (!workers)
        return tool_refuse("--workers: expected the addresses of the workers, got none; try --workers "
                           "node1:2222,node2:2222");
    char *text = text_of(cluster, json_object_get(cluster, "chief") ? 0 : 1, 0);
    td_status status = td_cluster_check(session->context, text);
    free(text);
    return status == TD_OK ? TOOL_DONE : session_refused(session);
}

static int write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    bool good = file && fprintf(file, "%s\n", text) > 0;
    good = file && fclose(file) == 0 && good;
    return good ? TOOL_DONE : tool_fail("%s: cannot be written: %s", path, strerror(errno));
}

static int write_file(const struct options *options, json_t *cluster, int type, size_t index)
{
    char path[OUTPUT_SIZE], name[64];
    const char *folder = options->output ? options->output : ".";
    bool single = strcmp(types[type], "chief") == 0 || strcmp(types[type], "evaluator") == 0;
    snprintf(name, sizeof name, single ? "%s.json" : "%s-%zu.json", types[type], index);
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return tool_refuse("--output: expected a path of less than %d bytes", OUTPUT_SIZE);
    char *text = text_of(cluster, type, index);
    int status = write_text(options->output ? path : name, text);
    free(text);
    if (status == TOOL_DONE && !options->quiet)
        printf("Saved %s, for %s.\n", options->output ? path : name,
               json_string_value(json_array_get(json_object_get(cluster, types[type]), index)));
    return status;
}

static int write_files(const struct options *options, json_t *cluster)
{
    int status = TOOL_DONE;
    if (options->output && mkdir(options->output, 0777) != 0 && errno != EEXIST)
        return tool_fail("--output: the folder %s cannot be made: %s", options->output, strerror(errno));
    for (int t = 0; t < TYPES; t++) {
        size_t count = json_array_size(json_object_get(cluster, types[t]));
        for (size_t i = 0; i < count && status == TOOL_DONE; i++)
            status = write_file(options, cluster, t, i);
    }
    return status;
}

int cluster_config(const struct options *options)
{
    struct session session = {0};
    json_t *cluster = make_cluster(options);
    int status = session_open(options, &session);
    if (status == TOOL_DONE)
        status = check(&session, cluster);
    if (status == TOOL_DONE)
        status = write_files(options, cluster);
    json_decref(cluster);
    session_close(&session);
    return status;
}
