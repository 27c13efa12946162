/* tfrecord.c - TFRecord files of tf.train.Examples, gzipped or not, one or several.
 *
 * `features` says which feature is an input or a target: "x=image/encoded,y=image/class/label", or
 * x0=...,x1=...,y0=.... The first record shows the type of a feature: an image (JPEG or PNG, decoded to bytes [height,
 * width, channels]), integers, floats, or bytes. Every other record must have the same type. Beside a class number
 * "image/class/label" a record may have the class's name, "image/class/text"; the names are the recipe. */
#include <files/example.pb-c.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "data/array_names.h"
#include "data/file_list.h"
#include "data/recipe.h"
#include "data/sample_reader.h"
#include "data/source.h"
#include "data/source/image_files.h"

#include "files/tfrecord_file.h"

#define DEFAULT_FEATURES "x=image/encoded,y=image/class/label"
#define MAX_KEY          128

typedef enum feature_kind { FEATURE_IMAGE, FEATURE_BYTES, FEATURE_FLOATS, FEATURE_INTEGERS } feature_kind;

static const char *const kind_names[] = {"an image", "bytes", "floats", "integers"};

typedef struct feature {
    char key[MAX_KEY];
    feature_kind kind;
    int64_t count;       /* numbers or bytes per record; an image has `form` instead */
    tdi_image_form form; /* of decoded images */
} feature;

typedef struct tfrecord_file {
    char *path;
    tdi_records *records;
    int64_t first; /* the number of the file's first record among those of all files */
} tfrecord_file;

typedef struct tfrecord_source {
    tdi_sample_reader reader;
    tdi_vec(tfrecord_file) files;
    feature features[TDI_MAX_COLUMNS]; /* one per column */
} tfrecord_source;

/* ---- which files ---- */

/* True by the first file's name: "a.tfrecord", "a.tfrecord-00000-of-00005", with or without ".gz". */
static bool tfrecord_claims(const char *path)
{
    glob_t found;
    char *first = strndup(path, strcspn(path, ","));
    if (!first)
        return false;
    bool claimed = strstr(first, ".tfrecord") != NULL;
    if (!claimed && glob(first, 0, NULL, &found) == 0) {
        claimed = strstr(found.gl_pathv[0], ".tfrecord") != NULL;
        globfree(&found);
    }
    free(first);
    return claimed;
}

static td_status add_file(tfrecord_source *source, const char *path, bool skip, tdi_error *error)
{
    tfrecord_file file = {strdup(path), NULL, source->reader.source.samples};
    if (!file.path || !tdi_push(&source->files, file)) {
        free(file.path);
        return tdi_no_memory(error);
    }
    tfrecord_file *added = &source->files.at[source->files.count - 1];
    TDI_TRY(tdi_records_open(path, skip, &added->records, error));
    tdi_source_stamp(&source->reader.source, path);
    uint32_t checksum = tdi_records_checksum(added->records);
    tdi_source_content(&source->reader.source, &checksum, sizeof checksum);
    source->reader.source.samples += tdi_records_count(added->records);
    const char *broken = tdi_records_break(added->records);
    if (broken && source->reader.source.skipped++ == 0)
        snprintf(source->reader.source.skip_reason, sizeof source->reader.source.skip_reason,
                 "%s; the rest of the file is lost", broken);
    return TD_OK;
}

static td_status add_files(tfrecord_source *source, const char *path, bool skip, tdi_error *error)
{
    tdi_paths paths = {0};
    td_status status = tdi_list_files(path, &paths, error);
    for (int i = 0; i < paths.count && status == TD_OK; i++)
        status = add_file(source, paths.at[i], skip, error);
    tdi_paths_free(&paths);
    return status;
}

/* ---- records ---- */

/* A parsed record; `example` was unpacked from `bytes`. */
typedef struct parsed {
    void *bytes;
    Tandem__Example *example;
    char where[512]; /* "file: record 17 at offset 4711", for messages */
} parsed;

static const tfrecord_file *file_of(const tfrecord_source *source, int64_t row)
{
    int low = 0, high = source->files.count - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (source->files.at[middle].first <= row)
            low = middle;
        else
            high = middle - 1;
    }
    return &source->files.at[low];
}

