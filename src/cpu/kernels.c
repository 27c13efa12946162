/* kernels.c - the lists of kernels.h as arrays, one per instruction set. */
#include "cpu/kernels.h"

#define BASELINE(stem) &tdi_cpu_##stem##_baseline,
#define AVX2(stem)     &tdi_cpu_##stem##_avx2,
#define AVX512(stem)   &tdi_cpu_##stem##_avx512,
#define PLAIN(stem)    &tdi_cpu_##stem,
#ifdef TANDEM_ONEDNN
#define ONEDNN PLAIN
#else
#define ONEDNN(stem)
#endif

static const tdi_kernel *const baseline_list[] = {TDI_CPU_KERNELS(BASELINE, BASELINE, BASELINE, ONEDNN, PLAIN) NULL};
#ifdef TANDEM_X86
static const tdi_kernel *const avx2_list[] = {TDI_CPU_KERNELS(AVX2, AVX2, AVX2, ONEDNN, PLAIN) NULL};
static const tdi_kernel *const avx512_list[] = {TDI_CPU_KERNELS(AVX512, AVX512, AVX512, ONEDNN, PLAIN) NULL};
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
