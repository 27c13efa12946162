/* tf_config.c - reads TensorFlow's description of a cluster:
 *
 *   {"cluster": {"chief": ["node0:2222"], "worker": ["node1:2222", "node2:2222"], "ps": [...], "evaluator": [...]},
 *    "task": {"type": "worker", "index": 1}}
 *
 * As TensorFlow does, it takes an index as a number or a string, and the addresses of a type as a list or as an object
 * by index; the chief is optional, and the evaluator need not stand in the cluster. Other members are ignored: services
 * that write TF_CONFIG put more into it. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "cluster/parse.h"

enum { LARGEST = 1 << 20 }; /* bytes of a file */

/* What is being read, and where it goes. */
typedef struct reading {
    const tdi_cluster_request *request;
    bool of_file;
    tdi_cluster_config *config;
    tdi_mistakes *mistakes;
    int before; /* mistakes that were there before, of other configurations */
} reading;

static bool all_is_well(const reading *r)
{
    return r->mistakes->list.count == r->before && !r->mistakes->no_memory;
}

static const char *kind_of(const json_t *json)
{
    static const char *const kinds[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list", [JSON_STRING] = "a string", [JSON_INTEGER] = "a number",
        [JSON_REAL] = "a number",    [JSON_TRUE] = "true",    [JSON_FALSE] = "false",     [JSON_NULL] = "null"};
    return json ? kinds[json_typeof(json)] : "nothing";
}

/* The object's member, or one whose name was meant to be this; *found: the name that it has. */
static json_t *member(json_t *object, const char *name, const char **found)
{
    const char *key;
    json_t *value, *exact = json_object_get(object, name);
    *found = exact ? name : NULL;
    json_object_foreach(object, key, value)
    {
        if (!exact && strncasecmp(key, name, strlen(name)) == 0 && strlen(key) <= strlen(name) + 1) {
            *found = key;
            return value;
        }
    }
    return exact;
}

/* ---- the cluster ---- */

static void refuse_type(const reading *r, const char *type, const char *where)
{
    const char *near = tdi_task_type_near(type);
    if (near)
        tdi_mistake(r->mistakes, "task type \"%s\"%s: did you mean %s?", tdi_word_of(type).text, where, near);
    else
        tdi_mistake(r->mistakes, "task type \"%s\"%s: expected chief, worker, ps or evaluator", tdi_word_of(type).text,
                    where);
}

static td_status add_address(const reading *r, tdi_task_type type, int index, const json_t *address)
{
    tdi_task task = {.type = type, .index = index};
    char name[TDI_TASK_NAME];
    if (json_is_string(address))
        return tdi_cluster_add(r->config, type, index, json_string_value(address));
    tdi_mistake(r->mistakes, "%s: expected an address, \"host:port\", got %s", tdi_task_name(&task, name),
                kind_of(address));
    return tdi_cluster_add(r->config, type, index, NULL);
}

/* The address with an index, in a list or in an object. */
static json_t *address_at(json_t *addresses, int index)
{
    char key[16];
    snprintf(key, sizeof key, "%d", index);
    return json_is_array(addresses) ? json_array_get(addresses, (size_t)index) : json_object_get(addresses, key);
}

static td_status read_addresses(const reading *r, tdi_task_type type, json_t *addresses)
{
    size_t count = json_is_array(addresses) ? json_array_size(addresses) : json_object_size(addresses);
    const char *name = tdi_task_type_name(type);
    if (!json_is_array(addresses) && !json_is_object(addresses)) {
        tdi_mistake(r->mistakes, "%s: expected a list, [\"host:port\", ...], got %s", name, kind_of(addresses));
        return TD_OK;
    }
    if (count + (size_t)r->config->count > TDI_MAX_TASKS) {
        tdi_mistake(r->mistakes, "%s: the cluster has more than %d tasks", name, TDI_MAX_TASKS);
        return TD_OK;
    }
    for (int i = 0; i < (int)count; i++) {
        json_t *address = address_at(addresses, i);
        if (!address)
            tdi_mistake(r->mistakes,
                        "%s: expected addresses for the indices 0 to %d, and %d is missing; number them "
                        "from 0 on",
                        name, (int)count - 1, i);
        if (!address)
            return TD_OK;
        TDI_TRY(add_address(r, type, i, address));
    }
    return TD_OK;
}