static void let_go(parsed *record)
{
    if (record->example)
        tandem__example__free_unpacked(record->example, NULL);
    free(record->bytes);
}

static td_status take(const tfrecord_source *source, int64_t row, parsed *record, tdi_error *error)
{
    const tfrecord_file *file = file_of(source, row);
    int64_t index = row - file->first, size = tdi_records_size(file->records, index);
    snprintf(record->where, sizeof record->where, "%s: record %" PRId64 " at offset %" PRId64, file->path, index,
             tdi_records_offset(file->records, index));
    record->example = NULL;
    record->bytes = malloc((size_t)size + 1);
    if (!record->bytes)
        return tdi_no_memory(error);
    td_status status = tdi_records_read(file->records, index, record->bytes, error);
    if (status == TD_OK) {
        record->example = tandem__example__unpack(NULL, (size_t)size, record->bytes);
        if (!record->example)
            status = tdi_fail(error, TD_BAD_FILE, "%s: it is no tf.train.Example", record->where);
    }
    if (status != TD_OK)
        let_go(record);
    return status;
}

static const Tandem__Feature *find_feature(const parsed *record, const char *key)
{
    const Tandem__Features *features = record->example->features;
    for (size_t i = 0; features && i < features->n_feature; i++)
        if (strcmp(features->feature[i]->key, key) == 0)
            return features->feature[i]->value;
    return NULL;
}

