/* dropout_isa.c - dropout: makes several Philox blocks side by side, with the bits of tdi_dropout_draw. */
#include "cpu/bfloat16_isa.h"

enum { QUADS = 64, BLOCK = 4 * QUADS };

typedef struct blocks {
    uint32_t word[4][QUADS];
} blocks;

static inline void philox_round(blocks *b, uint32_t key_0, uint32_t key_1)
{
    TDI_LANES for (int q = 0; q < QUADS; q++)
    {
        uint64_t p0 = (uint64_t)0xD2511F53u * b->word[0][q], p1 = (uint64_t)0xCD9E8D57u * b->word[2][q];
        uint32_t next_0 = (uint32_t)(p1 >> 32) ^ b->word[1][q] ^ key_0;
        uint32_t next_2 = (uint32_t)(p0 >> 32) ^ b->word[3][q] ^ key_1;
        b->word[0][q] = next_0;
        b->word[1][q] = (uint32_t)p1;
        b->word[2][q] = next_2;
        b->word[3][q] = (uint32_t)p0;
    }
}

/* Makes the draws of quads [first, first + QUADS). */
static void draw(uint64_t key, uint64_t step, uint64_t first, blocks *b)
{
    for (int q = 0; q < QUADS; q++) {
        b->word[0][q] = (uint32_t)(first + (uint64_t)q);
        b->word[1][q] = (uint32_t)((first + (uint64_t)q) >> 32);
        b->word[2][q] = (uint32_t)step;
        b->word[3][q] = (uint32_t)(step >> 32);
    }
    uint32_t key_0 = (uint32_t)key, key_1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        philox_round(b, key_0, key_1);
        key_0 += 0x9E3779B9u;
        key_1 += 0xBB67AE85u;
    }
}

/* Makes the factors of the blocks' elements: 0 or `scale`. */
static void factors(const blocks *b, float rate, float scale, float *factor)
{
    for (int word = 0; word < 4; word++)
        TDI_LANES for (int q = 0; q < QUADS; q++) factor[4 * q + word] =
            (float)(int32_t)(b->word[word][q] >> 8) * 0x1p-24f >= rate ? scale : 0.0f;
}

/* Selects instead of multiplying: NaN and infinity times 0 would not be 0. */
static void apply(int64_t n, const float *factor, const float *x, float *to)
{
    TDI_LANES for (int64_t i = 0; i < n; i++) to[i] = factor[i] > 0.0f ? x[i] * factor[i] : 0.0f;
}

/* Makes elements [at, at + n); the first is element `element` of the global batch. */
static void stretch(const tdi_call *call, uint64_t element, int64_t at, int64_t n)
{
    const tdi_dropout_attrs *attrs = call->attrs;
    uint64_t key = tdi_dropout_key(call->control, attrs->stream);
    tdi_dropout_numbers numbers = tdi_dropout_of(call);
    float factor[BLOCK], from[BLOCK], made[BLOCK];
    blocks b;
    while (n > 0) {
        int64_t skip = (int64_t)(element % 4), now = BLOCK - skip < n ? BLOCK - skip : n;
        float *to = tdi_write_tile(&call->out, at, made);
        draw(key, (uint64_t)call->control->step, element / 4, &b);
        factors(&b, numbers.rate, numbers.scale, factor);
        apply(now, factor + skip, tdi_read_tile(&call->in[0], at, now, from), to);
        tdi_keep_tile(&call->out, at, now, to);
        element += (uint64_t)now;
        at += now;
        n -= now;
    }
}

static void dropout_run(const tdi_call *call)
{
    int64_t rows = call->out.shape.dim[0], per_row = rows ? tdi_shape_elements(&call->out.shape) / rows : 0;
    int64_t first = call->shard->first_row * per_row;
    tdi_runs runs = tdi_call_runs(call);
    for (int64_t r = 0, at = runs.first; r < runs.count; r++, at += runs.stride)
        stretch(call, (uint64_t)(first + at), at, runs.length);
}

TDI_CPU_KERNEL(dropout, .takes = TDI_TAKES_BOTH, .splits = TDI_CAN_ROWS | TDI_CAN_COLUMNS | TDI_CAN_FLAT,
               .run = dropout_run);
