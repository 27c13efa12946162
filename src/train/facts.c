/* facts.c - which run it is. */
#include "train/facts.h"

#include <stdarg.h>
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

static td_status add_column(tdi_source *source, int column, const int64_t *rows, int64_t count, uLong *checksum,
                            tdi_error *error)
{
    size_t size = (size_t)tdi_sample_elements(&source->columns[column].shape) * sizeof(float);
    float *sample = malloc(size + 1);
    td_status status = sample ? TD_OK : tdi_no_memory(error);
    for (int64_t i = 0; i < count && status == TD_OK; i++) {
        status = source->gather(source, column, rows + i, 1, sample, TD_FLOAT32, error);
        *checksum = status == TD_OK ? crc32_z(*checksum, (const Bytef *)sample, size) : 0;
    }
    free(sample);
    return status;
}

/* As the first epoch of seed 0 would see them, so that another augmentation is seen too. A stream is not touched: what
 * is taken from it is gone. */
static td_status add_samples(tdi_source *source, bool training, uLong *checksum, tdi_error *error)
{
    int64_t rows[TDI_FACTS_SAMPLES], count = choose_rows(source, rows);
    tdi_source_pass pass = {
        .order = rows, .samples = count, .batch = count, .training = training, .columns = source->n_x + source->n_y};
    if (source->sequential)
        return TD_OK;
    TDI_TRY(tdi_source_begin(source, &pass, error));
    td_status status = TD_OK;
    for (int i = 0; i < source->n_x + source->n_y && status == TD_OK; i++)
        status = add_column(source, i, rows, count, checksum, error);
    tdi_source_end(source);
    return status;
}

static td_status add_data(json_t **facts, const char *about, tdi_source *source, bool training, tdi_error *error)
{
    char shape[TDI_SHAPE_TEXT];
    uLong checksum = crc32(0, NULL, 0);
    tdi_text text = {0};
    TDI_TRY(add_samples(source, training, &checksum, error));
    tdi_text_format(&text, "%lld samples of", (long long)source->samples);
    for (int i = 0; i < source->n_x + source->n_y; i++)
        tdi_text_format(&text, " %s %s%s", i < source->n_x ? "x" : "y", td_dtype_name(source->columns[i].dtype),
                        tdi_shape_text(&source->columns[i].shape, shape));
    tdi_text_format(&text, ", checksum %08lx", checksum);
    put(facts, about, &text);
    tdi_text_free(&text);
    return TD_OK;
}

/* ---- model ---- */

static td_status add_model(json_t **facts, const td_model *model, tdi_error *error)
{
    char *layers = tdi_keras_json(model), *compile = tdi_keras_compile_text(model);
    td_status status = layers && compile ? TD_OK : tdi_no_memory(error);
    if (status == TD_OK) {
        say(facts, "model", "%.256s of %d layers and %lld weights, checksum %08lx", model->name, model->layers.count,
            (long long)td_parameter_count(model, NULL), crc32_z(0, (const Bytef *)layers, strlen(layers)));
        say(facts, "optimizer, loss and metrics", "checksum %08lx",
            crc32_z(0, (const Bytef *)compile, strlen(compile)));
    }
    free(layers);
    free(compile);
    return status;
}

td_status tdi_run_facts(const td_model *model, const tdi_run *run, json_t **facts, tdi_error *error)
{
    *facts = json_object();
    td_status status = add_data(facts, "training data", run->train, true, error);
    if (status == TD_OK && run->validation)
        status = add_data(facts, "validation data", run->validation, false, error);
    if (status == TD_OK)
        status = add_model(facts, model, error);
    say(facts, "batch size", "%lld", (long long)run->batch);
    say(facts, "steps of an epoch", "%lld", (long long)run->steps);
    if (run->shuffle_buffer)
        say(facts, "shuffle", "among %lld", (long long)run->shuffle_buffer);
    else
        say(facts, "shuffle", "%s", run->shuffle ? "yes" : "no");
    if (status == TD_OK && !*facts)
        return tdi_no_memory(error);
    if (status != TD_OK) {
        json_decref(*facts);
        *facts = NULL;
    }
    return status;
}

static const char *text_of(const json_t *facts, const char *about)
{
    const char *text = json_string_value(json_object_get(facts, about));
    return text ? text : "none";
}

static td_status compare(const json_t *then, const json_t *now, const char *about, const char *where, tdi_error *error)
{
    const char *before = text_of(then, about), *after = text_of(now, about);
    if (strcmp(before, after) == 0)
        return TD_OK;
    return tdi_fail(
        error, TD_INVALID_ARGUMENT,
        "\"%.200s\" holds the backup of another run: its %s was %.200s, and here it is %.200s; name another "
        "folder, or remove this one to start afresh",
        where, about, before, after);
}

td_status tdi_facts_compare(const json_t *then, const json_t *now, const char *where, tdi_error *error)
{
    static const char *const all[] = {"model",   "optimizer, loss and metrics", "batch size",     "training data",
                                      "shuffle", "steps of an epoch",           "validation data"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        TDI_TRY(compare(then, now, all[i], where, error));
    return TD_OK;
}
