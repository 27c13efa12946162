/* checks.h - holds every kernel of the CPU device that takes a case against the op's reference: whole, and shared by 2
 * and 3 threads in each way that the kernel offers; for every instruction set that this CPU has. Kernels that take
 * batch-interleaved values get them, in every mixture with values that are not. */
#ifndef TEST_CPU_CHECKS_H
#define TEST_CPU_CHECKS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/bfloat16.h"
#include "base/thread.h"
#include "cpu/amx.h"
#include "cpu/cpu.h"
#include "cpu/trial.h"
#include "ops/widen.h"
#include "passes/passes.h"
#include "plan/threads/place.h"
#include "support/op_case.h"
#include "support/sanitized.h"

enum { MAX_THREADS = 3 };

/* ---- running ---- */

static context checked; /* what ran last, for messages */

static void set_share(const context *at, int thread, tdi_call *call)
{
    tdi_split split = (tdi_split)at->split;
    checked = *at;
    call->split = at->split;
    call->thread = thread;
    call->threads = at->threads;
    call->state = NULL;
    tdi_range(split, tdi_split_extent(split, &call->out.shape), thread, at->threads, &call->begin, &call->end);
}

static void free_scratch(const context *at, void *scratch, size_t size)
{
    if (!guarded_free(scratch, size))
        complain(at, "written behind the scratch's end", 0, 0, 0);
}

static void expect_as_before(const context *at, const tdi_call *call, const char *before, int64_t from, int64_t to)
{
    size_t size = td_dtype_size(call->out.dtype), first = (size_t)from * size;
    if (from < to && memcmp(before + first, (const char *)call->out.data + first, (size_t)(to - from) * size) != 0)
        complain(at, "written outside the thread's share", from, 0, 0);
}

/* A share of rows, or of a flat range, leaves unchanged what is before and behind it; a share of columns, in each row.
 */
static void expect_outside_as_before(const context *at, const tdi_call *call, const char *before)
{
    const td_shape *shape = &call->out.shape;
    int64_t count = tdi_shape_elements(shape), width = count, unit = 1;
    if (call->split == TDI_WHOLE || count == 0)
        return;
    if (call->split == TDI_ROWS && shape->rank)
        unit = count / shape->dim[0];
    if (call->split == TDI_COLUMNS && shape->rank)
        width = shape->dim[shape->rank - 1];
    for (int64_t row = 0; row < count; row += width) {
        expect_as_before(at, call, before, row, row + call->begin * unit);
        expect_as_before(at, call, before, row + call->end * unit, row + width);
    }
}

static void run_thread(const context *at, tdi_call *call)
{
    size_t scratch = 0;
    void *before = copy_of(&call->out);
    tdi_error error = {0};
    call->state = NULL;
    if (at->kernel->prepare)
        assert_int_equal(at->kernel->prepare(call, &call->state, &scratch, &error), TD_OK);
    assert_int_equal(error.status, TD_OK); /* prepare succeeded: candidates that were tried before it left no error */
    call->scratch = guarded_create(scratch);
    at->kernel->run(call);
    expect_outside_as_before(at, call, before);
    if (at->kernel->release && call->state)
        at->kernel->release(call->state);
    free_scratch(at, call->scratch, scratch);
    tdi_buffer_free(before);
}

