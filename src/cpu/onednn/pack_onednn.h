/* pack_onednn.h - how weights get into oneDNN's layouts of bfloat16. */
#ifndef TDI_CPU_ONEDNN_PACK_ONEDNN_H
#define TDI_CPU_ONEDNN_PACK_ONEDNN_H

#include "cpu/matmul/pack_bfloat16.h"
#include "cpu/onednn/onednn_compat.h"

/* What makes `packed`, bfloat16, of `plain`, float32 row after row; to be freed. NULL where the layout is of another
 * kind, or memory is out: the library's reorder can do it still. */
tdi_packing *tdi_onednn_packing(tdi_md_view plain, tdi_md_view packed);

#endif
