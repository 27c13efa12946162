/* trial.h - a kernel's call on values of its own, and the comparison of its result with the reference's. */
#ifndef TEST_CPU_TRIAL_H
#define TEST_CPU_TRIAL_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/bfloat16.h"
#include "cpu/guarded.h"
#include "ops/lstm.h"
#include "ops/ops.h"
#include "support/op_case.h"

enum { MAX_IN = 8 };

/* ---- a call on values of its own ---- */

typedef struct trial {
    tdi_call call;
    tdi_value in[MAX_IN];
} trial;

static size_t bytes_of(const tdi_value *value)
{
    return (size_t)tdi_shape_elements(&value->shape) * td_dtype_size(value->dtype);
}

static void *copy_of(const tdi_value *value)
{
    void *copy = tdi_buffer_create(bytes_of(value) + 1);
    assert_non_null(copy);
    return memcpy(copy, value->data, bytes_of(value));
}

/* Bytes of a value; a batch-interleaved one has a full last block. */
static size_t held_by(const tdi_value *value)
{
    int64_t samples = value->batch_interleaved ? value->shape.dim[0] : 1,
            interleaved = value->batch_interleaved ? value->batch_interleaved : 1;
    return bytes_of(value) / (size_t)samples * (size_t)((samples + interleaved - 1) / interleaved * interleaved);
}

static void *guarded_copy_of(const tdi_value *value)
{
    return memcpy(guarded_create(bytes_of(value)), value->data, bytes_of(value));
}

static void trial_init(trial *t, const tdi_call *call)
{
    assert_true(call->n_in <= MAX_IN);
    t->call = *call;
    t->call.in = t->in;
    t->call.out.data = NULL;
    for (int i = 0; i < call->n_in; i++) {
        t->in[i] = call->in[i];
        if (!call->in[i].data)
            continue;
        t->in[i].data = guarded_copy_of(&call->in[i]);
        if (call->in[i].data == call->out.data)
            t->call.out.data = t->in[i].data;
    }
    if (!t->call.out.data) {
        bool floats = call->out.dtype == TD_FLOAT32 || call->out.dtype == TD_BFLOAT16;
        /* what is not written stays NaN, which shows */
        t->call.out.data = floats ? guarded_create(bytes_of(&call->out)) : guarded_copy_of(&call->out);
    }
}

static void free_value(tdi_value *value)
{
    if (!guarded_free(value->data, held_by(value)))
        fail_msg("written behind the end of an input or of the result");
}

static void trial_release(trial *t)
{
    bool own = true;
    for (int i = 0; i < t->call.n_in; i++) {
        own = own && t->in[i].data != t->call.out.data;
        free_value(&t->in[i]);
    }
    if (own)
        free_value(&t->call.out);
}

/* ---- comparing ---- */

typedef struct context {
    const op_run *run;
    const tdi_kernel *kernel;
    int split, threads;
    double summed;
} context;

static void complain(const context *at, const char *what, int64_t i, double seen, double expected)
{
    fail_msg("%s, case \"%s\", split %d, %d threads: %s: element %lld is %.9g, not %.9g", at->kernel->name,
             at->run->c->name, at->split, at->threads, what, (long long)i, seen, expected);
}

/* Values that are moved, counted or drawn must have the reference's bits; computed ones are within rounding errors of
 * the largest of them. */
static double tolerance(const tdi_op *op)
{
    static const tdi_op *const exact[] = {&tdi_op_identity,
                                          &tdi_op_cast,
                                          &tdi_op_fill,
                                          &tdi_op_slice,
                                          &tdi_op_concat,
                                          &tdi_op_pad,
                                          &tdi_op_broadcast,
                                          &tdi_op_dropout,
                                          &tdi_op_max_pool2d,
                                          &tdi_op_gather,
                                          &tdi_op_reduce_scatter,
                                          &tdi_op_sparse_categorical_accuracy,
                                          &tdi_op_categorical_accuracy,
                                          &tdi_op_binary_accuracy,
                                          &tdi_op_in_top_k,
                                          &tdi_op_valid_weights,
                                          &tdi_op_class_weights,
                                          &tdi_op_class_pairs,
                                          &tdi_op_buckets};
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++)
        if (op == exact[i])
            return 0;
    return 1e-6;
}

