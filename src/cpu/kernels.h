/* kernels.h - every kernel of the CPU device, by name. */
#ifndef TDI_CPU_KERNELS_H
#define TDI_CPU_KERNELS_H

#include "cpu/cpu.h"
#include "cpu/vector_loops.h"
#include "ops/ops.h"

/* Compiled once per instruction set: X(stem, isa) */
#define TDI_CPU_VECTOR_KERNELS(X, isa)                                                                                 \
    X(matmul, isa)                                                                                                     \
    X(matmul_update, isa)                                                                                              \
    X(winograd_rows_conv2d, isa)                                                                                       \
    X(winograd_rows_conv2d_grad_input, isa)                                                                            \
    X(tiles_conv2d, isa)                                                                                               \
    X(tiles_conv2d_grad_input, isa)                                                                                    \
    X(tiles_conv2d_grad_filter, isa)                                                                                   \
    X(winograd_rows_conv2d_grad_filter, isa)                                                                           \
    X(conv2d, isa)                                                                                                     \
    X(conv2d_grad_input, isa)                                                                                          \
    X(conv2d_grad_filter, isa)                                                                                         \
    X(winograd_conv2d, isa)                                                                                            \
    X(winograd_conv2d_grad_input, isa)                                                                                 \
    X(winograd_conv2d_grad_filter, isa)                                                                                \
    X(direct_conv2d, isa)                                                                                              \
    X(direct_conv2d_grad_input, isa)                                                                                   \
    X(direct_conv2d_grad_filter, isa)                                                                                  \
    X(broadcast_conv2d, isa)                                                                                           \
    X(broadcast_conv2d_grad_input, isa)                                                                                \
    X(broadcast_conv2d_grad_filter, isa)                                                                               \
    X(unary, isa)                                                                                                      \
    X(unary_grad, isa)                                                                                                 \
    X(binary, isa)                                                                                                     \
    X(bias_add, isa)                                                                                                   \
    X(affine, isa)                                                                                                     \
    X(fill, isa)                                                                                                       \
    X(identity, isa)                                                                                                   \
    X(cast, isa)                                                                                                       \
    X(reduce, isa)                                                                                                     \
    X(batch_mean, isa)                                                                                                 \
    X(batch_mean_grad, isa)                                                                                            \
    X(accumulate, isa)                                                                                                 \
    X(regularization, isa)                                                                                             \
    X(softmax, isa)                                                                                                    \
    X(softmax_grad, isa)                                                                                               \
    X(log_softmax, isa)                                                                                                \
    X(log_softmax_grad, isa)                                                                                           \
    X(sparse_softmax_cross_entropy, isa)                                                                               \
    X(sparse_softmax_cross_entropy_grad, isa)                                                                          \
    X(softmax_cross_entropy, isa)                                                                                      \
    X(softmax_cross_entropy_grad, isa)                                                                                 \
    X(sigmoid_cross_entropy, isa)                                                                                      \
    X(sigmoid_cross_entropy_grad, isa)                                                                                 \
    X(max_pool2d, isa)                                                                                                 \
    X(max_pool2d_grad, isa)                                                                                            \
    X(average_pool2d, isa)                                                                                             \
    X(average_pool2d_grad, isa)                                                                                        \
    X(bfloat16_max_pool2d, isa)                                                                                        \
    X(bfloat16_max_pool2d_grad, isa)                                                                                   \
    X(bfloat16_average_pool2d, isa)                                                                                    \
    X(bfloat16_average_pool2d_grad, isa)                                                                               \
    X(bfloat16_reduce, isa)                                                                                            \
    X(gather, isa)                                                                                                     \
    X(scatter_add, isa)                                                                                                \
    X(upsample2d, isa)                                                                                                 \
    X(upsample2d_grad, isa)                                                                                            \
    X(batch_norm_stats, isa)                                                                                           \
    X(batch_norm, isa)                                                                                                 \
    X(batch_norm_grad_stats, isa)                                                                                      \
    X(batch_norm_grad_input, isa)                                                                                      \
    X(batch_norm_moving, isa)                                                                                          \
    X(batch_norm_inference, isa)                                                                                       \
    X(lstm, isa)                                                                                                       \
    X(lstm_by_rows, isa)                                                                                               \
    X(lstm_output, isa)                                                                                                \
    X(lstm_grad, isa)                                                                                                  \
    X(lstm_grad_by_rows, isa)                                                                                          \
    X(lstm_grad_recurrent, isa)                                                                                        \
    X(dropout, isa)                                                                                                    \
    X(adam, isa)                                                                                                       \
    X(sgd, isa)                                                                                                        \
    X(moving_average, isa)                                                                                             \
    X(accumulate_gradient, isa)                                                                                        \
    X(squared_norm, isa)                                                                                               \
    X(clip_by_norm, isa)                                                                                               \
    X(regularize, isa)                                                                                                 \
    X(reduce_scatter, isa)                                                                                             \
    X(leave_product, isa)                                                                                              \
    X(joint_update, isa)

