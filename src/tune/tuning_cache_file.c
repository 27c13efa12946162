/* tuning_cache_file.c - choices.json:
 *
 *     {"tandem choices": 1,
 *      "machines": {"AMD EPYC 9R14, AVX-512, oneDNN 2.6.3 up to ISA 0xff":
 *                     {"conv2d 3x3 same, ...": {"take": "winograd conv2d",
 *                                               "us": [["winograd conv2d", 512.5], ["onednn conv2d", 1034.0]]}}}}
 *
 * An answer that was unsure twice also has "unsure": 2. */
#include "tune/tuning_cache_file.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/atomic_file.h"
#include "files/folders.h"

enum { VERSION = 1, LARGEST = 16 << 20 };
static const char version_key[] = "tandem choices";

/* ---- the place ---- */

typedef enum place { PLACE_OFF, PLACE_NONE, PLACE_FILE } place;

/* The folder, then the file's path. */
static place find_place(char *folder, char *path)
{
    const char *own = getenv("TANDEM_CACHE");
    bool given = own && *own;
    if (given && strcasecmp(own, "off") == 0)
        return PLACE_OFF;
    if (given ? snprintf(folder, PATH_MAX, "%s", own) >= PATH_MAX : !tdi_user_cache("", folder, PATH_MAX))
        return PLACE_NONE;
    int length = snprintf(path, PATH_MAX, "%s/choices.json", folder);
    return length < PATH_MAX ? PLACE_FILE : PLACE_NONE;
}

/* ---- to and from JSON ---- */

static json_t *tuned_to_json(const tdi_tuned *tuned)
{
    json_t *times = json_array();
    for (int i = 0; i < tuned->count; i++)
        json_array_append_new(times, json_pack("[s, f]", tuned->candidates[i].name, tuned->candidates[i].us));
    json_t *json = json_pack("{s:s, s:o}", "take", tuned->candidates[tuned->chosen].name, "us", times);
    if (tuned->unsure)
        json_object_set_new(json, "unsure", json_integer(tuned->unsure));
    return json;
}

static bool candidate_of_json(const json_t *pair, tdi_candidate *candidate)
{
    const json_t *us = json_array_get(pair, 1);
    candidate->name = json_string_value(json_array_get(pair, 0));
    candidate->us = json_number_value(us);
    return candidate->name && json_is_number(us) && isfinite(candidate->us) && candidate->us >= 0;
}

static int unsure_of(const json_t *json)
{
    json_int_t times = json_integer_value(json_object_get(json, "unsure"));
    return times < 0 ? 0 : times > TDI_OFTEN_ENOUGH ? TDI_OFTEN_ENOUGH : (int)times;
}

static bool tuned_of_json(const json_t *json, tdi_tuned *tuned)
{
    const char *take = json_string_value(json_object_get(json, "take"));
    const json_t *times = json_object_get(json, "us");
    size_t count = json_array_size(times);
    tuned->chosen = -1;
    tuned->unsure = unsure_of(json);
    if (!take || count < 1 || count > TDI_MAX_CANDIDATES)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!candidate_of_json(json_array_get(times, i), &tuned->candidates[i]))
            return false;
        if (strcmp(tuned->candidates[i].name, take) == 0)
            tuned->chosen = (int)i;
    }
    tuned->count = (int)count;
    return tuned->chosen >= 0;
}

/* The object that has a machine's answers; it is made when it is not there. */
static json_t *machine_of(json_t *root, const char *name)
{
    json_t *machines = json_object_get(root, "machines"), *machine = json_object_get(machines, name);
    if (!json_is_object(machine) && json_object_set_new(machines, name, json_object()) == 0)
        machine = json_object_get(machines, name);
    return machine;
}

static bool put(json_t *root, const tdi_tuned *tuned)
{
    json_t *machine = machine_of(root, tuned->machine);
    return machine && json_object_set_new(machine, tuned->key, tuned_to_json(tuned)) == 0;
}

static json_t *empty_root(void)
{
    return json_pack("{s:i, s:{}}", version_key, VERSION, "machines");
}

static bool is_root(const json_t *root)
{
    return json_integer_value(json_object_get(root, version_key)) == VERSION &&
           json_is_object(json_object_get(root, "machines"));
}

