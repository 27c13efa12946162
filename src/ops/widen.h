/* widen.h - an op's float32 reference on bfloat16 operands. */
#ifndef TDI_OPS_WIDEN_H
#define TDI_OPS_WIDEN_H

#include "graph/op.h"

/* Has the call bfloat16 operands, which the op's reference does not know? */
bool tdi_needs_widening(const tdi_op *op, const tdi_call *call);
/* The bytes that tdi_widened_run needs. */
size_t tdi_widened_bytes(const tdi_call *call);
/* Runs op->reference on float32 copies of the bfloat16 operands, which lie in `room` (64-byte aligned), and rounds the
 * result. */
void tdi_widened_run(const tdi_op *op, const tdi_call *call, void *room);

#endif
