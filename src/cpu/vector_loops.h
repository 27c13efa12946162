/* vector_loops.h - vector loops of the *_isa.c files that files compiled once, and other kernels, call by pointer. */
#ifndef TDI_CPU_VECTOR_LOOPS_H
#define TDI_CPU_VECTOR_LOOPS_H

#include "base/bfloat16.h"
#include "cpu/elementwise/optimizer_update.h"
#include "cpu/matmul/pack_bfloat16.h"

typedef struct tdi_vector_loops {
    /* Epilogue of a product: to = activation(to + bias) over [rows, columns], rows `stride` floats apart; bias
     * [columns] or NULL. It knows every activation that can be fused. */
    void (*epilogue)(int64_t rows, int64_t columns, int64_t stride, const float *bias, int activation, float *to);
    /* to = dy * f'(value), as tdi_unary_grad computes it, for the activations that can be fused. */
    void (*slope)(int activation, int64_t n, const float *value, const float *dy, float *to);
    /* to = activation(to) for n bfloat16 elements, computed in float32. */
    void (*activate_bfloat16)(int64_t n, int activation, tdi_bfloat16 *to);
    /* Arrays from and to bfloat16 (bfloat16_isa.h). */
    void (*widen)(int64_t n, const tdi_bfloat16 *from, float *to);
    void (*narrow)(int64_t n, const float *from, tdi_bfloat16 *to);
    /* Rounds a matrix into a packed layout (matmul/pack_bfloat16.h). */
    void (*pack)(const tdi_packing *packing, const float *from, tdi_bfloat16 *to);
    /* Bytes to floats, times scale (tdi_device.convert_bytes). */
    void (*convert_bytes)(const uint8_t *from, float *to, int64_t count, double scale);
    /* One optimizer step for n elements (elementwise/update.h). */
    tdi_update_loop *update;
} tdi_vector_loops;

#define TDI_DECLARE_LOOPS_(isa)                                                                                        \
    extern const tdi_vector_loops tdi_vector_loops_##isa;                                                              \
    tdi_update_loop tdi_update_stretch_##isa;                                                                          \
    void tdi_convert_bytes_##isa(const uint8_t *from, float *to, int64_t count, double scale);                         \
    void tdi_pack_##isa(const tdi_packing *packing, const float *from, tdi_bfloat16 *to);
TDI_DECLARE_LOOPS_(baseline)
#ifdef TANDEM_X86
TDI_DECLARE_LOOPS_(avx2)
TDI_DECLARE_LOOPS_(avx512)
#endif
#undef TDI_DECLARE_LOOPS_

/* The loops of the best instruction set that this CPU has. */
const tdi_vector_loops *tdi_cpu_vector_loops(void);

#endif
