/* drawn_case.c - what all kinds of drawn cases share: drawing numbers, leaves and rows. */
#include "support/drawn_case.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FLOPS 1.6e7 /* of one case; the reference takes at least a nanosecond for each */

int64_t drawn_between(drawn_case *d, int64_t least, int64_t most)
{
    return least + (int64_t)tdi_random_below(&d->random, (uint64_t)(most - least + 1));
}

int64_t drawn_extent(drawn_case *d, int64_t most)
{
    return (int64_t)exp2(tdi_random_uniform(&d->random) * log2((double)most + 1));
}

bool drawn_often(drawn_case *d, int percent)
{
    return drawn_between(d, 0, 99) < percent;
}

int drawn_of(drawn_case *d, const int *numbers, int count)
{
    return numbers[drawn_between(d, 0, count - 1)];
}

int64_t drawn_channels(drawn_case *d)
{
    if (drawn_often(d, 70))
        return DRAWN_OF(d, 1, 3, 6, 8, 16, 20, 32, 48, 64, 112, 128);
    return drawn_extent(d, 140);
}

int drawn_activation(drawn_case *d, int64_t columns)
{
    /* A bfloat16 is compared by the largest of the result: of few sigmoids all may be small, and off by more, as the
     * sums that they are of were rounded. */
    if (columns < 8)
        return DRAWN_OF(d, TD_LINEAR, TD_LINEAR, TD_RELU, TD_TANH);
    return DRAWN_OF(d, TD_LINEAR, TD_LINEAR, TD_RELU, TD_TANH, TD_SIGMOID);
}

op_leaf *drawn_leaf(drawn_case *d, td_shape shape)
{
    op_leaf *leaf = &d->c.leaf[d->c.n_leaves++];
    leaf->shape = shape;
    return leaf;
}

op_leaf *drawn_numbers(drawn_case *d, td_shape shape, int64_t limit)
{
    op_leaf *leaf = drawn_leaf(d, shape);
    leaf->dtype = TD_INT32;
    leaf->fill = OP_LABELS;
    leaf->limit = (int)limit;
    return leaf;
}

bool drawn_batch(drawn_case *d, int64_t rows, double flops_per_row)
{
    /* Small cases find as much, and many of them run in the time of a large one. */
    double most = MOST_FLOPS / (double)drawn_extent(d, 64);
    if (flops_per_row > most)
        return false;
    d->c.shards = 1;
    d->c.rows[0] = (double)rows * flops_per_row > most ? (int64_t)(most / flops_per_row) : rows;
    return true;
}

void drawn_build_as(drawn_case *d, const tdi_op *op, const char *name)
{
    const op_case *c;
    for (int i = 0; (c = op_case_at(i)); i++)
        if (c->op == op && (!name || !strcmp(c->name, name)))
            break;
    if (!c)
        abort();
    d->c.build = c->build;
}

void drawn_note(drawn_case *d, const char *format, ...)
{
    size_t used = strlen(d->name);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(d->name + used, sizeof d->name - used, format, arguments);
    va_end(arguments);
}

static void note_leaf(drawn_case *d, int i)
{
    const op_leaf *leaf = &d->c.leaf[i];
    drawn_note(d, "%s[", i ? " " : "");
    for (int axis = 0; axis < leaf->shape.rank; axis++)
        if (leaf->shape.dim[axis] == TDI_BATCH)
            drawn_note(d, "BATCH");
        else
            drawn_note(d, "%s%lld", axis ? ", " : "", (long long)leaf->shape.dim[axis]);
    drawn_note(d, "]");
    if (leaf->fill || leaf->limit)
        drawn_note(d, " (fill %d, limit %d)", leaf->fill, leaf->limit);
}

static void note_leaves(drawn_case *d)
{
    drawn_note(d, "; leaves ");
    for (int i = 0; i < d->c.n_leaves; i++)
        note_leaf(d, i);
    drawn_note(d, "; rows");
    for (int p = 0; p < d->c.shards; p++)
        drawn_note(d, " %lld", (long long)d->c.rows[p]);
}

void drawn_case_make(drawn_case *d, const drawn_kind *kind, uint64_t seed)
{
    uint64_t stream = 0;
    for (const char *c = kind->name; *c; c++)
        stream = 131 * stream + (unsigned char)*c;
    bool is_case = false;
    for (tdi_random random = tdi_random_create(seed, stream); !is_case; random = d->random) {
        *d = (drawn_case){.random = random};
        d->c.name = d->name;
        d->c.attrs = &d->attrs;
        drawn_note(d, "%s, seed %llu", kind->name, (unsigned long long)seed);
        is_case = kind->draw(d);
    }
    note_leaves(d);
}
