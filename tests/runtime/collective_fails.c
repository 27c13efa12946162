/* collective_fails.c - a collective that breaks ends the step: on every thread at the same place, with its sentence,
 * the model as it was before. And what collectives move is what the model has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/machine.h"
#include "runtime/runtime_struct.h"
#include "support/small.h"

enum { BATCH = 10, STEPS = 3, SAMPLES = STEPS * BATCH, MOST_COLLECTIVES = 64 };

static float x[SAMPLES * SMALL_SAMPLE], y[SAMPLES];

/* ---- a strategy whose collectives break ---- */

typedef struct breaker {
    tdi_strategy base;
    tdi_division division;
    bool races; /* threads find different outcomes, and the first holds */
    int broken; /* the collective that breaks; -1: none */
    tdi_error why;
    uint32_t at_step; /* of the group, from 1 on; 0: whichever comes next */

    int connected;                 /* groups made */
    const tdi_collectives *list;   /* of the latest step */
    int64_t moved[TDI_REDUCE + 1]; /* by kind: sizes of the collectives begun */
    atomic_uint proposals;
    atomic_int arrivals[MOST_COLLECTIVES], breaks[MOST_COLLECTIVES]; /* threads that got this outcome */
    atomic_int met_broken; /* threads that went on to a step's end although it was broken */
} breaker;

typedef struct handle {
    tdi_communicator base;
    tdi_communicator *local;
    breaker *of;
    const tdi_collectives *list;
    tdi_latch *latches; /* [collectives], the group's; the first worker's handle frees them */
} handle;

static bool breaks_at(const breaker *b, int id, uint32_t step)
{
    return id == b->broken && (b->at_step == 0 || step == b->at_step);
}

static void begin(tdi_communicator *communicator, int id)
{
    handle *h = (handle *)communicator;
    if (communicator->rank == 0) {
        h->of->list = h->list;
        for (int t = 0; t < h->list->at[id].count; t++)
            h->of->moved[h->list->at[id].kind] += h->list->at[id].transfers[t].size;
    }
    h->local->begin(h->local, id);
}

static tdi_outcome proposed(breaker *b, int id, uint32_t step)
{
    if (!breaks_at(b, id, step))
        return TDI_ARRIVED;
    return b->races && atomic_fetch_add(&b->proposals, 1) % 2 ? TDI_ARRIVED : TDI_BROKEN;
}

static tdi_outcome finish(tdi_communicator *communicator, int id, uint32_t step)
{
    handle *h = (handle *)communicator;
    breaker *b = h->of;
    assert_int_equal(h->local->finish(h->local, id, step), TDI_ARRIVED);
    tdi_outcome outcome = tdi_latch_outcome(&h->latches[id], step, proposed(b, id, step));
    atomic_fetch_add(outcome == TDI_BROKEN ? &b->breaks[id] : &b->arrivals[id], 1);
    return outcome;
}

static bool is_broken(const breaker *b)
{
    for (int id = 0; id < MOST_COLLECTIVES; id++)
        if (atomic_load(&b->breaks[id]))
            return true;
    return false;
}

static void end_step(tdi_communicator *communicator)
{
    handle *h = (handle *)communicator;
    if (is_broken(h->of))
        atomic_fetch_add(&h->of->met_broken, 1);
    h->local->end_step(h->local);
}

static const tdi_error *failure(const tdi_communicator *communicator)
{
    return &((const handle *)communicator)->of->why;
}

static void release(tdi_communicator *communicator)
{
    handle *h = (handle *)communicator;
    h->local->release(h->local);
    if (communicator->rank == 0)
        free(h->latches);
    free(h);
}

