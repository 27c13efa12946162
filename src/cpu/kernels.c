/* kernels.c - the CPU device's ordered lists of kernels, one list per instruction set. */
#include "cpu/kernels.h"

#define VECTOR_(stem, isa) &tdi_cpu_##stem##_##isa,
#define PLAIN_(stem)       &tdi_cpu_##stem,

#define LIST(isa)                                                                                                      \
    static const tdi_kernel *const isa##_list[] = {TDI_CPU_VECTOR_KERNELS(VECTOR_, isa) TDI_CPU_ONEDNN_KERNELS(PLAIN_) \
                                                       TDI_CPU_PLAIN_KERNELS(PLAIN_) NULL};

LIST(baseline)
#ifdef TANDEM_X86
LIST(avx2)
LIST(avx512)
#endif

const tdi_kernel *const *tdi_cpu_kernels(tdi_cpu_isa isa)
{
#ifdef TANDEM_X86
    if (isa == TDI_CPU_AVX512)
        return avx512_list;
    if (isa == TDI_CPU_AVX2)
        return avx2_list;
#endif
    (void)isa;
    return baseline_list;
}

int tdi_cpu_width(tdi_cpu_isa isa)
{
    return isa == TDI_CPU_AVX512 ? 16 : isa == TDI_CPU_AVX2 ? 8 : 4;
}

const tdi_vector_loops *tdi_cpu_vector_loops(void)
{
#ifdef TANDEM_X86
    tdi_cpu_isa isa = tdi_cpu_best_isa();
    if (isa == TDI_CPU_AVX512)
        return &tdi_vector_loops_avx512;
    if (isa == TDI_CPU_AVX2)
        return &tdi_vector_loops_avx2;
#endif
    return &tdi_vector_loops_baseline;
}