/* In a backup every answer is final, unsure or not: a resumed run chooses as the run before. */
json_t *tdi_tuning_cache_export(const tdi_tuning_cache *cache)
{
    json_t *root = empty_root();
    for (int i = 0; root && i < cache->all.count; i++) {
        tdi_tuned tuned = *cache->all.at[i];
        tuned.unsure = 0;
        if (tuned.used && !put(root, &tuned)) {
            json_decref(root);
            return NULL;
        }
    }
    return root;
}

td_status tdi_tuning_cache_import(tdi_tuning_cache *cache, const json_t *exported, tdi_error *error)
{
    const char *machine, *key;
    json_t *of_machine, *json;
    if (!is_root(exported))
        return tdi_fail(error, TD_BAD_FILE, "these are no choices of kernels that this version can read");
    json_object_foreach(json_object_get(exported, "machines"), machine, of_machine)
        json_object_foreach(of_machine, key, json)
    {
        tdi_tuned tuned = {.machine = machine, .key = key};
        if (!tuned_of_json(json, &tuned))
            return tdi_fail(error, TD_BAD_FILE, "the choice of \"%s\" cannot be read", key);
        if (!tdi_tuning_cache_put(cache, &tuned))
            return tdi_no_memory(error);
    }
    return TD_OK;
}

/* ---- the file ---- */

static bool is_whole(const json_t *root)
{
    const char *machine, *key;
    json_t *of_machine, *json;
    tdi_tuned tuned;
    bool whole = is_root(root);
    json_object_foreach(json_object_get(root, "machines"), machine, of_machine)
        json_object_foreach(of_machine, key, json)
    {
        whole = whole && tuned_of_json(json, &tuned);
    }
    return whole;
}

typedef enum found { FOUND_NONE, FOUND_WHOLE, FOUND_DAMAGED, FOUND_OTHER_VERSION } found;

/* *root is NULL but for FOUND_WHOLE. */
static found read_file(const char *path, json_t **root)
{
    struct stat file;
    *root = NULL;
    if (stat(path, &file) != 0)
        return FOUND_NONE;
    json_t *read = S_ISREG(file.st_mode) && file.st_size <= LARGEST ? json_load_file(path, 0, NULL) : NULL;
    const json_t *version = json_object_get(read, version_key);
    bool other = json_is_integer(version) && json_integer_value(version) != VERSION;
    if (is_whole(read)) {
        *root = read;
        return FOUND_WHOLE;
    }
    json_decref(read);
    return other ? FOUND_OTHER_VERSION : FOUND_DAMAGED;
}

/* A folder, a pipe: neither read nor replaced. */
static bool is_no_file(const char *path)
{
    struct stat file;
    return stat(path, &file) == 0 && !S_ISREG(file.st_mode);
}

static void load(td_context *context, tdi_tuning_cache *cache)
{
    char folder[PATH_MAX], path[PATH_MAX];
    json_t *root;
    if (find_place(folder, path) != PLACE_FILE)
        return;
    if (is_no_file(path)) {
        tdi_log(context, TD_LOG_WARNING, "%s is not a file: which kernels are fastest here is not remembered", path);
        return;
    }
    found what = read_file(path, &root);
    if (root)
        tdi_tuning_cache_import(cache, root, NULL); /* answers that do not fit into memory are timed again */
    json_decref(root);
    if (what == FOUND_DAMAGED)
        tdi_log(context, TD_LOG_WARNING, "%s is damaged: what it remembered is timed again, and the file written anew",
                path);
    if (what == FOUND_OTHER_VERSION)
        tdi_log(context, TD_LOG_WARNING,
                "%s is of another version of Tandem: it is left as it is, and which kernels are fastest here is not "
                "remembered; name another folder by TANDEM_CACHE",
                path);
}

static void free_cache(void *cache)
{
    tdi_tuning_cache_free(cache);
}

static tdi_tuning_cache *make(td_context *context)
{
    tdi_tuning_cache *cache = tdi_tuning_cache_create();
    if (cache && tdi_context_own(context, cache, free_cache)) {
        context->tuning_cache = cache;
        return cache;
    }
    tdi_tuning_cache_free(cache);
    return NULL;
}

