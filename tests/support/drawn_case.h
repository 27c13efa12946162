/* drawn_case.h - op cases of random shapes and attributes, each fixed by (kind, seed). */
#ifndef TEST_SUPPORT_DRAWN_CASE_H
#define TEST_SUPPORT_DRAWN_CASE_H

#include "support/op_case.h"

/* A case with the memory it refers to. `c` points into the struct, which therefore must not be copied or moved. `name`
 * tells the shapes, the attributes and the seed. */
typedef struct drawn_case {
    op_case c;
    char name[640];
    tdi_random random;
    union {
        tdi_conv2d_attrs conv2d;
        tdi_pool2d_attrs pool2d;
        tdi_matmul_attrs matmul;
        tdi_matmul_update_attrs matmul_update;
        tdi_joint_update_attrs joint_update;
        tdi_reduce_attrs reduce;
        tdi_shape_attrs shape;
        tdi_ignore_attrs ignore;
        tdi_batch_norm_attrs batch_norm;
        tdi_batch_norm_stats_attrs batch_norm_stats;
        tdi_lstm_attrs lstm;
    } attrs;
} drawn_case;

typedef struct drawn_kind {
    const char *name;
    bool (*draw)(drawn_case *d); /* fills c and attrs; false: this draw gives no valid case, and another is made */
    int times;                   /* how many times as many cases it has as most kinds */
} drawn_kind;

/* Each file drawn_*.c has one table, which ends with a name of NULL. */
extern const drawn_kind drawn_windows[], drawn_linear[], drawn_rows[];

/* Fills `d` with the case that the kind and the seed fix. */
void drawn_case_make(drawn_case *d, const drawn_kind *kind, uint64_t seed);

/* ---- for the tables ---- */

int64_t drawn_between(drawn_case *d, int64_t least, int64_t most);
int64_t drawn_extent(drawn_case *d, int64_t most); /* 1 to most; every power of two is equally likely */
bool drawn_often(drawn_case *d, int percent);
int drawn_of(drawn_case *d, const int *numbers, int count);
#define DRAWN_OF(d, ...) drawn_of(d, (const int[]){__VA_ARGS__}, (int)(sizeof(const int[]){__VA_ARGS__} / sizeof(int)))
int64_t drawn_channels(drawn_case *d); /* a number that kernels are written for, or another */
/* An activation that can be fused into a result of this many columns. */
int drawn_activation(drawn_case *d, int64_t columns);

/* Adds a leaf. */
op_leaf *drawn_leaf(drawn_case *d, td_shape shape);
op_leaf *drawn_numbers(drawn_case *d, td_shape shape, int64_t limit); /* an int32 leaf, below the limit */
/* Gives the case one shard of `rows` rows, or of fewer where a row takes much arithmetic. False: a single row takes too
 * much. */
bool drawn_batch(drawn_case *d, int64_t rows, double flops_per_row);
/* Builds the node as the case `name` of cases_*.c does for this op; NULL stands for the op's first case. */
void drawn_build_as(drawn_case *d, const tdi_op *op, const char *name);
/* Appends to the name. */
__attribute__((format(printf, 2, 3))) void drawn_note(drawn_case *d, const char *format, ...);

#endif