/* As in the plan: where a kernel cannot make a share, the next kernel gets the whole op. */
static bool can_share(const context *at, const tdi_call *call)
{
    bool can = true;
    for (int thread = 0; thread < at->threads && at->kernel->prepare; thread++) {
        tdi_call share = *call;
        size_t scratch = 0;
        set_share(at, thread, &share);
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

/* Calls that wait for each other, so that each runs on a thread of its own. */
typedef struct together {
    const context *at;
    tdi_call calls[MAX_THREADS];
    size_t scratch[MAX_THREADS];
} together;

static void run_thread_of(void *argument, int thread)
{
    const together *all = argument;
    all->calls[thread].run(&all->calls[thread]);
}

/* What lies outside of a share is not checked then, but the result is compared all the same. Returns false when a
 * thread has nothing to do, which the plan does not let happen. */
static bool run_together(const context *at, const tdi_call *call)
{
    together all = {.at = at};
    tdi_lockstep lockstep;
    tdi_team *team;
    for (int thread = 0; thread < at->threads; thread++) {
        tdi_call *share = &all.calls[thread];
        size_t scratch = 0;
        *share = *call;
        set_share(at, thread, share);
        if (share->begin >= share->end)
            return false;
        assert_int_equal(at->kernel->prepare(share, &share->state, &scratch, NULL), TD_OK);
        share->run = at->kernel->run;
        share->lockstep = &lockstep;
        share->scratch = guarded_create(scratch);
        all.scratch[thread] = scratch;
    }
    assert_int_equal(tdi_lockstep_create(&lockstep, at->threads, at->threads <= tdi_cores_allowed(), NULL), TD_OK);
    assert_int_equal(tdi_team_create(at->threads, &team, NULL), TD_OK);
    tdi_team_run(team, at->threads, run_thread_of, &all);
    tdi_team_free(team);
    tdi_lockstep_release(&lockstep);
    for (int thread = 0; thread < at->threads; thread++)
        free_scratch(at, all.calls[thread].scratch, all.scratch[thread]);
    return true;
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

/* Kernels that are compiled once, oneDNN's among them, are in the list of every instruction set. */
static bool was_listed_before(tdi_cpu_isa isa, const tdi_kernel *kernel)
{
    const tdi_kernel *const *k = isa > TDI_CPU_BASELINE ? tdi_cpu_kernels(isa - 1) : (const tdi_kernel *[]){NULL};
    while (*k && *k != kernel)
        k++;
    return *k;
}

/* Returns false when nothing was run. */
static bool run_threads(const context *at, tdi_call *call)
{
    if (at->kernel->run_serially && at->split == TDI_COLUMNS)
        return run_together(at, call);
    for (int thread = 0; thread < at->threads; thread++) {
        set_share(at, thread, call);
        if (call->begin < call->end)
            run_thread(at, call);
    }
    return true;
}

static void fill_inputs(trial *t, const tdi_call *from, bool zeros)
{
    for (int i = 0; i < from->n_in; i++)
        if (from->in[i].data && zeros)
            memset(t->in[i].data, 0, bytes_of(&from->in[i]));
        else if (from->in[i].data)
            memcpy(t->in[i].data, from->in[i].data, bytes_of(&from->in[i]));
}

/* The packed-weight cache is made of zeros first; then, when the weights have another number, of the weights; then it
 * is used again. */
static void run_cached_thread(const context *at, const tdi_call *from, trial *t)
{
    tdi_control control = *from->control;
    tdi_call *call = &t->call;
    size_t scratch = 0;
    call->constant_inputs = ~0u;
    call->control = &control;
    assert_int_equal(at->kernel->prepare(call, &call->state, &scratch, NULL), TD_OK);
    size_t kept = at->kernel->packed_cache_bytes(call);
    call->packed_cache = kept ? guarded_create(TDI_PACKED_CACHE_HEAD + kept) : NULL;
    if (kept)
        memset(call->packed_cache, 0, TDI_PACKED_CACHE_HEAD);
    call->scratch = guarded_create(scratch);
    for (int run = 0; run < 3; run++) {
        control.weights = run ? 2 : 1;
        fill_inputs(t, from, run == 0);
        at->kernel->run(call);
    }
    if (at->kernel->release && call->state)
        at->kernel->release(call->state);
    free_scratch(at, call->scratch, scratch);
    if (!guarded_free(call->packed_cache, TDI_PACKED_CACHE_HEAD + kept))
        complain(at, "written behind the end of what is kept", 0, 0, 0);
    call->packed_cache = NULL;
}

static void run_cached_threads(const context *at, const tdi_call *call, trial *t)
{
    for (int thread = 0; thread < at->threads; thread++) {
        set_share(at, thread, &t->call);
        if (t->call.begin < t->call.end)
            run_cached_thread(at, call, t);
    }
}

static void check(const context *at, const tdi_call *call, const trial *expected)
{
    trial t;
    if (!can_share(at, call))
        return;
    trial_init(&t, call);
    if (run_threads(at, &t.call)) {
        compare_values(at, "the result", &t.call.out, &expected->call.out);
        for (int i = 0; i < call->n_in; i++)
            if (t.in[i].data != t.call.out.data)
                compare_values(at, "an input or slot", &t.in[i], &expected->in[i]);
    }
    trial_release(&t);
}

/* ---- the batch-interleaved layout ---- */

/* The value batch-interleaved, or back; places without a sample are NaN. */
static void *turned(const tdi_value *value, int interleaved, bool back)
{
    int64_t samples = value->shape.dim[0], per_sample = tdi_shape_elements(&value->shape) / samples;
    int64_t padded = (samples + interleaved - 1) / interleaved * interleaved;
    float *to = guarded_create((size_t)((back ? samples : padded) * per_sample) * sizeof *to);
    for (int64_t n = 0; n < samples; n++)
        for (int64_t i = 0; i < per_sample; i++) {
            int64_t row = n * per_sample + i;
            int64_t side = (n / interleaved * per_sample + i) * interleaved + n % interleaved;
            to[back ? row : side] = ((const float *)value->data)[back ? side : row];
        }
    return to;
}

static bool can_be_interleaved(const tdi_node *node)
{
    return node && node->shape.rank > 1 && node->shape.dim[0] == TDI_BATCH && node->dtype == TD_FLOAT32;
}

static void interleave(tdi_value *value, int interleaved)
{
    void *to = turned(value, interleaved, false);
    free_value(value);
    value->data = to;
    value->batch_interleaved = interleaved;
}

/* `mask`: bit i says that input i is batch-interleaved, bit n_in that the result is. */
static void check_mixture(const context *at, const tdi_call *call, const trial *expected, unsigned mask,
                          int interleaved)
{
    trial t;
    size_t scratch = 0;
    trial_init(&t, call);
    for (int i = 0; i < call->n_in; i++)
        if (mask >> i & 1u)
            interleave(&t.in[i], interleaved);
    if (mask >> call->n_in & 1u)
        interleave(&t.call.out, interleaved);
    set_share(at, 0, &t.call);
    if (at->kernel->prepare)
        assert_int_equal(at->kernel->prepare(&t.call, &t.call.state, &scratch, NULL), TD_OK);
    t.call.scratch = guarded_create(scratch);
    at->kernel->run(&t.call);
    free_scratch(at, t.call.scratch, scratch);
    if (t.call.out.batch_interleaved) {
        void *back = turned(&t.call.out, interleaved, true);
        free_value(&t.call.out);
        t.call.out.data = back;
        t.call.out.batch_interleaved = 0;
    }
    compare_values(at, "the result, batch-interleaved samples", &t.call.out, &expected->call.out);
    trial_release(&t);
}

static void check_interleaved(const context *at, const tdi_call *call, const trial *expected, int interleaved)
{
    const tdi_node *node = at->run->node;
    unsigned can = can_be_interleaved(node) ? 1u << call->n_in : 0;
    for (int i = 0; i < call->n_in; i++)
        can |= can_be_interleaved(node->in[i]) ? 1u << i : 0;
    for (unsigned mask = 1; mask <= can; mask++)
        if ((mask & can) == mask)
            check_mixture(at, call, expected, mask, interleaved);
}

static bool has_bfloat16(const tdi_call *call)
{
    bool has = call->out.dtype == TD_BFLOAT16;
    for (int i = 0; i < call->n_in; i++)
        has = has || call->in[i].dtype == TD_BFLOAT16;
    return has;
}

/* ---- candidates ---- */

/* Asks as the plan does, without addresses. */
static bool accepts(const tdi_kernel *kernel, const tdi_call *call, tdi_batch_interleaving *interleaved)
{
    tdi_call query = *call;
    tdi_value in[MAX_IN];
    for (int i = 0; i < call->n_in; i++) {
        in[i] = call->in[i];
        in[i].data = NULL;
    }
    query.in = in;
    query.out.data = NULL;
    *interleaved = TDI_NO_INTERLEAVING;
    if (kernel->declines && kernel->declines(&query))
        return false;
    void *state = NULL;
    size_t scratch = 0;
    *interleaved = kernel->interleaving ? kernel->interleaving(&query) : TDI_NO_INTERLEAVING;
    query.end = tdi_split_extent(TDI_WHOLE, &call->out.shape);
    td_status status = kernel->prepare ? kernel->prepare(&query, &state, &scratch, NULL) : TD_OK;
    if (kernel->release && state)
        kernel->release(state);
    return status == TD_OK;
}

/* Runs a product by depth: each thread makes its sums, then its share of the result from all of them. */
static void run_by_depth(const context *at, tdi_call *call)
{
    int64_t depth = tdi_split_extent(TDI_COLUMNS, &call->in[0].shape);
    call->sums = tdi_buffer_create((size_t)(at->threads * tdi_shape_elements(&call->out.shape)) * sizeof(float) + 1);
    assert_non_null(call->sums);
    for (int thread = 0; thread < at->threads; thread++) {
        set_share(at, thread, call);
        call->other_half = (tdi_share){call->split, call->begin, call->end};
        call->split = TDI_DEPTH;
        tdi_range(TDI_DEPTH, depth, thread, at->threads, &call->begin, &call->end);
        at->kernel->run(call);
    }
    for (int thread = 0; thread < at->threads; thread++) {
        call->other_half.split = TDI_DEPTH;
        tdi_range(TDI_DEPTH, depth, thread, at->threads, &call->other_half.begin, &call->other_half.end);
        set_share(at, thread, call);
        if (call->begin < call->end)
            at->kernel->finish(call);
    }
    tdi_buffer_free(call->sums);
}

static void check_by_depth(const context *at, const tdi_call *call, const trial *expected)
{
    const tdi_matmul_attrs *attrs = call->attrs;
    bool plain = !attrs->transpose_a && !attrs->transpose_b && call->in[1].shape.rank == 2;
    if (!plain || call->in[1].shape.dim[0] < at->threads)
        return;
    trial t;
    trial_init(&t, call);
    run_by_depth(at, &t.call);
    compare_values(at, "the result by depth", &t.call.out, &expected->call.out);
    trial_release(&t);
}

/* Makes the result in the storage of each input that it may take the place of, by the kernel and by the reference. */
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

/* Kernels whose threads wait for each other are left to the tests that run whole models. */
static void check_packed_cache(const context *at, const tdi_call *call, const trial *expected)
{
    trial t;
    if ((at->kernel->run_serially && at->split == TDI_COLUMNS) || !can_share(at, call))
        return;
    trial_init(&t, call);
    run_cached_threads(at, call, &t);
    compare_values(at, "the result of what is kept", &t.call.out, &expected->call.out);
    trial_release(&t);
}

static void check_kernel(op_run *run, const tdi_kernel *kernel, const tdi_call *call,
                         tdi_batch_interleaving interleaved, int width, const trial *expected)
{
    double terms = summed(kernel, call);
    check(&(context){run, kernel, TDI_WHOLE, 1, terms}, call, expected);
    check_in_place(&(context){run, kernel, TDI_WHOLE, 1, terms}, call, expected);
    for (int threads = 1; threads <= (kernel->splits & TDI_CAN_COLUMNS ? MAX_THREADS : 1) && kernel->packed_cache_bytes;
         threads++)
        check_packed_cache(&(context){run, kernel, threads > 1 ? TDI_COLUMNS : TDI_WHOLE, threads, terms}, call,
                           expected);
    for (int split = TDI_ROWS; split <= TDI_FLAT; split++)
        for (int threads = 2; threads <= MAX_THREADS && (kernel->splits & 1u << split); threads++)
            check(&(context){run, kernel, split, threads, terms}, call, expected);
    if (interleaved != TDI_NO_INTERLEAVING && !has_bfloat16(call))
        check_interleaved(&(context){run, kernel, TDI_WHOLE, 1, terms}, call, expected, width);
    for (int split = TDI_ROWS; split <= TDI_COLUMNS && kernel->splits & TDI_CAN_DEPTH; split++)
        for (int threads = 2; threads <= MAX_THREADS; threads++)
            check_by_depth(&(context){run, kernel, split, threads, terms}, call, expected);
}

/* The thread sanitizer, under which references take minutes, sees nothing in a kernel whose threads run in turn. */
static bool is_watched(const tdi_kernel *kernel)
{
    return !SANITIZED_THREADS || kernel->run_serially;
}

static bool has_watched(const tdi_op *op)
{
    const tdi_kernel *const *k = tdi_cpu_kernels(tdi_cpu_best_isa());
    while (*k && ((*k)->op != op || !is_watched(*k)))
        k++;
    return !SANITIZED_THREADS || *k;
}

/* How many kernels have taken a case. */
typedef struct takers {
    int of[TDI_CPU_AVX512 + 1]; /* of each instruction set */
    int narrowed;               /* of the best instruction set, in bfloat16, among those that the case is for */
} takers;

/* With AMX, a case for the AMX kernels is for them alone. */
static bool is_meant(const op_case *c, const tdi_kernel *kernel)
{
    return !strstr(c->name, "by tiles") || !tdi_amx_works() || strstr(kernel->name, "by tiles");
}

/* Which kernels are checked. */
typedef struct wanted {
    int64_t rows;     /* rows of the case; -1: its own number */
    const char *name; /* how the kernels' names begin */
} wanted;

/* Checks the wanted kernels, but those for `other` numbers, against one run of the reference. */
static void check_kernels(op_run *run, wanted want, tdi_takes other, const tdi_call *call, takers *taken)
{
    tdi_cpu_isa best = tdi_cpu_best_isa();
    int watched = 0;
    trial expected;
    for (tdi_cpu_isa isa = TDI_CPU_BASELINE; isa <= best; isa++)
        for (const tdi_kernel *const *k = tdi_cpu_kernels(isa); *k; k++) {
            tdi_batch_interleaving interleaved;
            bool named = !strncmp((*k)->name, want.name, strlen(want.name));
            if ((*k)->op != run->node->op || (*k)->takes == other || !named || !accepts(*k, call, &interleaved))
                continue;
            taken->of[isa]++;
            taken->narrowed += isa == best && other == TDI_TAKES_FLOAT32 && is_meant(run->c, *k);
            if (was_listed_before(isa, *k) || !is_watched(*k))
                continue;
            if (!watched++) {
                trial_init(&expected, call);
                run_reference(run->node->op, &expected.call);
            }
            check_kernel(run, *k, call, interleaved, tdi_cpu_width(isa), &expected);
        }
    if (watched)
        trial_release(&expected);
}

/* ---- bfloat16 ---- */

/* The call with the first `count` of its inputs that may be bfloat16 rounded to it. */
typedef struct narrowed {
    tdi_call call;
    tdi_value in[MAX_IN];
    void *rounded[MAX_IN + 1];
} narrowed;

/* Rounds a weight that kernels round: its floats become bfloat16 numbers. */
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

/* Finds the result's type by the op's own rule. */
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

/* Checks with everything bfloat16 that may be; for a product also with the left factor alone, since the right one may
 * be a weight. */
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
    for (int part = 0; part < (run->node->update_phase ? 1 : run->shards); part++) {
        const tdi_call *call = evaluation_call(run->evaluation, run->node, part);
        if (tdi_shape_elements(&call->out.shape) == 0)
            continue;
        check_kernels(run, want, TDI_TAKES_BFLOAT16, call, &taken);
        check_narrowed(run, want, call, &taken);
    }
    op_run_free(run);
    return taken;
}

#endif
