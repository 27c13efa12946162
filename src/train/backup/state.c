/* state.c - visiting named numbers and arrays, and their file. */
#define _GNU_SOURCE
#include "train/backup/state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#define VERSION      2
#define VERSION_KEY  "tandem backup"
#define STATE_ENTRY  "state.json"
#define CHOICE_ENTRY "choices.json"
#define LARGEST_JSON ((size_t)64 << 20)

enum { BEGINNING = 256 };

static void fail(td_state *state, const char *name, const char *what)
{
    tdi_fail(&state->error, TD_BAD_FILE, "its %s%s%.64s %s", state->prefix.chars ? state->prefix.chars : "",
             state->prefix.length ? "/" : "", name, what);
}

td_status tdi_state_outcome(const td_state *state, tdi_error *error)
{
    return state->error.status == TD_OK ? TD_OK : tdi_fail(error, state->error.status, "%s", state->error.message);
}

/* ---- parts ---- */

void tdi_state_release(td_state *state)
{
    for (int i = 0; i < state->arrays.count; i++) {
        free(state->arrays.at[i].name);
        free(state->arrays.at[i].npy);
    }
    tdi_vec_free(&state->arrays);
    tdi_text_free(&state->prefix);
    tdi_text_free(&state->name);
    json_decref(state->root);
    json_decref(state->tuned);
    free(state->tuned_text);
    *state = (td_state){0};
}

void tdi_state_begin(td_state *state)
{
    json_decref(state->root);
    state->root = json_pack("{s:i}", VERSION_KEY, VERSION);
    state->part = state->root;
    free(state->tuned_text);
    state->tuned_text = NULL;
    state->used = 0;
    state->error = (tdi_error){0};
    if (!state->root)
        tdi_no_memory(&state->error);
}

static void set_text(tdi_text *text, const char *first, const char *second, const char *end)
{
    text->length = 0;
    tdi_text_format(text, "%s%s%s%s", first, *first && *second ? "/" : "", second, end);
}

static json_t *member(td_state *state, json_t *object, const char *name)
{
    json_t *found = json_object_get(object, name);
    if (!found && !state->restoring && json_object_set_new(object, name, json_object()) == 0)
        found = json_object_get(object, name);
    if (!found && !state->restoring)
        tdi_no_memory(&state->error);
    return json_is_object(found) ? found : NULL;
}

bool tdi_state_enter(td_state *state, const char *part, const char *name)
{
    set_text(&state->prefix, part, name ? name : "", "");
    state->part = member(state, state->root, part);
    if (name && state->part)
        state->part = member(state, state->part, name);
    if (state->prefix.failed)
        tdi_no_memory(&state->error);
    return state->part != NULL;
}

int td_state_restoring(const td_state *state)
{
    return state->restoring;
}

/* ---- numbers ---- */

static void put(td_state *state, const char *name, json_t *value)
{
    if (state->error.status == TD_OK && (!state->part || json_object_set_new(state->part, name, value) != 0))
        tdi_no_memory(&state->error);
}

static const json_t *get(td_state *state, const char *name)
{
    const json_t *value = json_object_get(state->part, name);
    if (!value)
        fail(state, name, "is missing");
    return value;
}

static const struct special {
    const char *word;
    double value;
} specials[] = {{"nan", NAN}, {"inf", INFINITY}, {"-inf", -INFINITY}};

