/* primitive_onednn.c - a oneDNN primitive as a kernel's state. */
#include "cpu/onednn/primitive_onednn.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "cpu/vector_loops.h"

enum { ALIGNMENT = 64, WEIGHTS = 1 };

/* ---- creating a primitive ---- */

static td_status refused(dnnl_status_t status, tdi_error *error)
{
    if (status == dnnl_out_of_memory)
        return tdi_no_memory(error);
    return tdi_fail(error, TD_UNSUPPORTED, "oneDNN refused it (status %d)", (int)status);
}

static td_status check_speed(const_dnnl_primitive_desc_t pd, tdi_error *error)
{
    const char *name = NULL;
    dnnl_status_t status = dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
    if (status == dnnl_success && name && strstr(name, "ref"))
        return tdi_fail(error, TD_UNSUPPORTED, "oneDNN would use its slow implementation \"%s\"", name);
    return TD_OK;
}

/* Creates no reorder where the two layouts are the same. */
static dnnl_status_t create_reorder(tdi_onednn_primitive *p, tdi_md_view from, tdi_md_view to)
{
    dnnl_primitive_desc_t pd = NULL;
    if (dnnl_memory_desc_equal(from, to) || (p->packing = tdi_onednn_packing(from, to)))
        return dnnl_success;
    dnnl_status_t status = dnnl_reorder_primitive_desc_create(&pd, from, p->engine, to, p->engine, NULL);
    if (status == dnnl_success)
        status = dnnl_primitive_create(&p->reorder, pd);
    if (pd)
        dnnl_primitive_desc_destroy(pd);
    return status;
}

static dnnl_status_t create_memory(const tdi_onednn_primitive *p, tdi_md_view md, dnnl_memory_t *memory)
{
    return dnnl_memory_create(memory, md, p->engine, DNNL_MEMORY_NONE);
}

static dnnl_status_t create_parts(tdi_onednn_primitive *p, const_dnnl_primitive_desc_t pd, const tdi_onednn_operands *o)
{
    dnnl_query_t query = o->makes_weights ? dnnl_query_diff_weights_md : dnnl_query_weights_md;
    tdi_md_view plain = TDI_MD_VIEW(o->weights), packed = dnnl_primitive_desc_query_md(pd, query, 0);
    tdi_md_view scratchpad = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    p->packed_bytes = dnnl_memory_desc_get_size(packed);
    p->scratchpad_bytes = dnnl_memory_desc_get_size(scratchpad);
    dnnl_status_t status = dnnl_primitive_create(&p->primitive, pd);
    if (status == dnnl_success)
        status = create_reorder(p, o->makes_weights ? packed : plain, o->makes_weights ? plain : packed);
    if (status == dnnl_success)
        status = create_memory(p, TDI_MD_VIEW(o->src), &p->src);
    if (status == dnnl_success)
        status = create_memory(p, plain, &p->weights);
    if (status == dnnl_success)
        status = create_memory(p, packed, &p->packed);
    if (status == dnnl_success && o->has_bias)
        status = create_memory(p, TDI_MD_VIEW(o->bias), &p->bias);
    if (status == dnnl_success)
        status = create_memory(p, TDI_MD_VIEW(o->dst), &p->dst);
    return status == dnnl_success ? create_memory(p, scratchpad, &p->scratchpad) : status;
}

static dnnl_status_t create_description(tdi_onednn_primitive *p, const tdi_call *call, tdi_onednn_describe *describe,
                                        tdi_onednn_operands *operands, dnnl_primitive_desc_t *pd)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_status_t status = dnnl_engine_create(&p->engine, dnnl_cpu, 0);
    if (status == dnnl_success)
        status = dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_create(&attr);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (status == dnnl_success)
        status = describe(call, p->engine, attr, operands, pd);
    if (attr)
        dnnl_primitive_attr_destroy(attr);
    return status;
}

static td_status create(tdi_onednn_primitive *p, const tdi_call *call, tdi_onednn_describe *describe, tdi_error *error)
{
    tdi_onednn_operands operands = {0};
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status = create_description(p, call, describe, &operands, &pd);
    p->caches_weights = !operands.makes_weights && tdi_is_constant_input(call, WEIGHTS);
    td_status usable = status == dnnl_success ? check_speed(pd, error) : TD_OK;
    if (status == dnnl_success && usable == TD_OK)
        status = create_parts(p, pd, &operands);
    if (pd)
        dnnl_primitive_desc_destroy(pd);
    tdi_md_destroy(&operands.src);
    tdi_md_destroy(&operands.weights);
    tdi_md_destroy(&operands.bias);
    tdi_md_destroy(&operands.dst);
    return status == dnnl_success ? usable : refused(status, error);
}