static td_status no_feature(const parsed *record, const char *key, tdi_error *error)
{
    char names[512] = "";
    size_t used = 0;
    const Tandem__Features *features = record->example->features;
    for (size_t i = 0; features && i < features->n_feature && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", features->feature[i]->key);
    return tdi_fail(error, TD_BAD_FILE,
                    "%s: there is no feature \"%s\" but: %s; say which is what by features (--features)", record->where,
                    key, used ? names : "nothing");
}

/* ---- what a feature holds ---- */

static td_status look_at_image(const parsed *record, const ProtobufCBinaryData *bytes, feature *facts, tdi_error *error)
{
    if (tdi_image_look(bytes->data, bytes->len, TDI_IMAGE_COLOURS, &facts->form.image, error) == TD_OK)
        return TD_OK;
    tdi_error_prefix(error, "%s: \"%s\"", record->where, facts->key);
    return error->status;
}

static bool looks_like_image(const ProtobufCBinaryData *bytes)
{
    const uint8_t *at = bytes->data;
    return bytes->len > 8 && (memcmp(at, "\xFF\xD8\xFF", 3) == 0 || memcmp(at, "\x89PNG", 4) == 0);
}

/* Sets the feature's kind, and its count or form. With `plain` bytes are never taken for an image. */
static td_status look(const parsed *record, feature *facts, bool plain, tdi_error *error)
{
    const Tandem__Feature *found = find_feature(record, facts->key);
    if (!found)
        return no_feature(record, facts->key, error);
    switch (found->kind_case) {
    case TANDEM__FEATURE__KIND_INT64_LIST:
        facts->kind = FEATURE_INTEGERS;
        facts->count = (int64_t)found->int64_list->n_value;
        return TD_OK;
    case TANDEM__FEATURE__KIND_FLOAT_LIST:
        facts->kind = FEATURE_FLOATS;
        facts->count = (int64_t)found->float_list->n_value;
        return TD_OK;
    case TANDEM__FEATURE__KIND_BYTES_LIST:
        if (found->bytes_list->n_value != 1)
            return tdi_fail(error, TD_BAD_FILE, "%s: \"%s\" holds %zu texts where one was expected", record->where,
                            facts->key, found->bytes_list->n_value);
        facts->kind = !plain && looks_like_image(found->bytes_list->value) ? FEATURE_IMAGE : FEATURE_BYTES;
        facts->count = (int64_t)found->bytes_list->value->len;
        return facts->kind == FEATURE_IMAGE ? look_at_image(record, found->bytes_list->value, facts, error) : TD_OK;
    default:
        return tdi_fail(error, TD_BAD_FILE, "%s: \"%s\" is empty", record->where, facts->key);
    }
}

static td_status check_same(const parsed *record, const feature *first, const feature *seen, tdi_error *error)
{
    if (seen->kind != first->kind)
        return tdi_fail(error, TD_BAD_FILE, "%s: \"%s\" holds %s, but %s in the first record", record->where,
                        first->key, kind_names[seen->kind], kind_names[first->kind]);
    if (first->kind != FEATURE_IMAGE && seen->count != first->count)
        return tdi_fail(error, TD_BAD_FILE, "%s: \"%s\" holds %" PRId64 " numbers, but %" PRId64 " in the first record",
                        record->where, first->key, seen->count, first->count);
    return TD_OK;
}

static void copy_numbers(const Tandem__Feature *found, const feature *facts, void *to)
{
    if (facts->kind == FEATURE_INTEGERS)
        memcpy(to, found->int64_list->value, (size_t)facts->count * sizeof(int64_t));
    else if (facts->kind == FEATURE_FLOATS)
        memcpy(to, found->float_list->value, (size_t)facts->count * sizeof(float));
    else
        memcpy(to, found->bytes_list->value->data, (size_t)facts->count);
}

static td_status decode(const parsed *record, const feature *facts, void *to, tdi_error *error)
{
    feature seen = *facts;
    TDI_TRY(look(record, &seen, facts->kind == FEATURE_BYTES, error));
    TDI_TRY(check_same(record, facts, &seen, error));
    const Tandem__Feature *found = find_feature(record, facts->key);
    if (facts->kind != FEATURE_IMAGE) {
        copy_numbers(found, facts, to);
        return TD_OK;
    }
    const ProtobufCBinaryData *bytes = found->bytes_list->value;
    if (tdi_image_form_decode(bytes->data, bytes->len, &facts->form, to, error) == TD_OK)
        return TD_OK;
    tdi_error_prefix(error, "%s: \"%s\"", record->where, facts->key);
    return error->status;
}

static td_status tfrecord_read(tdi_sample_reader *reader, int column, int64_t row, void *to, tdi_error *error)
{
    const tfrecord_source *source = (const tfrecord_source *)reader;
    parsed record;
    TDI_TRY(take(source, row, &record, error));
    td_status status = decode(&record, &source->features[column], to, error);
    let_go(&record);
    return status;
}

/* ---- columns ---- */

static const td_dtype kind_dtypes[] = {TD_UINT8, TD_UINT8, TD_FLOAT32, TD_INT64};

/* The shape of decoded images; resolves `form`. A target's images hold class numbers. */
static td_shape resolve_form(tdi_image_form *form, const td_open_args *args, bool target)
{
    form->kind = TDI_IMAGE_COLOURS;
    form->resize = args->image_size.height > 0 && args->image_size.width > 0;
    form->nearest = target;
    if (form->resize) {
        form->image.height = args->image_size.height;
        form->image.width = args->image_size.width;
    }
    return TD_SHAPE(form->image.height, form->image.width, form->image.channels);
}

static tdi_column_role role_of(const char *name)
{
    return *name == 'x' ? TDI_X : *name == 'y' ? TDI_Y : TDI_WEIGHT;
}

static td_status add_column(tfrecord_source *source, const parsed *first, const char *name, const char *key,
                            const td_open_args *args, tdi_error *error)
{
    tdi_source *base = &source->reader.source;
    int at = tdi_source_columns(base);
    if (at == TDI_MAX_COLUMNS)
        return tdi_fail(error, TD_UNSUPPORTED, "features: more than %d", TDI_MAX_COLUMNS);
    feature *facts = &source->features[at];
    tdi_column *column = &base->columns[at];
    snprintf(facts->key, sizeof facts->key, "%s", key);
    TDI_TRY(look(first, facts, false, error));
    snprintf(column->name, sizeof column->name, "%s", name);
    column->dtype = kind_dtypes[facts->kind];
    column->scale = *name != 'x' ? 1 : args->scale != 0 ? args->scale : facts->kind == FEATURE_IMAGE ? 1.0f / 255 : 1;
    if (facts->kind == FEATURE_IMAGE)
        column->shape = resolve_form(&facts->form, args, *name != 'x');
    else if (facts->count != 1)
        column->shape = TD_SHAPE(facts->count);
    if (facts->kind != FEATURE_IMAGE && facts->count < 1)
        return tdi_fail(error, TD_BAD_FILE, "%s: \"%s\" is empty", first->where, key);
    *tdi_source_count_of(base, role_of(name)) += 1;
    return TD_OK;
}

/* True for the next name in order: "x" or "x0", "x1", ..., then "y" or "y0", ..., then the same for "w", weights. */
static bool is_column_name(const char *name, tdi_source *source)
{
    char numbered[16];
    int next = *tdi_source_count_of(source, role_of(name));
    bool in_order = (*name == 'w' || !source->n_w) && (*name != 'x' || !source->n_y);
    snprintf(numbered, sizeof numbered, "%c%d", *name, next);
    return strchr("xyw", *name) && in_order && ((next == 0 && name[1] == '\0') || strcmp(name, numbered) == 0);
}

static td_status add_columns(tfrecord_source *source, const parsed *first, char *features, const td_open_args *args,
                             tdi_error *error)
{
    for (char *word; (word = strsep(&features, ","));) {
        char *key = strchr(word, '=');
        if (!key || !key[1] || strlen(key + 1) >= MAX_KEY)
            return tdi_fail(error, TD_INVALID_ARGUMENT,
                            "features: expected NAME=FEATURE, got \"%s\"; as in " DEFAULT_FEATURES, word);
        *key++ = '\0';
        if (!is_column_name(word, &source->reader.source))
            return tdi_fail(error, TD_INVALID_ARGUMENT,
                            "features: expected x (or x0, x1, ...) and then y (or y0, y1, ...), got \"%s\"", word);
        TDI_TRY(add_column(source, first, word, key, args, error));
    }
    if (!source->reader.source.n_x)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "features: none is x; as in " DEFAULT_FEATURES);
    return TD_OK;
}

