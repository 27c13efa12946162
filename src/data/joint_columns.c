/* joint_columns.c - keeps the columns of a sample that were made with another one until they are gathered. */
#include "data/joint_columns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A thread gathers all columns of a row before the next row, so about one partial sample per thread is kept. When a run
 * leaves rows half gathered, the oldest is dropped, and made again if it is gathered after all. */
enum { MOST_KEPT = 256, ALIGNMENT = 16 };

void tdi_joint_places(const tdi_joint_columns *joint, char *sample, void **places)
{
    for (int i = 0; i < joint->columns; i++)
        places[i] = sample + joint->begin[i];
}

/* ---- gathering ---- */

static void drop(tdi_joint_columns *joint, int at)
{
    free(joint->kept.at[at].sample);
    memmove(joint->kept.at + at, joint->kept.at + at + 1, (size_t)(--joint->kept.count - at) * sizeof *joint->kept.at);
}

static bool take_kept(tdi_joint_columns *joint, int column, int64_t row, void *to)
{
    bool found = false;
    pthread_mutex_lock(&joint->lock);
    for (int i = 0; i < joint->kept.count && !found; i++) {
        struct tdi_partial_sample *kept = &joint->kept.at[i];
        if (kept->row != row || !(kept->columns >> column & 1))
            continue;
        found = true;
        memcpy(to, kept->sample + joint->begin[column], tdi_column_bytes(&joint->reader.source.columns[column]));
        kept->columns &= ~(1u << column);
        if (!kept->columns)
            drop(joint, i);
    }
    pthread_mutex_unlock(&joint->lock);
    return found;
}

static td_status keep(tdi_joint_columns *joint, int64_t row, unsigned columns, char *sample, tdi_error *error)
{
    pthread_mutex_lock(&joint->lock);
    if (joint->kept.count == MOST_KEPT)
        drop(joint, 0);
    bool kept = tdi_push(&joint->kept, ((struct tdi_partial_sample){row, columns, sample}));
    pthread_mutex_unlock(&joint->lock);
    if (kept)
        return TD_OK;
    free(sample);
    return tdi_no_memory(error);
}

static td_status make_sample(tdi_joint_columns *joint, int column, int64_t row, void *to, tdi_error *error)
{
    void *places[TDI_MAX_COLUMNS] = {NULL};
    unsigned others = ((1u << atomic_load(&joint->wanted)) - 1) & ~(1u << column);
    char *sample = others ? malloc(joint->begin[joint->columns]) : NULL;
    if (others && !sample)
        return tdi_no_memory(error);
    for (int i = 0; i < joint->columns; i++)
        places[i] = i == column ? to : others >> i & 1 ? sample + joint->begin[i] : NULL;
    td_status status = joint->make(joint, row, places, error);
    if (status == TD_OK && others)
        return keep(joint, row, others, sample, error);
    free(sample);
    return status;
}

static td_status joint_read(tdi_sample_reader *reader, int column, int64_t row, void *to, tdi_error *error)
{
    tdi_joint_columns *joint = (tdi_joint_columns *)reader;
    return take_kept(joint, column, row, to) ? TD_OK : make_sample(joint, column, row, to, error);
}

/* ---- life ---- */

void tdi_joint_init(tdi_joint_columns *joint)
{
    tdi_source *source = &joint->reader.source;
    source->n_x = source->n_y = source->n_w = 0;
    source->on_demand = true;
    source->gather = tdi_sample_reader_gather;
    joint->reader.read = joint_read;
    pthread_mutex_init(&joint->lock, NULL);
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

static const char *const role_names[] = {"x", "y", "sample_weight"};

/* A single column is called x or y; several are called x0, x1, ..., as in files. */
static void name_columns(tdi_source *source)
{
    int at = 0;
    for (tdi_column_role role = TDI_X; role <= TDI_WEIGHT; role++)
        for (int i = 0, count = *tdi_source_count_of(source, role); i < count; i++, at++) {
            char *name = source->columns[at].name;
            if (count == 1)
                snprintf(name, sizeof source->columns[at].name, "%s", role_names[role]);
            else
                snprintf(name, sizeof source->columns[at].name, "%s%d", role_names[role], i);
        }
}

td_status tdi_joint_add(tdi_joint_columns *joint, const char *function, tdi_column_role role, const td_column *column,
                        tdi_error *error)
{
    size_t bytes;
    tdi_source *source = &joint->reader.source;
    int at = tdi_source_columns(source);
    if (at == TDI_MAX_COLUMNS)
        return tdi_fail(error, TD_UNSUPPORTED, "%s: a sample has at most %d inputs, targets and weights together",
                        function, TDI_MAX_COLUMNS);
    if (!is_column(column, &bytes))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s: the shape, the dtype or the scale of %s%d is none: positive extents, a td_dtype and a "
                        "finite number were expected",
                        function, role_names[role], *tdi_source_count_of(source, role));
    source->columns[at] =
        (tdi_column){.shape = column->shape, .dtype = column->dtype, .scale = column->scale != 0 ? column->scale : 1};
    *tdi_source_count_of(source, role) += 1;
    joint->columns++;
    joint->begin[at + 1] = joint->begin[at] + (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    name_columns(source);
    return TD_OK;
}

td_status tdi_joint_add_list(tdi_joint_columns *joint, const char *function, tdi_column_role role,
                             const td_column *list, tdi_error *error)
{
    for (; list && list->shape.rank >= 0; list++)
        TDI_TRY(tdi_joint_add(joint, function, role, list, error));
    return TD_OK;
}

void tdi_joint_begin(tdi_joint_columns *joint, const tdi_source_run *run)
{
    atomic_store(&joint->wanted, run->columns < joint->columns ? run->columns : joint->columns);
}

void tdi_joint_end(tdi_joint_columns *joint)
{
    atomic_store(&joint->wanted, 0);
    pthread_mutex_lock(&joint->lock);
    while (joint->kept.count)
        drop(joint, joint->kept.count - 1);
    pthread_mutex_unlock(&joint->lock);
}

void tdi_joint_release(tdi_joint_columns *joint)
{
    tdi_joint_end(joint);
    tdi_vec_free(&joint->kept);
    pthread_mutex_destroy(&joint->lock);
}
