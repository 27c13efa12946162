/* upsample2d_isa.c - images made larger, and the adjoint of that. Whole lines [width, channels] are combined
 * vertically, groups of channels along a line. */
#include <stdlib.h>

#include "cpu/isa.h"

/* Where each row and each column of the large image takes its value from. It is made once, by prepare. */
typedef struct places {
    tdi_taps *row, *column;
} places;

/* The two images of a call; a line is one row of either. */
typedef struct images {
    const tdi_upsample2d_attrs *attrs;
    const places *places;
    int64_t height, width, channels; /* of the small image */
    int64_t small_line, large_line;
    int64_t begin, end; /* this call makes samples [begin, end) */
} images;

static images images_of(const tdi_call *call, const td_shape *small)
{
    const tdi_upsample2d_attrs *a = call->attrs;
    int64_t line = small->dim[2] * small->dim[3];
    bool rows = call->split == TDI_ROWS;
    return (images){a,
                    call->state,
                    small->dim[1],
                    small->dim[2],
                    small->dim[3],
                    line,
                    line * a->factor_w,
                    rows ? call->begin : 0,
                    rows ? call->end : small->dim[0]};
}

static void release(void *state)
{
    places *made = state;
    free(made->row);
    free(made->column);
    free(made);
}

static tdi_taps *taps_of(bool bilinear, int64_t extent, int factor)
{
    tdi_taps *taps = malloc((size_t)(extent * factor) * sizeof *taps);
    for (int64_t i = 0; taps && i < extent * factor; i++)
        taps[i] = tdi_upsample_taps(bilinear, extent, factor, i);
    return taps;
}

static td_status prepare(const tdi_call *call, const td_shape *small, void **state, size_t *scratch, tdi_error *error)
{
    const tdi_upsample2d_attrs *a = call->attrs;
    places *made = calloc(1, sizeof *made);
    if (!made)
        return tdi_no_memory(error);
    made->row = taps_of(a->bilinear, small->dim[1], a->factor_h);
    made->column = taps_of(a->bilinear, small->dim[2], a->factor_w);
    if (!made->row || !made->column) {
        release(made);
        return tdi_no_memory(error);
    }
    *state = made;
    *scratch = (size_t)(small->dim[2] * small->dim[3] * a->factor_w) * sizeof(float);
    return TD_OK;
}

static td_status prepare_forward(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    return prepare(call, &call->in[0].shape, state, scratch, error);
}

static td_status prepare_backward(const tdi_call *call, void **state, size_t *scratch, tdi_error *error)
{
    return prepare(call, &call->out.shape, state, scratch, error);
}

/* to = (1 - share) * low + share * high */
static void mix(int64_t n, const float *low, const float *high, float share, float *to)
{
    float rest = 1.0f - share;
    TDI_LANES for (int64_t i = 0; i < n; i++) to[i] = rest * low[i] + share * high[i];
}

static void add(int64_t n, const float *from, float *to)
{
    TDI_LANES for (int64_t i = 0; i < n; i++) to[i] += from[i];
}

static void add_share(int64_t n, const float *from, float share, float *to)
{
    TDI_LANES for (int64_t i = 0; i < n; i++) to[i] += share * from[i];
}

/* ---- making images larger ---- */

static void widen_line(const images *m, const float *from, float *to)
{
    for (int64_t j = 0; j < m->width * m->attrs->factor_w; j++) {
        tdi_taps at = m->places->column[j];
        const float *low = from + at.low * m->channels, *high = from + at.high * m->channels;
        if (at.share > 0)
            mix(m->channels, low, high, at.share, to + j * m->channels);
        else
            memcpy(to + j * m->channels, low, (size_t)m->channels * sizeof *to);
    }
}

static void enlarge(const images *m, const float *x, float *line, float *y)
{
    for (int64_t i = 0; i < m->height * m->attrs->factor_h; i++) {
        tdi_taps at = m->places->row[i];
        float *to = y + i * m->large_line;
        if (at.share > 0) {
            mix(m->small_line, x + at.low * m->small_line, x + at.high * m->small_line, at.share, line);
            widen_line(m, line, to);
        } else if (i && m->places->row[i - 1].share == 0 && m->places->row[i - 1].low == at.low) {
            memcpy(to, to - m->large_line, (size_t)m->large_line * sizeof *to);
        } else {
            widen_line(m, x + at.low * m->small_line, to);
        }
    }
}

static void upsample2d_run(const tdi_call *call)
{
    images m = images_of(call, &call->in[0].shape);
    const float *x = call->in[0].data;
    float *y = call->out.data;
    int64_t small = m.height * m.small_line, large = m.height * m.attrs->factor_h * m.large_line;
    for (int64_t n = m.begin; n < m.end; n++)
        enlarge(&m, x + n * small, call->scratch, y + n * large);
}
TDI_CPU_KERNEL(upsample2d, .splits = TDI_CAN_ROWS, .prepare = prepare_forward, .release = release,
               .run = upsample2d_run);

/* ---- the adjoint ---- */

static void fold_line(const images *m, const float *from, float *to)
{
    memset(to, 0, (size_t)m->small_line * sizeof *to);
    for (int64_t j = 0; j < m->width * m->attrs->factor_w; j++) {
        tdi_taps at = m->places->column[j];
        const float *pixel = from + j * m->channels;
        if (at.share > 0) {
            add_share(m->channels, pixel, 1.0f - at.share, to + at.low * m->channels);
            add_share(m->channels, pixel, at.share, to + at.high * m->channels);
        } else {
            add(m->channels, pixel, to + at.low * m->channels);
        }
    }
}

static void gather_back(const images *m, const float *dy, float *line, float *dx)
{
    memset(dx, 0, (size_t)(m->height * m->small_line) * sizeof *dx);
    for (int64_t i = 0; i < m->height * m->attrs->factor_h; i++) {
        tdi_taps at = m->places->row[i];
        fold_line(m, dy + i * m->large_line, line);
        add_share(m->small_line, line, 1.0f - at.share, dx + at.low * m->small_line);
        if (at.share > 0)
            add_share(m->small_line, line, at.share, dx + at.high * m->small_line);
    }
}

static void upsample2d_grad_run(const tdi_call *call)
{
    images m = images_of(call, &call->out.shape);
    const float *dy = call->in[0].data;
    float *dx = call->out.data;
    int64_t small = m.height * m.small_line, large = m.height * m.attrs->factor_h * m.large_line;
    for (int64_t n = m.begin; n < m.end; n++)
        gather_back(&m, dy + n * large, call->scratch, dx + n * small);
}
TDI_CPU_KERNEL(upsample2d_grad, .splits = TDI_CAN_ROWS, .prepare = prepare_backward, .release = release,
               .run = upsample2d_grad_run);
