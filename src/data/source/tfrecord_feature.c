/* tfrecord_feature.c - finds a feature in a record and says what it holds.
 *
 * A name is looked for among an Example's features, which are a SequenceExample's context, and then among the feature
 * lists of a SequenceExample, whose steps must all hold equally much. */
#include "data/source/tfrecord_feature.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tdi_example_release(tdi_example *record)
{
    if (record->message)
        tandem__example__free_unpacked(record->message, NULL);
    free(record->bytes);
    *record = (tdi_example){0};
}

/* ---- by name ---- */

static const Tandem__Feature *find_feature(const tdi_example *record, const char *key)
{
    const Tandem__Features *features = record->message->features;
    for (size_t i = 0; features && i < features->n_feature; i++)
        if (strcmp(features->feature[i]->key, key) == 0)
            return features->feature[i]->value;
    return NULL;
}

static const Tandem__FeatureList *find_list(const tdi_example *record, const char *key)
{
    const Tandem__FeatureLists *lists = record->message->feature_lists;
    for (size_t i = 0; lists && i < lists->n_feature_list; i++)
        if (strcmp(lists->feature_list[i]->key, key) == 0)
            return lists->feature_list[i]->value;
    return NULL;
}

static void append(char *names, size_t size, const char *before, const char *name)
{
    size_t used = strlen(names);
    snprintf(names + used, size - used, "%s%s", before, name);
}

static td_status no_feature(const tdi_example *record, const char *key, tdi_error *error)
{
    char names[512] = "";
    const Tandem__Features *features = record->message->features;
    const Tandem__FeatureLists *lists = record->message->feature_lists;
    for (size_t i = 0; features && i < features->n_feature; i++)
        append(names, sizeof names, *names ? ", " : "", features->feature[i]->key);
    for (size_t i = 0; lists && i < lists->n_feature_list; i++)
        append(names, sizeof names,
               i        ? ", "
               : *names ? "; feature lists "
                        : "feature lists ",
               lists->feature_list[i]->key);
    if (!*names)
        return tdi_fail(error, TD_BAD_FILE,
                        "%s: it holds no features: a tf.train.Example or SequenceExample was expected", record->where);
    return tdi_fail(error, TD_BAD_FILE,
                    "%s: there is no feature \"%s\" but: %s; say which is what by features (--features)", record->where,
                    key, names);
}

const ProtobufCBinaryData *tdi_feature_bytes(const tdi_example *record, const char *key)
{
    const Tandem__Feature *found = find_feature(record, key);
    bool one = found && found->kind_case == TANDEM__FEATURE__KIND_BYTES_LIST && found->bytes_list->n_value == 1;
    return one ? &found->bytes_list->value[0] : NULL;
}

int64_t tdi_feature_integer(const tdi_example *record, const char *key)
{
    const Tandem__Feature *found = find_feature(record, key);
    bool one = found && found->kind_case == TANDEM__FEATURE__KIND_INT64_LIST && found->int64_list->n_value == 1;
    return one ? found->int64_list->value[0] : -1;
}

/* ---- what it holds ---- */

static td_status look_at_image(const tdi_example *record, const char *key, const ProtobufCBinaryData *bytes,
                               tdi_feature_form *form, tdi_error *error)
{
    if (tdi_image_look(bytes->data, bytes->len, TDI_IMAGE_COLOURS, &form->image, error) == TD_OK)
        return TD_OK;
    tdi_error_prefix(error, "%s: \"%s\"", record->where, key);
    return error->status;
}

static bool looks_like_image(const ProtobufCBinaryData *bytes)
{
    return tdi_image_format_name(bytes->data, bytes->len) != NULL;
}

static td_status look_at_bytes(const tdi_example *record, const char *key, const Tandem__BytesList *list, bool plain,
                               tdi_feature_form *form, tdi_error *error)
{
    if (list->n_value != 1)
        return tdi_fail(error, TD_BAD_FILE, "%s: \"%s\" holds %zu texts where one was expected", record->where, key,
                        list->n_value);
    form->kind = !plain && looks_like_image(list->value) ? TDI_FEATURE_IMAGE : TDI_FEATURE_BYTES;
    if (form->kind == TDI_FEATURE_IMAGE)
        return look_at_image(record, key, list->value, form, error);
    form->count = (int64_t)list->value->len;
    return TD_OK;
}

static td_status look_at_feature(const tdi_example *record, const char *key, const Tandem__Feature *found, bool plain,
                                 tdi_feature_form *form, tdi_error *error)
{
    *form = (tdi_feature_form){.kind = TDI_FEATURE_BYTES, .steps = 1};
    if (found->kind_case == TANDEM__FEATURE__KIND_BYTES_LIST)
        TDI_TRY(look_at_bytes(record, key, found->bytes_list, plain, form, error));
    if (found->kind_case == TANDEM__FEATURE__KIND_INT64_LIST) {
        form->kind = TDI_FEATURE_INTEGERS;
        form->count = (int64_t)found->int64_list->n_value;
    } else if (found->kind_case == TANDEM__FEATURE__KIND_FLOAT_LIST) {
        form->kind = TDI_FEATURE_FLOATS;
        form->count = (int64_t)found->float_list->n_value;
    }
    if (form->count < 1 && form->kind != TDI_FEATURE_IMAGE)
        return tdi_fail(error, TD_BAD_FILE, "%s: \"%s\" is empty", record->where, key);
    return TD_OK;
}