static td_status connect_breaking(const tdi_strategy *strategy, const tdi_group_spec *group, tdi_communicator **handles,
                                  tdi_error *error)
{
    breaker *b = (breaker *)strategy;
    tdi_communicator *local[TDI_MAX_SHARDS];
    tdi_latch *latches = calloc(MOST_COLLECTIVES, sizeof *latches);
    assert_non_null(latches);
    assert_in_range(group->collectives->count, 0, MOST_COLLECTIVES);
    assert_int_equal(tdi_local_group_create(group, local, error), TD_OK);
    for (int w = 0; w < group->workers; w++) {
        handle *h = calloc(1, sizeof *h);
        assert_non_null(h);
        *h = (handle){*local[w], local[w], b, group->collectives, latches};
        h->base.begin = begin;
        h->base.finish = finish;
        h->base.end_step = end_step;
        h->base.failure = failure;
        h->base.release = release;
        handles[w] = &h->base;
    }
    b->connected++;
    return TD_OK;
}

static td_status divide(const td_model *model, int replicas, int cores, tdi_division *division, tdi_error *error)
{
    (void)replicas, (void)cores, (void)error;
    *division = ((const breaker *)model->compiled.strategy)->division;
    return TD_OK;
}

static void arm(breaker *b, int collective, uint32_t at_step)
{
    b->broken = collective;
    b->at_step = at_step;
    memset(b->arrivals, 0, sizeof b->arrivals);
    memset(b->breaks, 0, sizeof b->breaks);
    memset(b->moved, 0, sizeof b->moved);
    snprintf(b->why.message, sizeof b->why.message, "worker 1 has not answered for 0.7 s: lost at collective %d",
             collective);
}

static breaker make_breaker(int shards, int workers, int threads, int groups)
{
    return (breaker){
        .base = {.can_break = true, .divide = divide, .connect = connect_breaking},
        .division = {.replicas = groups, .shards = shards, .groups = groups, .workers = workers, .threads = threads},
        .broken = -1,
        .why = {.status = TD_IO}};
}

/* ---- models ---- */

enum { WIDE = SMALL_KINDS };

typedef struct net {
    const char *name;
    int kind; /* a small_kind, or WIDE: gradients of several buckets */
    td_optimizer optimizer;
} net;

static const net nets[] = {
    {"dense, momentum", SMALL_MLP, {.kind = TD_OPTIMIZER_SGD, .learning_rate = 0.05f, .momentum = 0.9f}},
    {"convolution, Adam", SMALL_CNN, {.kind = TD_OPTIMIZER_ADAM}},
    {"merged statistics", SMALL_MIXED, {.kind = TD_OPTIMIZER_ADAM}},
    {"dropout, averages", SMALL_DROPOUT, {.kind = TD_OPTIMIZER_ADAM, .use_ema = TD_YES}},
    {"LSTM, clipped", SMALL_LSTM, {.kind = TD_OPTIMIZER_ADAM, .global_clipnorm = 0.1f}},
    {"clipped each", SMALL_SYNC, {.kind = TD_OPTIMIZER_SGD, .learning_rate = 0.05f, .clipnorm = 0.1f}},
    {"accumulated", SMALL_CNN, {.kind = TD_OPTIMIZER_ADAM, .gradient_accumulation_steps = 2}},
    {"buckets, Adam", WIDE, {.kind = TD_OPTIMIZER_ADAM}},
    {"buckets, accumulated", WIDE, {.kind = TD_OPTIMIZER_ADAM, .gradient_accumulation_steps = 2, .use_ema = TD_YES}},
    {"buckets, clipped", WIDE, {.kind = TD_OPTIMIZER_SGD, .learning_rate = 0.05f, .global_clipnorm = 0.1f}},
};
enum { NETS = sizeof nets / sizeof *nets };

typedef struct way {
    int shards, workers, threads;
} way;

static const way ways[] = {{2, 1, 3}, {2, 2, 1}, {2, 2, 2}, {6, 3, 1}, {3, 3, 2}, {4, 4, 2}};
enum { WAYS = sizeof ways / sizeof *ways };

/* Whatever is faster here: steps are run by all threads, or by one in their place. */
static void run_all_threads(td_model *model, bool all)
{
    for (int mode = 0; mode < TDI_MODES; mode++)
        tdi_fix_threads(tdi_runtime_own(model), (tdi_mode)mode, !all);
}

