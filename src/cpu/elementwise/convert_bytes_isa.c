/* convert_bytes_isa.c - bytes to floats. The scale comes in two parts, the first of 16 bits: byte * high is then
 * exact in a float, and the sum rounds once, as byte / 255 would. */
#include "cpu/isa.h"
#include "cpu/vector_loops.h"

void TDI_ISA_NAME(tdi_convert_bytes)(const uint8_t *from, float *restrict to, int64_t count, double scale)
{
    int exponent;
    double mantissa = frexp(scale, &exponent);
    float high = (float)ldexp(trunc(ldexp(mantissa, 16)), exponent - 16), low = (float)(scale - (double)high);
    TDI_LANES
    for (int64_t i = 0; i < count; i++) {
        float value = (float)from[i];
        to[i] = value * high + value * low;
    }
}
