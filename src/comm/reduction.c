/* reduction.c - cuts a REDUCE into slices, and adds up their pieces. */
#include "comm/reduction.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/sum_tree.h"

enum {
    LINE = 16,             /* floats of a cache line: slices begin on one where ranges do */
    MOST = 64 * 1024,      /* floats of a slice: the first ones are added up while others are under way */
    FEW_BYTES = 16 * 1024, /* a reduction of so few is direct: a hop costs more than they do */
    FLOAT = (int)sizeof(float)
};

/* ---- cutting ---- */

typedef tdi_vec(tdi_reduction_slice) slices;

static int64_t rounded(int64_t floats)
{
    return (floats + LINE - 1) / LINE * LINE;
}

static int64_t total(const tdi_collective *collective)
{
    int64_t sum = 0;
    for (int t = 0; t < collective->count; t++)
        sum += rounded(collective->transfers[t].size);
    return sum;
}

/* Two processes of one piece each send each other as much either way. */
static bool is_direct(const tdi_sum_order *order, int processes, int64_t floats)
{
    return (processes == 2 && order->pieces == 2) || floats * FLOAT <= FEW_BYTES;
}

static bool add_slices(slices *to, int64_t offset, int64_t size, int owner)
{
    for (int64_t at = 0; at < size; at += MOST) {
        int64_t left = size - at;
        if (!tdi_push(
                to, ((tdi_reduction_slice){.offset = offset + at, .size = left < MOST ? left : MOST, .owner = owner})))
            return false;
    }
    return true;
}

/* Cuts one range, of which `before` floats of the collective lie in front, into the owners' shares of `share`. */
static bool cut_range(slices *to, const tdi_transfer *range, int64_t before, int64_t share)
{
    for (int64_t at = 0, next; at < range->size; at = next) {
        int64_t owner = (before + at) / share;
        next = (owner + 1) * share - before;
        next = next < range->size ? next : range->size;
        if (!add_slices(to, range->offset + at, next - at, (int)owner))
            return false;
    }
    return true;
}

static bool cut(const tdi_reduction *r, const tdi_collective *collective, slices *to)
{
    int64_t before = 0, share = rounded((total(collective) + r->processes - 1) / r->processes);
    bool good = true;
    for (int t = 0; t < collective->count && good; t++) {
        const tdi_transfer *range = &collective->transfers[t];
        good = r->direct ? add_slices(to, range->offset, range->size, TDI_EVERY_PROCESS)
                         : cut_range(to, range, before, share);
        before += rounded(range->size);
    }
    return good;
}

/* ---- making ---- */

static void find_own(tdi_reduction *r)
{
    for (int i = r->order->pieces; i-- > 0;)
        if (r->order->piece[i].process == r->self) {
            r->first_own = i;
            r->own++;
        }
}

static int others(const tdi_reduction *r)
{
    return r->order->pieces - r->own;
}

static bool make_staging(tdi_reduction *r)
{
    int64_t floats = 0;
    size_t values = 2 * (size_t)r->order->pieces - 1;
    for (int s = 0; s < r->count; s++)
        floats += tdi_adds_up(r, &r->slices[s]) ? rounded(r->slices[s].size) * others(r) : 0;
    r->staging = tdi_buffer_create((size_t)floats * sizeof(float) + 1);
    r->values = calloc((size_t)r->count * values + 1, sizeof *r->values);
    if (!r->staging || !r->values)
        return false;
    float *staging = r->staging;
    for (int s = 0; s < r->count; s++) {
        tdi_reduction_slice *slice = &r->slices[s];
        slice->values = r->values + (size_t)s * values;
        if (!tdi_adds_up(r, slice))
            continue;
        slice->staging = staging;
        staging += rounded(slice->size) * others(r);
    }
    return true;
}

static bool make(tdi_reduction *r, const tdi_collective *collective)
{
    slices list = {0};
    r->direct = is_direct(r->order, r->processes, total(collective));
    find_own(r);
    bool good = cut(r, collective, &list);
    r->slices = list.at;
    r->count = list.count;
    return good && make_staging(r);
}

td_status tdi_reduction_create(const tdi_sum_order *order, const tdi_deal *deal, const tdi_collective *collective,
                               tdi_reduction **reduction, tdi_error *error)
{
    tdi_reduction *r = *reduction = calloc(1, sizeof *r);
    if (!r)
        return tdi_no_memory(error);
    *r = (tdi_reduction){.order = order, .processes = deal->processes, .self = deal->self};
    if (make(r, collective))
        return TD_OK;
    tdi_reduction_free(r);
    *reduction = NULL;
    return tdi_no_memory(error);
}

void tdi_reduction_free(tdi_reduction *r)
{
    if (!r)
        return;
    tdi_buffer_free(r->staging);
    free(r->values);
    free(r->slices);
    free(r);
}

