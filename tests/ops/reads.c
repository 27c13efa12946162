/* What `reads` says: a share of the output depends on the named shares of the inputs alone. Everything else is spoiled,
 * and the share must keep its bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "passes/passes.h"
#include "plan/threads/place.h"
#include "support/op_case.h"

typedef struct share {
    tdi_split split;
    int64_t begin, end;
} share;

/* Whether the i-th element of a value belongs to a share of it. */
static bool belongs(const td_shape *shape, const share *s, int64_t i)
{
    int64_t elements = tdi_shape_elements(shape), position = i;
    if (s->split == TDI_WHOLE)
        return true;
    if (!shape->rank)
        return s->begin < s->end;
    if (s->split == TDI_ROWS)
        position = i / (elements / shape->dim[0]);
    if (s->split == TDI_COLUMNS)
        position = i % shape->dim[shape->rank - 1];
    return position >= s->begin && position < s->end;
}

static void spoil(const tdi_value *value, const share *keep)
{
    int64_t count = tdi_shape_elements(&value->shape);
    size_t size = td_dtype_size(value->dtype);
    for (int64_t i = 0; i < count; i++)
        if (!belongs(&value->shape, keep, i))
            memset((char *)value->data + (size_t)i * size, value->dtype == TD_FLOAT32 ? 0x7f : 1, size);
}

static void *copy_of(const tdi_value *value)
{
    size_t size = (size_t)tdi_shape_elements(&value->shape) * td_dtype_size(value->dtype);
    void *copy = tdi_buffer_create(size + 1);
    assert_non_null(copy);
    if (size)
        memcpy(copy, value->data, size);
    return copy;
}

static void check_extents(const op_run *run, int i, const share *made, tdi_split reads, const td_shape *in)
{
    const td_shape *out = &evaluation_call(run->evaluation, run->node, 0)->out.shape;
    if (reads != TDI_WHOLE && tdi_split_extent(reads, in) != tdi_split_extent(made->split, out))
        fail_msg("case \"%s\" of %s: input %d under split %d has another extent", run->c->name, run->c->op->name, i,
                 (int)made->split);
}

static void compare(const op_run *run, const tdi_call *call, const void *before, const share *made)
{
    int64_t count = tdi_shape_elements(&call->out.shape);
    size_t size = td_dtype_size(call->out.dtype);
    for (int64_t i = 0; i < count; i++)
        if (belongs(&call->out.shape, made, i) &&
            memcmp((const char *)before + (size_t)i * size, (const char *)call->out.data + (size_t)i * size, size) != 0)
            fail_msg("case \"%s\" of %s under split %d: element %d depends on more than it says", run->c->name,
                     run->c->op->name, (int)made->split, (int)i);
}

static void check_share(op_run *run, const share *made)
{
    tdi_call call = *evaluation_call(run->evaluation, run->node, 0);
    tdi_value in[8] = {{0}};
    void *before = copy_of(&call.out), *result = copy_of(&call.out);
    assert_true(call.n_in <= 8);
    for (int i = 0; i < call.n_in; i++) {
        in[i] = call.in[i];
        if (!in[i].data)
            continue;
        share keep = {run->node->op->reads(run->node, i, made->split), made->begin, made->end};
        check_extents(run, i, made, keep.split, &in[i].shape);
        in[i].data = copy_of(&in[i]);
        spoil(&in[i], &keep);
    }
    call.in = in;
    call.out.data = result;
    call.run(&call);
    compare(run, &call, before, made);
    for (int i = 0; i < call.n_in; i++)
        tdi_buffer_free(in[i].data);
    tdi_buffer_free(before);
    tdi_buffer_free(result);
}

static void shares_depend_on_what_they_read(void **state)
{
    (void)state;
    for (int i = 0; op_case_at(i); i++) {
        op_run *run = op_run_create(op_case_at(i), (op_run_options){.rows = -1});
        evaluation_run(run->evaluation);
        const td_shape *shape = &evaluation_call(run->evaluation, run->node, 0)->out.shape;
        for (int split = TDI_ROWS; split <= TDI_FLAT && run->node->op->reads && !run->node->update_phase; split++) {
            int64_t extent = tdi_split_extent((tdi_split)split, shape), half = (extent + 1) / 2;
            check_share(run, &(share){(tdi_split)split, 0, half});
            check_share(run, &(share){(tdi_split)split, half, extent});
        }
        op_run_free(run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shares_depend_on_what_they_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
