/* primitive_onednn.c - what the kernels made of oneDNN primitives share. */
#include "cpu/primitive_onednn.h"

#include <string.h>

td_status tdi_onednn_refused(dnnl_status_t status, tdi_error *error)
{
    if (status == dnnl_out_of_memory)
        return tdi_no_memory(error);
    return tdi_fail(error, TD_UNSUPPORTED, "oneDNN refused it (status %d)", (int)status);
}

td_status tdi_onednn_check(const_dnnl_primitive_desc_t pd, tdi_error *error)
{
    const char *name = NULL;
    dnnl_status_t status = dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
    if (status == dnnl_success && name && strstr(name, "ref"))
        return tdi_fail(error, TD_UNSUPPORTED, "oneDNN would use its slow implementation \"%s\"", name);
    return TD_OK;
}

/* Setting an address makes the library clear padding, so it is set only when it is a new one. */
void tdi_onednn_bind(dnnl_memory_t memory, void *address)
{
    void *now = NULL;
    if (dnnl_memory_get_data_handle(memory, &now) == dnnl_success && now != address)
        dnnl_memory_set_data_handle(memory, address);
}

dnnl_status_t tdi_onednn_reorder(dnnl_engine_t engine, tdi_md_view from, tdi_md_view to, dnnl_primitive_t *reorder)
{
    dnnl_primitive_desc_t pd = NULL;
    if (dnnl_memory_desc_equal(from, to))
        return dnnl_success;
    dnnl_status_t status = dnnl_reorder_primitive_desc_create(&pd, from, engine, to, engine, NULL);
    if (status == dnnl_success)
        status = dnnl_primitive_create(reorder, pd);
    if (pd)
        dnnl_primitive_desc_destroy(pd);
    return status;
}