tdi_tuning_cache *tdi_tuning_cache_of(td_context *context)
{
    char folder[PATH_MAX], path[PATH_MAX];
    if (!context->tuning_cache && find_place(folder, path) != PLACE_OFF && make(context))
        load(context, context->tuning_cache);
    return context->tuning_cache;
}

td_status tdi_tuning_cache_restore(td_context *context, const json_t *exported, tdi_error *error)
{
    tdi_tuning_cache *cache = tdi_tuning_cache_of(context);
    if (!cache) {
        cache = make(context);
        if (!cache)
            return tdi_no_memory(error);
        cache->untimed = true;
    }
    return tdi_tuning_cache_import(cache, exported, error);
}

/* What others have measured meanwhile and are sure of is better than what is unsure here; what lasts is the first's. */
static bool worth_writing(json_t *root, const tdi_tuned *tuned)
{
    const json_t *other = json_object_get(machine_of(root, tuned->machine), tuned->key);
    bool better = !tuned->lasting && (!tuned->unsure || unsure_of(other));
    return tuned->measured && (better || !other);
}

/* What other processes have written meanwhile, here in `root`, stays. */
static json_t *merge(json_t *root, const tdi_tuning_cache *cache)
{
    if (!root)
        root = empty_root();
    for (int i = 0; root && i < cache->all.count; i++)
        if (worth_writing(root, cache->all.at[i]) && !put(root, cache->all.at[i])) {
            json_decref(root);
            return NULL;
        }
    return root;
}

static td_status write_file(const char *path, const json_t *root, tdi_error *error)
{
    char *text = root ? json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(5)) : NULL;
    if (!text)
        return tdi_no_memory(error);
    td_status status = tdi_atomic_save(path, text, strlen(text), error);
    free(text);
    return status;
}

static void remember(td_context *context, tdi_tuning_cache *cache)
{
    char folder[PATH_MAX], path[PATH_MAX];
    tdi_error error = {0};
    json_t *root;
    if (find_place(folder, path) != PLACE_FILE || is_no_file(path) || read_file(path, &root) == FOUND_OTHER_VERSION)
        return;
    cache->changed = false;
    tdi_make_folders(folder, 0700); /* private, as XDG wants it */
    root = merge(root, cache);
    bool written = write_file(path, root, &error) == TD_OK;
    if (!written && !cache->unwritten)
        tdi_log(context, TD_LOG_INFO, "which kernels are fastest here cannot be remembered: %s", error.message);
    cache->unwritten = !written;
    json_decref(root);
}

/* Called after each job: a small one has no time for more than a look. */
void tdi_tuning_cache_save(td_context *context)
{
    tdi_tuning_cache *cache = context->tuning_cache;
    if (cache && cache->changed)
        remember(context, cache);
}

/* Why the file cannot be written, NULL when it can: in its folder, or in the one in which that would be made. */
static const char *refusal(const char *folder, const char *path)
{
    char place[PATH_MAX];
    struct stat facts;
    snprintf(place, sizeof place, "%s", folder);
    if (is_no_file(path))
        return "it is not a file";
    while (stat(place, &facts) != 0 && errno == ENOENT && strcmp(place, ".") != 0) {
        char *slash = strrchr(place, '/');
        if (!slash)
            strcpy(place, ".");
        else
            slash[slash == place] = '\0';
    }
    if (access(place, W_OK | X_OK) != 0)
        return strerror(errno);
    return tdi_is_folder(place) ? NULL : strerror(ENOTDIR);
}

void tdi_tuning_cache_describe(FILE *out)
{
    const char *why_not;
    char folder[PATH_MAX], path[PATH_MAX];
    switch (find_place(folder, path)) {
    case PLACE_OFF:
        fprintf(out, "kernels: chosen by rules, not by timing (TANDEM_CACHE=off)\n");
        return;
    case PLACE_NONE:
        fprintf(out, "kernels: timed in every run; none of TANDEM_CACHE, XDG_CACHE_HOME and HOME names a folder to "
                     "remember them in\n");
        return;
    case PLACE_FILE:
        why_not = refusal(folder, path);
        if (why_not)
            fprintf(out, "kernels: timed in every run; %s cannot be written: %s\n", path, why_not);
        else
            fprintf(out, "kernels: timed once, remembered in %s\n", path);
        return;
    }
}
