/* tfrecord.c - TFRecord files of tf.train.Examples or SequenceExamples, gzipped or not, one or several.
 *
 * `features` says which feature is an input or a target: "x=image/encoded,y=image/class/label", or x0=...,x1=...,
 * y0=.... A feature holds an image (JPEG or PNG, decoded to bytes [height, width, channels]), integers, floats, or
 * bytes; a feature list of a SequenceExample holds numbers, [steps, count]. All records must hold the same. What that
 * is, no single record decides: a survey of records spread over the files finds what fits the model's input, or else
 * what most of them hold.
 *
 * Targets that are texts are classes (text_labels.h). Beside a class number "image/class/label" a record may have the
 * class's name, "image/class/text". The recipe has the features, the labels, and the names. */
#define _GNU_SOURCE
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/vec.h"
#include "data/array_names.h"
#include "data/file_list.h"
#include "data/recipe.h"
#include "data/sample_reader.h"
#include "data/source.h"
#include "data/source/image_files.h"
#include "data/source/text_labels.h"
#include "data/source/tfrecord_feature.h"
#include "files/tfrecord_file.h"

#define DEFAULT_FEATURES "x=image/encoded,y=image/class/label"
#define MAX_KEY          128

typedef struct feature {
    char key[MAX_KEY];
    tdi_feature_form form;
    tdi_image_form image; /* of decoded images */
    bool is_text;         /* a target of texts, which `labels` number */
    tdi_text_labels labels;
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
    bool skip;
    json_t *recipe; /* by which the data is read; NULL: none was given */
} tfrecord_source;

/* ---- which files ---- */

/* True by the first file's name: "a.tfrecord", "a.tfrecord-00000-of-00005", with or without ".gz", "a.tfrec"; or by its
 * first bytes. */
