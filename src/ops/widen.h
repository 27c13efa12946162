/* widen.h - a call with bfloat16 operands as one with float32 operands, for float32 kernels and references. */
#ifndef TDI_OPS_WIDEN_H
#define TDI_OPS_WIDEN_H

#include "device/call.h"
#include "graph/op.h"

/* The bytes of tdi_widened_call's values. */
size_t tdi_widened_values(const tdi_call *call);

/* The call in float32: each bfloat16 value of `call` becomes a float32 value of the same shape in `room`, 64-byte
 * aligned, and the call's scratch begins behind the last of them. Copies no elements: the caller widens the inputs and
 * rounds the result. `in` [n_in] holds the new inputs. `room` NULL: the values get no address. */
tdi_call tdi_widened_call(const tdi_call *call, tdi_value *in, char *room);

/* Whether the call has operands that the op's float32 reference cannot read. */
bool tdi_needs_widening(const tdi_op *op, const tdi_call *call);
/* Bytes of `room` for tdi_widened_run. */
size_t tdi_widened_bytes(const tdi_call *call);
/* Runs op->reference on float32 copies of the bfloat16 operands, which lie in `room` (64-byte aligned), and rounds the
 * result. */
void tdi_widened_run(const tdi_op *op, const tdi_call *call, void *room);

#endif