static td_model *wide_model(td_context *context, const td_optimizer *optimizer)
{
    td_tensor *in = td_input(context, TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS)), *out = td_flatten(in);
    for (int i = 0; i < 4; i++)
        out = td_dense(out, 272, .activation = TD_TANH, .kernel_regularizer = {.l2 = 0.01f});
    out = td_dense(td_batch_normalization(out, .synchronized = TD_YES), SMALL_CLASSES);
    td_model *model = td_model_create(in, out, .seed = 12);
    td_compile(model, .optimizer = *optimizer, .loss = TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
               .metrics = TD_METRICS(TD_ACCURACY));
    return model;
}

static td_model *make_model(td_context *context, const net *net, breaker *b)
{
    td_model *model = net->kind == WIDE ? wide_model(context, &net->optimizer)
                                        : small_model(context, (small_kind)net->kind, net->optimizer, (td_strategy){0});
    assert_string_equal(td_error(context), "");
    model->compiled.strategy = &b->base;
    tdi_runtime *runtime;
    assert_int_equal(tdi_runtime_for(model, TDI_TRAIN, BATCH, &runtime, NULL), TD_OK);
    runtime->is_trial = true;
    run_all_threads(model, true);
    return model;
}

/* All that training changes: weights, statistics, slots and the number of steps. */
typedef struct snapshot {
    float *floats;
    size_t bytes;
    int64_t iteration;
} snapshot;

static snapshot take_snapshot(const td_model *model)
{
    size_t values = (size_t)model->architecture->total, slots = 0, used = values;
    for (int i = 0; i < TDI_MAX_SLOTS; i++)
        slots += tdi_model_slots(model, i) ? (size_t)model->architecture->trained : 0;
    snapshot s = {malloc((values + slots) * sizeof(float)), (values + slots) * sizeof(float), model->state->iteration};
    assert_non_null(s.floats);
    memcpy(s.floats, tdi_model_values(model), values * sizeof(float));
    for (int i = 0; i < TDI_MAX_SLOTS; i++)
        if (tdi_model_slots(model, i)) {
            memcpy(s.floats + used, tdi_model_slots(model, i), (size_t)model->architecture->trained * sizeof(float));
            used += (size_t)model->architecture->trained;
        }
    return s;
}

/* Each call begins to count anew. */
static void expect_nothing_counted(const td_model *model)
{
    double sums[64] = {0};
    int count = tdi_runtime_sums(tdi_runtime_own(model), TDI_TRAIN) * tdi_runtime_shards(tdi_runtime_own(model)) * 2;
    assert_in_range(count, 1, 64);
    tdi_runtime_get_sums(tdi_runtime_own(model), TDI_TRAIN, sums);
    for (int i = 0; i < count; i++)
        assert_true(sums[i] == 0);
}

static void expect_snapshot(const td_model *model, const snapshot *expected)
{
    snapshot now = take_snapshot(model);
    assert_int_equal(now.bytes, expected->bytes);
    assert_int_equal(now.iteration, expected->iteration);
    assert_memory_equal(now.floats, expected->floats, now.bytes);
    free(now.floats);
}

static td_status train_step(td_model *model, int step)
{
    return td_train_on_batch(model, BATCH, x + step * BATCH * SMALL_SAMPLE, y + step * BATCH, NULL);
}

/* As the mirrored strategy trains it, updates among backpropagation: before the first step and behind each. */
static void train_reference(const net *net, const way *w, snapshot expected[STEPS + 1])
{
    td_context *context = td_context_create(NULL);
    breaker whole = make_breaker(w->shards, w->workers, w->threads, 1);
    whole.base.can_break = false;
    td_model *model = make_model(context, net, &whole);
    for (int step = 0; step <= STEPS; step++) {
        expected[step] = take_snapshot(model);
        if (step < STEPS)
            assert_int_equal(train_step(model, step), TD_OK);
    }
    td_context_free(context);
}

