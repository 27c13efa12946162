/* schedule.c - the order of a step: which nodes are live, when the weights may change, when replicas meet.
 *
 * Updates run in the middle of backpropagation, as soon as they can: their gradients are in the caches then, and while
 * one bucket of gradients is reduced the next is computed. An update waits for all readers of the old weight and for
 * every value that it reads; each of these blocks it once, and it is ready when none is left. Where effects come last
 * no update can run before the end, so that nobody waits for a bucket before all are under way.
 *
 * Nodes stay in creation order otherwise: nothing is moved to save memory. */

#include "graph/def_use.h"
#include "passes/passes.h"

/* Gradients are reduced in buckets of about this many bytes. They are large enough to hide the cost of a meeting, and
 * small enough that most of the reduction happens while backpropagation goes on. */
enum { BUCKET_BYTES = 256 * 1024 };

/* A trained variable and what makes its new value. */
typedef struct update {
    tdi_variable *variable;
    tdi_node_list nodes; /* that name the variable: those of the update phase are its update */
    int blockers;        /* what the update waits for, see each_blocked */
} update;

typedef struct pending_update {
    int update, collective;
} pending_update;

typedef struct scheduler {
    const tdi_graph *graph;
    const tdi_def_use *def_use;
    tdi_schedule *schedule;
    tdi_collectives *collectives;
    bool *live;      /* by id */
    int *round;      /* by id, of the update phase's nodes: how many meetings about norms come before it */
    update *updates; /* in the order of their first nodes */
    int n_updates;
    tdi_vec(int) bucket;             /* updates that are ready since the last begin */
    tdi_vec(pending_update) pending; /* whose reduction has begun and is not finished, in this order */
    tdi_vec(int) reduced;            /* updates whose reduction is finished, put off as effects come last */
    tdi_vec(tdi_scheduled) put_off;  /* to the end of the step */
    int64_t bucket_bytes;
    bool failed; /* memory */
} scheduler;

static void mark_live(scheduler *s, const tdi_node *node)
{
    if (s->live[node->id])
        return;
    s->live[node->id] = true;
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i])
            mark_live(s, node->in[i]);
}

static void find_live(scheduler *s)
{
    for (int i = 0; i < s->graph->outputs.count; i++)
        mark_live(s, s->graph->outputs.at[i]);
    for (int i = 0; i < s->graph->nodes.count; i++)
        if (s->graph->nodes.at[i]->effect)
            mark_live(s, s->graph->nodes.at[i]);
}

/* Squared norms are computed as soon as their gradients are. What reads them, the factors, waits for a meeting of all
 * replicas, and what reads the factors for another. */
static void find_rounds(scheduler *s)
{
    for (int i = 0; i < s->graph->nodes.count && s->graph->norms; i++) {
        const tdi_node *node = s->graph->nodes.at[i];
        for (int j = 0; j < node->n_in && node->update_phase && s->live[i]; j++) {
            const tdi_node *in = node->in[j];
            int round = in ? s->round[in->id] + in->op->read_by_all : 0;
            s->round[i] = round > s->round[i] ? round : s->round[i];
        }
    }
}

static void add(scheduler *s, tdi_scheduled step)
{
    if (!tdi_push(s->schedule, step))
        s->failed = true;
}

/* Begins a new collective and returns its number. */
static int begin_collective(scheduler *s, tdi_collective collective)
{
    int id = s->collectives->count;
    if (!tdi_push(s->collectives, collective))
        s->failed = true;
    add(s, (tdi_scheduled){.kind = TDI_STEP_BEGIN, .collective = id});
    return id;
}

/* The trained variable whose update the node belongs to; NULL: none. */
static tdi_variable *updated_variable(const tdi_node *node)
{
    return node->update_phase && node->variable && node->variable->trainable ? node->variable : NULL;
}

static int update_of(const scheduler *s, const tdi_variable *variable)
{
    for (int i = 0; i < s->n_updates; i++)
        if (s->updates[i].variable == variable)
            return i;
    return -1;
}

