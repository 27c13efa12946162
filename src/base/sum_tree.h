/* sum_tree.h - the fixed tree by which the shards' values are summed: ((0+1)+(2+3))+..., an odd last one carried up.
 * Every sum over shards follows it, whoever computes which part of it: the bits depend on the number of shards alone.
 */
#ifndef TDI_BASE_SUM_TREE_H
#define TDI_BASE_SUM_TREE_H

/* How many of `count` values, which are summed in a tree, are on its left; of 1: 1. */
static inline int tdi_tree_half(int count)
{
    int half = 1;
    while (2 * half < count)
        half *= 2;
    return half;
}

#endif
