/* kernels.h - every kernel of the CPU device: one list per primitive, best first, each entry tagged with what it needs.
 *
 * The tags are
 *
 *     VECTOR   vector loops of an *_isa.c file, which is compiled for each instruction set
 *     AVX512   the same, but the kernel declines every call below AVX-512
 *     AMX      the same, but the kernel declines every call without AMX
 *     ONEDNN   calls oneDNN; the list of a build without oneDNN leaves it out
 *     PLAIN    plain C
 *
 * The plan takes the first kernel of an op that does not decline the call. A kernel that is not confident to be the
 * best is timed against those below it (tdi_kernel). When all decline, the op's reference runs. The order of the ops
 * does not matter. */
#ifndef TDI_CPU_KERNELS_H
#define TDI_CPU_KERNELS_H

#include "cpu/cpu.h"
#include "cpu/vector_loops.h"
#include "ops/ops.h"

#define TDI_CPU_KERNELS(VECTOR, AVX512, AMX, ONEDNN, PLAIN)                                                            \
    /* matmul */                                                                                                       \
    VECTOR(matmul)                                                                                                     \
    ONEDNN(matmul_onednn)                                                                                              \
    ONEDNN(matmul_bfloat16_onednn)                                                                                     \
    PLAIN(widened_matmul)                                                                                              \
    /* matmul_update */                                                                                                \
    VECTOR(matmul_update)                                                                                              \
    ONEDNN(matmul_update_onednn)                                                                                       \
    /* leave_gradient, joint_update */                                                                                 \
    VECTOR(leave_product)                                                                                              \
    ONEDNN(leave_product_onednn)                                                                                       \
    PLAIN(leave_factors)                                                                                               \
    VECTOR(joint_update)                                                                                               \
    /* conv2d */                                                                                                       \
    VECTOR(winograd_rows_conv2d)                                                                                       \
    AMX(amx_conv2d)                                                                                                    \
    VECTOR(conv2d)                                                                                                     \
    VECTOR(winograd_conv2d)                                                                                            \
    AVX512(direct_conv2d)                                                                                              \
    VECTOR(broadcast_conv2d)                                                                                           \
    ONEDNN(conv2d_matmul_onednn)                                                                                       \
    ONEDNN(conv2d_onednn)                                                                                              \
    PLAIN(widened_conv2d)                                                                                              \
    /* conv2d_grad_input */                                                                                            \
    VECTOR(winograd_rows_conv2d_grad_input)                                                                            \
    AMX(amx_conv2d_grad_input)                                                                                         \
    VECTOR(conv2d_grad_input)                                                                                          \
    VECTOR(winograd_conv2d_grad_input)                                                                                 \
    AVX512(direct_conv2d_grad_input)                                                                                   \
    VECTOR(broadcast_conv2d_grad_input)                                                                                \
    ONEDNN(conv2d_grad_input_matmul_onednn)                                                                            \
    ONEDNN(conv2d_grad_input_thin_onednn)                                                                              \
    ONEDNN(conv2d_grad_input_onednn)                                                                                   \
    PLAIN(widened_conv2d_grad_input)                                                                                   \
    /* conv2d_grad_filter */                                                                                           \
    AMX(amx_conv2d_grad_filter)                                                                                        \
    VECTOR(winograd_rows_conv2d_grad_filter)                                                                           \
    VECTOR(conv2d_grad_filter)                                                                                         \
    VECTOR(winograd_conv2d_grad_filter)                                                                                \
    AVX512(direct_conv2d_grad_filter)                                                                                  \
    VECTOR(broadcast_conv2d_grad_filter)                                                                               \
    ONEDNN(conv2d_grad_filter_matmul_onednn)                                                                           \
    ONEDNN(conv2d_grad_filter_onednn)                                                                                  \
    PLAIN(widened_conv2d_grad_filter)                                                                                  \
    /* pooling and upsampling */                                                                                       \
    VECTOR(max_pool2d)                                                                                                 \
    VECTOR(bfloat16_max_pool2d)                                                                                        \
    VECTOR(max_pool2d_grad)                                                                                            \
    VECTOR(bfloat16_max_pool2d_grad)                                                                                   \
    VECTOR(average_pool2d)                                                                                             \
    VECTOR(bfloat16_average_pool2d)                                                                                    \
    VECTOR(average_pool2d_grad)                                                                                        \
    VECTOR(bfloat16_average_pool2d_grad)                                                                               \
    VECTOR(upsample2d)                                                                                                 \
    VECTOR(upsample2d_grad)                                                                                            \
    /* the steps of an LSTM */                                                                                         \
    VECTOR(lstm)                                                                                                       \
    VECTOR(lstm_by_rows)                                                                                               \
    VECTOR(lstm_output)                                                                                                \
    VECTOR(lstm_grad)                                                                                                  \
    VECTOR(lstm_grad_by_rows)                                                                                          \
    VECTOR(lstm_grad_recurrent)                                                                                        \
    /* batch normalization */                                                                                          \
    VECTOR(batch_norm_stats)                                                                                           \
    VECTOR(batch_norm)                                                                                                 \
    VECTOR(batch_norm_grad_stats)                                                                                      \
    VECTOR(batch_norm_grad_input)                                                                                      \
    VECTOR(batch_norm_moving)                                                                                          \
    VECTOR(batch_norm_inference)                                                                                       \
    /* element by element */                                                                                           \
    VECTOR(unary)                                                                                                      \
    VECTOR(unary_grad)                                                                                                 \
    VECTOR(binary)                                                                                                     \
    VECTOR(bias_add)                                                                                                   \
    VECTOR(affine)                                                                                                     \
    VECTOR(fill)                                                                                                       \
    VECTOR(identity)                                                                                                   \
    VECTOR(cast)                                                                                                       \
    VECTOR(dropout)                                                                                                    \
    /* softmax and losses */                                                                                           \
    VECTOR(softmax)                                                                                                    \
    VECTOR(softmax_grad)                                                                                               \
    VECTOR(log_softmax)                                                                                                \
    VECTOR(log_softmax_grad)                                                                                           \
    VECTOR(sparse_softmax_cross_entropy)                                                                               \
    VECTOR(sparse_softmax_cross_entropy_grad)                                                                          \
    VECTOR(softmax_cross_entropy)                                                                                      \
    VECTOR(softmax_cross_entropy_grad)                                                                                 \
    VECTOR(sigmoid_cross_entropy)                                                                                      \
    VECTOR(sigmoid_cross_entropy_grad)                                                                                 \
    /* sums and means */                                                                                               \
    VECTOR(reduce)                                                                                                     \
    VECTOR(bfloat16_reduce)                                                                                            \
    VECTOR(batch_mean)                                                                                                 \
    VECTOR(batch_mean_grad)                                                                                            \
    VECTOR(accumulate)                                                                                                 \
    VECTOR(regularization)                                                                                             \
    /* elements moved */                                                                                               \
    VECTOR(gather)                                                                                                     \
    VECTOR(scatter_add)                                                                                                \
    PLAIN(slice)                                                                                                       \
    PLAIN(broadcast)                                                                                                   \
    PLAIN(concat)                                                                                                      \
    PLAIN(pad)                                                                                                         \
    /* metrics */                                                                                                      \
    PLAIN(sparse_categorical_accuracy)                                                                                 \
    PLAIN(categorical_accuracy)                                                                                        \
    PLAIN(binary_accuracy)                                                                                             \
    PLAIN(in_top_k)                                                                                                    \
    PLAIN(class_pairs)                                                                                                 \
    PLAIN(buckets)                                                                                                     \
    PLAIN(valid_weights)                                                                                               \
    PLAIN(class_weights)                                                                                               \
    /* gradients and updates */                                                                                        \
    VECTOR(reduce_scatter)                                                                                             \
    PLAIN(all_reduce)                                                                                                  \
    VECTOR(accumulate_gradient)                                                                                        \
    VECTOR(squared_norm)                                                                                               \
    VECTOR(clip_by_norm)                                                                                               \
    VECTOR(regularize)                                                                                                 \
    VECTOR(adam)                                                                                                       \
    VECTOR(sgd)                                                                                                        \
    VECTOR(gather_update)                                                                                              \
    VECTOR(moving_average)

#define TDI_DECLARE_KERNEL_(stem) extern const tdi_kernel tdi_cpu_##stem;
#ifdef TANDEM_X86
#define TDI_DECLARE_VECTOR_KERNEL_(stem)                                                                               \
    extern const tdi_kernel tdi_cpu_##stem##_baseline, tdi_cpu_##stem##_avx2, tdi_cpu_##stem##_avx512;
#else
#define TDI_DECLARE_VECTOR_KERNEL_(stem) extern const tdi_kernel tdi_cpu_##stem##_baseline;
#endif
TDI_CPU_KERNELS(TDI_DECLARE_VECTOR_KERNEL_, TDI_DECLARE_VECTOR_KERNEL_, TDI_DECLARE_VECTOR_KERNEL_, TDI_DECLARE_KERNEL_,
                TDI_DECLARE_KERNEL_)
#undef TDI_DECLARE_VECTOR_KERNEL_
#undef TDI_DECLARE_KERNEL_

#endif
