/* storage.c - where the values of a plan live.
 *
 * Leaves, gradients and outputs of the optimizer have homes outside the plan. The rest is dealt out here: constants in
 * memory of the plan's own, inputs of gathers in the exchange arena, everything else in the activation arena.
 *
 * An activation has a storage, which lives from the step that writes it to the last that reads it. A value is written
 * over an input that dies at its step, where the op allows it and each thread reads what it writes. memory.c then
 * places the storages so that those alive at the same time do not overlap. */
#include "base/machine.h"
#include "graph/def_use.h"
#include "plan/memory.h"
#include "plan/threads/accesses.h"

bool tdi_fills(const tdi_node *node, int i)
{
    return node->in[i] && node->in[i]->op->extra_output;
}

int64_t tdi_value_bytes(const tdi_value *value)
{
    td_shape shape = value->shape;
    if (value->batch_interleaved)
        shape.dim[0] =
            (shape.dim[0] + value->batch_interleaved - 1) / value->batch_interleaved * value->batch_interleaved;
    return tdi_shape_elements(&shape) * (int64_t)td_dtype_size(value->dtype);
}

int64_t tdi_node_bytes(const tdi_plan *plan, const tdi_node *node)
{
    tdi_value value = tdi_value_of(plan, node);
    return tdi_value_bytes(&value);
}

static bool in_activations(const tdi_plan *plan, const tdi_node *node)
{
    return (node->home == TDI_HOME_ACTIVATIONS || node->home == TDI_HOME_OUTPUT) && !node->op->view &&
           !tdi_is_leaf(node) && tdi_placed_of(plan, node)->exchange < 0 && tdi_placed_of(plan, node)->constant < 0;
}

/* An all_gather has [shards, n] of the exchange arena, at the same place in the plans of all shards; its input is
 * written straight into the shard's slot there. A value of the update phase that is exchanged has a place there too. */
void tdi_lay_out_exchange(tdi_plan *plan)
{
    for (int i = 0; i < plan->spec.graph->nodes.count; i++) {
        const tdi_node *node = plan->spec.graph->nodes.at[i];
        int64_t bytes = tdi_exchange_bytes(node), at = plan->exchange_bytes;
        if (bytes == 0)
            continue;
        tdi_placed_of(plan, node)->exchange = at;
        if (node->op->gathers)
            tdi_placed_of(plan, node->in[0])->exchange = at + tdi_node_bytes(plan, node->in[0]) * plan->spec.shard;
        plan->exchange_bytes += bytes;
    }
}

/* The step of a use; -1: no step computes the reader. */
static int step_of_use(const tdi_plan *plan, const tdi_use *use)
{
    int position = tdi_placed_of(plan, use->reader)->position;
    return position >= 0 && plan->planned[position].node ? position : -1;
}

static int last_reader(const tdi_plan *plan, const tdi_node *node)
{
    int last = tdi_placed_of(plan, node)->position;
    tdi_uses uses = tdi_uses_of_bytes(plan->spec.graph->def_use, node);
    for (int i = 0; i < uses.count; i++) {
        int step = step_of_use(plan, &uses.at[i]);
        last = step > last ? step : last;
    }
    return last;
}

/* A value so small keeps its storage to the end: threads would have to meet before its bytes are used again. */
enum { SMALL_BYTES = 4096 };

static int lifetime_end(const tdi_plan *plan, const tdi_node *node)
{
    bool small = !tdi_is_one_threads(plan) && tdi_node_bytes(plan, node) <= SMALL_BYTES;
    return node->home == TDI_HOME_OUTPUT || small ? plan->n_steps : last_reader(plan, node);
}

static bool is_read_by_another_input(const tdi_node *node, int over, const tdi_node *from)
{
    bool read = false;
    for (int i = 0; i < node->n_in; i++)
        read = read || (i != over && node->in[i] && tdi_root(node->in[i]) == from);
    return read;
}

/* Does each thread read of input `over` what it has written itself, and what it writes now? A thread that makes all of
 * the value would have to wait for what the others read of the input. */
static bool stays_within_threads(const tdi_plan *plan, const tdi_planned *step, int over)
{
    tdi_dividing written = tdi_dividing_of_value(plan, tdi_root(step->node->in[over]));
    tdi_dividing read = tdi_dividing_of_input(plan, step, over, false);
    tdi_dividing now = tdi_dividing_of_value(plan, step->node);
    return tdi_is_one_threads(plan) ||
           (now.split != TDI_WHOLE && tdi_same_dividing(&written, &read) && tdi_same_dividing(&read, &now));
}

