/* widen.c - bfloat16 operands widened for what computes in float32. */
#include "ops/widen.h"

#include "base/bfloat16.h"
#include "ops/ops.h"

enum { ALIGNMENT = 64 };

bool tdi_needs_widening(const tdi_op *op, const tdi_call *call)
{
    bool any = call->out.dtype == TD_BFLOAT16;
    for (int i = 0; i < call->n_in; i++)
        any = any || call->in[i].dtype == TD_BFLOAT16;
    return any && op != &tdi_op_cast;
}

static size_t room_of(const tdi_value *value)
{
    size_t bytes = (size_t)tdi_shape_elements(&value->shape) * sizeof(float);
    return value->dtype == TD_BFLOAT16 ? (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : 0;
}

static tdi_value widened(const tdi_value *value, char *room, size_t *used)
{
    tdi_value wide = *value;
    if (value->dtype != TD_BFLOAT16)
        return wide;
    wide.dtype = TD_FLOAT32;
    wide.data = room ? room + *used : NULL;
    *used += room_of(value);
    return wide;
}

size_t tdi_widened_values(const tdi_call *call)
{
    size_t bytes = room_of(&call->out);
    for (int i = 0; i < call->n_in; i++)
        bytes += room_of(&call->in[i]);
    return bytes;
}

tdi_call tdi_widened_call(const tdi_call *call, tdi_value *in, char *room)
{
    tdi_call wide = *call;
    size_t used = 0;
    wide.in = in;
    for (int i = 0; i < call->n_in; i++)
        in[i] = widened(&call->in[i], room, &used);
    wide.out = widened(&call->out, room, &used);
    wide.scratch = room ? room + used : NULL;
    return wide;
}

/* ---- references ---- */

static size_t inputs_bytes(const tdi_call *call)
{
    return (size_t)call->n_in * sizeof(tdi_value) / ALIGNMENT * ALIGNMENT + ALIGNMENT;
}

size_t tdi_widened_bytes(const tdi_call *call)
{
    return inputs_bytes(call) + tdi_widened_values(call);
}

void tdi_widened_run(const tdi_op *op, const tdi_call *call, void *room)
{
    tdi_value *in = room;
    tdi_call wide = tdi_widened_call(call, in, (char *)room + inputs_bytes(call));
    for (int i = 0; i < call->n_in; i++)
        for (int64_t k = 0; in[i].data != call->in[i].data && k < tdi_shape_elements(&in[i].shape); k++)
            ((float *)in[i].data)[k] = tdi_widen(((const tdi_bfloat16 *)call->in[i].data)[k]);
    op->reference(&wide);
    for (int64_t k = 0; wide.out.data != call->out.data && k < tdi_shape_elements(&wide.out.shape); k++)
        ((tdi_bfloat16 *)call->out.data)[k] = tdi_narrow(((const float *)wide.out.data)[k]);
}
