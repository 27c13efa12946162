/* adapt_normalization.c - means and variances in one walk over the samples, chunks merged as Chan, Golub and LeVeque
 * do. */
#include "train/adapt_normalization.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/batch_feed.h"

enum { CHUNK = 256 }; /* samples read at a time */

typedef struct moments {
    int64_t features, count;
    double *mean, *m2; /* [features] */
} moments;

/* Adds rows [rows, features]. */
static void add_rows(moments *m, const float *rows, int64_t count)
{
    for (int64_t r = 0; r < count; r++, rows += m->features) {
        m->count++;
        for (int64_t i = 0; i < m->features; i++) {
            double apart = (double)rows[i] - m->mean[i];
            m->mean[i] += apart / (double)m->count;
            m->m2[i] += apart * ((double)rows[i] - m->mean[i]);
        }
    }
}

static td_status read_column(moments *m, tdi_source *source, int column, float *values, const atomic_int *stop,
                             tdi_error *error)
{
    int64_t rows[CHUNK], per_sample = tdi_sample_elements(&source->columns[column].shape) / m->features;
    int64_t each = source->on_demand ? 1 : CHUNK;
    for (int64_t first = 0; first < source->samples; first += each) {
        int64_t count = source->samples - first < each ? source->samples - first : each;
        TDI_TRY(tdi_check_stop(stop, error));
        for (int64_t i = 0; i < count; i++)
            rows[i] = first + i;
        TDI_TRY(source->gather(source, column, rows, count, values, TD_FLOAT32, error));
        add_rows(m, values, count * per_sample);
    }
    return TD_OK;
}

static td_status take_moments(td_model *model, const tdi_layer *layer, const moments *m, tdi_error *error)
{
    float *mean = tdi_model_write_value(model, &layer->weights.at[0]->variable);
    float *variance = tdi_model_write_value(model, &layer->weights.at[1]->variable);
    for (int64_t i = 0; i < m->features; i++)
        if (!isfinite(m->mean[i]) || !isfinite(m->m2[i]))
            return tdi_fail(error, TD_NOT_FINITE, "feature %lld of the data is not finite, and so has no mean",
                            (long long)i);
    for (int64_t i = 0; i < m->features; i++) {
        mean[i] = (float)m->mean[i];
        variance[i] = (float)(m->m2[i] / (double)m->count);
    }
    return TD_OK;
}

static td_status adapt_layer(td_model *model, const tdi_layer *layer, tdi_source *source, int column, tdi_error *error)
{
    int64_t features = layer->weights.at[0]->variable.elements;
    moments m = {.features = features};
    m.mean = calloc((size_t)features, sizeof *m.mean);
    m.m2 = calloc((size_t)features, sizeof *m.m2);
    float *values = malloc((size_t)tdi_sample_elements(&source->columns[column].shape) * CHUNK * sizeof *values);
    td_status status = m.mean && m.m2 && values ? read_column(&m, source, column, values, &model->context->stop, error)
                                                : tdi_no_memory(error);
    if (status == TD_OK)
        status = take_moments(model, layer, &m, error);
    free(values);
    free(m.m2);
    free(m.mean);
    return status;
}

/* The source's column that the call takes as input, or, inverted, gives as output; -1: none. */
static int column_of(const td_model *model, const tdi_call_site *site, const tdi_source *source)
{
    bool invert = ((const td_normalization_args *)site->layer->args)->invert == TD_YES;
    for (int i = 0; !invert && i < model->architecture->n_inputs; i++)
        if (site->in[0] == model->architecture->inputs[i])
            return i;
    for (int o = 0; invert && o < model->architecture->n_outputs; o++)
        if (site->out[0] == model->architecture->outputs[o])
            return tdi_target_column(model, source, o);
    return -1;
}

td_status tdi_adapt(td_model *model, tdi_source *source, tdi_error *error)
{
    int adapted = 0;
    for (int i = 0; i < model->architecture->sites.count; i++) {
        const tdi_call_site *site = model->architecture->sites.at[i];
        if (site->layer->type != &tdi_layer_type_normalization)
            continue;
        int column = column_of(model, site, source);
        if (column < 0)
            return tdi_fail(
                error, TD_INVALID_ARGUMENT,
                "adapt: layer \"%s\" (Normalization) neither takes an input of the model, nor, inverted, gives "
                "an output: there is no data to adapt it to",
                site->layer->name);
        if (adapt_layer(model, site->layer, source, column, error) != TD_OK) {
            tdi_error_prefix(error, "adapt: layer \"%s\"", site->layer->name);
            return error->status;
        }
        adapted++;
    }
    if (adapted)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "adapt: model \"%s\" has no Normalization layer",
                    model->architecture->name);
}