/* The storage of input `over` when the value may be written over it, which dies here; else -1. */
static int storage_of_input(const tdi_plan *plan, const tdi_planned *step, int over, int position)
{
    const tdi_node *node = step->node;
    if (!(node->op->in_place >> over & 1u) || !node->in[over])
        return -1;
    const tdi_node *from = tdi_root(node->in[over]);
    int storage = tdi_placed_of(plan, from)->storage;
    if (storage < 0 || tdi_placed_of(plan, from)->batch_interleaved != tdi_placed_of(plan, node)->batch_interleaved ||
        plan->storages[storage].last != position || plan->storages[storage].bytes != tdi_node_bytes(plan, node))
        return -1;
    return stays_within_threads(plan, step, over) && !is_read_by_another_input(node, over, from) ? storage : -1;
}

static int reusable_storage(const tdi_plan *plan, const tdi_planned *step, int position)
{
    int storage = -1;
    for (int i = 0; step->node && i < step->node->n_in && i < 32 && storage < 0; i++)
        storage = storage_of_input(plan, step, i, position);
    return storage;
}

static void lay_out_node(tdi_plan *plan, const tdi_node *node, int position)
{
    tdi_placed *placed = tdi_placed_of(plan, node);
    int reused = reusable_storage(plan, &plan->planned[position], position);
    if (reused >= 0) {
        placed->storage = reused;
        plan->storages[reused].last = lifetime_end(plan, node);
        return;
    }
    placed->storage = plan->n_storages++;
    plan->storages[placed->storage] =
        (tdi_storage){.bytes = tdi_node_bytes(plan, node), .first = position, .last = lifetime_end(plan, node)};
}

static void lay_out_constants(tdi_plan *plan)
{
    for (int s = 0; s < plan->n_steps; s++)
        if (plan->planned[s].constant) {
            tdi_placed_of(plan, plan->planned[s].node)->constant = plan->constant_bytes;
            plan->constant_bytes += (tdi_node_bytes(plan, plan->planned[s].node) + 63) & ~(int64_t)63;
        }
}

static int first_reader(const tdi_plan *plan, const tdi_node *node)
{
    int position = tdi_placed_of(plan, node)->position, first = plan->n_steps;
    tdi_uses uses = tdi_uses_of_bytes(plan->spec.graph->def_use, node);
    for (int i = 0; i < uses.count; i++) {
        int step = step_of_use(plan, &uses.at[i]);
        first = step > position && step < first ? step : first;
    }
    return first < plan->n_steps ? first : position;
}

/* The sums live until the result is read: threads would have to meet before the next product's sums took their place.
 */
static void lay_out_sums(tdi_plan *plan, tdi_planned *step, int position)
{
    step->sums = plan->n_storages++;
    plan->storages[step->sums] =
        (tdi_storage){.bytes = tdi_node_bytes(plan, step->node) * tdi_placed_of(plan, step->node)->by.depth,
                      .first = position,
                      .last = first_reader(plan, step->node)};
}

td_status tdi_lay_out(tdi_plan *plan, tdi_error *error)
{
    lay_out_constants(plan);
    plan->constants = plan->spec.device->allocate(plan->spec.device, (size_t)plan->constant_bytes);
    if (!plan->constants)
        return tdi_memory_short(error, "the plan's constants", (size_t)plan->constant_bytes, "allow it more");
    plan->storages = TDI_NEW_ARRAY(plan->arena, tdi_storage, 2 * plan->spec.graph->nodes.count);
    if (!plan->storages)
        return tdi_no_memory(error);
    for (int s = 0; s < plan->n_steps; s++) {
        const tdi_node *node = plan->spec.schedule->at[s].node;
        if (node && in_activations(plan, node))
            lay_out_node(plan, node, s);
        if (plan->planned[s].finish)
            lay_out_sums(plan, &plan->planned[s], s);
    }
    plan->activation_bytes = tdi_memory_place(plan->storages, plan->n_storages);
    return plan->activation_bytes < 0 ? tdi_no_memory(error) : TD_OK;
}
