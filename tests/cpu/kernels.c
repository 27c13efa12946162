/* Every kernel of the CPU device against the op's reference: whole, and shared by 2 and 3 lanes in each way it says it
 * can be; those of every instruction set this CPU has. The ops' own cases serve, and larger ones where a vector loop
 * has more than one way through. Kernels that take samples abreast are given them so, in every mixture with values that
 * stand row after row. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifdef TANDEM_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

#include "base/bfloat16.h"
#include "base/thread.h"
#include "cpu/cpu.h"
#include "cpu/large.h"
#include "cpu/tiles.h"
#include "ops/lstm.h"
#include "ops/widen.h"
#include "passes/passes.h"
#include "support/op_case.h"
#include "support/sanitized.h"

enum { MAX_IN = 8, MAX_LANES = 3 };

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

enum { NAN_BYTE = 0xff }; /* numbers made of them are NaN, float32 or bfloat16 */

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
        t->in[i].data = copy_of(&call->in[i]);
        if (call->in[i].data == call->out.data)
            t->call.out.data = t->in[i].data;
    }
    if (!t->call.out.data) {
        t->call.out.data = copy_of(&call->out);
        if (call->out.dtype == TD_FLOAT32 ||
            call->out.dtype == TD_BFLOAT16) /* what is not written stays, and is seen */
            memset(t->call.out.data, NAN_BYTE, bytes_of(&call->out));
    }
}

static void trial_release(trial *t)
{
    bool own = true;
    for (int i = 0; i < t->call.n_in; i++) {
        own = own && t->in[i].data != t->call.out.data;
        tdi_buffer_free(t->in[i].data);
    }
    if (own)
        tdi_buffer_free(t->call.out.data);
}

/* ---- comparing ---- */

typedef struct context {
    const op_run *run;
    const tdi_kernel *kernel;
    int split, lanes;
    double summed;
} context;

static void complain(const context *at, const char *what, int64_t i, double seen, double expected)
{
    fail_msg("%s, case \"%s\", split %d, %d lanes: %s: element %lld is %.9g, not %.9g", at->kernel->name,
             at->run->c->name, at->split, at->lanes, what, (long long)i, seen, expected);
}

/* Moved, counted or drawn values are the reference's bits; computed ones are within rounding of the largest of them. */
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
                                          &tdi_op_class_pairs,
                                          &tdi_op_buckets};
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++)
        if (op == exact[i])
            return 0;
    return 1e-6;
}

/* Of floats, or of bfloat16s. */
static double number_at(const tdi_value *value, int64_t i)
{
    return value->dtype == TD_BFLOAT16 ? (double)tdi_widen(((const tdi_bfloat16 *)value->data)[i])
                                       : (double)((const float *)value->data)[i];
}

static double largest(const tdi_value *value)
{
    double most = 0;
    for (int64_t i = 0; i < tdi_shape_elements(&value->shape); i++) {
        double x = number_at(value, i);
        most = isfinite(x) && fabs(x) > most ? fabs(x) : most;
    }
    return most;
}

/* The sums inside an LSTM's steps; h is below 1. */
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

/* What a long sum's terms come to when they do not cancel: its rounding errors grow with that, whatever the result. */
static double summed(const tdi_op *op, const tdi_call *call)
{
    bool product = op == &tdi_op_matmul || op == &tdi_op_conv2d || op == &tdi_op_conv2d_grad_input ||
                   op == &tdi_op_conv2d_grad_filter;
    if (op != &tdi_op_reduce && !product)
        return summed_steps(op, call);
    double terms = op->flops(call) / (product ? 2 : 1) / (double)tdi_shape_elements(&call->out.shape);
    return sqrt(terms) * largest(&call->in[0]) * (product ? largest(&call->in[1]) : 1);
}

/* A bfloat16 is off by 2^-9 of its size for each rounding: the expected one was rounded once, the kernel's up to twice,
 * before and after an activation. */