/* ---- names of classes ---- */

enum { MOST_CLASSES = 4096, MOST_LOOKED_AT = 10000 };

/* Sets `key` to the feature with class names that belongs to the first target. False when that is no class number. */
static bool name_key(const tfrecord_source *source, char key[MAX_KEY])
{
    static const char label[] = "/label", text[] = "/text";
    const feature *y = &source->features[source->reader.source.n_x];
    size_t length = strlen(y->key), stem = length - strlen(label);
    if (!source->reader.source.n_y || length < sizeof label || strcmp(y->key + stem, label) != 0)
        return false;
    snprintf(key, MAX_KEY, "%.*s%s", (int)stem, y->key, text);
    return y->kind == FEATURE_INTEGERS && y->count == 1;
}

static int64_t number_of(const parsed *record, const char *label)
{
    const Tandem__Feature *y = find_feature(record, label);
    bool one = y && y->kind_case == TANDEM__FEATURE__KIND_INT64_LIST && y->int64_list->n_value == 1;
    return one ? y->int64_list->value[0] : -1;
}

/* Adds the name that a record gives its class. False when it gives none, or another record has given the class another
 * name: then the feature does not name classes. */
static bool note_name(json_t *names, const parsed *record, const char *label, const char *text)
{
    const Tandem__Feature *name = find_feature(record, text);
    int64_t number = number_of(record, label);
    if (number < 0 || number >= MOST_CLASSES || !name || name->kind_case != TANDEM__FEATURE__KIND_BYTES_LIST ||
        name->bytes_list->n_value != 1)
        return false;
    while (json_array_size(names) <= (size_t)number)
        json_array_append_new(names, json_null());
    const ProtobufCBinaryData *bytes = name->bytes_list->value;
    json_t *found = json_stringn((const char *)bytes->data, bytes->len), *known = json_array_get(names, (size_t)number);
    bool good = found && bytes->len && (json_is_null(known) || json_equal(known, found));
    json_array_set_new(names, (size_t)number, found);
    return good;
}

/* Finds the classes' names in a sample of the records, spread over all of them. A class that none of these has is named
 * by its number. NULL: the records name no classes. */
