/* primitive_onednn.h - what the kernels made of oneDNN primitives share. */
#ifndef TDI_CPU_PRIMITIVE_ONEDNN_H
#define TDI_CPU_PRIMITIVE_ONEDNN_H

#include "base/error.h"
#include "cpu/onednn_compat.h"

/* A status of the library's as Tandem's: TD_UNSUPPORTED, or memory. */
td_status tdi_onednn_refused(dnnl_status_t status, tdi_error *error);
/* TD_UNSUPPORTED when the primitive would be the library's own plain loops: slower than anything. */
td_status tdi_onednn_check(const_dnnl_primitive_desc_t pd, tdi_error *error);
/* Gives a memory its address. */
void tdi_onednn_bind(dnnl_memory_t memory, void *address);
/* *reorder stays NULL where the two are the same. */
dnnl_status_t tdi_onednn_reorder(dnnl_engine_t engine, tdi_md_view from, tdi_md_view to, dnnl_primitive_t *reorder);

#endif
