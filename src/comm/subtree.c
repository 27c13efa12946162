/* subtree.c - walks the fixed tree of a sum over shards. */
#include "comm/subtree.h"

#include <stdlib.h>

#include "base/sum_tree.h"

/* A range of shards, and the list of the subtrees found in it. */
typedef struct search {
    int begin, end, count;
    tdi_subtree *found;
} search;

static void find_in(search *s, tdi_subtree tree)
{
    int end = tree.first + tree.count;
    if (end <= s->begin || tree.first >= s->end)
        return;
    if (tree.first >= s->begin && end <= s->end) {
        s->found[s->count++] = tree;
        return;
    }
    int half = tdi_tree_half(tree.count);
    find_in(s, (tdi_subtree){tree.first, half});
    find_in(s, (tdi_subtree){tree.first + half, tree.count - half});
}

int tdi_subtrees(int shards, int begin, int end, tdi_subtree subtrees[TDI_MAX_SUBTREES])
{
    search s = {.begin = begin, .end = end, .found = subtrees};
    find_in(&s, (tdi_subtree){0, shards});
    return s.count;
}

/* The order, and its lists while they are being made. */
typedef struct ordered {
    tdi_sum_order order;
    tdi_piece *piece;
    tdi_addition *additions;
    int made; /* additions so far */
} ordered;

/* A value of the sum: its number, and the piece in whose place it lies. */
typedef struct value {
    int number, place;
} value;

static int piece_of(const ordered *o, int shard)
{
    int i = 0;
    while (o->piece[i].subtree.first + o->piece[i].subtree.count <= shard)
        i++;
    return i;
}

/* Lists the additions that make the sum over `tree`, the left half's first. */
static value order_tree(ordered *o, tdi_subtree tree)
{
    int piece = piece_of(o, tree.first);
    tdi_subtree own = o->piece[piece].subtree;
    if (own.first == tree.first && own.count == tree.count)
        return (value){piece, piece};
    int half = tdi_tree_half(tree.count);
    value left = order_tree(o, (tdi_subtree){tree.first, half});
    value right = order_tree(o, (tdi_subtree){tree.first + half, tree.count - half});
    o->additions[o->made] = (tdi_addition){left.number, right.number, left.place, right.place};
    return (value){o->order.pieces + o->made++, left.place};
}

static void list_pieces(const tdi_deal *deal, ordered *o)
{
    tdi_subtree subtrees[TDI_MAX_SUBTREES];
    for (int p = 0; p < deal->processes; p++) {
        int count = tdi_subtrees(deal->shards, deal->first_shard[p], deal->first_shard[p + 1], subtrees);
        for (int i = 0; i < count; i++)
            o->piece[o->order.pieces++] = (tdi_piece){p, subtrees[i]};
    }
}

td_status tdi_sum_order_create(const tdi_deal *deal, tdi_sum_order **order, tdi_error *error)
{
    *order = NULL;
    ordered *o = calloc(1, sizeof *o);
    if (o) {
        o->piece = calloc((size_t)deal->shards, sizeof *o->piece);
        o->additions = calloc((size_t)deal->shards, sizeof *o->additions);
    }
    if (!o || !o->piece || !o->additions) {
        tdi_sum_order_free(o ? &o->order : NULL);
        return tdi_no_memory(error);
    }
    list_pieces(deal, o);
    order_tree(o, (tdi_subtree){0, deal->shards});
    o->order.piece = o->piece;
    o->order.additions = o->additions;
    *order = &o->order;
    return TD_OK;
}

void tdi_sum_order_free(tdi_sum_order *order)
{
    ordered *o = (ordered *)order;
    if (!o)
        return;
    free(o->piece);
    free(o->additions);
    free(o);
}
