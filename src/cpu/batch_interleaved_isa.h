/* batch_interleaved_isa.h - the batch-interleaved layout, in which each SIMD lane holds a sample:
 * [blocks of TDI_WIDTH samples][elements of a sample][TDI_WIDTH] (tdi_value).
 *
 * With few channels the lanes would stay empty in [batch, height, width, channels]; in this layout they are always
 * full. Here are the functions that bring values into the layout and back, and tdi_batch_interleaved_run, which runs a
 * kernel on it that treats all channels alike: to such a kernel TDI_WIDTH samples of c channels are one sample of c *
 * TDI_WIDTH.
 */
#ifndef TDI_CPU_BATCH_INTERLEAVED_ISA_H
#define TDI_CPU_BATCH_INTERLEAVED_ISA_H

#include "cpu/isa.h"

/* Interleaves `count` numbers of each of `lanes` samples into [count, TDI_WIDTH]; lanes without a sample become zero.
 * Numbers go in whole squares, the last of which may overlap the one before it. */
static inline void tdi_interleave(const float *from, int64_t from_row, int64_t lanes, int64_t count, float *to)
{
    int64_t i = 0;
    for (; lanes == TDI_WIDTH && count >= TDI_WIDTH && i < count; i += TDI_WIDTH) {
        int64_t at = i + TDI_WIDTH <= count ? i : count - TDI_WIDTH;
        tdi_transpose_square(from + at, from_row, to + at * TDI_WIDTH, TDI_WIDTH);
    }
    for (; i < count; i++)
        for (int64_t lane = 0; lane < TDI_WIDTH; lane++)
            to[i * TDI_WIDTH + lane] = lane < lanes ? from[lane * from_row + i] : 0.0f;
}

/* The way back. */
static inline void tdi_deinterleave(const float *from, int64_t lanes, int64_t count, float *to, int64_t to_row)
{
    int64_t i = 0;
    for (; lanes == TDI_WIDTH && count >= TDI_WIDTH && i < count; i += TDI_WIDTH) {
        int64_t at = i + TDI_WIDTH <= count ? i : count - TDI_WIDTH;
        tdi_transpose_square(from + at * TDI_WIDTH, TDI_WIDTH, to + at, to_row);
    }
    for (; i < count; i++)
        for (int64_t lane = 0; lane < lanes; lane++)
            to[lane * to_row + i] = from[i * TDI_WIDTH + lane];
}

static inline int64_t tdi_per_sample(const tdi_value *value)
{
    return tdi_shape_elements(&value->shape) / value->shape.dim[0];
}

/* The number of samples in block `block`, and thus of lanes in use. */
static inline int64_t tdi_block_samples(const tdi_value *value, int64_t block)
{
    int64_t rest = value->shape.dim[0] - block * TDI_WIDTH;
    return rest < TDI_WIDTH ? rest : TDI_WIDTH;
}

/* ---- kernels that treat all channels alike ---- */

enum { TDI_MOST_INTERLEAVED = 4 /* inputs */ };

static inline size_t tdi_batch_interleaved_bytes(const tdi_value *value)
{
    return value->batch_interleaved ? 0 : (size_t)(tdi_per_sample(value) * TDI_WIDTH) * sizeof(float);
}

/* Scratch bytes to interleave those values of the call that are not interleaved. */
static inline size_t tdi_batch_interleaved_room(const tdi_call *call)
{
    size_t room = tdi_batch_interleaved_bytes(&call->out);
    for (int i = 0; i < call->n_in; i++)
        room += tdi_batch_interleaved_bytes(&call->in[i]);
    return room;
}

/* One block as a value of one sample: in place if the value is interleaved, else in `room`, which is moved on. */
static inline tdi_value tdi_block_of(const tdi_value *value, int64_t block, float **room)
{
    int64_t floats = tdi_per_sample(value) * TDI_WIDTH;
    tdi_value seen = *value;
    seen.shape.dim[0] = 1;
    seen.shape.dim[seen.shape.rank - 1] *= TDI_WIDTH;
    seen.data = value->batch_interleaved ? (float *)value->data + block * floats : *room;
    *room += value->batch_interleaved ? 0 : floats;
    return seen;
}

/* Runs `run` on each block of samples. The call's scratch begins with tdi_batch_interleaved_room bytes for this
 * function. */
static inline void tdi_batch_interleaved_run(const tdi_call *call, void (*run)(const tdi_call *call))
{
    tdi_value in[TDI_MOST_INTERLEAVED];
    int64_t per_sample = tdi_per_sample(&call->out), samples = call->out.shape.dim[0];
    for (int64_t block = 0; block * TDI_WIDTH < samples; block++) {
        float *room = call->scratch;
        int64_t lanes = tdi_block_samples(&call->out, block);
        tdi_call one = *call;
        one.in = in;
        for (int i = 0; i < call->n_in; i++) {
            const float *from = call->in[i].data;
            int64_t size = tdi_per_sample(&call->in[i]);
            in[i] = tdi_block_of(&call->in[i], block, &room);
            if (!call->in[i].batch_interleaved)
                tdi_interleave(from + block * TDI_WIDTH * size, size, lanes, size, in[i].data);
        }
        one.out = tdi_block_of(&call->out, block, &room);
        one.split = TDI_WHOLE;
        one.scratch = room;
        run(&one);
        if (!call->out.batch_interleaved)
            tdi_deinterleave(one.out.data, lanes, per_sample, (float *)call->out.data + block * TDI_WIDTH * per_sample,
                             per_sample);
    }
}

#endif