static td_status read_cluster(const reading *r, json_t *cluster)
{
    const char *key;
    json_t *value;
    tdi_task_type type;
    json_object_foreach(cluster, key, value)
    {
        if (!tdi_task_type_of(key, &type))
            refuse_type(r, key, " in \"cluster\"");
    }
    for (int t = 0; t < TDI_TASK_TYPES; t++)
        if ((value = json_object_get(cluster, tdi_task_type_name((tdi_task_type)t))))
            TDI_TRY(read_addresses(r, (tdi_task_type)t, value));
    if (r->config->count == 0 && all_is_well(r))
        tdi_mistake(r->mistakes, "\"cluster\" has no tasks; add \"worker\": [\"host:port\", ...]");
    return TD_OK;
}

/* ---- which task this process is ---- */

typedef struct named_task {
    tdi_task_type type;
    int index; /* -1: not said */
} named_task;

/* Reads "worker:1" or "chief". */
static bool read_task_word(const reading *r, const char *word, named_task *task)
{
    char type[32];
    const char *colon = strchr(word, ':');
    size_t length = colon ? (size_t)(colon - word) : strlen(word);
    snprintf(type, sizeof type, "%.*s", (int)(length < sizeof type ? length : sizeof type - 1), word);
    task->index = -1;
    if (!tdi_task_type_of(type, &task->type))
        refuse_type(r, type, " of --task");
    else if (colon && !tdi_whole_number(colon + 1, &task->index))
        tdi_mistake(r->mistakes, "--task: expected TYPE:INDEX, got '%s'; try --task %s:0", tdi_word_of(word).text,
                    type);
    else
        return true;
    return false;
}

static bool read_index(const reading *r, const json_t *index, int *number)
{
    *number = -1;
    if (!index)
        return true;
    if (json_is_integer(index) && json_integer_value(index) >= 0 && json_integer_value(index) < 1000000000)
        *number = (int)json_integer_value(index);
    else if (json_is_string(index) && tdi_whole_number(json_string_value(index), number))
        return true;
    else if (json_is_string(index))
        tdi_mistake(r->mistakes, "\"task\": \"index\": expected a whole number from 0, got \"%s\"",
                    tdi_word_of(json_string_value(index)).text);
    else if (json_is_integer(index))
        tdi_mistake(r->mistakes, "\"task\": \"index\": expected a whole number from 0, got %lld",
                    (long long)json_integer_value(index));
    else
        tdi_mistake(r->mistakes, "\"task\": \"index\": expected a whole number from 0, got %s%s", kind_of(index),
                    json_is_real(index) ? " with a point" : "");
    return *number >= 0;
}

static bool read_task_object(const reading *r, json_t *task, named_task *named)
{
    const json_t *type = json_object_get(task, "type");
    if (!json_is_object(task))
        tdi_mistake(r->mistakes, "\"task\": expected {\"type\": \"worker\", \"index\": 0}, got %s", kind_of(task));
    else if (!json_is_string(type))
        tdi_mistake(r->mistakes, "\"task\": \"type\": expected \"chief\", \"worker\", \"ps\" or \"evaluator\", got %s",
                    kind_of(type));
    else if (!tdi_task_type_of(json_string_value(type), &named->type))
        refuse_type(r, json_string_value(type), "");
    else
        return read_index(r, json_object_get(task, "index"), &named->index);
    return false;
}

