/* price.c - what it costs that lanes share an op: what sets the number of lanes that each op deserves.
 *
 * The prices are rough, and meant to be: between as many lanes as could and a few less there is little to choose, but
 * an op that is too small for sixteen may be worth four. Those of cores that wait for each other were measured with two
 * cores, the only ones there were: that each further one costs as much again is a guess. */
#include "ops/ops.h"
#include "plan/threads/place.h"

/* Nanoseconds: a line on its way from the core that wrote it took 34 to 145, by the host's mood, and a meeting of two
 * about 300. */
static const double hand_over = 100, meeting_a_lane = 150;

/* Of one core, a nanosecond: operations of products (fewer than with AVX-512), bytes of its second-level cache (51 were
 * seen), bytes that another core has written (6 to 14). */
static const double operations = 100, near_bytes = 50, far_bytes = 10;

enum { VECTOR = 16 /* floats: a lane's columns are made so many at a time */ };

static bool is_there_before(const tdi_node *node)
{
    if (node->op == &tdi_op_extra_output)
        return true;
    const tdi_node *root = tdi_root(node);
    return tdi_is_leaf(root) || root->op == &tdi_op_fill;
}

static double bytes_of(const tdi_value *value)
{
    return (double)tdi_shape_elements(&value->shape) * (double)td_dtype_size(value->dtype);
}

/* The largest lane's share, of 1. */
static double largest_share(const tdi_call *call, tdi_split split, int lanes)
{
    int64_t most = 0, extent = split == TDI_DEPTH ? tdi_split_extent(TDI_COLUMNS, &call->in[0].shape)
                                                  : tdi_split_extent(split, &call->out.shape);
    for (int lane = 0; lane < lanes; lane++) {
        int64_t begin, end;
        tdi_range(split, extent, lane, lanes, &begin, &end);
        most = end - begin > most ? end - begin : most;
    }
    if (split == TDI_COLUMNS)
        most = (most + VECTOR - 1) / VECTOR * VECTOR;
    return most < extent ? (double)most / (double)extent : 1;
}

/* How much of a value that a lane reads whole others have made; weights and rows were dealt out to all. */
static double made_by_others(const tdi_node *in, const tdi_placing *p, int lanes)
{
    int makers = is_there_before(in) ? lanes : p->placement_of(p->context, in).lanes;
    if (makers > 1)
        return 1 - 1 / (double)makers;
    return lanes > 1 ? 1 : 0;
}

/* A lane goes on with what it has made itself, without a meeting. */
static bool goes_on(const tdi_node *in, const tdi_placing *p, tdi_split reads, int lanes)
{
    tdi_placement made = p->placement_of(p->context, in);
    if (lanes == 1)
        return made.split == TDI_WHOLE;
    return reads != TDI_WHOLE && made.split == reads && made.lanes == lanes;
}

/* Its steps' hand-overs: by units the lanes wait for each other at each, and read what of the weights is theirs. */
static int64_t steps_inside(const tdi_node *node, const tdi_call *call, tdi_split split)
{
    if (split != TDI_COLUMNS || (node->op != &tdi_op_lstm && node->op != &tdi_op_lstm_grad))
        return 0;
    return call->out.shape.dim[1];
}

/* Bytes of the weight that lanes read from, or take away from, those which have them: now, and when they are read next.
 */
static double taken_away(const tdi_node *node, const tdi_placing *p, tdi_split split, int lanes, int owners)
{
    bool reads = node->op == &tdi_op_matmul && node->in[1]->op == &tdi_op_parameter;
    tdi_split of_weight = reads && split != TDI_WHOLE ? node->op->reads(node, 1, split) : split;
    if (!owners || (of_weight == TDI_ROWS && lanes == owners))
        return 0;
    return bytes_of(reads ? &p->call->in[1] : &p->call->out) * (1 / (double)lanes + 1 / (double)owners);
}

static double work(const tdi_node *node, const tdi_call *call)
{
    double whole = node->op->flops ? node->op->flops(call) : (double)tdi_shape_elements(&call->out.shape);
    return whole / tdi_dealt_among(node);
}

double tdi_price(const tdi_node *node, const tdi_placing *p, tdi_split split, int lanes, int owners)
{
    const tdi_call *call = p->call;
    int64_t steps = steps_inside(node, call, split);
    double own = bytes_of(&call->out), others = taken_away(node, p, split, lanes, owners);
    bool meets = split == TDI_DEPTH, constant = true;
    if (split == TDI_DEPTH) /* the other lanes' sums */
        others += own * (1 - 1 / (double)lanes);
    for (int i = 0; i < node->n_in; i++) {
        const tdi_node *in = node->in[i];
        if (!in)
            continue;
        tdi_split reads = split == TDI_WHOLE ? TDI_WHOLE : node->op->reads(node, i, split);
        if (reads == TDI_WHOLE && !steps && !node->op->dealt)
            others += bytes_of(&call->in[i]) * made_by_others(in, p, lanes);
        if (reads != TDI_WHOLE || steps || lanes == 1 || node->op->dealt)
            own += bytes_of(&call->in[i]) / tdi_dealt_among(node);
        meets = meets || (!is_there_before(in) && !goes_on(in, p, reads, lanes));
        constant = constant && in->op == &tdi_op_fill;
    }
    double each = (work(node, call) / operations + own / near_bytes) * largest_share(call, split, lanes);
    double waits = lanes > 1 && !constant ? hand_over * (double)(lanes * (1 + steps)) : 0;
    return each + others / far_bytes + waits + (meets ? meeting_a_lane * p->lanes : 0);
}
