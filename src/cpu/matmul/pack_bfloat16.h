/* pack_bfloat16.h - float32 matrices rounded into a layout of blocks and pairs, as instructions that multiply pairs of
 * bfloat16 read them.
 *
 * Element (r, c) goes to row_at[r] + column_at[c]: so any layout of blocks is described whose blocks divide the axes
 * one by one. Pairs stand along rows or along columns; in a layout that fits, elements of the other axis follow each
 * other pair by pair, for at least as many as TDI_PACK_RUN. */
#ifndef TDI_CPU_MATMUL_PACK_BFLOAT16_H
#define TDI_CPU_MATMUL_PACK_BFLOAT16_H

#include <stdbool.h>
#include <stdint.h>

enum { TDI_PACK_RUN = 16 };

typedef struct tdi_packing {
    int64_t rows, columns;               /* of each matrix, multiples of TDI_PACK_RUN */
    int64_t packed_rows, packed_columns; /* with the zeros behind them, multiples too */
    int64_t row;                         /* floats from a row to the next; those of a row are adjacent */
    /* The matrices, in two nested loops: how many, and from one to the next, in elements. */
    int64_t count[2], from_step[2], to_step[2];
    bool pairs_columns;          /* two columns of a row are a pair; else two rows of a column */
    int64_t *row_at, *column_at; /* [packed_rows], [packed_columns] */
} tdi_packing;

#endif