static json_t *find_names(const tfrecord_source *source, const char *label, const char *text)
{
    json_t *names = json_array();
    int64_t samples = source->reader.source.samples, step = (samples + MOST_LOOKED_AT - 1) / MOST_LOOKED_AT;
    for (int64_t row = 0; row < samples && names; row += step) {
        parsed record;
        tdi_error unreadable = {0};
        if (take(source, row, &record, &unreadable) != TD_OK)
            continue;
        if (!note_name(names, &record, label, text)) {
            json_decref(names);
            names = NULL;
        }
        let_go(&record);
    }
    for (size_t i = 0; i < json_array_size(names); i++)
        if (json_is_null(json_array_get(names, i)))
            json_array_set_new(names, i, json_sprintf("%zu", i));
    return names;
}

/* The recipe: the names that the model knows, unless they belong to other data, else those of the records. NULL: none.
 */
static char *make_recipe(const tfrecord_source *source, const td_open_args *args, const parsed *first)
{
    char text[MAX_KEY];
    if (!name_key(source, text))
        return NULL;
    const char *label = source->features[source->reader.source.n_x].key;
    json_t *recipe = tdi_recipe_of(args->recipe, "tfrecord"), *names = json_incref(json_object_get(recipe, "classes"));
    json_decref(recipe);
    bool known = number_of(first, label) < (int64_t)json_array_size(names);
    if (!known || !note_name(names, first, label, text)) {
        json_decref(names);
        names = find_names(source, label, text);
    }
    recipe = names ? json_pack("{s:s, s:o}", "format", "tfrecord", "classes", names) : NULL;
    char *words = recipe ? json_dumps(recipe, JSON_COMPACT) : NULL;
    json_decref(recipe);
    return words;
}

/* Sets the columns by the first record that can be parsed. */
static td_status find_columns(tfrecord_source *source, const td_open_args *args, bool skip, tdi_error *error)
{
    parsed first;
    int64_t row = 0;
    td_status status;
    tdi_error seen = {0};
    while ((status = take(source, row, &first, &seen)) == TD_BAD_FILE && skip &&
           row + 1 < source->reader.source.samples) {
        seen = (tdi_error){0};
        row++;
    }
    if (status != TD_OK)
        return tdi_fail(error, status, "%s", seen.message);
    char *features = tdi_features_and_weights(args, DEFAULT_FEATURES);
    status = features ? add_columns(source, &first, features, args, error) : tdi_no_memory(error);
    free(features);
    source->reader.source.recipe = status == TD_OK ? make_recipe(source, args, &first) : NULL;
    let_go(&first);
    return status;
}

static void tfrecord_release(tdi_source *base)
{
    tfrecord_source *source = (tfrecord_source *)base;
    for (int i = 0; i < source->files.count; i++) {
        tdi_records_close(source->files.at[i].records);
        free(source->files.at[i].path);
    }
    tdi_vec_free(&source->files);
    free(source->reader.kept);
    free(source->reader.source.recipe);
    free(source);
}

static td_status fill(tfrecord_source *source, const td_open_args *args, tdi_error *error)
{
    bool skip = args->skip_errors == TD_YES;
    TDI_TRY(add_files(source, args->path, skip, error));
    if (!source->reader.source.samples)
        return tdi_fail(error, TD_BAD_FILE, "%s holds no records", args->path);
    TDI_TRY(find_columns(source, args, skip, error));
    return skip ? tdi_sample_reader_drop_bad(&source->reader, error) : TD_OK;
}

static td_status tfrecord_open(const td_open_args *args, tdi_source **opened, tdi_error *error)
{
    tfrecord_source *source = tdi_sample_reader_create(sizeof *source, args->path, tfrecord_release, error);
    if (!source)
        return TD_NO_MEMORY;
    source->reader.read = tfrecord_read;
    source->reader.source.on_demand = true;
    td_status status = fill(source, args, error);
    return tdi_source_finish(&source->reader.source, status, opened);
}

const tdi_source_format tdi_source_tfrecord = {
    "files.tfrecord or .tfrecord.gz", TDI_OPEN_SCALE | TDI_OPEN_IMAGE_SIZE | TDI_OPEN_FEATURES | TDI_OPEN_SAMPLE_WEIGHT,
    tfrecord_claims, tfrecord_open, ""};
