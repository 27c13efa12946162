/* roofline_loops_isa.c - the most that the CPU's vectors can do: multiply-adds, reading, reading and writing. */
#include "cpu/isa.h"
#include "cpu/roofline_loops.h"

static void multiply_add(int64_t times)
{
    tdi_vector sums[TDI_ROOFLINE_SUMS] = {{0}}, a = {0}, b = {0};
    TDI_OPAQUE(a);
    TDI_OPAQUE(b);
    for (int64_t i = 0; i < times; i++) {
        TDI_UNROLL
        for (int s = 0; s < TDI_ROOFLINE_SUMS; s++) {
            sums[s] = sums[s] * a + b;
            TDI_OPAQUE(sums[s]);
        }
    }
}

static void read_all(const float *data, int64_t count)
{
    tdi_vector sums[8] = {{0}};
    for (int64_t i = 0; i < count; i += 8 * TDI_WIDTH) {
        TDI_UNROLL
        for (int s = 0; s < 8; s++)
            sums[s] += tdi_load(data + i + s * TDI_WIDTH);
    }
    TDI_UNROLL
    for (int s = 0; s < 8; s++)
        TDI_OPAQUE(sums[s]);
}

static void update(float *data, int64_t count)
{
    tdi_vector a = {0};
    TDI_OPAQUE(a);
    for (int64_t i = 0; i < count; i += 8 * TDI_WIDTH) {
        TDI_UNROLL
        for (int s = 0; s < 8; s++)
            tdi_store(data + i + s * TDI_WIDTH, tdi_load(data + i + s * TDI_WIDTH) + a);
    }
}

const tdi_roofline_loops TDI_ISA_NAME(tdi_roofline_loops) = {.name = TDI_ISA_TEXT,
                                                             .flops = 2.0 * TDI_ROOFLINE_SUMS * TDI_WIDTH,
                                                             .multiply_add = multiply_add,
                                                             .read = read_all,
                                                             .update = update};
