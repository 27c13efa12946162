/* schedule.c - the order of a step: what is live, when the weights may change, when replicas meet. */

#include "passes/passes.h"

/* Gradients are reduced in buckets of about this many bytes: enough to hide the cost of a meeting, few enough that most
 * of the reduction happens while backpropagation goes on. */
enum { BUCKET_BYTES = 256 * 1024 };

typedef struct scheduler {
    const tdi_graph *graph;
    tdi_schedule *schedule;
    tdi_collectives *collectives;
    bool *live;               /* by id */
    bool *late;               /* by id: once nodes that wait for norms, of other variables too */
    tdi_variable **variables; /* those with an update */
    int *blockers;            /* per variable: what it waits for, see each_blocked */
    int n_variables;
    tdi_vec(int) bucket;            /* variables ready since the last begin */
    tdi_vec(int) pending;           /* variables begun, not finished */
    tdi_vec(int) reduced;           /* variables finished whose updates are put off, as effects come last */
    tdi_vec(tdi_scheduled) put_off; /* to the end */
    int64_t bucket_bytes;
    int pending_collective;
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

/* Squared norms are made as soon as their gradients are; what is made of them when all are there. */
static void find_late(scheduler *s)
{
    for (int i = 0; i < s->graph->nodes.count && s->graph->norms; i++) {
        const tdi_node *node = s->graph->nodes.at[i];
        for (int j = 0; j < node->n_in && node->once && s->live[i]; j++)
            s->late[i] =
                s->late[i] || (node->in[j] && (node->in[j]->op == &tdi_op_squared_norm || s->late[node->in[j]->id]));
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

/* The variable whose update a node belongs to: trained ones only. */
static tdi_variable *updated_variable(const tdi_node *node)
{
    return node->once && node->variable && node->variable->trainable ? node->variable : NULL;
}

static int variable_index(const scheduler *s, const tdi_variable *variable)
{
    for (int i = 0; i < s->n_variables; i++)
        if (s->variables[i] == variable)
            return i;
    return -1;
}

static void find_variables(scheduler *s)
{
    for (int i = 0; i < s->graph->nodes.count; i++) {
        tdi_variable *variable = updated_variable(s->graph->nodes.at[i]);
        if (variable && s->live[i] && variable_index(s, variable) < 0)
            s->variables[s->n_variables++] = variable;
    }
}

/* Weights and slots are there; a gradient may be too, but then it is what its update waits for. */
static bool is_made(const tdi_node *node)
{
    return node->home != TDI_HOME_INPUT && node->home != TDI_HOME_VARIABLE && node->home != TDI_HOME_SLOT;
}

/* How often an update, or a reduction before it, reads what `node` makes. */
static int readings(const tdi_node *update, const tdi_node *node)
{
    int count = 0;
    for (int i = 0; i < update->n_in; i++)
        count += update->in[i] && tdi_root(update->in[i]) == node;
    return count;
}

/* Calls visit(s, v) for each time that an updated variable waits for a part node: the node reads the old weight, or the
 * update reads what the node makes. In this order, where a layer's gradient lets its own update begin and that of
 * the layer before, the latter comes last: the next step begins with the first layer, whose weights the caches have. */
static void each_blocked(scheduler *s, const tdi_node *node, void (*visit)(scheduler *s, int variable))
{
    for (int i = 0; i < node->n_in; i++) {
        const tdi_node *from = node->in[i] ? tdi_root(node->in[i]) : NULL;
        int variable = from && from->op == &tdi_op_parameter ? variable_index(s, from->variable) : -1;
        if (variable >= 0)
            visit(s, variable);
    }
    for (int i = node->id + 1; i < s->graph->nodes.count && is_made(node); i++) {
        const tdi_node *update = s->graph->nodes.at[i];
        if (s->live[i] && updated_variable(update))
            for (int n = readings(update, node); n; n--)
                visit(s, variable_index(s, update->variable));
    }
}

static void block(scheduler *s, int variable)
{
    s->blockers[variable]++;
}

static bool is_part_work(const scheduler *s, const tdi_node *node)
{
    return s->live[node->id] && !node->once;
}

static void count_blockers(scheduler *s)
{
    for (int i = 0; i < s->graph->nodes.count; i++)
        if (is_part_work(s, s->graph->nodes.at[i]))
            each_blocked(s, s->graph->nodes.at[i], block);
}

/* The once nodes of a variable, in creation order. */
static void add_update(scheduler *s, int variable)
{
    for (int i = 0; i < s->graph->nodes.count; i++) {
        tdi_node *node = s->graph->nodes.at[i];
        if (s->live[i] && !s->late[i] && updated_variable(node) == s->variables[variable])
            add(s, (tdi_scheduled){.kind = TDI_STEP_KERNEL, .node = node});
    }
}

/* Of gradients whose norms are taken nothing but the sums and the norms is made before the last collectives. */
static bool puts_off_updates(const scheduler *s)
{
    return s->graph->effects_last && !s->graph->norms;
}

static void finish_pending(scheduler *s)
{
    if (!s->pending.count)
        return;
    add(s, (tdi_scheduled){.kind = TDI_STEP_FINISH, .collective = s->pending_collective});
    for (int i = 0; i < s->pending.count; i++)
        if (!puts_off_updates(s))
            add_update(s, s->pending.at[i]);
        else if (!tdi_push(&s->reduced, s->pending.at[i]))
            s->failed = true;
    s->pending.count = 0;
}

/* Gradients of a bucket are one range of the arena, whose variables lie in the order in which they become ready. */
static tdi_collective reduction_of(const scheduler *s)
{
    int64_t begin = INT64_MAX, end = 0;
    for (int i = 0; i < s->bucket.count; i++) {
        const tdi_variable *variable = s->variables[s->bucket.at[i]];
        int64_t last = variable->offset + variable->elements;
        begin = variable->offset < begin ? variable->offset : begin;
        end = last > end ? last : end;
    }
    return (tdi_collective){.kind = TDI_REDUCE, .offset = begin, .size = end - begin};
}

static void close_bucket(scheduler *s)
{
    if (!s->bucket.count)
        return;
    int collective = begin_collective(s, reduction_of(s));
    finish_pending(s);
    for (int i = 0; i < s->bucket.count; i++)
        if (!tdi_push(&s->pending, s->bucket.at[i]))
            s->failed = true;
    s->pending_collective = collective;
    s->bucket.count = 0;
    s->bucket_bytes = 0;
}

static void ready(scheduler *s, int variable)
{
    if (s->graph->parts == 1) {
        add_update(s, variable);
        return;
    }
    if (!tdi_push(&s->bucket, variable))
        s->failed = true;
    s->bucket_bytes += s->variables[variable]->elements * (int64_t)sizeof(float);
}

static void unblock(scheduler *s, int variable)
{
    if (--s->blockers[variable] == 0)
        ready(s, variable);
}

static void start_with_unblocked(scheduler *s)
{
    for (int v = 0; v < s->n_variables; v++)
        if (s->blockers[v] == 0)
            ready(s, v);
}

static bool read_by_part_work(const scheduler *s, const tdi_node *node)
{
    for (int i = 0; i < s->graph->nodes.count; i++)
        for (int j = 0; j < s->graph->nodes.at[i]->n_in; j++)
            if (s->graph->nodes.at[i]->in[j] == node && is_part_work(s, s->graph->nodes.at[i]))
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
    bool gather = node->op == &tdi_op_all_gather, once = node->once && node->home == TDI_HOME_EXCHANGE;
    int64_t bytes = gather || once ? tdi_shape_elements(&node->shape) * (int64_t)td_dtype_size(node->dtype) : 0;
    return (bytes + 63) & ~(int64_t)63;
}

static tdi_collective gather_of(const scheduler *s, const tdi_node *node)
{
    const tdi_node *from = node->in[0];
    int64_t offset = 0, size = tdi_shape_elements(&from->shape) * (int64_t)td_dtype_size(from->dtype);
    for (int i = 0; i < node->id; i++)
        offset += tdi_exchange_bytes(s->graph->nodes.at[i]);
    return (tdi_collective){.kind = TDI_GATHER, .offset = offset, .size = size};
}

/* A gather that only updates of statistics read is finished at the end of the step: nobody waits in the middle. */
static void add_gather(scheduler *s, const tdi_node *node)
{
    tdi_scheduled finish = {.kind = TDI_STEP_FINISH, .collective = begin_collective(s, gather_of(s, node))};
    if (read_by_part_work(s, node))
        add(s, finish);
    else
        put_off(s, finish);
}

/* The new value of what is not trained: until the end of the step there are readers of the old one. */
static bool replaces_state(const tdi_node *node)
{
    return node->effect && node->home == TDI_HOME_VARIABLE && !node->once;
}

static void add_node(scheduler *s, tdi_node *node)
{
    if (node->op == &tdi_op_all_gather && s->graph->parts > 1)
        add_gather(s, node);
    tdi_scheduled step = {.kind = TDI_STEP_KERNEL, .node = node};
    if (node->once || replaces_state(node) || (s->graph->effects_last && node->effect)) {
        put_off(s, step);
        return;
    }
    add(s, step);
    each_blocked(s, node, unblock);
    if (s->bucket_bytes >= BUCKET_BYTES)
        close_bucket(s);
}

/* What each replica has made of its range is seen by all. */
static void meet(scheduler *s)
{
    if (s->graph->parts == 1)
        return;
    int collective = begin_collective(s, (tdi_collective){.kind = TDI_MEET});
    add(s, (tdi_scheduled){.kind = TDI_STEP_FINISH, .collective = collective});
}

static void add_late(scheduler *s, bool factors)
{
    for (int i = 0; i < s->graph->nodes.count; i++) {
        tdi_node *node = s->graph->nodes.at[i];
        if (s->late[i] && factors == (node->op == &tdi_op_clip_factor))
            add(s, (tdi_scheduled){.kind = TDI_STEP_KERNEL, .node = node});
    }
}

/* The factors are the first replica's. */
static void clip_and_update(scheduler *s)
{
    meet(s);
    add_late(s, true);
    meet(s);
    add_late(s, false);
}

/* The step's end. Where effects come last, the collectives that were put off are finished before any of them. */
static void finish_and_update(scheduler *s)
{
    bool effects_last = s->graph->effects_last;
    for (int i = 0; i < s->put_off.count && effects_last; i++)
        if (s->put_off.at[i].kind == TDI_STEP_FINISH)
            add(s, s->put_off.at[i]);
    if (s->graph->norms)
        clip_and_update(s);
    for (int i = 0; i < s->reduced.count; i++)
        add_update(s, s->reduced.at[i]);
    for (int i = 0; i < s->put_off.count; i++)
        if (!effects_last || s->put_off.at[i].kind != TDI_STEP_FINISH)
            add(s, s->put_off.at[i]);
}

static void order(scheduler *s)
{
    find_live(s);
    find_late(s);
    find_variables(s);
    count_blockers(s);
    start_with_unblocked(s);
    for (int i = 0; i < s->graph->nodes.count; i++)
        if (s->live[i] && !s->late[i] && !updated_variable(s->graph->nodes.at[i]))
            add_node(s, s->graph->nodes.at[i]);
    close_bucket(s);
    finish_pending(s);
    finish_and_update(s);
}

td_status tdi_schedule_make(const tdi_graph *graph, tdi_schedule *schedule, tdi_collectives *collectives,
                            tdi_error *error)
{
    int count = graph->nodes.count;
    scheduler s = {.graph = graph, .schedule = schedule, .collectives = collectives};
    s.live = calloc((size_t)count + 1, sizeof *s.live);
    s.late = calloc((size_t)count + 1, sizeof *s.late);
    s.variables = calloc((size_t)count + 1, sizeof *s.variables);
    s.blockers = calloc((size_t)count + 1, sizeof *s.blockers);
    if (s.live && s.late && s.variables && s.blockers)
        order(&s);
    else
        s.failed = true;
    free(s.live);
    free(s.late);
    free(s.variables);
    free(s.blockers);
    tdi_vec_free(&s.bucket);
    tdi_vec_free(&s.pending);
    tdi_vec_free(&s.reduced);
    tdi_vec_free(&s.put_off);
    return s.failed ? tdi_no_memory(error) : TD_OK;
}
