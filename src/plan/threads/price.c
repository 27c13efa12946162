/* price.c - how long an op takes when a given number of threads share it, which sets the number of threads that each op
 * deserves.
 *
 * A price adds up the largest share's operations and bytes, the bytes that other cores have written, a hand-over for
 * each thread, and a meeting if the op is shared otherwise than what it reads. Weights whose rows threads own (products
 * by depth, the products of backpropagation by columns, updates by rows) are dearer to any other number of threads. The
 * threads that do not share an op have no call of it, but meet as all do. Two threads share whatever can be shared.
 *
 * The prices are rough, and meant to be: it matters little whether all threads share an op or a few less, but an op
 * that is too small for sixteen may be worth four. They were measured where there were two cores: that each further one
 * costs as much again is a guess, and so is what follows for more than two threads. */
#include "ops/ops.h"
#include "plan/threads/place.h"

/* Nanoseconds: a line took 34 to 145 to come from the core that wrote it, depending on the host's load, and a meeting
 * of two threads took about 300. */
static const double hand_over = 100, meeting_a_thread = 150;

/* What one core does in a nanosecond: operations of products (AVX-512 does more), bytes read from its second-level
 * cache (51 were measured), bytes read that another core has written (6 to 14). */
static const double operations = 100, near_bytes = 50, far_bytes = 10;

enum { VECTOR = 16 /* floats: a thread computes so many columns at a time */ };

/* Is the value there without being computed in the step? */
static bool is_given(const tdi_node *node)
{
    const tdi_op *root = tdi_root(node)->op;
    return node->op->extra_output || root->leaf || root->constant;
}

static double bytes_of(const tdi_value *value)
{
    return (double)tdi_shape_elements(&value->shape) * (double)td_dtype_size(value->dtype);
}

double tdi_share_touched(const tdi_node *node, const tdi_call *call)
{
    int touches = node->op->touches;
    double all = bytes_of(&call->out), most = touches ? bytes_of(&call->in[touches]) : all;
    return most < all ? most / all : 1;
}

/* The largest share of a thread, of 1. */
static double largest_share(const tdi_call *call, tdi_split split, int threads)
{
    int64_t most = 0, extent = split == TDI_DEPTH ? tdi_split_extent(TDI_COLUMNS, &call->in[0].shape)
                                                  : tdi_split_extent(split, &call->out.shape);
    for (int thread = 0; thread < threads; thread++) {
        int64_t begin, end;
        tdi_range(split, extent, thread, threads, &begin, &end);
        most = end - begin > most ? end - begin : most;
    }
    if (split == TDI_COLUMNS)
        most = (most + VECTOR - 1) / VECTOR * VECTOR;
    return most < extent ? (double)most / (double)extent : 1;
}

/* The share, of 1, that other threads have computed of a value that a thread reads whole. What is given (weights, rows
 * of the batch) was dealt out to all. */
static double share_of_others(const tdi_node *in, const tdi_placing *p, int threads)
{
    int producers = is_given(in) ? threads : p->placement_of(p->context, in).threads;
    if (producers > 1)
        return 1 - 1 / (double)producers;
    return threads > 1 ? 1 : 0;
}

/* Does each thread read of the input what it computed itself, so that they need not meet? */
static bool reads_own(const tdi_node *in, const tdi_placing *p, tdi_split reads, int threads)
{
    tdi_placement made = p->placement_of(p->context, in);
    if (threads == 1)
        return made.split == TDI_WHOLE;
    return reads != TDI_WHOLE && made.split == reads && made.threads == threads;
}

/* The steps of a recurrence that is shared by columns: threads wait for each other at each, and read their own weights.
 */
static int64_t steps_inside(const tdi_node *node, const tdi_call *call, tdi_split split)
{
    return split == TDI_COLUMNS && node->op->share == TDI_SHARE_STEPS ? call->out.shape.dim[1] : 0;
}

/* Bytes of the weight that threads read from, or take away from, the threads that own them: now, and when they are read
 * next. */
static double taken_away(const tdi_node *node, const tdi_placing *p, tdi_split split, int threads, int owners)
{
    bool reads = node->op->share == TDI_SHARE_PRODUCT && node->in[1]->op == &tdi_op_parameter;
    tdi_split of_weight = reads && split != TDI_WHOLE ? node->op->reads(node, 1, split) : split;
    if (!owners || (of_weight == TDI_ROWS && threads == owners))
        return 0;
    return bytes_of(reads ? &p->call->in[1] : &p->call->out) * (1 / (double)threads + 1 / (double)owners);
}

static double work(const tdi_node *node, const tdi_call *call)
{
    double whole = node->op->flops ? node->op->flops(call) : (double)tdi_shape_elements(&call->out.shape);
    return whole / tdi_dealt_among(node);
}

double tdi_price(const tdi_node *node, const tdi_placing *p, tdi_split split, int threads, int owners)
{
    const tdi_call *call = p->call;
    int64_t steps = steps_inside(node, call, split);
    double touched = tdi_share_touched(node, call), own = bytes_of(&call->out) * touched,
           others = taken_away(node, p, split, threads, owners);
    bool meets = split == TDI_DEPTH, constant = true;
    if (split == TDI_DEPTH) /* the other threads' sums */
        others += own * (1 - 1 / (double)threads);
    for (int i = 0; i < node->n_in; i++) {
        const tdi_node *in = node->in[i];
        if (!in)
            continue;
        tdi_split reads = split == TDI_WHOLE ? TDI_WHOLE : node->op->reads(node, i, split);
        if (reads == TDI_WHOLE && !steps && !node->op->dealt)
            others += bytes_of(&call->in[i]) * share_of_others(in, p, threads);
        if (reads != TDI_WHOLE || steps || threads == 1 || node->op->dealt)
            own += bytes_of(&call->in[i]) * (i == 0 ? touched : 1) / tdi_dealt_among(node);
        meets = meets || (!is_given(in) && !reads_own(in, p, reads, threads));
        constant = constant && in->op->constant;
    }
    double each = (work(node, call) / operations + own / near_bytes) * largest_share(call, split, threads);
    double waits = threads > 1 && !constant ? hand_over * (double)(threads * (1 + steps)) : 0;
    return each + others / far_bytes + waits + (meets ? meeting_a_thread * p->threads : 0);
}