static void find_updates(scheduler *s)
{
    for (int i = 0; i < s->graph->nodes.count; i++) {
        tdi_variable *variable = updated_variable(s->graph->nodes.at[i]);
        if (variable && s->live[i] && update_of(s, variable) < 0)
            s->updates[s->n_updates++] =
                (update){.variable = variable, .nodes = tdi_nodes_of_variable(s->def_use, variable)};
    }
}

/* Weights and slots hold values already. A gradient's place may too (TDI_APPLY), yet its update waits for it. */
static bool is_computed(const tdi_node *node)
{
    return node->home != TDI_HOME_INPUT && node->home != TDI_HOME_VARIABLE && node->home != TDI_HOME_SLOT;
}

/* Calls visit(s, update) for each time that an update waits for a shard's node: the node reads the old weight, or the
 * update reads the node's value. They come in this order: where a layer's gradient unblocks its own update and that of
 * the layer before, the latter comes last, because the next step begins with the first layer, whose weights are then in
 * the caches. */
static void each_blocked(scheduler *s, const tdi_node *node, void (*visit)(scheduler *s, int update))
{
    for (int i = 0; i < node->n_in; i++) {
        const tdi_node *from = node->in[i] ? tdi_root(node->in[i]) : NULL;
        int update = from && from->op == &tdi_op_parameter ? update_of(s, from->variable) : -1;
        if (update >= 0)
            visit(s, update);
    }
    tdi_uses uses = tdi_uses_of_bytes(s->def_use, node);
    for (int i = 0; i < uses.count && is_computed(node); i++) {
        const tdi_node *reader = uses.at[i].reader;
        if (s->live[reader->id] && updated_variable(reader))
            visit(s, update_of(s, reader->variable));
    }
}

static void block(scheduler *s, int update)
{
    s->updates[update].blockers++;
}

static bool is_shard_work(const scheduler *s, const tdi_node *node)
{
    return s->live[node->id] && !node->update_phase;
}

static void count_blockers(scheduler *s)
{
    for (int i = 0; i < s->graph->nodes.count; i++)
        if (is_shard_work(s, s->graph->nodes.at[i]))
            each_blocked(s, s->graph->nodes.at[i], block);
}

static void add_update(scheduler *s, const update *update)
{
    for (int i = 0; i < update->nodes.count; i++) {
        tdi_node *node = update->nodes.at[i];
        if (s->live[node->id] && s->round[node->id] == 0 && updated_variable(node))
            add(s, (tdi_scheduled){.kind = TDI_STEP_KERNEL, .node = node});
    }
}

/* Where norms of gradients are taken, all effects come after the last meetings anyway. */
static bool puts_off_updates(const scheduler *s)
{
    return s->graph->effects_last && !s->graph->norms;
}

static void finish_pending(scheduler *s)
{
    int finished = -1;
    for (int i = 0; i < s->pending.count; i++) {
        pending_update pending = s->pending.at[i];
        if (pending.collective != finished)
            add(s, (tdi_scheduled){.kind = TDI_STEP_FINISH, .collective = pending.collective});
        finished = pending.collective;
        if (!puts_off_updates(s))
            add_update(s, &s->updates[pending.update]);
        else if (!tdi_push(&s->reduced, pending.update))
            s->failed = true;
    }
    s->pending.count = 0;
}

static bool reads_gathered(const tdi_node *node)
{
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i] && node->in[i]->op->gathers)
            return true;
    return false;
}

static bool reduces(const update *update)
{
    for (int i = 0; i < update->nodes.count; i++)
        if (update->nodes.at[i]->op->reduces && !reads_gathered(update->nodes.at[i]))
            return true;
    return false;
}

/* Floats: a variable's gradient begins at a multiple, so that there may be fewer between one and the next. */
enum { ALIGNMENT = 16 };

