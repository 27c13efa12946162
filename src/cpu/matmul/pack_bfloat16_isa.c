/* pack_bfloat16_isa.c - rounds float32 matrices to bfloat16 in pairs (pack_bfloat16.h), a line of the result at a
 * time. */
#include "cpu/matmul/pack_bfloat16.h"

#include "cpu/bfloat16_isa.h"
#include "cpu/vector_loops.h"

/* Stores elements of a and b in turn, as 32-bit words, whose lower half comes first in memory. */
TDI_INLINE void store_pairs(const float *a, const float *b, tdi_bfloat16 *to)
{
    tdi_vector_words low = tdi_words_of(tdi_narrowed(tdi_load(a))), high = tdi_words_of(tdi_narrowed(tdi_load(b)));
    tdi_vector_words pairs = low | high << 16;
    memcpy(to, &pairs, sizeof pairs);
}

static void pack_row_pairs(const tdi_packing *p, int64_t r, const float *from, tdi_bfloat16 *to)
{
    for (int64_t c = 0; c < p->columns; c += TDI_WIDTH)
        store_pairs(from + r * p->row + c, from + (r + 1) * p->row + c, to + p->row_at[r] + p->column_at[c]);
}

/* Packs TDI_WIDTH rows from r on. */
static void pack_column_pairs(const tdi_packing *p, int64_t r, const float *from, tdi_bfloat16 *to)
{
    float turned[TDI_WIDTH][TDI_WIDTH];
    for (int64_t c = 0; c < p->columns; c += TDI_WIDTH) {
        tdi_transpose_square(from + r * p->row + c, p->row, turned[0], TDI_WIDTH);
        for (int i = 0; i < TDI_WIDTH; i += 2)
            store_pairs(turned[i], turned[i + 1], to + p->row_at[r] + p->column_at[c + i]);
    }
}

/* Clears the rows and columns behind the last. */
static void pack_zeros(const tdi_packing *p, tdi_bfloat16 *to)
{
    for (int64_t r = 0; r < p->packed_rows; r++)
        for (int64_t c = r < p->rows ? p->columns : 0; c < p->packed_columns; c++)
            to[p->row_at[r] + p->column_at[c]] = 0;
}

static void pack_matrix(const tdi_packing *p, const float *from, tdi_bfloat16 *to)
{
    for (int64_t r = 0; r < p->rows; r += p->pairs_columns ? TDI_WIDTH : 2)
        if (p->pairs_columns)
            pack_column_pairs(p, r, from, to);
        else
            pack_row_pairs(p, r, from, to);
    pack_zeros(p, to);
}

void TDI_ISA_NAME(tdi_pack)(const tdi_packing *p, const float *from, tdi_bfloat16 *to)
{
    for (int64_t i = 0; i < p->count[0]; i++)
        for (int64_t j = 0; j < p->count[1]; j++)
            pack_matrix(p, from + i * p->from_step[0] + j * p->from_step[1],
                        to + i * p->to_step[0] + j * p->to_step[1]);
}
