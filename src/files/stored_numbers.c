/* stored_numbers.c - converts stored numbers to Tandem's dtypes. */
#include "files/stored_numbers.h"

#include <string.h>

static const bool host_is_big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

static td_dtype integer_dtype(unsigned bytes, bool is_signed)
{
    if (bytes == 1 && !is_signed)
        return TD_UINT8;
    return bytes < 4 || (bytes == 4 && is_signed) ? TD_INT32 : TD_INT64;
}

bool tdi_numbers_of(tdi_number_kind kind, unsigned size, bool big_endian, tdi_numbers *numbers)
{
    bool real = kind == TDI_NUMBERS_FLOAT;
    td_dtype dtype = real ? size == 8 ? TD_FLOAT64 : TD_FLOAT32 : integer_dtype(size, kind == TDI_NUMBERS_SIGNED);
    *numbers = (tdi_numbers){kind, size, big_endian, dtype};
    return size == 2 || size == 4 || size == 8 || (size == 1 && !real);
}

bool tdi_numbers_plain(const tdi_numbers *numbers)
{
    bool turned = numbers->big_endian != host_is_big_endian && numbers->size > 1;
    bool beyond = numbers->kind == TDI_NUMBERS_UNSIGNED && numbers->size == 8;
    return !turned && !beyond && numbers->size == td_dtype_size(numbers->dtype);
}

static void turn_round(unsigned char *at, unsigned size, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++, at += size)
        for (unsigned low = 0; low < size / 2; low++) {
            unsigned char kept = at[low];
            at[low] = at[size - 1 - low];
            at[size - 1 - low] = kept;
        }
}

/* IEEE half precision to float; subnormal numbers are multiples of 2^-24. */
static float half(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, exponent = bits >> 10 & 31u, fraction = bits & 0x3FFu;
    uint32_t wide = sign | (exponent == 31 ? 255u : exponent + 112u) << 23 | fraction << 13;
    float value;
    memcpy(&value, &wide, sizeof value);
    if (exponent == 0)
        value = (sign ? -0x1p-24f : 0x1p-24f) * (float)fraction;
    return value;
}

#define WIDEN(stored, wide, as)                                                                                        \
    for (uint64_t i = 0; i < count; i++) {                                                                             \
        stored number;                                                                                                 \
        memcpy(&number, from + i * sizeof number, sizeof number);                                                      \
        wide made = (as);                                                                                              \
        memcpy((char *)to + i * sizeof made, &made, sizeof made);                                                      \
    }

static void widen_integers(const tdi_numbers *numbers, const unsigned char *from, void *to, uint64_t count)
{
    bool is_signed = numbers->kind == TDI_NUMBERS_SIGNED;
    if (numbers->size == 1 && is_signed)
        WIDEN(int8_t, int32_t, number)
    else if (numbers->size == 2 && is_signed)
        WIDEN(int16_t, int32_t, number)
    else if (numbers->size == 2)
        WIDEN(uint16_t, int32_t, number)
    else if (numbers->size == 4 && !is_signed)
        WIDEN(uint32_t, int64_t, number)
    else if (numbers->size == 8 && !is_signed)
        WIDEN(uint64_t, int64_t, number > INT64_MAX ? INT64_MAX : (int64_t)number)
}

void tdi_numbers_widen(const tdi_numbers *numbers, unsigned char *from, void *to, uint64_t count)
{
    if (numbers->big_endian != host_is_big_endian)
        turn_round(from, numbers->size, count);
    if (numbers->kind == TDI_NUMBERS_FLOAT && numbers->size == 2)
        WIDEN(uint16_t, float, half(number))
    else if (numbers->kind != TDI_NUMBERS_FLOAT)
        widen_integers(numbers, from, to, count);
}