/* "has workers 0 to 2", "has worker 0 alone", "has no ps" */
static void refuse_task(const reading *r, const named_task *task, int count)
{
    const char *type = tdi_task_type_name(task->type);
    int index = task->index < 0 ? 0 : task->index;
    if (task->type == TDI_EVALUATOR)
        tdi_mistake(r->mistakes, "task evaluator %d, but a cluster has one evaluator; its index is 0", index);
    else if (task->type == TDI_CHIEF && count == 0)
        tdi_mistake(r->mistakes,
                    "task chief %d, but the cluster has no chief; worker 0 is the chief then: name that "
                    "task, or add \"chief\": [\"host:port\"] to the cluster",
                    index);
    else if (count == 0)
        tdi_mistake(r->mistakes, "task %s %d, but the cluster has no %s; add \"%s\": [\"host:port\"] to it", type,
                    index, type, type);
    else if (count == 1)
        tdi_mistake(r->mistakes, "task %s %d, but the cluster has %s 0 alone; name that, or add its address", type,
                    index, type);
    else if (task->index < 0)
        tdi_mistake(r->mistakes, "task %s: which of the %ss 0 to %d? Add its index", type, type, count - 1);
    else
        tdi_mistake(r->mistakes, "task %s %d, but the cluster has %ss 0 to %d; name one of these, or add its address",
                    type, index, type, count - 1);
}

/* Finds the task among the cluster's. An evaluator that does not stand there is added. */
static td_status find_self(const reading *r, const named_task *task)
{
    tdi_cluster_config *config = r->config;
    int count = tdi_cluster_count(config, task->type);
    int index = task->index < 0 && count <= 1 ? 0 : task->index;
    if (task->type == TDI_EVALUATOR && count == 0 && index == 0)
        TDI_TRY(tdi_cluster_add(config, TDI_EVALUATOR, 0, NULL));
    config->self = tdi_cluster_find(config, task->type, index);
    if (config->self < 0)
        refuse_task(r, task, count);
    return TD_OK;
}

static td_status read_self(const reading *r, json_t *root)
{
    named_task named = {.index = -1};
    const char *found;
    json_t *task = member(root, "task", &found);
    if (r->request->task)
        return read_task_word(r, r->request->task, &named) ? find_self(r, &named) : TD_OK;
    if (task && strcmp(found, "task") == 0)
        return read_task_object(r, task, &named) ? find_self(r, &named) : TD_OK;
    if (task)
        tdi_mistake(r->mistakes, "\"%s\": did you mean \"task\"?", tdi_word_of(found).text);
    else if (!r->of_file)
        tdi_mistake(r->mistakes, "no \"task\": which task is this process? Add \"task\": {\"type\": \"worker\", "
                                 "\"index\": 0}, or give --task worker:0");
    return TD_OK;
}

/* ---- the whole ---- */

static bool has_task_types(json_t *root)
{
    for (int t = 0; t < TDI_TASK_TYPES; t++)
        if (json_object_get(root, tdi_task_type_name((tdi_task_type)t)))
            return true;
    return false;
}

static td_status read_root(const reading *r, json_t *root)
{
    const char *found;
    json_t *cluster = member(root, "cluster", &found);
    bool bare = !cluster && json_is_object(root) && has_task_types(root);
    if (bare && r->of_file)
        TDI_TRY(read_cluster(r, root));
    else if (!json_is_object(root))
        tdi_mistake(r->mistakes, "expected {\"cluster\": ..., \"task\": ...}, got %s", kind_of(root));
    else if (bare)
        tdi_mistake(r->mistakes, "no \"cluster\": put the task types into it, as {\"cluster\": {\"worker\": [...]}, "
                                 "\"task\": {\"type\": \"worker\", \"index\": 0}}");
    else if (!cluster)
        tdi_mistake(r->mistakes, "no \"cluster\": this would train alone; add it, or %s",
                    r->of_file ? "leave out the file" : "unset TF_CONFIG");
    else if (strcmp(found, "cluster") != 0)
        tdi_mistake(r->mistakes, "\"%s\": did you mean \"cluster\"?", tdi_word_of(found).text);
    else if (!json_is_object(cluster))
        tdi_mistake(r->mistakes,
                    "\"cluster\": expected an object of task types, {\"worker\": [\"host:port\", ...]}, "
                    "got %s",
                    kind_of(cluster));
    else
        TDI_TRY(read_cluster(r, cluster));
    return all_is_well(r) ? read_self(r, root) : TD_OK;
}