/* ---- what it consists of ---- */

tdi_reduction_slice *tdi_reduction_find(const tdi_reduction *r, uint64_t offset, uint64_t size)
{
    int low = 0, high = r->count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if ((uint64_t)r->slices[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    tdi_reduction_slice *found = low < r->count ? &r->slices[low] : NULL;
    return found && (uint64_t)found->offset == offset && (uint64_t)found->size == size ? found : NULL;
}

bool tdi_adds_up(const tdi_reduction *r, const tdi_reduction_slice *slice)
{
    return slice->owner == TDI_EVERY_PROCESS || slice->owner == r->self;
}

int64_t tdi_reduction_arrivals(const tdi_reduction *r)
{
    int64_t count = 0;
    for (int s = 0; s < r->count; s++)
        count += tdi_adds_up(r, &r->slices[s]) ? others(r) : 1;
    return count;
}

int64_t tdi_reduction_sends(const tdi_reduction *r)
{
    int64_t count = 0, peers = r->processes - 1;
    for (int s = 0; s < r->count; s++)
        count += r->direct ? r->own * peers : r->slices[s].owner == r->self ? peers : r->own;
    return count;
}

/* ---- adding up ---- */

static void add_to(int64_t n, float *restrict to, const float *restrict from)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

static void add(int64_t n, float *restrict to, const float *restrict left, const float *restrict right)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = left[i] + right[i];
}

float *tdi_slice_place(const tdi_reduction *r, const tdi_reduction_slice *slice, int piece)
{
    return slice->staging + rounded(slice->size) * (piece < r->first_own ? piece : piece - r->own);
}

void tdi_slice_put(tdi_reduction_slice *slice, int piece, const float *values)
{
    slice->values[piece] = values;
}

static bool is_staged(const tdi_reduction *r, const tdi_reduction_slice *slice, const float *values)
{
    return values >= slice->staging && values < slice->staging + rounded(slice->size) * others(r);
}

/* Of two values one at least is no piece of this process, since it would have added up its own two: that one's place
 * takes the sum, while the own piece is still being sent. */
static float *make_addition(const tdi_reduction *r, const tdi_reduction_slice *slice, const float *left,
                            const float *right)
{
    bool over_left = is_staged(r, slice, left);
    float *to = slice->staging + ((over_left ? left : right) - slice->staging);
    add_to(slice->size, to, over_left ? right : left);
    return to;
}

bool tdi_slice_add(const tdi_reduction *r, tdi_reduction_slice *slice, float *sum)
{
    int pieces = r->order->pieces, last = pieces - 2;
    const float **values = slice->values;
    for (int k = 0; k < pieces - 1; k++) {
        const float *left = values[r->order->additions[k].left], *right = values[r->order->additions[k].right];
        if (values[pieces + k] || !left || !right)
            continue;
        if (k == last)
            add(slice->size, sum, left, right);
        values[pieces + k] = k == last ? sum : make_addition(r, slice, left, right);
    }
    if (slice->has_sum || !values[2 * pieces - 2])
        return false;
    if (pieces == 1)
        memcpy(sum, values[0], (size_t)slice->size * sizeof *sum);
    return slice->has_sum = true;
}

void tdi_reduction_clear(tdi_reduction *r)
{
    memset(r->values, 0, (size_t)r->count * (2 * (size_t)r->order->pieces - 1) * sizeof *r->values);
    for (int s = 0; s < r->count; s++)
        r->slices[s].has_sum = false;
}

/* ---- the process's own shards ---- */

static void add_halves(const tdi_combining *c, int left, int right)
{
    for (int t = 0; t < c->collective->count; t++) {
        const tdi_transfer *range = &c->collective->transfers[t];
        add_to(range->size, c->gradients[left] + range->offset, c->gradients[right] + range->offset);
    }
}

/* A node is known by the first shard of its right half, of which no other node's right half is the first. */
static void combine(const tdi_combining *c, tdi_subtree tree, int begin, int end)
{
    int from = begin > tree.first ? begin : tree.first;
    int to = end < tree.first + tree.count ? end : tree.first + tree.count;
    if (from >= to || tree.count == 1)
        return;
    int half = tdi_tree_half(tree.count), right = tree.first + half;
    combine(c, (tdi_subtree){tree.first, half}, begin, end);
    combine(c, (tdi_subtree){right, tree.count - half}, begin, end);
    if (atomic_fetch_add(&c->begun[right], to - from) + to - from < tree.count)
        return;
    atomic_store(&c->begun[right], 0);
    add_halves(c, tree.first, right);
}

void tdi_combine(const tdi_combining *c, int begin, int end)
{
    for (int i = 0; i < c->order->pieces; i++)
        if (c->order->piece[i].process == c->self)
            combine(c, c->order->piece[i].subtree, begin, end);
}