/* Compiled once: X(stem) */
#define TDI_CPU_PLAIN_KERNELS(X)                                                                                       \
    X(widened_matmul)                                                                                                  \
    X(widened_conv2d)                                                                                                  \
    X(widened_conv2d_grad_input)                                                                                       \
    X(widened_conv2d_grad_filter)                                                                                      \
    X(slice)                                                                                                           \
    X(leave_factors)                                                                                                   \
    X(broadcast)                                                                                                       \
    X(concat)                                                                                                          \
    X(pad)                                                                                                             \
    X(sparse_categorical_accuracy)                                                                                     \
    X(categorical_accuracy)                                                                                            \
    X(binary_accuracy)                                                                                                 \
    X(in_top_k)                                                                                                        \
    X(class_pairs)                                                                                                     \
    X(buckets)                                                                                                         \
    X(valid_weights)

/* Through oneDNN: X(stem) */
#ifdef TANDEM_ONEDNN
#define TDI_CPU_ONEDNN_KERNELS(X)                                                                                      \
    X(matmul_onednn)                                                                                                   \
    X(matmul_bfloat16_onednn)                                                                                          \
    X(matmul_update_onednn)                                                                                            \
    X(leave_product_onednn)                                                                                            \
    X(conv2d_matmul_onednn)                                                                                            \
    X(conv2d_grad_input_matmul_onednn)                                                                                 \
    X(conv2d_grad_filter_matmul_onednn)                                                                                \
    X(conv2d_grad_input_thin_onednn)                                                                                   \
    X(conv2d_onednn)                                                                                                   \
    X(conv2d_grad_input_onednn)                                                                                        \
    X(conv2d_grad_filter_onednn)
#else
#define TDI_CPU_ONEDNN_KERNELS(X)
#endif

#define TDI_DECLARE_VECTOR_KERNEL_(stem, isa) extern const tdi_kernel tdi_cpu_##stem##_##isa;
#define TDI_DECLARE_KERNEL_(stem)             extern const tdi_kernel tdi_cpu_##stem;
TDI_CPU_VECTOR_KERNELS(TDI_DECLARE_VECTOR_KERNEL_, baseline)
#ifdef TANDEM_X86
TDI_CPU_VECTOR_KERNELS(TDI_DECLARE_VECTOR_KERNEL_, avx2)
TDI_CPU_VECTOR_KERNELS(TDI_DECLARE_VECTOR_KERNEL_, avx512)
#endif
TDI_CPU_PLAIN_KERNELS(TDI_DECLARE_KERNEL_)
TDI_CPU_ONEDNN_KERNELS(TDI_DECLARE_KERNEL_)
#undef TDI_DECLARE_VECTOR_KERNEL_
#undef TDI_DECLARE_KERNEL_

#endif