static bool equal_steps(const tdi_feature_form *a, const tdi_feature_form *b)
{
    return a->kind == b->kind && a->count == b->count;
}

static td_status look_at_list(const tdi_example *record, const char *key, const Tandem__FeatureList *list,
                              tdi_feature_form *form, tdi_error *error)
{
    tdi_feature_form step;
    if (!list->n_feature)
        return tdi_fail(error, TD_BAD_FILE, "%s: the feature list \"%s\" is empty", record->where, key);
    TDI_TRY(look_at_feature(record, key, list->feature[0], true, form, error));
    for (size_t i = 1; i < list->n_feature; i++) {
        TDI_TRY(look_at_feature(record, key, list->feature[i], true, &step, error));
        if (!equal_steps(form, &step))
            return tdi_fail(error, TD_BAD_FILE,
                            "%s: step %zu of the feature list \"%s\" holds other than its step 0: %" PRId64
                            " values where %" PRId64 " of the same type were expected",
                            record->where, i, key, step.count, form->count);
    }
    if (form->kind == TDI_FEATURE_BYTES)
        return tdi_fail(error, TD_BAD_FILE,
                        "%s: the feature list \"%s\" holds texts or images, which are not read step by step; write "
                        "numbers, or one feature of the context",
                        record->where, key);
    form->list = true;
    form->steps = (int64_t)list->n_feature;
    return TD_OK;
}

td_status tdi_feature_look(const tdi_example *record, const char *key, bool plain, tdi_feature_form *form,
                           tdi_error *error)
{
    const Tandem__Feature *found = find_feature(record, key);
    const Tandem__FeatureList *list = found ? NULL : find_list(record, key);
    if (list)
        return look_at_list(record, key, list, form, error);
    return found ? look_at_feature(record, key, found, plain, form, error) : no_feature(record, key, error);
}

/* ---- against what is expected ---- */

typedef char form_text[96];

static const char *describe(const tdi_feature_form *form, form_text text)
{
    static const char *const names[] = {"", "bytes", "floats", "integers"};
    if (form->kind == TDI_FEATURE_IMAGE)
        snprintf(text, sizeof(form_text), "an image of %" PRId64 " x %" PRId64, form->image.height, form->image.width);
    else if (form->list)
        snprintf(text, sizeof(form_text), "%" PRId64 " steps of %" PRId64 " %s", form->steps, form->count,
                 names[form->kind]);
    else
        snprintf(text, sizeof(form_text), "%" PRId64 " %s", form->count, names[form->kind]);
    return text;
}

static bool is_same(const tdi_feature_form *form, const tdi_feature_form *seen, bool resize)
{
    if (form->kind != seen->kind || form->list != seen->list)
        return false;
    if (form->kind == TDI_FEATURE_IMAGE)
        return resize || (form->image.height == seen->image.height && form->image.width == seen->image.width);
    return form->steps == seen->steps && form->count == seen->count;
}

td_status tdi_feature_check(const tdi_example *record, const char *key, const tdi_feature_form *form,
                            const tdi_feature_form *seen, bool resize, tdi_error *error)
{
    form_text wanted, has;
    if (is_same(form, seen, resize))
        return TD_OK;
    bool images = form->kind == TDI_FEATURE_IMAGE && seen->kind == TDI_FEATURE_IMAGE, kinds = form->kind != seen->kind;
    return tdi_fail(error, TD_BAD_FILE, "%s: \"%s\" holds %s, where %s%s expected%s", record->where, key,
                    describe(seen, has), describe(form, wanted), form->kind == TDI_FEATURE_IMAGE ? " was" : " were",
                    images  ? " (height x width): bring all to one size by image_size (--image-size)"
                    : kinds ? ": all records must hold the same type"
                            : ": all records must hold equally many; pad them when they are written");
}

/* ---- copying ---- */

static void copy_feature(const Tandem__Feature *found, const tdi_feature_form *form, void *to)
{
    if (form->kind == TDI_FEATURE_INTEGERS)
        memcpy(to, found->int64_list->value, (size_t)form->count * sizeof(int64_t));
    else if (form->kind == TDI_FEATURE_FLOATS)
        memcpy(to, found->float_list->value, (size_t)form->count * sizeof(float));
    else
        memcpy(to, found->bytes_list->value->data, (size_t)form->count);
}

void tdi_feature_copy(const tdi_example *record, const char *key, const tdi_feature_form *form, void *to)
{
    if (!form->list) {
        copy_feature(find_feature(record, key), form, to);
        return;
    }
    const Tandem__FeatureList *list = find_list(record, key);
    size_t size = (size_t)form->count * (form->kind == TDI_FEATURE_INTEGERS ? sizeof(int64_t) : sizeof(float));
    for (size_t i = 0; i < (size_t)form->steps; i++)
        copy_feature(list->feature[i], form, (char *)to + i * size);
}