static void compare_floats(const context *at, const char *what, const tdi_value *seen, const tdi_value *expected)
{
    int64_t count = tdi_shape_elements(&seen->shape);
    double exact = tolerance(at->run->node->op), roundings = expected->dtype == TD_BFLOAT16 && exact > 0 ? 3 : 0;
    double bound = exact * fmax(largest(expected), at->summed) + roundings * 0x1p-9 * largest(expected);
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

static bool belongs(const tdi_call *call, int64_t i)
{
    const td_shape *shape = &call->out.shape;
    int64_t position = i;
    if (call->split == TDI_WHOLE)
        return true;
    if (call->split == TDI_ROWS)
        position = shape->rank ? i / (tdi_shape_elements(shape) / shape->dim[0]) : 0;
    if (call->split == TDI_COLUMNS)
        position = shape->rank ? i % shape->dim[shape->rank - 1] : 0;
    return position >= call->begin && position < call->end;
}

/* ---- running ---- */

static void set_share(const context *at, int lane, tdi_call *call)
{
    tdi_split split = (tdi_split)at->split;
    call->split = at->split;
    call->lane = lane;
    call->lanes = at->lanes;
    call->state = NULL;
    tdi_range(split, tdi_split_extent(split, &call->out.shape), lane, at->lanes, &call->begin, &call->end);
}

enum { GUARD = 32 * 1024 };

/* NaN: scratch is nobody's; behind its end stands what must still stand there later. */
static void *make_scratch(size_t size)
{
    void *scratch = tdi_buffer_create(size + GUARD);
    assert_non_null(scratch);
    return memset(scratch, NAN_BYTE, size + GUARD);
}

static void free_scratch(const context *at, void *scratch, size_t size)
{
    for (size_t i = size; i < size + GUARD; i++)
        if (((const unsigned char *)scratch)[i] != NAN_BYTE) {
            complain(at, "written behind the scratch's end", (int64_t)(i - size), 0, 0);
            break;
        }
    tdi_buffer_free(scratch);
}

static void run_lane(const context *at, tdi_call *call)
{
    size_t size = td_dtype_size(call->out.dtype), scratch = 0;
    void *before = copy_of(&call->out);
    tdi_error error = {0};
    call->state = NULL;
    if (at->kernel->prepare)
        assert_int_equal(at->kernel->prepare(call, &call->state, &scratch, &error), TD_OK);
    assert_int_equal(error.status, TD_OK); /* what was tried before is no failure */
    call->scratch = make_scratch(scratch);
    at->kernel->run(call);
    for (int64_t i = 0; i < tdi_shape_elements(&call->out.shape); i++)
        if (!belongs(call, i) &&
            memcmp((char *)before + (size_t)i * size, (char *)call->out.data + (size_t)i * size, size))
            complain(at, "written outside the lane's share", i, 0, 0);
    if (at->kernel->release && call->state)
        at->kernel->release(call->state);
    free_scratch(at, call->scratch, scratch);
    tdi_buffer_free(before);
}

/* As the plan: a share that a kernel cannot make leaves the whole to the next kernel. */
static bool can_share(const context *at, const tdi_call *call)
{
    bool can = true;
    for (int lane = 0; lane < at->lanes && at->kernel->prepare; lane++) {
        tdi_call share = *call;
        size_t scratch = 0;
        set_share(at, lane, &share);
        if (share.begin >= share.end)
            continue;
        td_status status = at->kernel->prepare(&share, &share.state, &scratch, NULL);
        assert_true(status == TD_OK || status == TD_UNSUPPORTED);
        can = can && status == TD_OK;
        if (at->kernel->release && share.state)
            at->kernel->release(share.state);
    }
    return can;
}

/* Lanes that wait for each other: each on a thread. */
typedef struct together {
    const context *at;
    tdi_call calls[MAX_LANES];
    size_t scratch[MAX_LANES];
} together;

static void run_lane_of(void *argument, int lane)
{
    const together *all = argument;
    all->calls[lane].run(&all->calls[lane]);
}

/* Shares are not held apart then, but what is made is compared all the same. False: a lane has nothing to do, which the
 * plan does not let happen. */
static bool run_together(const context *at, const tdi_call *call)
{
    together all = {.at = at};
    tdi_lockstep lockstep;
    tdi_team *team;
    for (int lane = 0; lane < at->lanes; lane++) {
        tdi_call *share = &all.calls[lane];
        size_t scratch = 0;
        *share = *call;
        set_share(at, lane, share);
        if (share->begin >= share->end)
            return false;
        assert_int_equal(at->kernel->prepare(share, &share->state, &scratch, NULL), TD_OK);
        share->run = at->kernel->run;
        share->lockstep = &lockstep;
        share->scratch = make_scratch(scratch);
        all.scratch[lane] = scratch;
    }
    assert_int_equal(tdi_lockstep_create(&lockstep, at->lanes, at->lanes <= tdi_cores_allowed(), NULL), TD_OK);
    assert_int_equal(tdi_team_create(at->lanes, &team, NULL), TD_OK);
    tdi_team_run(team, run_lane_of, &all);
    tdi_team_free(team);
    tdi_lockstep_release(&lockstep);
    for (int lane = 0; lane < at->lanes; lane++)
        free_scratch(at, all.calls[lane].scratch, all.scratch[lane]);
    return true;
}

/* [3, channels], where the kernel makes statistics of what it makes; not by rows, of which lanes have each their own.
 */
static float *make_moments(const context *at, const tdi_call *call)
{
    size_t count = at->kernel->moments && at->split != TDI_ROWS ? 3 * (size_t)tdi_last_extent(&call->out.shape) : 0;
    return count ? make_scratch(count * sizeof(float)) : NULL;
}

static void compare_moments(const context *at, const tdi_call *call)
{
    td_shape shape = {.rank = 2, .dim = {3, tdi_last_extent(&call->out.shape)}};
    float *floats = calloc((size_t)tdi_shape_elements(&call->out.shape) + 1, sizeof *floats);
    float *numbers = calloc((size_t)tdi_shape_elements(&shape), sizeof *numbers);
    assert_true(floats && numbers);
    for (int64_t i = 0; i < tdi_shape_elements(&call->out.shape); i++)
        floats[i] = (float)number_at(&call->out, i);
    tdi_value made = call->out, expected = {.data = numbers, .shape = shape, .dtype = TD_FLOAT32};
    tdi_value seen = {.data = call->moments, .shape = shape, .dtype = TD_FLOAT32};
    made.data = floats;
    made.dtype = TD_FLOAT32;
    tdi_op_batch_norm_stats.reference(&(tdi_call){.in = &made, .n_in = 1, .out = expected});
    compare_values(at, "the result's statistics", &seen, &expected);
    free(floats);
    free(numbers);
}

static void check(const context *at, const tdi_call *call, const trial *expected)
{
    trial t;
    if (!can_share(at, call))
        return;
    trial_init(&t, call);
    t.call.moments = make_moments(at, call);
    bool meets = at->kernel->together && at->split == TDI_COLUMNS;
    if (meets && !run_together(at, &t.call)) {
        trial_release(&t);
        return;
    }
    for (int lane = 0; lane < at->lanes && !meets; lane++) {
        set_share(at, lane, &t.call);
        if (t.call.begin < t.call.end)
            run_lane(at, &t.call);
    }
    compare_values(at, "the result", &t.call.out, &expected->call.out);
    for (int i = 0; i < call->n_in; i++)
        if (t.in[i].data != t.call.out.data)
            compare_values(at, "an input or slot", &t.in[i], &expected->in[i]);
    if (t.call.moments) {
        compare_moments(at, &t.call);
        free_scratch(at, t.call.moments, 3 * (size_t)tdi_last_extent(&call->out.shape) * sizeof(float));
    }
    trial_release(&t);
}

/* ---- samples abreast ---- */

/* The value with its samples abreast, or back; where no sample stands there is NaN. */
static void *turned(const tdi_value *value, int abreast, bool back)
{
    int64_t samples = value->shape.dim[0], per_sample = tdi_shape_elements(&value->shape) / samples;
    int64_t padded = (samples + abreast - 1) / abreast * abreast;
    float *to = tdi_buffer_create((size_t)(padded * per_sample) * sizeof *to);
    assert_non_null(to);
    memset(to, NAN_BYTE, (size_t)(padded * per_sample) * sizeof *to);
    for (int64_t n = 0; n < samples; n++)
        for (int64_t i = 0; i < per_sample; i++) {
            int64_t row = n * per_sample + i;
            int64_t side = (n / abreast * per_sample + i) * abreast + n % abreast;
            to[back ? row : side] = ((const float *)value->data)[back ? side : row];
        }
    return to;
}

static bool can_stand_abreast(const tdi_node *node)
{
    return node && node->shape.rank > 1 && node->shape.dim[0] == TDI_BATCH && node->dtype == TD_FLOAT32;
}

static void stand_abreast(tdi_value *value, int abreast)
{
    void *to = turned(value, abreast, false);
    tdi_buffer_free(value->data);
    value->data = to;
    value->abreast = abreast;
}

/* `mask`: bit i, input i stands abreast; bit n_in, the result. */
static void check_mixture(const context *at, const tdi_call *call, const trial *expected, unsigned mask, int abreast)
{
    trial t;
    size_t scratch = 0;
    trial_init(&t, call);
    for (int i = 0; i < call->n_in; i++)
        if (mask >> i & 1u)
            stand_abreast(&t.in[i], abreast);
    if (mask >> call->n_in & 1u)
        stand_abreast(&t.call.out, abreast);
    set_share(at, 0, &t.call);
    if (at->kernel->prepare)
        assert_int_equal(at->kernel->prepare(&t.call, &t.call.state, &scratch, NULL), TD_OK);
    t.call.scratch = make_scratch(scratch);
    at->kernel->run(&t.call);
    free_scratch(at, t.call.scratch, scratch);
    if (t.call.out.abreast) {
        void *back = turned(&t.call.out, abreast, true);
        tdi_buffer_free(t.call.out.data);
        t.call.out.data = back;
    }
    compare_values(at, "the result, samples abreast", &t.call.out, &expected->call.out);
    trial_release(&t);
}

static void check_abreast(const context *at, const tdi_call *call, const trial *expected, int abreast)
{
    const tdi_node *node = at->run->node;
    unsigned can = can_stand_abreast(node) ? 1u << call->n_in : 0;
    for (int i = 0; i < call->n_in; i++)
        can |= can_stand_abreast(node->in[i]) ? 1u << i : 0;
    for (unsigned mask = 1; mask <= can; mask++)
        if ((mask & can) == mask)
            check_mixture(at, call, expected, mask, abreast);
}

static bool has_bfloat16(const tdi_call *call)
{
    bool has = call->out.dtype == TD_BFLOAT16;
    for (int i = 0; i < call->n_in; i++)
        has = has || call->in[i].dtype == TD_BFLOAT16;
    return has;
}

/* ---- candidates ---- */

/* Asked as the plan asks: without addresses. */
static bool accepts(const tdi_kernel *kernel, const tdi_call *call, tdi_abreast *abreast)
{
    tdi_call query = *call;
    tdi_value in[MAX_IN];
    for (int i = 0; i < call->n_in; i++) {
        in[i] = call->in[i];
        in[i].data = NULL;
    }
    query.in = in;
    query.out.data = NULL;
    *abreast = TDI_NOT_ABREAST;
    if (kernel->declines && kernel->declines(&query))
        return false;
    void *state = NULL;
    size_t scratch = 0;
    *abreast = kernel->abreast ? kernel->abreast(&query) : TDI_NOT_ABREAST;
    query.end = tdi_split_extent(TDI_WHOLE, &call->out.shape);
    td_status status = kernel->prepare ? kernel->prepare(&query, &state, &scratch, NULL) : TD_OK;
    if (kernel->release && state)
        kernel->release(state);
    return status == TD_OK;
}

/* A product by depth: each lane's sums, then all lanes' shares of the result from them. */
static void run_by_depth(const context *at, tdi_call *call)
{
    int64_t depth = tdi_split_extent(TDI_COLUMNS, &call->in[0].shape);
    call->sums = tdi_buffer_create((size_t)(at->lanes * tdi_shape_elements(&call->out.shape)) * sizeof(float) + 1);
    assert_non_null(call->sums);
    for (int lane = 0; lane < at->lanes; lane++) {
        set_share(at, lane, call);
        call->other_half = (tdi_share){call->split, call->begin, call->end};
        call->split = TDI_DEPTH;
        tdi_range(TDI_DEPTH, depth, lane, at->lanes, &call->begin, &call->end);
        at->kernel->run(call);
    }
    for (int lane = 0; lane < at->lanes; lane++) {
        call->other_half.split = TDI_DEPTH;
        tdi_range(TDI_DEPTH, depth, lane, at->lanes, &call->other_half.begin, &call->other_half.end);
        set_share(at, lane, call);
        if (call->begin < call->end)
            at->kernel->finish(call);
    }
    tdi_buffer_free(call->sums);
}

static void check_by_depth(const context *at, const tdi_call *call, const trial *expected)
{
    const tdi_matmul_attrs *attrs = call->attrs;
    bool plain = !attrs->transpose_a && !attrs->transpose_b && call->in[1].shape.rank == 2;
    if (!plain || call->in[1].shape.dim[0] < at->lanes)
        return;
    trial t;
    trial_init(&t, call);
    run_by_depth(at, &t.call);
    compare_values(at, "the result by depth", &t.call.out, &expected->call.out);
    trial_release(&t);
}

static void run_reference(const tdi_op *op, tdi_call *call)
{
    call->split = TDI_WHOLE;
    if (!tdi_needs_widening(op, call)) {
        op->reference(call);
        return;
    }
    void *room = tdi_buffer_create(tdi_widened_bytes(call));
    assert_non_null(room);
    tdi_widened_run(op, call, room);
    tdi_buffer_free(room);
}

/* The result over each input that it may take the place of, by the kernel and by the reference. */
static void check_in_place(const context *at, const tdi_call *call, const trial *expected)
{
    const tdi_op *op = at->run->node->op;
    for (int i = 0; i < call->n_in; i++) {
        const tdi_value *in = &call->in[i];
        if (!(op->in_place >> i & 1u) || !in->data || in->dtype != call->out.dtype ||
            bytes_of(in) != bytes_of(&call->out))
            continue;
        tdi_call over = *call;
        trial by_reference;
        over.out.data = in->data;
        check(at, &over, expected);
        trial_init(&by_reference, &over);
        run_reference(op, &by_reference.call);
        compare_values(at, "the reference in place", &by_reference.call.out, &expected->call.out);
        trial_release(&by_reference);
    }
}

static void fill_inputs(trial *t, const tdi_call *from, bool zeros)
{
    for (int i = 0; i < from->n_in; i++)
        if (from->in[i].data && zeros)
            memset(t->in[i].data, 0, bytes_of(&from->in[i]));
        else if (from->in[i].data)
            memcpy(t->in[i].data, from->in[i].data, bytes_of(&from->in[i]));
}

/* What is kept is made of zeros first, then, as the weights have another name, of the weights, and then used again. */
static void run_kept_lane(const context *at, const tdi_call *from, trial *t)
{
    tdi_control control = *from->control;
    tdi_call *call = &t->call;
    size_t scratch = 0;
    call->steady = ~0u;
    call->control = &control;
    assert_int_equal(at->kernel->prepare(call, &call->state, &scratch, NULL), TD_OK);
    size_t kept = at->kernel->keeps(call);
    call->kept = kept ? tdi_buffer_create(TDI_KEPT_HEAD + kept + GUARD) : NULL;
    if (kept)
        memset(tdi_kept(call), NAN_BYTE, kept + GUARD);
    call->scratch = make_scratch(scratch);
    for (int run = 0; run < 3; run++) {
        control.weights = run ? 2 : 1;
        fill_inputs(t, from, run == 0);
        at->kernel->run(call);
    }
    for (size_t i = kept; kept && i < kept + GUARD; i++)
        assert_int_equal(((unsigned char *)tdi_kept(call))[i], NAN_BYTE);
    if (at->kernel->release && call->state)
        at->kernel->release(call->state);
    free_scratch(at, call->scratch, scratch);
    tdi_buffer_free(call->kept);
    call->kept = NULL;
}

/* Kernels whose lanes wait for each other are shared in tests of the whole. */
static void check_kept(const context *at, const tdi_call *call, const trial *expected)
{
    trial t;
    if ((at->kernel->together && at->split == TDI_COLUMNS) || !can_share(at, call))
        return;
    trial_init(&t, call);
    for (int lane = 0; lane < at->lanes; lane++) {
        set_share(at, lane, &t.call);
        if (t.call.begin < t.call.end)
            run_kept_lane(at, call, &t);
    }
    compare_values(at, "the result of what is kept", &t.call.out, &expected->call.out);
    trial_release(&t);
}

static void check_kernel(op_run *run, const tdi_kernel *kernel, const tdi_call *call, tdi_abreast abreast, int width,
                         const trial *expected)
{
    double terms = summed(run->node->op, call);
    check(&(context){run, kernel, TDI_WHOLE, 1, terms}, call, expected);
    check_in_place(&(context){run, kernel, TDI_WHOLE, 1, terms}, call, expected);
    for (int lanes = 1; lanes <= (kernel->splits & TDI_CAN_COLUMNS ? MAX_LANES : 1) && kernel->keeps; lanes++)
        check_kept(&(context){run, kernel, lanes > 1 ? TDI_COLUMNS : TDI_WHOLE, lanes, terms}, call, expected);
    for (int split = TDI_ROWS; split <= TDI_FLAT; split++)
        for (int lanes = 2; lanes <= MAX_LANES && (kernel->splits & 1u << split); lanes++)
            check(&(context){run, kernel, split, lanes, terms}, call, expected);
    if (abreast != TDI_NOT_ABREAST && !has_bfloat16(call))
        check_abreast(&(context){run, kernel, TDI_WHOLE, 1, terms}, call, expected, width);
    for (int split = TDI_ROWS; split <= TDI_COLUMNS && kernel->splits & TDI_CAN_DEPTH; split++)
        for (int lanes = 2; lanes <= MAX_LANES; lanes++)
            check_by_depth(&(context){run, kernel, split, lanes, terms}, call, expected);
}

/* The thread sanitizer, under which references take minutes, has nothing to see in a kernel whose lanes run in turn. */
static bool is_watched(const tdi_kernel *kernel)
{
    return !SANITIZED_THREADS || kernel->together;
}

/* How many kernels took a case. */
typedef struct takers {
    int of[TDI_CPU_AVX512 + 1]; /* an instruction set's */
    int narrowed;               /* the best one's, in bfloat16, that the case is for */
} takers;

/* With AMX, a case of the kernels by tiles is for them. */
static bool is_meant(const op_case *c, const tdi_kernel *kernel)
{
    return !strstr(c->name, "by tiles") || !tdi_tiles_work() || strstr(kernel->name, "by tiles");
}

/* The library's and those compiled once are in every instruction set's list. */
static bool was_listed_before(tdi_cpu_isa isa, const tdi_kernel *kernel)
{
    const tdi_kernel *const *k = isa > TDI_CPU_BASELINE ? tdi_cpu_kernels(isa - 1) : (const tdi_kernel *[]){NULL};
    while (*k && *k != kernel)
        k++;
    return *k;
}

/* Which of all kernels are checked. */
typedef struct wanted {
    int64_t rows;     /* of the case; -1: its own */
    const char *name; /* how theirs begins */
} wanted;

/* All that are wanted but those for `other` numbers, against one run of the reference. */
static void check_kernels(op_run *run, wanted want, tdi_takes other, const tdi_call *call, takers *taken)
{
    tdi_cpu_isa best = tdi_cpu_best_isa();
    int watched = 0;
    trial expected;
    for (tdi_cpu_isa isa = TDI_CPU_BASELINE; isa <= best; isa++)
        for (const tdi_kernel *const *k = tdi_cpu_kernels(isa); *k; k++) {
            tdi_abreast abreast;
            bool named = !strncmp((*k)->name, want.name, strlen(want.name));
            if ((*k)->op != run->node->op || (*k)->takes == other || !named || !accepts(*k, call, &abreast))
                continue;
            taken->of[isa]++;
            taken->narrowed += isa == best && other == TDI_TAKES_FLOAT32 && is_meant(run->c, *k);
            if (was_listed_before(isa, *k) || !is_watched(*k))
                continue;
            if (!watched++) {
                trial_init(&expected, call);
                run_reference(run->node->op, &expected.call);
            }
            check_kernel(run, *k, call, abreast, tdi_cpu_width(isa), &expected);
        }
    if (watched)
        trial_release(&expected);
}

/* ---- bfloat16 ---- */

/* The call with its first `count` inputs that may be bfloat16 rounded to it. */
typedef struct narrowed {
    tdi_call call;
    tdi_value in[MAX_IN];
    void *rounded[MAX_IN + 1];
} narrowed;

/* A weight that kernels round: it is a bfloat16 already, in a float. */
static void round_weight(narrowed *n, int i)
{
    float *rounded = copy_of(&n->in[i]);
    for (int64_t k = 0; k < tdi_shape_elements(&n->in[i].shape); k++)
        rounded[k] = tdi_widen(tdi_narrow(rounded[k]));
    n->rounded[i] = n->in[i].data = rounded;
}

static void round_input(narrowed *n, int i)
{
    tdi_value *value = &n->in[i];
    int64_t elements = tdi_shape_elements(&value->shape);
    tdi_bfloat16 *rounded = tdi_buffer_create((size_t)elements * sizeof *rounded + 1);
    assert_non_null(rounded);
    for (int64_t k = 0; k < elements; k++)
        rounded[k] = tdi_narrow(((const float *)value->data)[k]);
    n->rounded[i] = value->data = rounded;
    value->dtype = TD_BFLOAT16;
}

/* The result's type, by the op's own rule. */
static void infer_result(const tdi_node *node, narrowed *n)
{
    tdi_node result = *node, operand[MAX_IN], *in[MAX_IN] = {0};
    tdi_error error = {0};
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i]) {
            operand[i] = *node->in[i];
            operand[i].dtype = n->in[i].dtype;
            in[i] = &operand[i];
        }
    result.in = in;
    assert_int_equal(node->op->infer(&result, &error), TD_OK);
    n->call.out.dtype = result.dtype;
    n->rounded[MAX_IN] = n->call.out.data = tdi_buffer_create(bytes_of(&n->call.out) + 1);
    assert_non_null(n->call.out.data);
}