static size_t rounded(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

td_status tdi_onednn_prepare(const tdi_call *call, tdi_onednn_describe *describe, void **state, size_t *scratch,
                             tdi_error *error)
{
    tdi_onednn_primitive *p = calloc(1, sizeof *p);
    if (!p)
        return tdi_no_memory(error);
    int threads = tdi_cpu_enter_thread();
    td_status status = create(p, call, describe, error);
    tdi_cpu_leave_thread(threads);
    if (status != TD_OK) {
        tdi_onednn_release(p);
        return status;
    }
    *scratch = (p->caches_weights ? 0 : rounded(p->packed_bytes)) + rounded(p->scratchpad_bytes);
    *state = p;
    return TD_OK;
}

static bool packs(const tdi_onednn_primitive *p)
{
    return p->reorder || p->packing;
}

size_t tdi_onednn_packed_cache_bytes(const tdi_call *call)
{
    const tdi_onednn_primitive *p = call->state;
    return p && p->caches_weights && packs(p) ? p->packed_bytes : 0;
}

void tdi_onednn_release(void *state)
{
    tdi_onednn_primitive *p = state;
    dnnl_memory_t memories[] = {p->src, p->weights, p->packed, p->bias, p->dst, p->scratchpad};
    for (size_t i = 0; i < sizeof memories / sizeof *memories; i++)
        if (memories[i])
            dnnl_memory_destroy(memories[i]);
    if (p->primitive)
        dnnl_primitive_destroy(p->primitive);
    if (p->reorder)
        dnnl_primitive_destroy(p->reorder);
    if (p->stream)
        dnnl_stream_destroy(p->stream);
    if (p->engine)
        dnnl_engine_destroy(p->engine);
    free(p->packing);
    free(p);
}

/* ---- running ---- */

/* Sets an address only when it has changed, since oneDNN clears padding each time. */
static dnnl_status_t bind(dnnl_memory_t memory, void *address)
{
    void *now = NULL;
    dnnl_status_t status = dnnl_memory_get_data_handle(memory, &now);
    return status == dnnl_success && now != address ? dnnl_memory_set_data_handle(memory, address) : status;
}

static dnnl_status_t bind_all(const tdi_onednn_primitive *p, tdi_onednn_addresses at, void *packed, void *scratchpad)
{
    dnnl_status_t status = bind(p->src, at.src);
    if (status == dnnl_success)
        status = bind(p->weights, at.weights);
    if (status == dnnl_success)
        status = bind(p->packed, packs(p) ? packed : at.weights);
    if (status == dnnl_success)
        status = bind(p->dst, at.dst);
    if (status == dnnl_success)
        status = bind(p->scratchpad, scratchpad);
    return status == dnnl_success && p->bias ? bind(p->bias, at.bias) : status;
}

static dnnl_status_t reorder(const tdi_onednn_primitive *p, dnnl_memory_t from, dnnl_memory_t to)
{
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    return p->reorder ? dnnl_primitive_execute(p->reorder, p->stream, 2, arguments) : dnnl_success;
}

static dnnl_status_t execute(const tdi_onednn_primitive *p, int src, int weights, int dst)
{
    const dnnl_exec_arg_t arguments[] = {{src, p->src},
                                         {weights, p->packed},
                                         {dst, p->dst},
                                         {DNNL_ARG_SCRATCHPAD, p->scratchpad},
                                         {DNNL_ARG_BIAS, p->bias}};
    return dnnl_primitive_execute(p->primitive, p->stream, p->bias ? 5 : 4, arguments);
}

void tdi_onednn_run(const tdi_call *call, tdi_onednn_addresses at, void *scratch, int src, int weights, int dst)
{
    const tdi_onednn_primitive *p = call->state;
    void *packed = call->packed_cache ? tdi_packed_cache(call) : scratch;
    char *scratchpad = (char *)scratch + (p->caches_weights ? 0 : rounded(p->packed_bytes));
    dnnl_status_t status = bind_all(p, at, packed, scratchpad);
    bool outdated = status == dnnl_success && tdi_must_pack(call);
    if (outdated && p->packing)
        tdi_cpu_vector_loops()->pack(p->packing, at.weights, packed);
    else if (outdated && weights == DNNL_ARG_WEIGHTS)
        status = reorder(p, p->weights, p->packed);
    if (status != dnnl_success)
        tdi_forget_packed(call);
    if (status == dnnl_success)
        status = execute(p, src, weights, dst);
    if (status == dnnl_success && weights == DNNL_ARG_DIFF_WEIGHTS)
        status = reorder(p, p->packed, p->weights);
    if (status != dnnl_success)
        tdi_call_fail(call);
}
