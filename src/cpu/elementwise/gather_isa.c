/* gather_isa.c - gather copies rows of a table by their numbers; scatter_add adds rows into a table's. */
#include "cpu/isa.h"

static void copy_row(const float *table, int64_t rows, int64_t width, int32_t index, float *to)
{
    if (index >= 0 && index < rows) {
        memcpy(to, table + index * width, (size_t)width * sizeof *to);
        return;
    }
    for (int64_t i = 0; i < width; i++)
        to[i] = NAN;
}

static void gather_run(const tdi_call *call)
{
    const td_shape *table = &call->in[0].shape, *indices = &call->in[1].shape;
    const int32_t *index = call->in[1].data;
    float *out = call->out.data;
    int64_t count = tdi_shape_elements(indices), width = tdi_shape_elements(table) / table->dim[0];
    int64_t begin = 0, end = count;
    if (call->split == TDI_ROWS) {
        begin = call->begin * (count / indices->dim[0]);
        end = call->end * (count / indices->dim[0]);
    }
    for (int64_t i = begin; i < end; i++)
        copy_row(call->in[0].data, table->dim[0], width, index[i], out + i * width);
}
TDI_CPU_KERNEL(gather, .splits = TDI_CAN_ROWS, .run = gather_run);

/* The rows and columns of the table that a call makes; a row is `outer` times `last` numbers. */
typedef struct share {
    int64_t row_begin, row_end, outer, last, begin, end;
} share;

static share share_of(const tdi_call *call)
{
    const td_shape *table = &call->out.shape;
    bool numbers = table->rank == 1;
    int64_t last = numbers ? 1 : tdi_last_extent(table);
    share s = {0, table->dim[0], tdi_shape_elements(table) / table->dim[0] / last, last, 0, last};
    if (call->split == TDI_ROWS || (call->split == TDI_COLUMNS && numbers)) {
        s.row_begin = call->begin;
        s.row_end = call->end;
    } else if (call->split == TDI_COLUMNS) {
        s.begin = call->begin;
        s.end = call->end;
    }
    return s;
}

static void clear(const share *s, float *out)
{
    int64_t begin = s->row_begin * s->outer, end = s->row_end * s->outer, n = s->end - s->begin;
    if (n == s->last) {
        memset(out + begin * n, 0, (size_t)((end - begin) * n) * sizeof *out);
        return;
    }
    for (int64_t at = begin; at < end; at++)
        memset(out + at * s->last + s->begin, 0, (size_t)n * sizeof *out);
}

static void add(int64_t n, const float *from, float *to)
{
    TDI_LANES for (int64_t i = 0; i < n; i++) to[i] += from[i];
}

static void scatter_add_run(const tdi_call *call)
{
    const int32_t *index = call->in[0].data;
    const float *dy = call->in[1].data;
    float *out = call->out.data;
    share s = share_of(call);
    int64_t count = tdi_shape_elements(&call->in[0].shape), n = s.end - s.begin;
    clear(&s, out);
    for (int64_t i = 0; i < count; i++)
        if (index[i] >= s.row_begin && index[i] < s.row_end)
            for (int64_t o = 0; o < s.outer; o++)
                add(n, dy + (i * s.outer + o) * s.last + s.begin, out + (index[i] * s.outer + o) * s.last + s.begin);
}
TDI_CPU_KERNEL(scatter_add, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS, .run = scatter_add_run);