static json_t *number_to_json(double value)
{
    if (isfinite(value))
        return json_real(value);
    return json_string(isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

static bool number_of_json(const json_t *json, double *value)
{
    const char *word = json_string_value(json);
    for (size_t i = 0; word && i < sizeof specials / sizeof *specials; i++)
        if (strcmp(word, specials[i].word) == 0) {
            *value = specials[i].value;
            return true;
        }
    *value = json_number_value(json);
    return json_is_number(json);
}

void td_state_number(td_state *state, const char *name, double *value)
{
    if (!state->restoring) {
        put(state, name, number_to_json(*value));
        return;
    }
    double read;
    const json_t *json = get(state, name);
    if (json && !number_of_json(json, &read))
        fail(state, name, "is no number");
    else if (json && !state->looking)
        *value = read;
}

static void whole(td_state *state, const char *name, int64_t least, int64_t most, int64_t *value)
{
    if (!state->restoring) {
        put(state, name, json_integer(*value));
        return;
    }
    const json_t *json = get(state, name);
    int64_t read = json_integer_value(json);
    if (json && (!json_is_integer(json) || read < least || read > most))
        fail(state, name, "is no number that it can be");
    else if (json && !state->looking)
        *value = read;
}

void td_state_count(td_state *state, const char *name, int64_t *value)
{
    whole(state, name, INT64_MIN, INT64_MAX, value);
}

void tdi_state_int(td_state *state, const char *name, int *value)
{
    int64_t read = *value;
    whole(state, name, INT_MIN, INT_MAX, &read);
    *value = (int)read;
}

void tdi_state_flag(td_state *state, const char *name, bool *value)
{
    int64_t read = *value;
    whole(state, name, 0, 1, &read);
    *value = read;
}

void tdi_state_text(td_state *state, const char *name, char **text)
{
    if (!state->restoring) {
        put(state, name, json_string(*text));
        return;
    }
    const json_t *json = get(state, name);
    if (json && !json_is_string(json))
        fail(state, name, "is no text");
    if (!json_is_string(json) || state->looking)
        return;
    free(*text);
    *text = strdup(json_string_value(json));
    if (!*text)
        tdi_no_memory(&state->error);
}

/* ---- arrays ---- */

static size_t bytes_of(td_dtype dtype, const td_shape *shape)
{
    size_t size = td_dtype_size(dtype);
    for (int i = 0; i < shape->rank; i++)
        size *= (size_t)shape->dim[i];
    return size;
}

/* The next array's memory, of this size: that of the same array last time, mostly. */
static tdi_state_array *next_array(td_state *state, const char *name, size_t size)
{
    if (state->used == state->arrays.count && !tdi_push(&state->arrays, (tdi_state_array){0}))
        return NULL;
    tdi_state_array *array = &state->arrays.at[state->used];
    if (!array->name || strcmp(array->name, name) != 0) {
        free(array->name);
        array->name = strdup(name);
    }
    if (array->capacity < size) {
        free(array->npy);
        array->npy = malloc(size);
        array->capacity = array->npy ? size : 0;
    }
    array->size = size;
    state->used++;
    return array->name && array->npy ? array : NULL;
}

static void save_array(td_state *state, td_dtype dtype, const td_shape *shape, const void *values)
{
    char header[TDI_NPY_HEADER];
    size_t head = tdi_npy_header(dtype, shape, 0, header), size = bytes_of(dtype, shape);
    tdi_state_array *array = state->error.status == TD_OK ? next_array(state, state->name.chars, head + size) : NULL;
    if (!array) {
        tdi_no_memory(&state->error);
        return;
    }
    memcpy(array->npy, header, head);
    memcpy(array->npy + head, values, size);
}

static const tdi_state_array *find_array(const td_state *state)
{
    for (int i = 0; i < state->arrays.count; i++)
        if (strcmp(state->arrays.at[i].name, state->name.chars) == 0)
            return &state->arrays.at[i];
    return NULL;
}

static bool is_like(const tdi_npy *npy, td_dtype dtype, const td_shape *shape)
{
    return npy->numbers.dtype == dtype && tdi_numbers_plain(&npy->numbers) && npy->shape.rank == shape->rank &&
           (!npy->fortran || shape->rank < 2) &&
           memcmp(npy->shape.dim, shape->dim, (size_t)shape->rank * sizeof *shape->dim) == 0;
}

static bool name_array(td_state *state, const char *name)
{
    set_text(&state->name, state->prefix.chars ? state->prefix.chars : "", name, ".npy");
    if (state->name.failed)
        tdi_no_memory(&state->error);
    return !state->name.failed;
}

void tdi_state_array_of(td_state *state, const char *name, td_dtype dtype, const td_shape *shape, void *values)
{
    if (!name_array(state, name))
        return;
    if (!state->restoring) {
        save_array(state, dtype, shape, values);
        return;
    }
    const tdi_state_array *array = find_array(state);
    if (!array)
        fail(state, name, "is missing");
    else if (!is_like(&array->facts, dtype, shape))
        fail(state, name, "has another shape or type");
    else if (!state->looking)
        memcpy(values, array->npy + array->facts.offset, bytes_of(dtype, shape));
}

td_shape tdi_state_shape(td_state *state, const char *name)
{
    const tdi_state_array *array = name_array(state, name) ? find_array(state) : NULL;
    return array ? array->facts.shape : (td_shape){.rank = -1};
}

void td_state_floats(td_state *state, const char *name, float *values, size_t count)
{
    tdi_state_array_of(state, name, TD_FLOAT32, &TD_SHAPE((int64_t)count), values);
}

void tdi_state_variables(td_state *state, const char *name, const td_model *model, bool trained, float *values)
{
    tdi_text path = {0};
    for (int i = 0; i < model->architecture->weights.count; i++) {
        const tdi_variable *variable = &model->architecture->weights.at[i]->variable;
        if (trained && !variable->trainable)
            continue;
        path.length = 0;
        tdi_text_format(&path, "%s%s%s/%s", name, *name ? "/" : "", variable->layer, variable->name);
        if (path.failed)
            tdi_no_memory(&state->error);
        else
            tdi_state_array_of(state, path.chars, TD_FLOAT32, &variable->shape, values + variable->offset);
    }
    tdi_text_free(&path);
}

/* ---- to and from a file ---- */

static td_status write_entries(const td_state *state, const char *path, const char *json, tdi_zip_entry *entries,
                               tdi_error *error)
{
    int count = 0;
    entries[count++] = (tdi_zip_entry){.name = STATE_ENTRY, .bytes = json, .size = strlen(json)};
    if (state->tuned_text)
        entries[count++] =
            (tdi_zip_entry){.name = CHOICE_ENTRY, .bytes = state->tuned_text, .size = strlen(state->tuned_text)};
    for (int i = 0; i < state->used; i++)
        entries[count++] = (tdi_zip_entry){
            .name = state->arrays.at[i].name, .bytes = state->arrays.at[i].npy, .size = state->arrays.at[i].size};
    return tdi_zip_write(path, count, entries, error);
}

td_status tdi_state_write(const td_state *state, const char *path, tdi_error *error)
{
    char *json = json_dumps(state->root, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    tdi_zip_entry *entries = calloc((size_t)state->used + 2, sizeof *entries);
    td_status status = json && entries ? write_entries(state, path, json, entries, error) : tdi_no_memory(error);
    free(entries);
    free(json);
    return status;
}

static td_status read_json(tdi_zip *zip, const char *path, const char *entry, json_t **json, tdi_error *error)
{
    void *text;
    size_t size;
    json_error_t reason;
    TDI_TRY(tdi_zip_read(zip, entry, LARGEST_JSON, &text, &size, error));
    *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, &reason);
    free(text);
    return *json ? TD_OK
                 : tdi_fail(error, TD_BAD_FILE, "\"%.200s\": %s, line %d: %s", path, entry, reason.line, reason.text);
}

static td_status check_version(const json_t *root, const char *path, tdi_error *error)
{
    const json_t *version = json_object_get(root, VERSION_KEY);
    if (!json_is_integer(version))
        return tdi_fail(error, TD_BAD_FILE, "\"%.200s\" is no backup of Tandem's", path);
    if (json_integer_value(version) != VERSION)
        return tdi_fail(error, TD_UNSUPPORTED,
                        "\"%.200s\" is a backup of version %lld, and this Tandem reads version %d", path,
                        (long long)json_integer_value(version), VERSION);
    return TD_OK;
}

static td_status read_array(td_state *state, tdi_zip *zip, const char *path, const char *entry, tdi_error *error)
{
    void *bytes;
    char what[512];
    tdi_state_array array = {.name = strdup(entry)};
    td_status status =
        array.name ? tdi_zip_read(zip, entry, SIZE_MAX, &bytes, &array.size, error) : tdi_no_memory(error);
    if (status == TD_OK) {
        array.npy = bytes;
        snprintf(what, sizeof what, "\"%.200s\": %.200s", path, entry);
        status = tdi_npy_parse(bytes, array.size, what, &array.facts, error);
    }
    if (status == TD_OK && tdi_push(&state->arrays, array))
        return TD_OK;
    free(array.name);
    free(array.npy);
    return status == TD_OK ? tdi_no_memory(error) : status;
}

static td_status read_entries(td_state *state, tdi_zip *zip, const char *path, tdi_error *error)
{
    TDI_TRY(read_json(zip, path, STATE_ENTRY, &state->root, error));
    TDI_TRY(check_version(state->root, path, error));
    if (tdi_zip_has(zip, CHOICE_ENTRY))
        TDI_TRY(read_json(zip, path, CHOICE_ENTRY, &state->tuned, error));
    for (int64_t i = 0; i < tdi_zip_count(zip); i++) {
        const char *entry = tdi_zip_name(zip, i);
        if (entry && tdi_ends_in(entry, ".npy"))
            TDI_TRY(read_array(state, zip, path, entry, error));
    }
    return TD_OK;
}

td_status tdi_state_read(td_state *state, const char *path, tdi_error *error)
{
    tdi_zip *zip;
    *state = (td_state){.restoring = true};
    TDI_TRY(tdi_zip_open(path, &zip, error));
    td_status status = read_entries(state, zip, path, error);
    tdi_zip_close(zip);
    if (status != TD_OK)
        tdi_state_release(state);
    return status;
}

/* ---- to and from memory: pieces, each behind its size ---- */

static void put_piece(char **at, const void *bytes, uint64_t size)
{
    memcpy(*at, &size, sizeof size);
    memcpy(*at + sizeof size, bytes, size);
    *at += sizeof size + size;
}

td_status tdi_state_pack(const td_state *state, void **bytes, size_t *size, tdi_error *error)
{
    char *json = json_dumps(state->root, JSON_COMPACT | JSON_REAL_PRECISION(17));
    *size = json ? sizeof(uint64_t) + strlen(json) : 0;
    for (int i = 0; i < state->used; i++)
        *size += 2 * sizeof(uint64_t) + strlen(state->arrays.at[i].name) + state->arrays.at[i].size;
    char *at = *bytes = json ? malloc(*size) : NULL;
    if (at) {
        put_piece(&at, json, strlen(json));
        for (int i = 0; i < state->used; i++) {
            put_piece(&at, state->arrays.at[i].name, strlen(state->arrays.at[i].name));
            put_piece(&at, state->arrays.at[i].npy, state->arrays.at[i].size);
        }
    }
    free(json);
    return at ? TD_OK : tdi_no_memory(error);
}

static bool take_piece(const char **at, const char *end, const char **piece, size_t *size)
{
    uint64_t length;
    if ((size_t)(end - *at) < sizeof length)
        return false;
    memcpy(&length, *at, sizeof length);
    *at += sizeof length;
    if ((uint64_t)(end - *at) < length)
        return false;
    *piece = *at;
    *size = length;
    *at += length;
    return true;
}

static td_status unpack_array(td_state *state, const char **at, const char *end, tdi_error *error)
{
    const char *name, *npy;
    size_t name_size, size;
    if (!take_piece(at, end, &name, &name_size) || !take_piece(at, end, &npy, &size))
        return tdi_fail(error, TD_BAD_FILE, "the state is cut short");
    tdi_state_array array = {.name = strndup(name, name_size), .npy = malloc(size + 1), .size = size};
    td_status status = array.name && array.npy ? TD_OK : tdi_no_memory(error);
    if (status == TD_OK) {
        memcpy(array.npy, npy, size);
        status = tdi_npy_parse(array.npy, size, array.name, &array.facts, error);
    }
    if (status == TD_OK && tdi_push(&state->arrays, array))
        return TD_OK;
    free(array.name);
    free(array.npy);
    return status == TD_OK ? tdi_no_memory(error) : status;
}

td_status tdi_state_unpack(td_state *state, const void *bytes, size_t size, tdi_error *error)
{
    const char *at = bytes, *end = at + size, *json;
    size_t length;
    *state = (td_state){.restoring = true};
    if (take_piece(&at, end, &json, &length))
        state->root = json_loadb(json, length, JSON_REJECT_DUPLICATES, NULL);
    td_status status = state->root ? TD_OK : tdi_fail(error, TD_BAD_FILE, "what was given is no state");
    while (status == TD_OK && at < end)
        status = unpack_array(state, &at, end, error);
    if (status != TD_OK)
        tdi_state_release(state);
    return status;
}

/* As far as the bytes go: a file may have been cut short. */
static bool agrees(const char *bytes, size_t size, size_t at, const char *expected)
{
    size_t there = size > at ? size - at : 0, length = strlen(expected);
    return memcmp(bytes + at, expected, there < length ? there : length) == 0;
}

static bool begins_as_zip(const char *bytes, size_t size)
{
    return agrees(bytes, size, 0, "PK\3\4");
}

/* A zip's first entry: behind its magic the version that it needs, of which the second byte is 0, at 30 its name. */
static bool begins_as_backup(const char *bytes, size_t size)
{
    static const char key[] = "\"" VERSION_KEY "\"";
    return (size <= 5 || bytes[5] == 0) && agrees(bytes, size, 30, STATE_ENTRY) &&
           (size < BEGINNING || memmem(bytes, size, key, sizeof key - 1));
}

/* By the directory at its end, which stands also where the beginning was lost. */
static bool lists_state(const char *path, bool *opens)
{
    tdi_zip *zip;
    *opens = tdi_zip_open(path, &zip, NULL) == TD_OK;
    bool lists = *opens && tdi_zip_has(zip, STATE_ENTRY);
    if (*opens)
        tdi_zip_close(zip);
    return lists;
}

td_status tdi_state_may_replace(const char *path, tdi_error *error)
{
    char bytes[BEGINNING];
    bool opens;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t got = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
    int reason = got < 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    if (reason && reason != ENOENT)
        return tdi_fail(error, TD_IO, "\"%.200s\" cannot be read: %s; make it readable, or name another folder", path,
                        strerror(reason));
    if (got <= 0)
        return TD_OK;
    bool lists = lists_state(path, &opens), cut = got < BEGINNING;
    if (begins_as_zip(bytes, (size_t)got) ? begins_as_backup(bytes, (size_t)got) && !(cut && opens) : lists)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT,
                    "\"%.200s\" is no backup, and a backup would take its place; move it away, or name another folder",
                    path);
}
