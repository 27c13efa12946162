/* subtree.h - a sum over all shards, cut into the pieces that single processes can add up alone.
 *
 * The sum over shards follows a fixed tree (base/sum_tree.h). A process sums each maximal subtree whose shards are all
 * its own: a piece. Whoever has all pieces finishes the sum by the tree's remaining additions, and gets the bits of
 * one process that sums all shards. A process with n shards has at most 2 log2(n) pieces; one, where processes have
 * equal powers of two. */
#ifndef TDI_COMM_SUBTREE_H
#define TDI_COMM_SUBTREE_H

#include "base/error.h"
#include "comm/deal.h"

/* The sum over shards [first, first + count), in the tree over `count` values. */
typedef struct tdi_subtree {
    int first, count;
} tdi_subtree;

enum { TDI_MAX_SUBTREES = 64 }; /* of one process, whatever the number of shards */

/* Lists the maximal subtrees of the tree over `shards` that lie within [begin, end), from left to right, and returns
 * how many there are. */
int tdi_subtrees(int shards, int begin, int end, tdi_subtree subtrees[TDI_MAX_SUBTREES]);

/* Values of a sum under way have numbers: 0 .. pieces - 1 are the pieces, pieces + k is the result of addition k. */
typedef struct tdi_addition {
    int left, right; /* the numbers of the two values; the left operand stands first, though only NaNs could tell */
    int to, from;    /* the pieces in whose places they lie: piece[to] += piece[from] */
} tdi_addition;

typedef struct tdi_piece {
    int process;
    tdi_subtree subtree;
} tdi_piece;

/* How to add up the pieces of all processes. Additions may be made in the order of the list, or any one as soon as its
 * two values are there: the bits are the same. The sum comes to lie in piece 0. */
typedef struct tdi_sum_order {
    int pieces; /* from 1 on; there are pieces - 1 additions */
    const tdi_piece *piece;
    const tdi_addition *additions;
} tdi_sum_order;

/* The caller frees it. TD_NO_MEMORY; *order is NULL then. */
td_status tdi_sum_order_create(const tdi_deal *deal, tdi_sum_order **order, tdi_error *error);
void tdi_sum_order_free(tdi_sum_order *order);

#endif
