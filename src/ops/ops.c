/* ops.c - the table of all ops. */
#include "ops/ops.h"

#define LIST_OP(stem) &tdi_op_##stem,
const tdi_op *const tdi_ops[] = {TDI_OPS(LIST_OP) NULL};
