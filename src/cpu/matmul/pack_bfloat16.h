/* pack_bfloat16.h - float32 matrices rounded to bfloat16 and packed into blocks of pairs, as the instructions that
 * multiply pairs read them.
 *
 * Element (r, c) goes to row_at[r] + column_at[c], which describes every layout whose blocks divide the axes one by
 * one. A pair is two elements along one axis; along the other axis at least TDI_PACK_RUN pairs must follow each other.
 */
#ifndef TDI_CPU_MATMUL_PACK_BFLOAT16_H
#define TDI_CPU_MATMUL_PACK_BFLOAT16_H

#include <stdbool.h>
#include <stdint.h>

enum { TDI_PACK_RUN = 16 };

typedef struct tdi_packing {
    int64_t rows, columns;               /* of each matrix; multiples of TDI_PACK_RUN */
    int64_t packed_rows, packed_columns; /* with the zeros behind them; multiples too */
    int64_t row;                         /* floats from a row to the next; a row's are adjacent */
    /* Two nested loops over matrices: how many, and the elements from one to the next. */
    int64_t count[2], from_step[2], to_step[2];
    bool pairs_columns;          /* a pair is two columns of a row; else two rows of a column */
    int64_t *row_at, *column_at; /* [packed_rows], [packed_columns] */
} tdi_packing;

#endif