static bool narrowed_init(narrowed *n, const tdi_node *node, const tdi_call *call, int count)
{
    *n = (narrowed){.call = *call};
    n->call.in = n->in;
    int done = 0;
    for (int i = 0; i < call->n_in; i++) {
        n->in[i] = call->in[i];
        bool may = tdi_may_be_bfloat16(node->op, i) && call->in[i].data && call->in[i].dtype == TD_FLOAT32;
        if (may && done < count) {
            round_input(n, i);
            done++;
        } else if (i == 1 && node->op->multiplies) {
            round_weight(n, i);
        }
    }
    if (done)
        infer_result(node, n);
    return done;
}

static void narrowed_release(narrowed *n)
{
    for (int i = 0; i <= MAX_IN; i++)
        tdi_buffer_free(n->rounded[i]);
}

/* All that may be is bfloat16; of a product also the left factor alone, as the right one may be a weight. */
static void check_narrowed(op_run *run, wanted want, const tdi_call *call, takers *taken)
{
    for (int count = run->node->op->multiplies ? 1 : MAX_IN; count <= MAX_IN; count += MAX_IN - 1) {
        narrowed n;
        if (narrowed_init(&n, run->node, call, count))
            check_kernels(run, want, TDI_TAKES_FLOAT32, &n.call, taken);
        narrowed_release(&n);
    }
}