static bool names_a_file(const char *text)
{
    struct stat file;
    return stat(text, &file) == 0;
}

/* The place and the reason by jansson, without its quotation of what stands there. */
static void refuse_text(const reading *r, const char *text, const json_error_t *error)
{
    char where[64] = "";
    const char *near = strstr(error->text, " near ");
    int length = near ? (int)(near - error->text) : (int)strlen(error->text);
    const char *source = r->mistakes->source, *quote = strpbrk(text, "'\"");
    if (error->line > 1)
        snprintf(where, sizeof where, "line %d, column %d: ", error->line, error->column);
    else if (error->line == 1)
        snprintf(where, sizeof where, "column %d: ", error->column);
    r->mistakes->source = NULL;
    if (*source && !r->of_file && names_a_file(text))
        tdi_mistake(r->mistakes, "%s is not JSON but the name of a file; give --cluster %s instead", source,
                    tdi_word_of(text).text);
    else
        tdi_mistake(r->mistakes, "%.400s is not JSON: %s%.*s%s", *source ? source : "the text", where, length,
                    error->text, quote && *quote == '\'' ? "; its quotes are \", not '" : "");
    r->mistakes->source = source;
}

td_status tdi_tf_config_parse(const char *text, bool of_file, const tdi_cluster_request *request,
                              tdi_cluster_config *config, tdi_mistakes *mistakes)
{
    reading r = {request, of_file, config, mistakes, mistakes->list.count};
    json_error_t error;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!root) {
        refuse_text(&r, text, &error);
        return TD_OK;
    }
    td_status status = read_root(&r, root);
    json_decref(root);
    return status;
}

/* The file's text, NUL-terminated; NULL after a mistake. */
static char *read_text(const char *path, tdi_mistakes *mistakes)
{
    struct stat is;
    char *text = calloc(1, LARGEST + 2);
    bool regular = stat(path, &is) != 0 || S_ISREG(is.st_mode);
    FILE *file = text && regular ? fopen(path, "rb") : NULL;
    size_t size = file ? fread(text, 1, LARGEST + 1, file) : 0;
    if (!text)
        mistakes->no_memory = true;
    else if (!regular)
        tdi_mistake(mistakes, "expected a file with the JSON of TF_CONFIG, got %s; write it to a file first",
                    S_ISDIR(is.st_mode) ? "a folder" : "a pipe or a device");
    else if (!file || ferror(file))
        tdi_mistake(mistakes, "the file cannot be read: %s", strerror(errno));
    else if (size > LARGEST)
        tdi_mistake(mistakes, "expected the JSON of TF_CONFIG, got a file of more than %d bytes", LARGEST);
    else if (memchr(text, '\0', size))
        tdi_mistake(mistakes, "expected the JSON of TF_CONFIG, got a file that is no text");
    else {
        fclose(file);
        return text;
    }
    if (file)
        fclose(file);
    free(text);
    return NULL;
}

td_status tdi_tf_config_file(const tdi_cluster_request *request, tdi_cluster_config *config, tdi_mistakes *mistakes)
{
    snprintf(config->source, sizeof config->source, "%.400s", request->cluster);
    char *text = read_text(request->cluster, mistakes);
    if (!text)
        return mistakes->no_memory ? TD_NO_MEMORY : TD_OK;
    td_status status = tdi_tf_config_parse(text, true, request, config, mistakes);
    free(text);
    return status;
}
