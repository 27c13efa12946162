/* hdf5_numbers.c - numbers as HDF5 stores them: either order of bytes, sizes that Tandem has no dtype of. */
#include "files/hdf5_numbers.h"

#include <string.h>

#include "files/hdf5_file.h"

static bool is_plain_integer(const unsigned char *message, uint64_t size, unsigned bytes)
{
    return size >= 12 && (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) && !(message[1] & 6u) &&
           tdi_hdf5_number(message + 8, 2) == 0 && tdi_hdf5_number(message + 10, 2) == 8 * bytes;
}

static td_dtype integer_dtype(unsigned bytes, bool is_signed)
{
    if (bytes == 1 && !is_signed)
        return TD_UINT8;
    return bytes < 4 || (bytes == 4 && is_signed) ? TD_INT32 : TD_INT64;
}

/* IEEE's: [order and normalization, sign's place, 0] in the flags; [offset 2, bits 2, exponent's place and bits,
 * fraction's place and bits, bias 4]. */
static const struct {
    unsigned size;
    unsigned char flags[2], fields[12];
} floats[] = {{2, {0x20, 15}, {0, 0, 16, 0, 10, 5, 0, 10, 15, 0, 0, 0}},
              {4, {0x20, 31}, {0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0}},
              {8, {0x20, 63}, {0, 0, 64, 0, 52, 11, 0, 52, 0xFF, 3, 0, 0}}};

static bool is_ieee_float(const unsigned char *message, uint64_t size, unsigned bytes)
{
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
        if (floats[i].size == bytes)
            return size >= 20 && (message[1] & ~1u) == floats[i].flags[0] && message[2] == floats[i].flags[1] &&
                   memcmp(message + 8, floats[i].fields, sizeof floats[i].fields) == 0;
    return false;
}

bool tdi_hdf5_type_read(const unsigned char *message, uint64_t size, tdi_hdf5_type *type)
{
    enum { INTEGER = 0, FLOAT = 1, ENUMERATION = 8 };
    unsigned bytes = size >= 8 ? (unsigned)tdi_hdf5_number(message + 4, 4) : 0, class = bytes ? message[0] & 15u : 15;
    *type = (tdi_hdf5_type){.size = bytes, .big_endian = size >= 8 && message[1] & 1u};
    if (class == INTEGER && is_plain_integer(message, size, bytes)) {
        type->kind = message[1] & 8u ? TDI_HDF5_SIGNED : TDI_HDF5_UNSIGNED;
        type->dtype = integer_dtype(bytes, type->kind == TDI_HDF5_SIGNED);
        return true;
    }
    if (class == FLOAT && is_ieee_float(message, size, bytes)) {
        type->kind = TDI_HDF5_FLOAT;
        type->dtype = bytes == 8 ? TD_FLOAT64 : TD_FLOAT32;
        return true;
    }
    type->big_endian = false;
    type->dtype = TD_UINT8;
    return class == ENUMERATION && bytes == 1;
}

/* ---- widening ---- */

static void turn_round(unsigned char *at, unsigned size, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++, at += size)
        for (unsigned low = 0; low < size / 2; low++) {
            unsigned char kept = at[low];
            at[low] = at[size - 1 - low];
            at[size - 1 - low] = kept;
        }
}

/* IEEE half precision; subnormal ones are whole multiples of 2^-24. */
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

static void widen_integers(const tdi_hdf5_type *type, const unsigned char *from, void *to, uint64_t count)
{
    bool is_signed = type->kind == TDI_HDF5_SIGNED;
    if (type->size == 1 && is_signed)
        WIDEN(int8_t, int32_t, number)
    else if (type->size == 2 && is_signed)
        WIDEN(int16_t, int32_t, number)
    else if (type->size == 2)
        WIDEN(uint16_t, int32_t, number)
    else if (type->size == 4 && !is_signed)
        WIDEN(uint32_t, int64_t, number)
    else if (type->size == 8 && !is_signed)
        WIDEN(uint64_t, int64_t, number > INT64_MAX ? INT64_MAX : (int64_t)number)
}

void tdi_hdf5_widen(const tdi_hdf5_type *type, unsigned char *from, void *to, uint64_t count)
{
    if (type->big_endian && type->size > 1)
        turn_round(from, type->size, count);
    if (type->kind == TDI_HDF5_FLOAT && type->size == 2)
        WIDEN(uint16_t, float, half(number))
    else if (type->kind != TDI_HDF5_FLOAT)
        widen_integers(type, from, to, count);
}