static takers check_case(const op_case *c, wanted want)
{
    takers taken = {{0}, 0};
    op_run *run = op_run_create(c, (op_run_options){.rows = want.rows});
    evaluation_run_before(run->evaluation, run->node);
    for (int part = 0; part < (run->node->once ? 1 : run->parts); part++) {
        const tdi_call *call = evaluation_call(run->evaluation, run->node, part);
        if (tdi_shape_elements(&call->out.shape) == 0)
            continue;
        check_kernels(run, want, TDI_TAKES_BFLOAT16, call, &taken);
        check_narrowed(run, want, call, &taken);
    }
    op_run_free(run);
    return taken;
}

/* Whether the CPU is slower in bfloat16 than in float32, and plans avoid it. */
static bool has_no_bfloat16(void)
{
    tdi_device *device = NULL;
    tdi_error error = {0};
    assert_int_equal(tdi_cpu_device.open(0, 1, &device, &error), TD_OK);
    bool none = device->no_bfloat16;
    device->close(device);
    return none;
}

static void small_cases(void **state)
{
    (void)state;
    if (tdi_cpu_best_isa() < TDI_CPU_AVX512)
        print_message("this CPU lacks AVX-%d: kernels for it are not checked\n",
                      tdi_cpu_best_isa() < TDI_CPU_AVX2 ? 2 : 512);
    int threads = tdi_cpu_enter_thread();
    for (int i = 0; op_case_at(i); i++) {
        check_case(op_case_at(i), (wanted){-1, ""});
        check_case(op_case_at(i), (wanted){19, ""});
        check_case(op_case_at(i), (wanted){27, ""});
    }
    tdi_cpu_leave_thread(threads);
}