static void free_snapshots(snapshot expected[STEPS + 1])
{
    for (int step = 0; step <= STEPS; step++)
        free(expected[step].floats);
}

/* ---- the tests ---- */

static void expect_failed(td_model *model, td_status status, const breaker *b)
{
    assert_int_equal(status, b->why.status);
    if (!strstr(td_error(model->context), b->why.message))
        fail_msg("\"%s\" does not say \"%s\"", td_error(model->context), b->why.message);
    td_clear_error(model->context);
}

/* Each thread left at the broken collective: it finished others with all threads, or not at all. */
static void expect_left_together(const breaker *b, int threads)
{
    for (int id = 0; id < b->list->count; id++) {
        int arrived = atomic_load(&b->arrivals[id]), broken = atomic_load(&b->breaks[id]);
        assert_int_equal(broken, id == b->broken ? threads : 0);
        assert_true(arrived == 0 || (id != b->broken && arrived == threads));
    }
    assert_int_equal(atomic_load(&b->met_broken), 0);
}

static void check_each_collective(const net *net, const way *w)
{
    snapshot expected[STEPS + 1];
    train_reference(net, w, expected);
    td_context *context = td_context_create(NULL);
    breaker b = make_breaker(w->shards, w->workers, w->threads, 1);
    td_model *model = make_model(context, net, &b);
    for (int step = 0, collectives = 1; step < STEPS; step++) {
        for (int id = 0; id < collectives; id++) {
            arm(&b, id, 0);
            expect_failed(model, train_step(model, step), &b);
            expect_left_together(&b, w->workers * w->threads);
            expect_snapshot(model, &expected[step]);
            expect_nothing_counted(model);
            collectives = b.list->count;
        }
        arm(&b, -1, 0);
        assert_int_equal(train_step(model, step), TD_OK);
        expect_snapshot(model, &expected[step + 1]);
    }
    assert_true(b.connected > STEPS);
    td_context_free(context);
    free_snapshots(expected);
}

static void each_collective_of_each_step_breaks(void **state)
{
    (void)state;
    for (int n = 0; n < NETS; n++)
        for (int i = 0; i < WAYS; i++)
            check_each_collective(&nets[n], &ways[i]);
}

/* One thread in place of all, as when others take their cores. */
static void one_thread_leaves_too(void **state)
{
    (void)state;
    if (tdi_cores_allowed() < 2)
        skip();
    const way two = {2, 2, 1};
    for (int n = 0; n < NETS; n++) {
        snapshot expected[STEPS + 1];
        train_reference(&nets[n], &two, expected);
        td_context *context = td_context_create(NULL);
        breaker b = make_breaker(2, 2, 1, 1);
        td_model *model = make_model(context, &nets[n], &b);
        assert_int_equal(train_step(model, 0), TD_OK);
        run_all_threads(model, false);
        for (int id = 0; id < b.list->count; id++) {
            arm(&b, id, 0);
            expect_failed(model, train_step(model, 1), &b);
            assert_int_equal(atomic_load(&b.breaks[id]), 1);
            expect_snapshot(model, &expected[1]);
        }
        arm(&b, -1, 0);
        assert_int_equal(train_step(model, 1), TD_OK);
        expect_snapshot(model, &expected[2]);
        td_context_free(context);
        free_snapshots(expected);
    }
}

/* In the midst of an epoch, whose steps before count. */
static void a_fit_says_why(void **state)
{
    (void)state;
    const way pairs = {2, 2, 2};
    snapshot expected[STEPS + 1];
    train_reference(&nets[1], &pairs, expected);
    for (uint32_t step = 0; step < STEPS; step++) {
        td_context *context = td_context_create(NULL);
        breaker b = make_breaker(2, 2, 2, 1);
        td_model *model = make_model(context, &nets[1], &b);
        td_data *data = td_arrays(SAMPLES, x, TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS), .y = y);
        arm(&b, 0, step + 1);
        expect_failed(model, td_fit(model, data, .batch_size = BATCH, .shuffle = TD_NO), &b);
        expect_snapshot(model, &expected[step]);
        arm(&b, -1, 0);
        for (uint32_t i = step; i < STEPS; i++)
            assert_int_equal(train_step(model, (int)i), TD_OK);
        expect_snapshot(model, &expected[STEPS]);
        td_context_free(context);
    }
    free_snapshots(expected);
}