/* Element i of a float32 or bfloat16 value. */
static double number_at(const tdi_value *value, int64_t i)
{
    return value->dtype == TD_BFLOAT16 ? (double)tdi_widen(((const tdi_bfloat16 *)value->data)[i])
                                       : (double)((const float *)value->data)[i];
}

static double largest(const tdi_value *value)
{
    double most = 0;
    int64_t count = tdi_shape_elements(&value->shape);
    for (int64_t i = 0; i < count; i++) {
        double x = number_at(value, i);
        most = isfinite(x) && fabs(x) > most ? fabs(x) : most;
    }
    return most;
}

/* The size of the sums inside of an LSTM's steps; h is below 1. */
static double summed_steps(const tdi_op *op, const tdi_call *call)
{
    const td_shape *first = &call->in[0].shape;
    double units = (double)tdi_last_extent(&call->out.shape), features = (double)tdi_last_extent(first);
    if (op == &tdi_op_lstm && tdi_lstm_has(call, TDI_LSTM_W))
        return sqrt(units) * largest(&call->in[TDI_LSTM_R]) +
               sqrt(features) * largest(&call->in[TDI_LSTM_Z]) * largest(&call->in[TDI_LSTM_W]);
    if (op == &tdi_op_lstm)
        return sqrt(units) * largest(&call->in[TDI_LSTM_R]);
    if (op == &tdi_op_lstm_grad)
        return sqrt(TDI_LSTM_GATES * units) * largest(&call->in[TDI_LSTM_GRAD_DY]) *
               largest(&call->in[TDI_LSTM_GRAD_R]);
    if (op == &tdi_op_lstm_grad_recurrent)
        return sqrt((double)(first->dim[0] * first->dim[1])) * largest(&call->in[TDI_LSTM_RECURRENT_DZ]);
    return 0;
}

/* Each number of a Winograd tile is made from all of its points, however few terms a direct sum would have; and its
 * transforms' factors, up to 8 each way, enlarge rounding errors. */
enum { WINOGRAD_POINTS = 36, WINOGRAD_GROWTH = 2 };

/* The size of a sum's terms when they do not cancel: rounding errors grow with it, whatever the result is. */
static double summed(const tdi_kernel *kernel, const tdi_call *call)
{
    const tdi_op *op = kernel->op;
    bool product = op == &tdi_op_matmul || op == &tdi_op_conv2d || op == &tdi_op_conv2d_grad_input ||
                   op == &tdi_op_conv2d_grad_filter;
    if (op == &tdi_op_batch_mean)
        return largest(&call->in[0]) / sqrt((double)tdi_shape_elements(&call->in[0].shape));
    if (op != &tdi_op_reduce && !product)
        return summed_steps(op, call);
    double terms = op->flops(call) / (product ? 2 : 1) / (double)tdi_shape_elements(&call->out.shape);
    if (strstr(kernel->name, "winograd"))
        terms = fmax(terms, WINOGRAD_POINTS) * WINOGRAD_GROWTH * WINOGRAD_GROWTH;
    return sqrt(terms) * largest(&call->in[0]) * (product ? largest(&call->in[1]) : 1);
}

/* Each rounding to bfloat16 changes a number by up to 2^-8 of its size. The expected number was rounded once, the
 * kernel's up to twice, before and after an activation. */
static void compare_floats(const context *at, const char *what, const tdi_value *seen, const tdi_value *expected)
{
    int64_t count = tdi_shape_elements(&seen->shape);
    double exact = tolerance(at->run->node->op), most = exact > 0 ? largest(expected) : 0;
    double roundings = expected->dtype == TD_BFLOAT16 && exact > 0 ? 3 : 0;
    double bound = exact * fmax(most, at->summed) + roundings * 0x1p-8 * most;
    for (int64_t i = 0; i < count; i++) {
        double a = number_at(seen, i), b = number_at(expected, i);
        bool same = a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= bound;
        if (!same)
            complain(at, what, i, a, b);
    }
}

static void compare_values(const context *at, const char *what, const tdi_value *seen, const tdi_value *expected)
{
    if (!expected->data)
        return;
    if (expected->dtype == TD_FLOAT32 || expected->dtype == TD_BFLOAT16)
        compare_floats(at, what, seen, expected);
    else if (memcmp(seen->data, expected->data, bytes_of(expected)) != 0)
        complain(at, what, 0, 0, 0);
}

#endif
