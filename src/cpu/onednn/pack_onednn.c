/* pack_onednn.c - finds a tdi_packing for what oneDNN would reorder, since oneDNN's own loops for that take several
 * times as long. */
#include "cpu/onednn/pack_onednn.h"

#include <stdlib.h>

enum { MATRIX = 2 /* the axes of a matrix; those behind them are loops over matrices */ };

/* The offset of index `at` of an axis: through the blocks from the innermost out, then by the stride. */
static int64_t offset_of(const tdi_onednn_layout *layout, int axis, int64_t at)
{
    int64_t offset = 0, step = 1;
    for (int i = layout->blocks - 1; i >= 0; i--) {
        int64_t size = layout->block_size[i];
        if (layout->block_axis[i] == axis) {
            offset += at % size * step;
            at /= size;
        }
        step *= size;
    }
    return offset + at * layout->stride[axis];
}

/* Whether adjacent indices are `step` elements apart, in runs of `run`. */
static bool follows(const int64_t *at, int64_t count, int64_t run, int64_t step)
{
    for (int64_t i = 0; i < count; i++)
        if (at[i] != at[i - i % run] + i % run * step)
            return false;
    return true;
}

static bool pairs(const int64_t *paired, int64_t count, const int64_t *other, int64_t other_count)
{
    return follows(paired, count, 2, 1) && follows(other, other_count, TDI_PACK_RUN, 2);
}

/* Whether one layout is plain, and the other has nothing but blocks and the zeros that fill them. */
static bool fits(const tdi_onednn_layout *from, const tdi_onednn_layout *to, size_t to_bytes)
{
    int64_t elements = 1;
    bool multiples = true, loops = true;
    for (int i = 0; i < to->rank; i++) {
        elements *= to->padded[i];
        if (i < MATRIX)
            multiples = multiples && to->extent[i] % TDI_PACK_RUN == 0 && to->padded[i] % TDI_PACK_RUN == 0;
        else
            loops = loops && to->padded[i] == to->extent[i];
    }
    for (int b = 0; b < to->blocks; b++)
        loops = loops && to->block_axis[b] < MATRIX;
    return to->rank >= MATRIX && to->rank <= 2 * MATRIX && from->blocks == 0 && multiples && loops &&
           to_bytes == (size_t)elements * sizeof(uint16_t);
}

static tdi_packing *create(const tdi_onednn_layout *from, const tdi_onednn_layout *to, int rows, int columns)
{
    int64_t r = to->padded[rows], c = to->padded[columns];
    tdi_packing *p = calloc(1, sizeof *p + (size_t)(r + c) * sizeof(int64_t));
    if (!p)
        return NULL;
    *p = (tdi_packing){.rows = to->extent[rows],
                       .columns = to->extent[columns],
                       .packed_rows = r,
                       .packed_columns = c,
                       .row = from->stride[rows],
                       .count = {1, 1},
                       .row_at = (int64_t *)(p + 1)};
    p->column_at = p->row_at + r;
    for (int64_t i = 0; i < r; i++)
        p->row_at[i] = offset_of(to, rows, i);
    for (int64_t i = 0; i < c; i++)
        p->column_at[i] = offset_of(to, columns, i);
    for (int i = MATRIX; i < to->rank; i++) {
        p->count[i - MATRIX] = to->extent[i];
        p->from_step[i - MATRIX] = from->stride[i];
        p->to_step[i - MATRIX] = to->stride[i];
    }
    return p;
}

tdi_packing *tdi_onednn_packing(tdi_md_view plain, tdi_md_view packed)
{
    tdi_onednn_layout from, to;
    if (!tdi_md_layout(plain, &from) || !tdi_md_layout(packed, &to) || from.type != dnnl_f32 || to.type != dnnl_bf16 ||
        !fits(&from, &to, dnnl_memory_desc_get_size(packed)))
        return NULL;
    int columns = from.stride[0] == 1 ? 0 : 1;
    tdi_packing *p = from.stride[columns] == 1 ? create(&from, &to, 1 - columns, columns) : NULL;
    if (!p || pairs(p->row_at, p->packed_rows, p->column_at, p->packed_columns))
        return p;
    p->pairs_columns = pairs(p->column_at, p->packed_columns, p->row_at, p->packed_rows);
    if (p->pairs_columns)
        return p;
    free(p);
    return NULL;
}
