/* storage.c - where values live: storages of the activation arena by lifetime, slots of the exchange arena. */
#include "base/machine.h"
#include "plan/memory.h"
#include "plan/plan_struct.h"

bool tdi_fills(const tdi_node *node, int i)
{
    return node->in[i] && node->in[i]->op->extra_output;
}

int64_t tdi_value_bytes(const tdi_value *value)
{
    td_shape shape = value->shape;
    if (value->abreast)
        shape.dim[0] = (shape.dim[0] + value->abreast - 1) / value->abreast * value->abreast;
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

/* Every all_gather has [parts, n] of the exchange arena, the same in all plans; its input is written there. So has what
 * is made there once, for all parts. */
void tdi_lay_out_exchange(tdi_plan *plan)
{
    for (int i = 0; i < plan->spec.graph->nodes.count; i++) {
        const tdi_node *node = plan->spec.graph->nodes.at[i];
        int64_t bytes = tdi_exchange_bytes(node), at = plan->exchange_bytes;
        if (bytes == 0)
            continue;
        tdi_placed_of(plan, node)->exchange = at;
        if (node->op->gathers)
            tdi_placed_of(plan, node->in[0])->exchange = at + tdi_node_bytes(plan, node->in[0]) * plan->spec.part;
        plan->exchange_bytes += bytes;
    }
}

static int last_reader(const tdi_plan *plan, const tdi_node *node)
{
    int last = tdi_placed_of(plan, node)->position;
    for (int s = 0; s < plan->n_steps; s++) {
        const tdi_node *reader = plan->planned[s].node;
        for (int i = 0; reader && i < reader->n_in; i++)
            if (reader->in[i] && tdi_root(reader->in[i]) == node && s > last)
                last = s;
    }
    return last;
}

/* Not worth sharing bytes: where lanes do, they must meet in between. */
enum { SMALL_BYTES = 4096 };

static int lifetime_end(const tdi_plan *plan, const tdi_node *node)
{
    bool small = !tdi_is_one_lanes(plan) && tdi_node_bytes(plan, node) <= SMALL_BYTES;
    return node->home == TDI_HOME_OUTPUT || small ? plan->n_steps : last_reader(plan, node);
}

static bool reads_elsewhere(const tdi_node *node, int over, const tdi_node *from)
{
    bool reads = false;
    for (int i = 0; i < node->n_in; i++)
        reads = reads || (i != over && node->in[i] && tdi_root(node->in[i]) == from);
    return reads;
}

/* May the node be written over this input? Only where that input dies here and each lane reads what it writes. */
static int storage_of_input(const tdi_plan *plan, const tdi_node *node, int over, int position)
{
    if (!(node->op->in_place >> over & 1u) || !node->in[over])
        return -1;
    const tdi_node *from = tdi_root(node->in[over]);
    int storage = tdi_placed_of(plan, from)->storage;
    const tdi_placement *by = &tdi_placed_of(plan, node)->by, *before = &tdi_placed_of(plan, from)->by;
    if (storage < 0 || tdi_placed_of(plan, from)->abreast != tdi_placed_of(plan, node)->abreast ||
        plan->storages[storage].last != position || plan->storages[storage].bytes != tdi_node_bytes(plan, node))
        return -1;
    bool same_share =
        tdi_is_one_lanes(plan) || (before->split == by->split && before->lanes == by->lanes && by->split != TDI_WHOLE &&
                                   node->op->reads && node->op->reads(node, over, by->split) == by->split);
    return same_share && !reads_elsewhere(node, over, from) ? storage : -1;
}

static int reusable_storage(const tdi_plan *plan, const tdi_node *node, int position)
{
    int storage = -1;
    for (int i = 0; i < node->n_in && i < 32 && storage < 0; i++)
        storage = storage_of_input(plan, node, i, position);
    return storage;
}

static void lay_out_node(tdi_plan *plan, const tdi_node *node, int position)
{
    tdi_placed *placed = tdi_placed_of(plan, node);
    int reused = reusable_storage(plan, node, position);
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
    for (int s = tdi_placed_of(plan, node)->position + 1; s < plan->n_steps; s++) {
        const tdi_node *reader = plan->planned[s].node;
        for (int i = 0; reader && i < reader->n_in; i++)
            if (reader->in[i] && tdi_root(reader->in[i]) == node)
                return s;
    }
    return tdi_placed_of(plan, node)->position;
}

/* Kept until the result is read: the next product's sums elsewhere, or the lanes would have to meet in between. */
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
