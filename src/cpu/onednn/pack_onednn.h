/* pack_onednn.h - packs float32 weights into oneDNN's bfloat16 layouts. */
#ifndef TDI_CPU_ONEDNN_PACK_ONEDNN_H
#define TDI_CPU_ONEDNN_PACK_ONEDNN_H

#include "cpu/matmul/pack_bfloat16.h"
#include "cpu/onednn/onednn_compat.h"

/* Describes how `plain` (float32, row after row) is packed into `packed` (bfloat16); the caller frees it. NULL when the
 * layout is of another kind or memory is out: oneDNN's own reorder still works then. */
tdi_packing *tdi_onednn_packing(tdi_md_view plain, tdi_md_view packed);

#endif
