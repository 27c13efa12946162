/* run_identity.c - the facts that identify a run, and comparing them. */
#include "train/backup/run_identity.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/text.h"
#include "formats/keras.h"
#include "graph/shape.h"

static void put(json_t **facts, const char *about, const tdi_text *text)
{
    if (*facts && !text->failed && json_object_set_new(*facts, about, json_string(text->chars)) == 0)
        return;
    json_decref(*facts);
    *facts = NULL;
}

__attribute__((format(printf, 3, 4))) static void say(json_t **facts, const char *about, const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    put(facts, about, &(tdi_text){.chars = line});
}

/* ---- data ---- */

/* Rows spread over the data, the first and the last among them; returns how many. */
static int64_t choose_rows(const tdi_source *source, int64_t rows[TDI_FACTS_SAMPLES])
{
    int64_t count = source->samples < TDI_FACTS_SAMPLES ? source->samples : TDI_FACTS_SAMPLES;
    for (int64_t i = 0; i < count; i++)
        rows[i] = count > 1 ? (int64_t)((double)(source->samples - 1) * (double)i / (double)(count - 1)) : 0;
    return count;
}

static td_status add_column(tdi_source *source, int column, const tdi_source_run *pass, uLong *checksum,
                            tdi_error *error)
{
    size_t size = (size_t)tdi_sample_elements(&source->columns[column].shape) * sizeof(float);
    float *sample = malloc(size + 1);
    td_status status = sample ? TD_OK : tdi_no_memory(error);
    for (int64_t i = 0; i < pass->samples && status == TD_OK; i++) {
        status = tdi_check_stop(pass->stop, error);
        if (status == TD_OK)
            status = source->gather(source, column, pass->order + i, 1, sample, TD_FLOAT32, error);
        *checksum = status == TD_OK ? crc32_z(*checksum, (const Bytef *)sample, size) : 0;
    }
    free(sample);
    return status;
}

/* As the first epoch of seed 0 would see them, so that another augmentation is seen too. A stream is not touched: what
 * is taken from it is gone. */
static td_status add_samples(tdi_source *source, bool training, const atomic_int *stop, uLong *checksum,
                             tdi_error *error)
{
    int64_t rows[TDI_FACTS_SAMPLES], count = choose_rows(source, rows);
    tdi_source_run pass = {.order = rows,
                           .samples = count,
                           .batch = count,
                           .training = training,
                           .columns = tdi_source_columns(source),
                           .stop = stop};
    if (source->sequential)
        return TD_OK;
    TDI_TRY(tdi_source_begin(source, &pass, error));
    td_status status = TD_OK;
    for (int i = 0; i < tdi_source_columns(source) && status == TD_OK; i++)
        status = add_column(source, i, &pass, checksum, error);
    tdi_source_end(source);
    return status;
}

static td_status add_data(json_t **facts, const char *about, tdi_source *source, bool training, const atomic_int *stop,
                          tdi_error *error)
{
    char shape[TDI_SHAPE_TEXT];
    uLong checksum = crc32(0, NULL, 0);
    uint32_t fingerprint = 0;
    tdi_text text = {0};
    TDI_TRY(add_samples(source, training, stop, &checksum, error));
    TDI_TRY(tdi_source_fingerprint(source, &fingerprint, stop, error));
    if (source->samples == TDI_SAMPLES_UNKNOWN)
        tdi_text_format(&text, "a stream of");
    else
        tdi_text_format(&text, "%lld samples of", (long long)source->samples);
    for (int i = 0; i < tdi_source_columns(source); i++)
        tdi_text_format(&text, " %s %s%s",
                        i < source->n_x                 ? "x"
                        : i < source->n_x + source->n_y ? "y"
                                                        : "weights",
                        td_dtype_name(source->columns[i].dtype), tdi_shape_text(&source->columns[i].shape, shape));
    tdi_text_format(&text, ", checksum %08lx%08x", checksum, fingerprint);
    put(facts, about, &text);
    tdi_text_free(&text);
    return TD_OK;
}

/* ---- model ---- */

/* The layers as "model", and the members of the compile configuration beside it. */
static td_status add_model(json_t **facts, const td_model *model, tdi_error *error)
{
    char *layers = tdi_keras_json(model), *compile = tdi_keras_compile_text(model);
    json_t *of_layers = layers ? json_loads(layers, 0, NULL) : NULL;
    json_t *of_compile = compile ? json_loads(compile, 0, NULL) : NULL;
    bool added = *facts && of_layers && json_object_set(*facts, "model", of_layers) == 0 && of_compile &&
                 json_object_update(*facts, of_compile) == 0;
    json_decref(of_layers);
    json_decref(of_compile);
    free(layers);
    free(compile);
    return added ? TD_OK : tdi_no_memory(error);
}

static const char *precision_name(td_precision precision)
{
    return precision == TD_PRECISION_FLOAT32    ? "float32"
           : precision == TD_PRECISION_BFLOAT16 ? "bfloat16"
                                                : "the file's";
}

static void add_class_weights(json_t **facts, const tdi_weighting *weighting)
{
    tdi_text text = {0};
    for (int c = 0; c < weighting->classes; c++)
        tdi_text_format(&text, "%s%d:%.9g", c ? "," : "", c, (double)weighting->class_weights[c]);
    if (weighting->classes)
        put(facts, "class weights", &text);
    tdi_text_free(&text);
}

