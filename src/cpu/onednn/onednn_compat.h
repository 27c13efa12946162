/* onednn_compat.h - one interface to oneDNN 2.6 and 3.x. The version is fixed at compile time, since their enumerations
 * have different values. */
#ifndef TDI_CPU_ONEDNN_ONEDNN_COMPAT_H
#define TDI_CPU_ONEDNN_ONEDNN_COMPAT_H

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>
#include <stddef.h>

/* A memory descriptor that its holder must destroy, and a view of one. */
typedef dnnl_memory_desc_t tdi_md;
#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t tdi_md_view;
#define TDI_MD_VIEW(md) (md)
#else
typedef const dnnl_memory_desc_t *tdi_md_view;
#define TDI_MD_VIEW(md) (&(md))
#endif

/* `strides` NULL: oneDNN chooses the layout ("any"). */
static inline dnnl_status_t tdi_md_create(tdi_md *md, int rank, const dnnl_dim_t *dims, dnnl_data_type_t type,
                                          const dnnl_dim_t *strides)
{
#if DNNL_VERSION_MAJOR >= 3
    return strides ? dnnl_memory_desc_create_with_strides(md, rank, dims, type, strides)
                   : dnnl_memory_desc_create_with_tag(md, rank, dims, type, dnnl_format_tag_any);
#else
    return strides ? dnnl_memory_desc_init_by_strides(md, rank, dims, type, strides)
                   : dnnl_memory_desc_init_by_tag(md, rank, dims, type, dnnl_format_tag_any);
#endif
}

static inline void tdi_md_destroy(tdi_md *md)
{
#if DNNL_VERSION_MAJOR >= 3
    if (*md)
        dnnl_memory_desc_destroy(*md);
    *md = NULL;
#else
    (void)md;
#endif
}

/* A blocked layout: the strides of whole blocks, and inside of them the nested blocks from the outermost to the
 * innermost. */
typedef struct tdi_onednn_layout {
    dnnl_data_type_t type;
    int rank, blocks;
    const dnnl_dim_t *extent, *padded, *stride, *block_size, *block_axis;
} tdi_onednn_layout;

/* Fills `layout`, whose pointers belong to the descriptor. False when the layout is not blocked. */
static inline bool tdi_md_layout(tdi_md_view md, tdi_onednn_layout *layout)
{
#if DNNL_VERSION_MAJOR >= 3
    dnnl_format_kind_t kind = dnnl_format_kind_undef;
    const dnnl_dims_t *extent, *padded, *stride, *size, *axis;
    bool known = dnnl_memory_desc_query(md, dnnl_query_format_kind, &kind) == dnnl_success && kind == dnnl_blocked &&
                 dnnl_memory_desc_query(md, dnnl_query_data_type, &layout->type) == dnnl_success &&
                 dnnl_memory_desc_query(md, dnnl_query_ndims_s32, &layout->rank) == dnnl_success &&
                 dnnl_memory_desc_query(md, dnnl_query_inner_nblks_s32, &layout->blocks) == dnnl_success &&
                 dnnl_memory_desc_query(md, dnnl_query_dims, &extent) == dnnl_success &&
                 dnnl_memory_desc_query(md, dnnl_query_padded_dims, &padded) == dnnl_success &&
                 dnnl_memory_desc_query(md, dnnl_query_strides, &stride) == dnnl_success &&
                 dnnl_memory_desc_query(md, dnnl_query_inner_blks, &size) == dnnl_success &&
                 dnnl_memory_desc_query(md, dnnl_query_inner_idxs, &axis) == dnnl_success;
    if (!known)
        return false;
    layout->extent = *extent;
    layout->padded = *padded;
    layout->stride = *stride;
    layout->block_size = *size;
    layout->block_axis = *axis;
    return true;
#else
    const dnnl_blocking_desc_t *blocking = &md->format_desc.blocking;
    *layout = (tdi_onednn_layout){md->data_type,   md->ndims,         blocking->inner_nblks, md->dims,
                                  md->padded_dims, blocking->strides, blocking->inner_blks,  blocking->inner_idxs};
    return md->format_kind == dnnl_blocked;
#endif
}

/* A convolution's operands. In a gradient, `src`, `weights` or `dst` is that operand's gradient. `bias` NULL: none. A
 * dilation of 0 is dense, as in oneDNN. */
typedef struct tdi_onednn_convolution {
    tdi_md_view src, weights, bias, dst;
    dnnl_dims_t strides, dilations, before, after;
} tdi_onednn_convolution;

static inline dnnl_status_t tdi_onednn_forward(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                               const tdi_onednn_convolution *c, const_dnnl_primitive_attr_t attr)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_convolution_forward_primitive_desc_create(pd, engine, dnnl_forward_training, dnnl_convolution_direct,
                                                          c->src, c->weights, c->bias, c->dst, c->strides, c->dilations,
                                                          c->before, c->after, attr);
#else
    dnnl_convolution_desc_t d;
    dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(
        &d, dnnl_forward_training, dnnl_convolution_direct, c->src, c->weights, c->bias, c->dst, c->strides,
        c->dilations, c->before, c->after);
    return status == dnnl_success ? dnnl_primitive_desc_create(pd, &d, attr, engine, NULL) : status;
#endif
}

static inline dnnl_status_t tdi_onednn_backward_data(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                                     const tdi_onednn_convolution *c, const_dnnl_primitive_attr_t attr,
                                                     const_dnnl_primitive_desc_t hint)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_convolution_backward_data_primitive_desc_create(pd, engine, dnnl_convolution_direct, c->src, c->weights,
                                                                c->dst, c->strides, c->dilations, c->before, c->after,
                                                                hint, attr);
#else
    dnnl_convolution_desc_t d;
    dnnl_status_t status = dnnl_dilated_convolution_backward_data_desc_init(
        &d, dnnl_convolution_direct, c->src, c->weights, c->dst, c->strides, c->dilations, c->before, c->after);
    return status == dnnl_success ? dnnl_primitive_desc_create(pd, &d, attr, engine, hint) : status;
#endif
}

static inline dnnl_status_t tdi_onednn_backward_weights(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                                        const tdi_onednn_convolution *c,
                                                        const_dnnl_primitive_attr_t attr,
                                                        const_dnnl_primitive_desc_t hint)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_convolution_backward_weights_primitive_desc_create(pd, engine, dnnl_convolution_direct, c->src,
                                                                   c->weights, NULL, c->dst, c->strides, c->dilations,
                                                                   c->before, c->after, hint, attr);
#else
    dnnl_convolution_desc_t d;
    dnnl_status_t status = dnnl_dilated_convolution_backward_weights_desc_init(
        &d, dnnl_convolution_direct, c->src, c->weights, NULL, c->dst, c->strides, c->dilations, c->before, c->after);
    return status == dnnl_success ? dnnl_primitive_desc_create(pd, &d, attr, engine, hint) : status;
#endif
}

/* dst = src . weights + bias; `bias` NULL: none. */
static inline dnnl_status_t tdi_onednn_matmul(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, tdi_md_view src,
                                              tdi_md_view weights, tdi_md_view bias, tdi_md_view dst,
                                              const_dnnl_primitive_attr_t attr)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_matmul_primitive_desc_create(pd, engine, src, weights, bias, dst, attr);
#else
    dnnl_matmul_desc_t d;
    dnnl_status_t status = dnnl_matmul_desc_init(&d, src, weights, bias, dst);
    return status == dnnl_success ? dnnl_primitive_desc_create(pd, &d, attr, engine, NULL) : status;
#endif
}

#endif
