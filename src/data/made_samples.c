/* made_samples.c - samples that are made whole and gathered column by column. */
#include "data/made_samples.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Who gathers takes all columns of a row before the next, so that few wait, one for each thread; of rows that are left
 * half gathered the oldest is dropped, and made again should it be asked for. */
enum { MOST_KEPT = 256, ALIGNMENT = 16 };

size_t tdi_whole_bytes(const tdi_whole *whole, int column)
{
    const tdi_column *of = &whole->items.source.columns[column];
    return (size_t)tdi_sample_elements(&of->shape) * td_dtype_size(of->dtype);
}

void tdi_whole_places(const tdi_whole *whole, char *sample, void **places)
{
    for (int i = 0; i < whole->columns; i++)
        places[i] = sample + whole->begin[i];
}

/* ---- gathering ---- */

static void drop(tdi_whole *whole, int at)
{
    free(whole->kept.at[at].sample);
    memmove(whole->kept.at + at, whole->kept.at + at + 1, (size_t)(--whole->kept.count - at) * sizeof *whole->kept.at);
}

static bool take_kept(tdi_whole *whole, int column, int64_t row, void *to)
{
    bool found = false;
    pthread_mutex_lock(&whole->lock);
    for (int i = 0; i < whole->kept.count && !found; i++) {
        struct tdi_kept *kept = &whole->kept.at[i];
        if (kept->row != row || !(kept->columns >> column & 1))
            continue;
        found = true;
        memcpy(to, kept->sample + whole->begin[column], tdi_whole_bytes(whole, column));
        kept->columns &= ~(1u << column);
        if (!kept->columns)
            drop(whole, i);
    }
    pthread_mutex_unlock(&whole->lock);
    return found;
}

static td_status keep(tdi_whole *whole, int64_t row, unsigned columns, char *sample, tdi_error *error)
{
    pthread_mutex_lock(&whole->lock);
    if (whole->kept.count == MOST_KEPT)
        drop(whole, 0);
    bool kept = tdi_push(&whole->kept, ((struct tdi_kept){row, columns, sample}));
    pthread_mutex_unlock(&whole->lock);
    if (kept)
        return TD_OK;
    free(sample);
    return tdi_no_memory(error);
}

static td_status make_sample(tdi_whole *whole, int column, int64_t row, void *to, tdi_error *error)
{
    void *places[TDI_MAX_COLUMNS] = {NULL};
    unsigned others = ((1u << atomic_load(&whole->wanted)) - 1) & ~(1u << column);
    char *sample = others ? malloc(whole->begin[whole->columns]) : NULL;
    if (others && !sample)
        return tdi_no_memory(error);
    for (int i = 0; i < whole->columns; i++)
        places[i] = i == column ? to : others >> i & 1 ? sample + whole->begin[i] : NULL;
    td_status status = whole->make(whole, row, places, error);
    if (status == TD_OK && others)
        return keep(whole, row, others, sample, error);
    free(sample);
    return status;
}

static td_status whole_read(tdi_items *items, int column, int64_t row, void *to, tdi_error *error)
{
    tdi_whole *whole = (tdi_whole *)items;
    return take_kept(whole, column, row, to) ? TD_OK : make_sample(whole, column, row, to, error);
}

/* ---- life ---- */

void tdi_whole_init(tdi_whole *whole)
{
    tdi_source *source = &whole->items.source;
    source->n_x = source->n_y = 0;
    source->made = true;
    source->gather = tdi_items_gather;
    whole->items.read = whole_read;
    pthread_mutex_init(&whole->lock, NULL);
}

static bool is_column(const td_column *column, size_t *bytes)
{
    int64_t size = (int64_t)td_dtype_size(column->dtype);
    bool wrong = column->shape.rank < 0 || column->shape.rank > TD_MAX_RANK || (unsigned)column->dtype > TD_UINT8 ||
                 !isfinite(column->scale);
    for (int i = 0; !wrong && i < column->shape.rank; i++)
        wrong = column->shape.dim[i] < 1 || __builtin_mul_overflow(size, column->shape.dim[i], &size);
    *bytes = (size_t)size;
    return !wrong && size < INT64_MAX / (2 * TDI_MAX_COLUMNS);
}

/* A single one is called x or y, several x0, x1, ..., as in files. */
static void name_columns(tdi_source *source)
{
    for (int i = 0; i < source->n_x + source->n_y; i++) {
        bool y = i >= source->n_x;
        char *name = source->columns[i].name;
        if ((y ? source->n_y : source->n_x) == 1)
            snprintf(name, sizeof source->columns[i].name, "%s", y ? "y" : "x");
        else
            snprintf(name, sizeof source->columns[i].name, "%s%d", y ? "y" : "x", y ? i - source->n_x : i);
    }
}

td_status tdi_whole_add(tdi_whole *whole, const char *function, bool y, const td_column *column, tdi_error *error)
{
    size_t bytes;
    tdi_source *source = &whole->items.source;
    int at = source->n_x + source->n_y;
    if (at == TDI_MAX_COLUMNS)
        return tdi_fail(error, TD_UNSUPPORTED, "%s: a sample has at most %d inputs and targets together", function,
                        TDI_MAX_COLUMNS);
    if (!is_column(column, &bytes))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s: the shape, the dtype or the scale of %s%d is none: positive extents, a td_dtype and a "
                        "finite number were expected",
                        function, y ? "y" : "x", y ? source->n_y : source->n_x);
    source->columns[at] =
        (tdi_column){.shape = column->shape, .dtype = column->dtype, .scale = column->scale != 0 ? column->scale : 1};
    *(y ? &source->n_y : &source->n_x) += 1;
    whole->columns++;
    whole->begin[at + 1] = whole->begin[at] + (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    name_columns(source);
    return TD_OK;
}

td_status tdi_whole_add_list(tdi_whole *whole, const char *function, bool y, const td_column *list, tdi_error *error)
{
    for (; list && list->shape.rank >= 0; list++)
        TDI_TRY(tdi_whole_add(whole, function, y, list, error));
    return TD_OK;
}

void tdi_whole_begin(tdi_whole *whole, const tdi_source_pass *pass)
{
    atomic_store(&whole->wanted, pass->columns < whole->columns ? pass->columns : whole->columns);
}

void tdi_whole_end(tdi_whole *whole)
{
    atomic_store(&whole->wanted, 0);
    pthread_mutex_lock(&whole->lock);
    while (whole->kept.count)
        drop(whole, whole->kept.count - 1);
    pthread_mutex_unlock(&whole->lock);
}

void tdi_whole_release(tdi_whole *whole)
{
    tdi_whole_end(whole);
    tdi_vec_free(&whole->kept);
    pthread_mutex_destroy(&whole->lock);
}