/* Adds a range behind those before it; it continues the last one where only what aligns it is in between. */
static void add_transfer(tdi_transfer *transfers, int *count, tdi_transfer added)
{
    tdi_transfer *last = *count ? &transfers[*count - 1] : NULL;
    if (last && added.offset - (last->offset + last->size) < ALIGNMENT)
        last->size = added.offset + added.size - last->offset;
    else
        transfers[(*count)++] = added;
}

static int by_offset(const void *a, const void *b)
{
    const tdi_transfer *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* A bucket's gradients, but for those that a step before this one has reduced. */
static tdi_collective reduction_of(scheduler *s)
{
    int variables = 0, count = 0;
    tdi_transfer *transfers = TDI_NEW_ARRAY(s->graph->arena, tdi_transfer, s->bucket.count);
    for (int i = 0; transfers && i < s->bucket.count; i++) {
        const update *update = &s->updates[s->bucket.at[i]];
        if (reduces(update))
            transfers[variables++] = (tdi_transfer){update->variable->offset, update->variable->elements};
    }
    if (!transfers)
        s->failed = true;
    if (!variables)
        return (tdi_collective){.kind = TDI_MEET};
    qsort(transfers, (size_t)variables, sizeof *transfers, by_offset);
    for (int i = 0; i < variables; i++)
        add_transfer(transfers, &count, transfers[i]);
    return (tdi_collective){TDI_REDUCE, count, transfers};
}

static void close_bucket(scheduler *s)
{
    if (!s->bucket.count)
        return;
    int collective = begin_collective(s, reduction_of(s));
    if (!s->graph->effects_last)
        finish_pending(s);
    for (int i = 0; i < s->bucket.count; i++)
        if (!tdi_push(&s->pending, ((pending_update){s->bucket.at[i], collective})))
            s->failed = true;
    s->bucket.count = 0;
    s->bucket_bytes = 0;
}

static void ready(scheduler *s, int update)
{
    if (s->graph->shards == 1) {
        add_update(s, &s->updates[update]);
        return;
    }
    if (!tdi_push(&s->bucket, update))
        s->failed = true;
    s->bucket_bytes += s->updates[update].variable->elements * (int64_t)sizeof(float);
}

static void unblock(scheduler *s, int update)
{
    if (--s->updates[update].blockers == 0)
        ready(s, update);
}

static void start_with_unblocked(scheduler *s)
{
    for (int u = 0; u < s->n_updates; u++)
        if (s->updates[u].blockers == 0)
            ready(s, u);
}

static bool read_by_shard_work(const scheduler *s, const tdi_node *node)
{
    tdi_uses uses = tdi_uses_of(s->def_use, node);
    for (int i = 0; i < uses.count; i++)
        if (is_shard_work(s, uses.at[i].reader))
            return true;
    return false;
}

static void put_off(scheduler *s, tdi_scheduled step)
{
    if (!tdi_push(&s->put_off, step))
        s->failed = true;
}

int64_t tdi_exchange_bytes(const tdi_node *node)
{
    bool once = node->update_phase && node->home == TDI_HOME_EXCHANGE;
    int64_t bytes = tdi_shape_elements(&node->shape) * (int64_t)td_dtype_size(node->dtype);
    return node->op->gathers || once ? (bytes + 63) & ~(int64_t)63 : 0;
}

static tdi_collective gather_of(scheduler *s, const tdi_node *node)
{
    const tdi_node *from = node->in[0];
    int64_t offset = 0, size = tdi_shape_elements(&from->shape) * (int64_t)td_dtype_size(from->dtype);
    for (int i = 0; i < node->id; i++)
        offset += tdi_exchange_bytes(s->graph->nodes.at[i]);
    tdi_transfer *transfer = TDI_NEW(s->graph->arena, tdi_transfer);
    if (transfer)
        *transfer = (tdi_transfer){offset, size};
    else
        s->failed = true;
    return (tdi_collective){TDI_GATHER, 1, transfer};
}

/* A gather that only updates of statistics read is finished at the end of the step, so that nobody waits before. */
static void add_gather(scheduler *s, const tdi_node *node)
{
    tdi_scheduled finish = {.kind = TDI_STEP_FINISH, .collective = begin_collective(s, gather_of(s, node))};
    if (read_by_shard_work(s, node))
        add(s, finish);
    else
        put_off(s, finish);
}

/* A new value of what is not trained (a moving average) is written at the end of the step: the old one is read until
 * then. */
static bool replaces_state(const tdi_node *node)
{
    return node->effect && node->home == TDI_HOME_VARIABLE && !node->update_phase;
}

static void add_node(scheduler *s, tdi_node *node)
{
    if (node->op->gathers && s->graph->shards > 1)
        add_gather(s, node);
    tdi_scheduled step = {.kind = TDI_STEP_KERNEL, .node = node};
    if (node->update_phase || replaces_state(node) || (s->graph->effects_last && node->effect)) {
        put_off(s, step);
        return;
    }
    add(s, step);
    each_blocked(s, node, unblock);
    if (s->bucket_bytes >= BUCKET_BYTES)
        close_bucket(s);
}

/* All replicas meet, and see what each has computed of its range. */
static void meet(scheduler *s)
{
    if (s->graph->shards == 1)
        return;
    int collective = begin_collective(s, (tdi_collective){.kind = TDI_MEET});
    add(s, (tdi_scheduled){.kind = TDI_STEP_FINISH, .collective = collective});
}

/* Adds the nodes of a round; false: there are none. */
static bool add_round(scheduler *s, int round)
{
    bool any = false;
    for (int i = 0; i < s->graph->nodes.count; i++) {
        if (s->round[i] != round)
            continue;
        if (!any)
            meet(s);
        any = true;
        add(s, (tdi_scheduled){.kind = TDI_STEP_KERNEL, .node = s->graph->nodes.at[i]});
    }
    return any;
}

/* The step's end. Where effects come last, the collectives that were put off are finished before any of them. */
static void finish_and_update(scheduler *s)
{
    bool effects_last = s->graph->effects_last;
    for (int i = 0; i < s->put_off.count && effects_last; i++)
        if (s->put_off.at[i].kind == TDI_STEP_FINISH)
            add(s, s->put_off.at[i]);
    for (int round = 1; add_round(s, round); round++)
        continue;
    for (int i = 0; i < s->reduced.count; i++)
        add_update(s, &s->updates[s->reduced.at[i]]);
    for (int i = 0; i < s->put_off.count; i++)
        if (!effects_last || s->put_off.at[i].kind != TDI_STEP_FINISH)
            add(s, s->put_off.at[i]);
}

static void order(scheduler *s)
{
    find_live(s);
    find_rounds(s);
    find_updates(s);
    count_blockers(s);
    start_with_unblocked(s);
    for (int i = 0; i < s->graph->nodes.count; i++)
        if (s->live[i] && s->round[i] == 0 && !updated_variable(s->graph->nodes.at[i]))
            add_node(s, s->graph->nodes.at[i]);
    close_bucket(s);
    finish_pending(s);
    finish_and_update(s);
}

td_status tdi_schedule_make(tdi_graph *graph, tdi_schedule *schedule, tdi_collectives *collectives, tdi_error *error)
{
    size_t count = (size_t)graph->nodes.count + 1;
    graph->def_use = tdi_def_use_create(graph);
    scheduler s = {.graph = graph, .def_use = graph->def_use, .schedule = schedule, .collectives = collectives};
    s.live = calloc(count, sizeof *s.live);
    s.round = calloc(count, sizeof *s.round);
    s.updates = calloc(count, sizeof *s.updates);
    if (s.def_use && s.live && s.round && s.updates)
        order(&s);
    else
        s.failed = true;
    free(s.live);
    free(s.round);
    free(s.updates);
    tdi_vec_free(&s.bucket);
    tdi_vec_free(&s.pending);
    tdi_vec_free(&s.reduced);
    tdi_vec_free(&s.put_off);
    return s.failed ? tdi_no_memory(error) : TD_OK;
}
