/* binary_isa.c - functions of two numbers: of equal shapes, or with one side a number, the same row for every row, a
 * number per row, or broadcast in another way. */
#include "cpu/bfloat16_isa.h"

/* X(kind, value) */
#define BINARY_KINDS(X)                                                                                                \
    X(TDI_ADD, a + b)                                                                                                  \
    X(TDI_SUBTRACT, a - b)                                                                                             \
    X(TDI_MULTIPLY, a *b)                                                                                              \
    X(TDI_DIVIDE, a / b)                                                                                               \
    X(TDI_MAXIMUM, ((a > b) | (a != a)) ? a : b)                                                                       \
    X(TDI_MINIMUM, ((a < b) | (a != a)) ? a : b)

/* How far an input moves from row to row and from column to column of the output: (last, 1), (0, 1), (1, 0) or (0, 0).
 * `by_axes`: it is broadcast along an axis in the middle, and moves from row to row by each axis's stride. */
typedef struct pace {
    int64_t row, column;
    bool by_axes;
    int64_t strides[TD_MAX_RANK];
} pace;

static int64_t leading_ones(const td_shape *shape)
{
    int64_t ones = 0;
    for (int i = 0; i + 1 < shape->rank; i++)
        ones += shape->dim[i] == 1;
    return ones;
}

static pace find_pace(const td_shape *in, const td_shape *out)
{
    int64_t last = tdi_last_extent(out), elements = tdi_shape_elements(in);
    if (elements == tdi_shape_elements(out))
        return (pace){.row = last, .column = 1};
    if (elements == 1)
        return (pace){0};
    if (tdi_last_extent(in) == last && leading_ones(in) == in->rank - 1)
        return (pace){.column = 1};
    if (tdi_last_extent(in) == 1 && in->rank == out->rank && elements == tdi_outer_extent(out))
        return (pace){.row = 1};
    pace p = {.column = tdi_last_extent(in) == last, .by_axes = true};
    tdi_broadcast_strides(in, out, p.strides);
    return p;
}

/* The element of the input for a row and column of the output. */
static int64_t place_of(const pace *p, const td_shape *out, int64_t row, int64_t column)
{
    int64_t at = p->by_axes ? tdi_offset_of(out, p->strides, row * tdi_last_extent(out)) : row * p->row;
    return at + column * p->column;
}

#define LOOP(kind, value)                                                                                              \
    case kind:                                                                                                         \
        TDI_LANES for (int64_t i = 0; i < n; i++)                                                                      \
        {                                                                                                              \
            float a = LEFT, b = RIGHT;                                                                                 \
            to[i] = (value);                                                                                           \
        }                                                                                                              \
        break;

#define LEFT  left[i]
#define RIGHT right[i]
static void both(int kind, int64_t n, const float *left, const float *right, float *to)
{
    switch (kind) {
        BINARY_KINDS(LOOP)
    default:
        break;
    }
}
#undef LEFT
#define LEFT left
static void number_left(int kind, int64_t n, float left, const float *right, float *to)
{
    switch (kind) {
        BINARY_KINDS(LOOP)
    default:
        break;
    }
}
#undef LEFT
#undef RIGHT
#define LEFT  left[i]
#define RIGHT right
static void number_right(int kind, int64_t n, const float *left, float right, float *to)
{
    switch (kind) {
        BINARY_KINDS(LOOP)
    default:
        break;
    }
}
#undef LEFT
#undef RIGHT

static void piece(int kind, int64_t n, const float *left, bool left_moves, const float *right, bool right_moves,
                  float *to)
{
    if (left_moves && right_moves)
        both(kind, n, left, right, to);
    else if (left_moves)
        number_right(kind, n, left, *right, to);
    else if (right_moves)
        number_left(kind, n, *left, right, to);
    else
        for (int64_t i = 0; i < n; i++)
            both(kind, 1, left, right, to + i);
}

/* Makes elements [begin, begin + n) of the output, row by row where an input needs that. */
static void stretch(const tdi_call *call, int kind, const pace *a, const pace *b, int64_t begin, int64_t n)
{
    const td_shape *shape = &call->out.shape;
    int64_t last = tdi_last_extent(&call->out.shape);
    float of_a[TDI_TILE], of_b[TDI_TILE], made[TDI_TILE];
    bool narrow = call->out.dtype == TD_BFLOAT16;
    bool by_rows = a->by_axes || b->by_axes || a->row != last * a->column || b->row != last * b->column;
    while (n > 0) {
        int64_t row = by_rows ? begin / last : 0, column = begin - row * last;
        int64_t now = by_rows && last - column < n ? last - column : n;
        now = narrow && now > TDI_TILE ? TDI_TILE : now;
        const float *left = tdi_read_tile(&call->in[0], place_of(a, shape, row, column), a->column ? now : 1, of_a);
        const float *right = tdi_read_tile(&call->in[1], place_of(b, shape, row, column), b->column ? now : 1, of_b);
        float *to = tdi_write_tile(&call->out, begin, made);
        piece(kind, now, left, a->column, right, b->column, to);
        tdi_keep_tile(&call->out, begin, now, to);
        begin += now;
        n -= now;
    }
}

static void run(const tdi_call *call, int kind)
{
    pace a = find_pace(&call->in[0].shape, &call->out.shape), b = find_pace(&call->in[1].shape, &call->out.shape);
    tdi_runs runs = tdi_call_runs(call);
    for (int64_t r = 0; r < runs.count; r++)
        stretch(call, kind, &a, &b, runs.first + r * runs.stride, runs.length);
}

static void binary_run(const tdi_call *call)
{
    run(call, ((const tdi_binary_attrs *)call->attrs)->kind);
}

static void bias_add_run(const tdi_call *call)
{
    run(call, TDI_ADD);
}

TDI_CPU_KERNEL(binary, .takes = TDI_TAKES_BOTH, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS | TDI_CAN_FLAT,
               .run = binary_run);
TDI_CPU_KERNEL(bias_add, .takes = TDI_TAKES_BOTH, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS | TDI_CAN_FLAT,
               .run = bias_add_run);
