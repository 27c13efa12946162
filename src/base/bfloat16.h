/* bfloat16.h - the upper half of a float: its sign, its exponent and 7 bits of its fraction, so 8 significant bits.
 *
 * Rounding is to nearest, ties to even: the relative error of a normal number is at most 2^-9. */
#ifndef TDI_BASE_BFLOAT16_H
#define TDI_BASE_BFLOAT16_H

#include <stdint.h>
#include <string.h>

typedef uint16_t tdi_bfloat16;

static inline float tdi_widen(tdi_bfloat16 narrow)
{
    uint32_t bits = (uint32_t)narrow << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

/* A NaN stays one. */
static inline tdi_bfloat16 tdi_narrow(float wide)
{
    uint32_t bits;
    memcpy(&bits, &wide, sizeof bits);
    uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
    return (tdi_bfloat16)((wide != wide ? bits | 0x400000u : rounded) >> 16);
}

#endif