/* Gradients are computed and applied by steps of their own. */
static void halves_of_a_step_break(void **state)
{
    (void)state;
    const net *clipped = &nets[5];
    td_context *context = td_context_create(NULL);
    breaker b = make_breaker(3, 3, 2, 1);
    td_model *model = make_model(context, clipped, &b);
    snapshot before = take_snapshot(model);
    for (int id = 0, collectives = 1; id < collectives; id++) {
        arm(&b, id, 0);
        expect_failed(model, td_compute_gradients(model, BATCH, x, y, NULL), &b);
        expect_snapshot(model, &before);
        collectives = b.list->count;
    }
    for (int id = 0, collectives = 1; id < collectives; id++) {
        arm(&b, -1, 0);
        assert_int_equal(td_compute_gradients(model, BATCH, x, y, NULL), TD_OK);
        arm(&b, id, 0);
        expect_failed(model, td_apply_gradients(model), &b);
        collectives = b.list->count;
        assert_int_equal(collectives, 3); /* the gradients are there; their norms; the factors */
        assert_int_equal(b.moved[TDI_REDUCE], 0);
        for (int64_t i = 0; i < model->architecture->total; i++) /* statistics are those of the gradients' steps */
            assert_true(i >= model->architecture->trained || tdi_model_values(model)[i] == before.floats[i]);
    }
    free(before.floats);
    td_context_free(context);
}

/* Threads that find out different things go on as the first one found. */
static void the_first_outcome_holds(void **state)
{
    (void)state;
    const way most = {4, 4, 2};
    snapshot expected[STEPS + 1];
    train_reference(&nets[1], &most, expected);
    for (int round = 0; round < 40; round++) {
        td_context *context = td_context_create(NULL);
        breaker b = make_breaker(4, 4, 2, 1);
        td_model *model = make_model(context, &nets[1], &b);
        b.races = true;
        atomic_store(&b.proposals, (unsigned)round);
        arm(&b, 0, 0);
        td_status status = train_step(model, 0);
        assert_true(status == TD_OK || status == b.why.status);
        int broken = atomic_load(&b.breaks[0]), arrived = atomic_load(&b.arrivals[0]);
        assert_true(broken == (status ? 8 : 0) && arrived == (status ? 0 : 8));
        expect_snapshot(model, &expected[status == TD_OK]);
        td_context_free(context);
    }
    free_snapshots(expected);
}

static void a_latch_keeps_the_first(void **state)
{
    (void)state;
    tdi_latch latch = {0};
    assert_int_equal(tdi_latch_outcome(&latch, 1, TDI_PENDING), TDI_PENDING);
    assert_int_equal(tdi_latch_outcome(&latch, 1, TDI_ARRIVED), TDI_ARRIVED);
    assert_int_equal(tdi_latch_outcome(&latch, 1, TDI_BROKEN), TDI_ARRIVED);
    assert_int_equal(tdi_latch_outcome(&latch, 2, TDI_PENDING), TDI_PENDING);
    assert_int_equal(tdi_latch_outcome(&latch, 2, TDI_BROKEN), TDI_BROKEN);
    assert_int_equal(tdi_latch_outcome(&latch, 2, TDI_ARRIVED), TDI_BROKEN);
    assert_int_equal(tdi_latch_outcome(&latch, 2, TDI_PENDING), TDI_BROKEN);
}

/* ---- what is moved ---- */

