/* roofline_loops.c - chooses this CPU's loops, and has those over bfloat16 values: the attributes of a function say
 * which instructions it is compiled for. */
#include "cpu/roofline_loops.h"

#include "cpu/amx.h"
#include "cpu/cpu.h"
#include "cpu/features.h"

static const tdi_roofline_loops *best_loops(void)
{
#ifdef TANDEM_X86
    if (tdi_cpu_best_isa() == TDI_CPU_AVX512)
        return &tdi_roofline_loops_avx512;
    if (tdi_cpu_best_isa() == TDI_CPU_AVX2)
        return &tdi_roofline_loops_avx2;
#endif
    return &tdi_roofline_loops_baseline;
}

void tdi_cpu_roofline_loops(tdi_roofline_loops *loops)
{
    *loops = *best_loops();
    const tdi_bfloat16_loop *narrow = tdi_bfloat16_amx.works() ? &tdi_bfloat16_amx : &tdi_bfloat16_vectors;
    if (!narrow->works())
        return;
    loops->bfloat16_flops = narrow->flops;
    loops->multiply_add_bfloat16 = narrow->run;
}

#ifdef TANDEM_X86

#include <immintrin.h>

static bool vectors_work(void)
{
    return tdi_cpu_detect().avx512_bf16;
}

__attribute__((target("avx512f,avx512bf16"))) static void run_vectors(int64_t times)
{
    __m512 sums[TDI_ROOFLINE_SUMS];
    __m512i raw = _mm512_setzero_si512();
    TDI_OPAQUE(raw);
    __m512bh a = (__m512bh)raw;
    TDI_UNROLL
    for (int s = 0; s < TDI_ROOFLINE_SUMS; s++)
        sums[s] = _mm512_setzero_ps();
    for (int64_t i = 0; i < times; i++) {
        TDI_UNROLL
        for (int s = 0; s < TDI_ROOFLINE_SUMS; s++) {
            sums[s] = _mm512_dpbf16_ps(sums[s], a, a);
            TDI_OPAQUE(sums[s]);
        }
    }
}

const tdi_bfloat16_loop tdi_bfloat16_vectors = {vectors_work, 2.0 * TDI_ROOFLINE_SUMS * 32, run_vectors};

/* Four tiles of sums and two of each factor, as a matrix product uses them. */
__attribute__((target("amx-tile,amx-bf16"))) static void run_tiles(int64_t times)
{
    tdi_amx_begin();
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(5);
    _tile_zero(6);
    _tile_zero(7);
    for (int64_t i = 0; i < times; i++) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    tdi_amx_end();
}

const tdi_bfloat16_loop tdi_bfloat16_amx = {tdi_amx_works, 4 * 2.0 * 16 * 16 * 32, run_tiles};

#else

static bool never(void)
{
    return false;
}

const tdi_bfloat16_loop tdi_bfloat16_vectors = {.works = never}, tdi_bfloat16_amx = {.works = never};

#endif