static void add_numbers(json_t **facts, const td_model *model, const tdi_run *run)
{
    say(facts, "batch size", "%lld", (long long)run->batch);
    say(facts, "steps of an epoch", "%lld", (long long)run->steps);
    if (run->validation_steps)
        say(facts, "validation steps", "%lld", (long long)run->validation_steps);
    say(facts, "base batch size", "%lld", (long long)run->base_batch_size);
    say(facts, "warm-up", "%d epochs", run->warmup_epochs);
    say(facts, "momentum correction", "%s", run->momentum_correction ? "yes" : "no");
    say(facts, "precision", "%s", precision_name(model->compiled.precision));
    say(facts, "shards", "%d", model->compiled.shards);
    add_class_weights(facts, &model->weighting[1]);
    if (run->shuffle_buffer)
        say(facts, "shuffle", "among %lld", (long long)run->shuffle_buffer);
    else
        say(facts, "shuffle", "%s", run->shuffle ? "yes" : "no");
}

td_status tdi_run_facts(const td_model *model, const tdi_run *run, json_t **facts, tdi_error *error)
{
    *facts = json_object();
    const atomic_int *stop = &model->context->stop;
    td_status status = TD_OK;
    if (run->train)
        status = add_data(facts, "training data", run->train, true, stop, error);
    if (status == TD_OK && run->validation)
        status = add_data(facts, "validation data", run->validation, false, stop, error);
    add_numbers(facts, model, run);
    if (status == TD_OK)
        status = add_model(facts, model, error);
    if (status != TD_OK) {
        json_decref(*facts);
        *facts = NULL;
    }
    return status;
}

/* ---- what differs ---- */

typedef struct difference {
    char path[256];               /* "optimizer.momentum", "model.layers.dense_1.units" */
    const json_t *before, *after; /* NULL: none */
} difference;

static bool differ(json_t *then, json_t *now, difference *found);

static bool same(const json_t *then, const json_t *now)
{
    return then == now || json_equal(then, now);
}

/* Into a member; that something is a "config" goes without saying. */
static bool differ_at(const char *name, json_t *then, json_t *now, difference *found)
{
    size_t length = strlen(found->path);
    if (strcmp(name, "config") != 0)
        snprintf(found->path + length, sizeof found->path - length, "%s%s", length ? "." : "", name);
    return differ(then, now, found);
}

static bool differ_in_members(json_t *then, json_t *now, difference *found)
{
    const char *name;
    json_t *value;
    json_object_foreach(then, name, value)
    {
        if (!same(value, json_object_get(now, name)))
            return differ_at(name, value, json_object_get(now, name), found);
    }
    json_object_foreach(now, name, value)
    {
        if (!json_object_get(then, name))
            return differ_at(name, NULL, value, found);
    }
    return false;
}

/* Elements are called by their configurations' names, as layers are. */
static bool differ_in_elements(json_t *then, json_t *now, difference *found)
{
    size_t count = json_array_size(then) > json_array_size(now) ? json_array_size(then) : json_array_size(now);
    for (size_t i = 0; i < count; i++) {
        json_t *before = json_array_get(then, i), *after = json_array_get(now, i);
        const char *name =
            json_string_value(json_object_get(json_object_get(before ? before : after, "config"), "name"));
        char number[24];
        snprintf(number, sizeof number, "%zu", i);
        if (!same(before, after))
            return differ_at(name ? name : number, before, after, found);
    }
    return false;
}

static bool differ(json_t *then, json_t *now, difference *found)
{
    if (same(then, now))
        return false;
    if (json_is_object(then) && json_is_object(now))
        return differ_in_members(then, now, found);
    if (json_is_array(then) && json_is_array(now))
        return differ_in_elements(then, now, found);
    found->before = then;
    found->after = now;
    return true;
}

static void show(const json_t *value, char text[TDI_FACTS_TEXT])
{
    char *words =
        json_is_string(value) ? NULL : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
    snprintf(text, TDI_FACTS_TEXT, "%s", json_is_string(value) ? json_string_value(value) : words ? words : "none");
    free(words);
}

td_status tdi_facts_refuse(const char *where, const char *about, const char *before, const char *after,
                           tdi_error *error)
{
    return tdi_fail(error, TD_INVALID_ARGUMENT,
                    "\"%.200s\" holds the backup of another run: its %s was %s, and here it is %s; name another "
                    "folder, or remove this one to start afresh",
                    where, about, before, after);
}

bool tdi_facts_differ(const json_t *then, const json_t *now, tdi_facts_difference *differs)
{
    static const char *const all[] = {"model",
                                      "optimizer",
                                      "loss",
                                      "loss_weights",
                                      "metrics",
                                      "weighted_metrics",
                                      "class weights",
                                      "batch size",
                                      "base batch size",
                                      "warm-up",
                                      "momentum correction",
                                      "precision",
                                      "shards",
                                      "training data",
                                      "shuffle",
                                      "steps of an epoch",
                                      "validation data",
                                      "validation steps",
                                      "epochs",
                                      "seed"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        difference found = {0};
        if (!differ_at(all[i], json_object_get(then, all[i]), json_object_get(now, all[i]), &found))
            continue;
        snprintf(differs->about, sizeof differs->about, "%s", found.path);
        show(found.before, differs->before);
        show(found.after, differs->after);
        return true;
    }
    return false;
}

td_status tdi_facts_compare(const json_t *then, const json_t *now, const char *where, tdi_error *error)
{
    tdi_facts_difference found;
    return tdi_facts_differ(then, now, &found) ? tdi_facts_refuse(where, found.about, found.before, found.after, error)
                                               : TD_OK;
}