static bool tfrecord_claims(const char *path)
{
    glob_t found;
    char *first = strndup(path, strcspn(path, ","));
    if (!first)
        return false;
    bool claimed = strcasestr(first, ".tfrec") != NULL || tdi_records_begin(first);
    if (!claimed && glob(first, 0, NULL, &found) == 0) {
        claimed = strcasestr(found.gl_pathv[0], ".tfrec") != NULL || tdi_records_begin(found.gl_pathv[0]);
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

static td_status take(const tfrecord_source *source, int64_t row, tdi_example *record, tdi_error *error)
{
    const tfrecord_file *file = file_of(source, row);
    int64_t index = row - file->first, size = tdi_records_size(file->records, index);
    *record = (tdi_example){.bytes = malloc((size_t)size + 1)};
    snprintf(record->where, sizeof record->where, "%s: record %" PRId64 " at offset %" PRId64, file->path, index,
             tdi_records_offset(file->records, index));
    if (!record->bytes)
        return tdi_no_memory(error);
    td_status status = tdi_records_read(file->records, index, record->bytes, error);
    if (status == TD_OK)
        record->message = tandem__example__unpack(NULL, (size_t)size, record->bytes);
    if (status == TD_OK && !record->message)
        status = tdi_fail(error, TD_BAD_FILE, "%s: it is no tf.train.Example or SequenceExample", record->where);
    if (status != TD_OK)
        tdi_example_release(record);
    return status;
}

/* ---- samples ---- */

static td_status decode_image(const tdi_example *record, const feature *facts, void *to, tdi_error *error)
{
    const ProtobufCBinaryData *bytes = tdi_feature_bytes(record, facts->key);
    if (tdi_image_form_decode(bytes->data, bytes->len, &facts->image, to, error) == TD_OK)
        return TD_OK;
    tdi_error_prefix(error, "%s: \"%s\"", record->where, facts->key);
    return error->status;
}

static td_status find_label(const tdi_example *record, const feature *facts, double *value, tdi_error *error)
{
    const ProtobufCBinaryData *bytes = tdi_feature_bytes(record, facts->key);
    if (tdi_text_labels_find(&facts->labels, bytes->data, bytes->len, value, error) == TD_OK)
        return TD_OK;
    tdi_error_prefix(error, "%s: \"%s\"", record->where, facts->key);
    return error->status;
}

/* Texts may be of any length. */
static td_status check(const tdi_example *record, const feature *facts, tdi_error *error)
{
    double label;
    tdi_feature_form seen, expected = facts->form;
    TDI_TRY(tdi_feature_look(record, facts->key, expected.kind == TDI_FEATURE_BYTES, &seen, error));
    if (facts->is_text)
        expected.count = seen.count;
    TDI_TRY(tdi_feature_check(record, facts->key, &expected, &seen, facts->image.resize, error));
    return facts->is_text ? find_label(record, facts, &label, error) : TD_OK;
}

/* A class number, int64, or a number, float64. */
static td_status decode_text(const tdi_example *record, const feature *facts, void *to, tdi_error *error)
{
    double value;
    TDI_TRY(find_label(record, facts, &value, error));
    int64_t number = (int64_t)value;
    memcpy(to, facts->labels.numbers ? (void *)&value : (void *)&number, sizeof value);
    return TD_OK;
}

static td_status decode(const tdi_example *record, const feature *facts, void *to, tdi_error *error)
{
    TDI_TRY(check(record, facts, error));
    if (facts->form.kind == TDI_FEATURE_IMAGE)
        return decode_image(record, facts, to, error);
    if (facts->is_text)
        return decode_text(record, facts, to, error);
    tdi_feature_copy(record, facts->key, &facts->form, to);
    return TD_OK;
}

static td_status tfrecord_read(tdi_sample_reader *reader, int column, int64_t row, void *to, tdi_error *error)
{
    const tfrecord_source *source = (const tfrecord_source *)reader;
    tdi_example record;
    TDI_TRY(take(source, row, &record, error));
    td_status status = decode(&record, &source->features[column], to, error);
    tdi_example_release(&record);
    return status;
}

/* ---- which features ---- */

static tdi_column_role role_of(const char *name)
{
    return *name == 'x' ? TDI_X : *name == 'y' ? TDI_Y : TDI_WEIGHT;
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

static td_status name_column(tfrecord_source *source, const char *name, const char *key, tdi_error *error)
{
    tdi_source *base = &source->reader.source;
    int at = tdi_source_columns(base);
    if (!is_column_name(name, base))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "features: expected x (or x0, x1, ...) and then y (or y0, y1, ...), got \"%s\"", name);
    if (at == TDI_MAX_COLUMNS)
        return tdi_fail(error, TD_UNSUPPORTED, "features: more than %d", TDI_MAX_COLUMNS);
    snprintf(source->features[at].key, sizeof source->features[at].key, "%s", key);
    snprintf(base->columns[at].name, sizeof base->columns[at].name, "%s", name);
    *tdi_source_count_of(base, role_of(name)) += 1;
    return TD_OK;
}

static td_status name_columns(tfrecord_source *source, char *features, tdi_error *error)
{
    for (char *word; (word = strsep(&features, ","));) {
        char *key = strchr(word, '=');
        if (!key || !key[1] || strlen(key + 1) >= MAX_KEY)
            return tdi_fail(error, TD_INVALID_ARGUMENT,
                            "features: expected NAME=FEATURE, got \"%s\"; as in " DEFAULT_FEATURES, word);
        *key++ = '\0';
        TDI_TRY(name_column(source, word, key, error));
    }
    if (!source->reader.source.n_x)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "features: none is x; as in " DEFAULT_FEATURES);
    return TD_OK;
}

static const char *features_of(const tfrecord_source *source, const td_open_args *args)
{
    const char *of_recipe = json_string_value(json_object_get(source->recipe, "features"));
    return args->features ? args->features : of_recipe ? of_recipe : DEFAULT_FEATURES;
}

static td_status choose_columns(tfrecord_source *source, const td_open_args *args, tdi_error *error)
{
    char *features = tdi_features_and_weights(features_of(source, args), tdi_named_weights(args));
    td_status status = features ? name_columns(source, features, error) : tdi_no_memory(error);
    free(features);
    if (args->targets == TD_NO)
        source->reader.source.n_y = source->reader.source.n_w = 0;
    return status;
}

/* ---- what they hold: a survey ---- */

enum { MOST_SURVEYED = 128 };

/* What the records of the survey hold in one feature. */
typedef struct forms {
    int count;
    struct {
        tdi_feature_form form;
        int records;
    } found[MOST_SURVEYED];
    bool all_text; /* bytes are text in each of them */
} forms;

/* Number of records in the survey, and the row of each. */
static int survey_size(const tfrecord_source *source)
{
    int64_t samples = source->reader.source.samples;
    return samples < MOST_SURVEYED ? (int)samples : MOST_SURVEYED;
}

static int64_t survey_row(const tfrecord_source *source, int index)
{
    return index * source->reader.source.samples / survey_size(source);
}

static int compare_forms(const tdi_feature_form *a, const tdi_feature_form *b)
{
    const int64_t of_a[] = {a->kind, a->list, a->steps, a->count, a->image.height, a->image.width, a->image.channels};
    const int64_t of_b[] = {b->kind, b->list, b->steps, b->count, b->image.height, b->image.width, b->image.channels};
    for (size_t i = 0; i < sizeof of_a / sizeof *of_a; i++)
        if (of_a[i] != of_b[i])
            return of_a[i] < of_b[i] ? -1 : 1;
    return 0;
}

static void count_form(forms *counted, const tdi_feature_form *form)
{
    int i = 0;
    while (i < counted->count && compare_forms(&counted->found[i].form, form) != 0)
        i++;
    if (i == counted->count)
        counted->found[counted->count++].form = *form;
    counted->found[i].records++;
}

/* Bytes that begin as an image does and are none may be numbers, if most records say so. */
static td_status look(const tdi_example *record, const char *key, tdi_feature_form *form, tdi_error *error)
{
    tdi_error no_image = {0};
    if (tdi_feature_look(record, key, false, form, &no_image) == TD_OK)
        return TD_OK;
    return tdi_feature_look(record, key, true, form, error);
}

static td_status survey_record(const tfrecord_source *source, const tdi_example *record, forms *counted,
                               tdi_error *error)
{
    for (int i = 0; i < tdi_source_columns(&source->reader.source); i++) {
        tdi_feature_form form;
        const char *key = source->features[i].key;
        TDI_TRY(look(record, key, &form, error));
        const ProtobufCBinaryData *bytes = tdi_feature_bytes(record, key);
        counted[i].all_text &= form.kind == TDI_FEATURE_BYTES && bytes && tdi_is_text(bytes->data, bytes->len);
        count_form(&counted[i], &form);
    }
    return TD_OK;
}

/* Fails at the first record that cannot be read, unless these are left out and others can. */
static td_status survey(const tfrecord_source *source, forms *counted, tdi_error *error)
{
    tdi_error first = {0};
    for (int i = 0; i < survey_size(source); i++) {
        tdi_example record;
        tdi_error failed = {0};
        td_status status = take(source, survey_row(source, i), &record, &failed);
        if (status == TD_OK) {
            status = survey_record(source, &record, counted, &failed);
            tdi_example_release(&record);
        }
        if (status != TD_OK && (status != TD_BAD_FILE || !source->skip))
            return tdi_fail(error, status, "%s", failed.message);
        if (status != TD_OK && first.status == TD_OK)
            first = failed;
    }
    for (int i = 0; i < tdi_source_columns(&source->reader.source); i++)
        if (!counted[i].count)
            return tdi_fail(error, first.status, "%s", first.message);
    return TD_OK;
}

/* Chooses the channels with which a decoded image has as many elements as the model's input. 0: there are none. */
static int64_t fitting_channels(const tdi_image *image, int64_t wanted)
{
    int64_t pixels = image->height * image->width;
    return wanted == pixels ? 1 : wanted == 3 * pixels ? 3 : 0;
}

static tdi_image sized(const tdi_image *image, const td_image_size *size)
{
    bool resize = size->height > 0 && size->width > 0;
    return (tdi_image){resize ? size->height : image->height, resize ? size->width : image->width, image->channels};
}

static bool fits(const tdi_feature_form *form, const td_image_size *size, int64_t wanted)
{
    tdi_image image = sized(&form->image, size);
    return form->kind == TDI_FEATURE_IMAGE ? fitting_channels(&image, wanted) > 0 : form->steps * form->count == wanted;
}

/* The form that fits the model's input, and of several the most frequent one. `wanted` is 0 when it is not known. */
static const tdi_feature_form *choose_form(const forms *counted, const td_image_size *size, int64_t wanted)
{
    int best = 0;
    for (int i = 1; i < counted->count; i++) {
        const tdi_feature_form *one = &counted->found[i].form, *other = &counted->found[best].form;
        int better = fits(one, size, wanted) - fits(other, size, wanted);
        if (!better)
            better = counted->found[i].records - counted->found[best].records;
        if (better > 0 || (!better && compare_forms(one, other) < 0))
            best = i;
    }
    return &counted->found[best].form;
}

/* ---- targets that are texts ---- */

static td_status collect_label(tfrecord_source *source, feature *facts, int64_t row, bool *is_text, tdi_error *error)
{
    tdi_example record;
    if (take(source, row, &record, NULL) != TD_OK) /* reading it will fail, or leave it out */
        return TD_OK;
    const ProtobufCBinaryData *bytes = tdi_feature_bytes(&record, facts->key);
    td_status status = TD_OK;
    *is_text = !bytes || tdi_is_text(bytes->data, bytes->len);
    if (bytes && bytes->len && *is_text)
        status = tdi_text_labels_add(&facts->labels, bytes->data, bytes->len, error);
    if (status != TD_OK)
        tdi_error_prefix(error, "%s: \"%s\"", record.where, facts->key);
    tdi_example_release(&record);
    return status;
}

/* Reads all records. Bytes that are no text in one of them are numbers. */
static td_status collect_labels(tfrecord_source *source, feature *facts, tdi_error *error)
{
    facts->is_text = true;
    for (int64_t row = 0; row < source->reader.source.samples && facts->is_text; row++) {
        tdi_error failed = {0};
        td_status status = collect_label(source, facts, row, &facts->is_text, &failed);
        if (status != TD_OK && (status != TD_BAD_FILE || !source->skip))
            return tdi_fail(error, status, "%s", failed.message);
    }
    tdi_text_labels_end(&facts->labels);
    return TD_OK;
}

/* The labels that the model knows, or those of the records. */
static td_status find_labels(tfrecord_source *source, feature *facts, tdi_error *error)
{
    const json_t *known = json_object_get(json_object_get(source->recipe, "labels"), facts->key);
    if (!known)
        return facts->form.kind == TDI_FEATURE_BYTES ? collect_labels(source, facts, error) : TD_OK;
    if (facts->form.kind != TDI_FEATURE_BYTES)
        return tdi_fail(error, TD_BAD_FILE, "%s: \"%s\" holds no text, but it did in the data the model was trained on",
                        source->reader.source.name, facts->key);
    facts->is_text = tdi_text_labels_restore(&facts->labels, known);
    return facts->is_text
               ? TD_OK
               : tdi_fail(error, TD_BAD_FILE, "the recipe's labels of \"%s\" are no list of names", facts->key);
}

/* ---- columns ---- */

static td_dtype dtype_of(const feature *facts)
{
    static const td_dtype kind_dtypes[] = {TD_UINT8, TD_UINT8, TD_FLOAT32, TD_INT64};
    return facts->is_text ? facts->labels.numbers ? TD_FLOAT64 : TD_INT64 : kind_dtypes[facts->form.kind];
}

/* A target's images hold class numbers. */
static td_shape image_shape(feature *facts, const td_open_args *args, bool target, int64_t wanted)
{
    tdi_image_form *form = &facts->image;
    *form = (tdi_image_form){.kind = TDI_IMAGE_COLOURS, .image = sized(&facts->form.image, &args->image_size)};
    form->resize = args->image_size.height > 0 && args->image_size.width > 0;
    form->nearest = target;
    int64_t channels = fitting_channels(&form->image, wanted);
    if (channels)
        form->image.channels = channels;
    return TD_SHAPE(form->image.height, form->image.width, form->image.channels);
}

static td_shape shape_of(feature *facts, const td_open_args *args, bool target, int64_t wanted)
{
    const tdi_feature_form *form = &facts->form;
    if (form->kind == TDI_FEATURE_IMAGE)
        return image_shape(facts, args, target, wanted);
    if (form->list)
        return form->count > 1 ? TD_SHAPE(form->steps, form->count) : TD_SHAPE(form->steps);
    return facts->is_text || form->count == 1 ? (td_shape){0} : TD_SHAPE(form->count);
}

/* The elements that the model's input takes; 0: not known. */
static int64_t wanted_elements(const td_open_args *args, int column)
{
    return column < args->inputs ? tdi_sample_elements(&args->input_shapes[column]) : 0;
}

static td_status no_text(const tfrecord_source *source, const feature *facts, bool weight, tdi_error *error)
{
    if (weight)
        return tdi_fail(error, TD_UNSUPPORTED, "%s: \"%s\" holds text, and weights of losses are numbers",
                        source->reader.source.name, facts->key);
    return tdi_fail(error, TD_UNSUPPORTED,
                    "%s: \"%s\" holds text, which is not read as an input: write numbers that stand for it, as of "
                    "tokens or classes",
                    source->reader.source.name, facts->key);
}

static td_status describe_column(tfrecord_source *source, int at, const forms *counted, const td_open_args *args,
                                 tdi_error *error)
{
    feature *facts = &source->features[at];
    tdi_column *column = &source->reader.source.columns[at];
    bool target = at >= source->reader.source.n_x, weight = at >= source->reader.source.n_x + source->reader.source.n_y;
    int64_t wanted = target ? 0 : wanted_elements(args, at);
    facts->form = *choose_form(counted, &args->image_size, wanted);
    if (target && !weight)
        TDI_TRY(find_labels(source, facts, error));
    else if (facts->form.kind == TDI_FEATURE_BYTES && counted->all_text)
        return no_text(source, facts, weight, error);
    column->shape = shape_of(facts, args, target, wanted);
    column->dtype = dtype_of(facts);
    bool image = facts->form.kind == TDI_FEATURE_IMAGE;
    column->scale = target ? 1 : args->scale != 0 ? args->scale : image ? 1.0f / 255 : 1;
    return TD_OK;
}

/* Checks the records of the survey, so that a difference between them is said before the work begins. */
static td_status check_survey(const tfrecord_source *source, tdi_error *error)
{
    td_status status = TD_OK;
    for (int i = 0; i < survey_size(source) && status == TD_OK; i++) {
        tdi_example record;
        TDI_TRY(take(source, survey_row(source, i), &record, error));
        for (int c = 0; c < tdi_source_columns(&source->reader.source) && status == TD_OK; c++)
            status = check(&record, &source->features[c], error);
        tdi_example_release(&record);
    }
    return status;
}

/* For a model that does not take what the features hold. */
static void advise(tfrecord_source *source)
{
    tdi_source *base = &source->reader.source;
    bool bytes = false;
    for (int i = 0; i < base->n_x; i++)
        bytes |= source->features[i].form.kind == TDI_FEATURE_BYTES;
    snprintf(base->advice, sizeof base->advice, "; features (--features) say which feature is what%s",
             bytes ? ", and bytes are numbers from 0 to 255: what holds floats, write as a float_list" : "");
}

static td_status describe_columns(tfrecord_source *source, const td_open_args *args, forms *counted, tdi_error *error)
{
    for (int i = 0; i < TDI_MAX_COLUMNS; i++)
        counted[i].all_text = true;
    TDI_TRY(survey(source, counted, error));
    for (int i = 0; i < tdi_source_columns(&source->reader.source); i++)
        TDI_TRY(describe_column(source, i, &counted[i], args, error));
    advise(source);
    return source->skip ? TD_OK : check_survey(source, error);
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
    return y->form.kind == TDI_FEATURE_INTEGERS && y->form.count == 1 && !y->form.list;
}

/* Adds the name that a record gives its class. False when it gives none, or another record has given the class another
 * name: then the feature does not name classes. */
static bool note_name(json_t *names, const tdi_example *record, const char *label, const char *text)
{
    const ProtobufCBinaryData *bytes = tdi_feature_bytes(record, text);
    int64_t number = tdi_feature_integer(record, label);
    if (number < 0 || number >= MOST_CLASSES || !bytes)
        return false;
    while (json_array_size(names) <= (size_t)number)
        json_array_append_new(names, json_null());
    json_t *found = json_stringn((const char *)bytes->data, bytes->len), *known = json_array_get(names, (size_t)number);
    bool good = found && bytes->len && (json_is_null(known) || json_equal(known, found));
    json_array_set_new(names, (size_t)number, found);
    return good;
}

/* Adds the names in some records, at most `most` of them, spread over all. False when they do not name classes. */
static bool note_names(const tfrecord_source *source, json_t *names, const char *label, const char *text, int64_t most)
{
    int64_t samples = source->reader.source.samples, step = (samples + most - 1) / most;
    bool good = names != NULL;
    for (int64_t row = 0; row < samples && good; row += step) {
        tdi_example record;
        if (take(source, row, &record, NULL) != TD_OK)
            continue;
        good = note_name(names, &record, label, text);
        tdi_example_release(&record);
    }
    return good;
}

/* The names in the records. A class that none of them has is named by its number. NULL: they name no classes. */
static json_t *find_names(const tfrecord_source *source, const char *label, const char *text)
{
    json_t *names = json_array();
    if (!note_names(source, names, label, text, MOST_LOOKED_AT)) {
        json_decref(names);
        return NULL;
    }
    for (size_t i = 0; i < json_array_size(names); i++)
        if (json_is_null(json_array_get(names, i)))
            json_array_set_new(names, i, json_sprintf("%zu", i));
    return names;
}

/* The names that the model knows; NULL when there are none, or records that belong to other names. */
static json_t *known_names(const tfrecord_source *source, const char *label, const char *text)
{
    json_t *names = json_copy(json_object_get(source->recipe, "classes"));
    size_t count = json_array_size(names);
    if (count && note_names(source, names, label, text, MOST_SURVEYED) && json_array_size(names) == count)
        return names;
    json_decref(names);
    return NULL;
}

/* The names of the first target's classes; NULL: they have none. */
static json_t *class_names(const tfrecord_source *source)
{
    char text[MAX_KEY];
    const feature *y = &source->features[source->reader.source.n_x];
    if (source->reader.source.n_y && y->is_text)
        return y->labels.numbers ? NULL : tdi_text_labels_json(&y->labels);
    if (!name_key(source, text))
        return NULL;
    json_t *names = known_names(source, y->key, text);
    return names ? names : find_names(source, y->key, text);
}

static td_status write_recipe(tfrecord_source *source, const td_open_args *args, tdi_error *error)
{
    tdi_source *base = &source->reader.source;
    json_t *labels = json_object(), *names = class_names(source);
    for (int i = base->n_x; i < base->n_x + base->n_y; i++)
        if (source->features[i].is_text)
            json_object_set_new(labels, source->features[i].key, tdi_text_labels_json(&source->features[i].labels));
    json_t *recipe =
        json_pack("{s:s, s:s, s:o*}", "format", "tfrecord", "features", features_of(source, args), "classes", names);
    if (json_object_size(labels))
        json_object_set(recipe, "labels", labels);
    json_decref(labels);
    base->recipe = recipe ? json_dumps(recipe, JSON_COMPACT) : NULL;
    json_decref(recipe);
    if (base->recipe)
        tdi_source_stamp_words(base, base->recipe);
    return base->recipe ? TD_OK : tdi_fail(error, TD_BAD_FILE, "features: a name that is no UTF-8 text");
}

/* ---- opening ---- */

static void tfrecord_release(tdi_source *base)
{
    tfrecord_source *source = (tfrecord_source *)base;
    for (int i = 0; i < source->files.count; i++) {
        tdi_records_close(source->files.at[i].records);
        free(source->files.at[i].path);
    }
    tdi_vec_free(&source->files);
    for (int i = 0; i < TDI_MAX_COLUMNS; i++)
        tdi_text_labels_release(&source->features[i].labels);
    json_decref(source->recipe);
    free(source->reader.kept);
    free(source->reader.source.recipe);
    free(source);
}

static td_status find_columns(tfrecord_source *source, const td_open_args *args, tdi_error *error)
{
    forms *counted = calloc(TDI_MAX_COLUMNS, sizeof *counted);
    td_status status = counted ? choose_columns(source, args, error) : tdi_no_memory(error);
    if (status == TD_OK)
        status = describe_columns(source, args, counted, error);
    free(counted);
    return status;
}

static td_status fill(tfrecord_source *source, const td_open_args *args, tdi_error *error)
{
    source->skip = args->skip_errors == TD_YES;
    source->recipe = tdi_recipe_of(args->recipe, "tfrecord");
    TDI_TRY(add_files(source, args->path, source->skip, error));
    if (!source->reader.source.samples)
        return tdi_fail(error, TD_BAD_FILE, "%s holds no records", args->path);
    TDI_TRY(find_columns(source, args, error));
    TDI_TRY(write_recipe(source, args, error));
    return source->skip ? tdi_sample_reader_drop_bad(&source->reader, error) : TD_OK;
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