/* Ranges of one kind, `times` as large as one shard's, do not overlap and lie in [0, end). */
static void expect_disjoint(const tdi_collectives *list, tdi_collective_kind kind, int64_t times, int64_t end)
{
    char *seen = calloc((size_t)end + 1, 1);
    assert_non_null(seen);
    for (int i = 0; i < list->count; i++)
        for (int t = 0; list->at[i].kind == kind && t < list->at[i].count; t++) {
            const tdi_transfer *transfer = &list->at[i].transfers[t];
            assert_true(transfer->offset >= 0 && transfer->size > 0);
            assert_true(transfer->offset + times * transfer->size <= end);
            for (int64_t k = 0; k < times * transfer->size; k++)
                assert_int_equal(seen[transfer->offset + k]++, 0);
        }
    free(seen);
}

static bool holds(const tdi_transfer *transfer, const tdi_variable *variable)
{
    return transfer->offset <= variable->offset &&
           variable->offset + variable->elements <= transfer->offset + transfer->size;
}

/* Each trained variable is reduced once, and besides only what aligns it. */
static void expect_reduced(const tdi_collectives *list, const td_model *model, int64_t moved)
{
    int64_t elements = 0;
    for (int i = 0; i < model->architecture->weights.count; i++) {
        const tdi_variable *variable = &model->architecture->weights.at[i]->variable;
        int covered = 0;
        for (int c = 0; c < list->count && variable->trainable; c++)
            for (int t = 0; list->at[c].kind == TDI_REDUCE && t < list->at[c].count; t++)
                covered += holds(&list->at[c].transfers[t], variable);
        assert_int_equal(covered, variable->trainable);
        elements += variable->trainable ? variable->elements : 0;
    }
    assert_true(moved >= elements && moved <= model->architecture->trained);
}

static int64_t gathered(const tdi_graph *graph)
{
    int64_t bytes = 0;
    for (int i = 0; i < graph->nodes.count; i++)
        if (graph->nodes.at[i]->op == &tdi_op_all_gather)
            bytes += tdi_shape_elements(&graph->nodes.at[i]->in[0]->shape) * 4;
    return bytes;
}

static void check_moved(const net *net, const way *w)
{
    td_context *context = td_context_create(NULL);
    breaker b = make_breaker(w->shards, w->workers, w->threads, 1);
    td_model *model = make_model(context, net, &b);
    tdi_plan *plans[TDI_MAX_SHARDS];
    for (int step = 0; step < STEPS; step++) {
        arm(&b, -1, 0);
        assert_int_equal(train_step(model, step), TD_OK);
        tdi_runtime *runtime = tdi_runtime_own(model);
        const tdi_program *program = &runtime->modes[TDI_TRAIN].program;
        assert_int_equal(tdi_runtime_prepare(runtime, TDI_TRAIN, BATCH, plans, NULL), TD_OK);
        expect_reduced(b.list, model, b.moved[TDI_REDUCE]);
        assert_int_equal(b.moved[TDI_GATHER], gathered(program->graph));
        assert_int_equal(b.moved[TDI_MEET], 0);
        expect_disjoint(b.list, TDI_REDUCE, 1, model->architecture->trained);
        expect_disjoint(b.list, TDI_GATHER, w->shards, (int64_t)tdi_plan_exchange_bytes(plans[0]));
    }
    td_context_free(context);
}

static void collectives_move_what_the_model_has(void **state)
{
    (void)state;
    for (int n = 0; n < NETS; n++)
        for (int i = 0; i < WAYS; i++)
            check_moved(&nets[n], &ways[i]);
}

static int make_data(void **state)
{
    (void)state;
    small_data(SAMPLES, x, y);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_collective_of_each_step_breaks),
        cmocka_unit_test(one_thread_leaves_too),
        cmocka_unit_test(a_fit_says_why),
        cmocka_unit_test(halves_of_a_step_break),
        cmocka_unit_test(the_first_outcome_holds),
        cmocka_unit_test(a_latch_keeps_the_first),
        cmocka_unit_test(collectives_move_what_the_model_has),
    };
    return cmocka_run_group_tests(tests, make_data, NULL);
}
