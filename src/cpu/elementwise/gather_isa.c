/* gather_isa.c - gather copies rows of a table by their numbers; scatter_add adds rows into a table's; gather_update
 * takes their sums from a table's, by SGD. */
#include "cpu/elementwise/optimizer_update.h"
#include "cpu/isa.h"
#include "cpu/vector_loops.h"

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

/* ---- gather_update ---- */

/* The rows of a thread that indices name, in a hash table: each slot holds the first position that names its row, and
 * `next` the one that does so after it. So a row's gradients are added in scatter_add's order before its weights change
 * once. */
typedef struct named_rows {
    const int32_t *index;
    int64_t count, slots; /* slots: a power of two, at least half of them free */
    int64_t *first, *next;
    float *sum;
} named_rows;

enum { NONE = -1 };

static int64_t slots_for(int64_t count)
{
    int64_t slots = 2;
    while (slots < 2 * count)
        slots *= 2;
    return slots;
}

static int64_t *slot_of(const named_rows *rows, int32_t row)
{
    uint64_t at = (uint64_t)row * 0x9e3779b97f4a7c15u >> 32;
    for (;; at++) {
        int64_t *slot = &rows->first[at & (uint64_t)(rows->slots - 1)];
        if (*slot == NONE || rows->index[*slot] == row)
            return slot;
    }
}

static td_status gather_update_prepare(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    int64_t count = tdi_shape_elements(&call->in[1].shape);
    share s = share_of(call);
    (void)state;
    (void)error;
    *scratch = (size_t)(slots_for(count) + count) * sizeof(int64_t) + (size_t)(s.end - s.begin) * sizeof(float);
    return TD_OK;
}

static named_rows find_rows(const tdi_call *call, const share *s)
{
    int64_t count = tdi_shape_elements(&call->in[1].shape), slots = slots_for(count), *first = call->scratch;
    named_rows rows = {call->in[1].data, count, slots, first, first + slots, (float *)(first + slots + count)};
    memset(first, 0xff, (size_t)slots * sizeof *first);
    for (int64_t i = count - 1; i >= 0; i--)
        if (rows.index[i] >= s->row_begin && rows.index[i] < s->row_end) {
            int64_t *slot = slot_of(&rows, rows.index[i]);
            rows.next[i] = *slot;
            *slot = i;
        }
    return rows;
}

/* The row's numbers from `at` on, of so many in a row. */
static void update_row(const tdi_call *call, const tdi_update *update, const named_rows *rows, int64_t first,
                       int64_t width, int64_t at, int64_t n)
{
    const float *dy = call->in[2].data;
    int64_t place = rows->index[first] * width + at;
    memset(rows->sum, 0, (size_t)n * sizeof *rows->sum);
    for (int64_t i = first; i != NONE; i = rows->next[i])
        add(n, dy + i * width + at, rows->sum);
    tdi_stretch s = {(const float *)call->in[0].data + place, rows->sum, {NULL}, (float *)call->out.data + place};
    TDI_ISA_NAME(tdi_update_stretch)(update, n, s);
}

static void gather_update_run(const tdi_call *call)
{
    if (call->control->skip)
        return;
    share s = share_of(call);
    named_rows rows = find_rows(call, &s);
    tdi_update update = tdi_update_of(&tdi_op_sgd, call->attrs, call->control);
    for (int64_t slot = 0; slot < rows.slots; slot++)
        for (int64_t o = 0; rows.first[slot] != NONE && o < s.outer; o++)
            update_row(call, &update, &rows, rows.first[slot], s.outer * s.last, o * s.last + s.begin, s.end - s.begin);
}
TDI_CPU_KERNEL(gather_update, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS, .prepare = gather_update_prepare,
               .run = gather_update_run);