/* Each is taken by a kernel of every instruction set; a product also by one in bfloat16, where the CPU is faster in it.
 */
static void large_ones(void **state)
{
    (void)state;
    bool narrow = !has_no_bfloat16();
    int threads = tdi_cpu_enter_thread();
    for (const op_case *c = large_cases; c->op; c++) {
        takers taken = check_case(c, (wanted){-1, ""});
        for (tdi_cpu_isa isa = TDI_CPU_BASELINE; isa <= tdi_cpu_best_isa(); isa++)
            if (!taken.of[isa])
                fail_msg("no kernel of instruction set %d takes case \"%s\" of %s", isa, c->name, c->op->name);
        if (c->op->multiplies && narrow && !taken.narrowed)
            fail_msg("no bfloat16 kernel takes case \"%s\" of %s", c->name, c->op->name);
    }
    tdi_cpu_leave_thread(threads);
}

#ifdef TANDEM_ONEDNN
static int refusals = -1; /* -1: none is wanted */

/* Between the kernels and the library: as if it had no memory. */
dnnl_status_t dnnl_sgemm(char transa, char transb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k, float alpha,
                         const float *a, dnnl_dim_t lda, const float *b, dnnl_dim_t ldb, float beta, float *c,
                         dnnl_dim_t ldc)
{
    static dnnl_status_t (*library)(char, char, dnnl_dim_t, dnnl_dim_t, dnnl_dim_t, float, const float *, dnnl_dim_t,
                                    const float *, dnnl_dim_t, float, float *, dnnl_dim_t);
    if (refusals >= 0)
        return refusals++, dnnl_out_of_memory;
    if (!library)
        *(void **)&library = dlsym(RTLD_NEXT, "dnnl_sgemm");
    return library(transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

static void the_library_lacks_memory(void **state)
{
    (void)state;
    if (SANITIZED_THREADS)
        skip();
    int threads = tdi_cpu_enter_thread();
    refusals = 0;
    for (const op_case *c = large_cases; c->op; c++)
        if (c->op->multiplies || c->op == &tdi_op_matmul_update)
            check_case(c, (wanted){-1, "onednn"});
    assert_true(refusals > 0);
    refusals = -1;
    tdi_cpu_leave_thread(threads);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef TANDEM_ONEDNN
        cmocka_unit_test(the_library_lacks_memory),
#endif
        cmocka_unit_test(small_cases), cmocka_unit_test(large_ones)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
