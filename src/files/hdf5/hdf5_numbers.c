/* hdf5_numbers.c - parses datatype messages. */
#include "files/hdf5/hdf5_numbers.h"

#include <string.h>

#include "files/hdf5/hdf5_file.h"

static bool is_plain_integer(const unsigned char *message, uint64_t size, unsigned bytes)
{
    return size >= 12 && (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) && !(message[1] & 6u) &&
           tdi_hdf5_number(message + 8, 2) == 0 && tdi_hdf5_number(message + 10, 2) == 8 * bytes;
}

/* IEEE floats: the flags are [byte order and normalization, place of the sign, 0]; then [offset 2, bits 2, place and
 * bits of the exponent, place and bits of the fraction, bias 4]. */
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

bool tdi_hdf5_numbers_read(const unsigned char *message, uint64_t size, tdi_numbers *numbers)
{
    enum { INTEGER = 0, FLOAT = 1, ENUMERATION = 8 };
    unsigned bytes = size >= 8 ? (unsigned)tdi_hdf5_number(message + 4, 4) : 0, class = bytes ? message[0] & 15u : 15;
    bool big_endian = size >= 8 && message[1] & 1u;
    if (class == INTEGER && is_plain_integer(message, size, bytes))
        return tdi_numbers_of(message[1] & 8u ? TDI_NUMBERS_SIGNED : TDI_NUMBERS_UNSIGNED, bytes, big_endian, numbers);
    if (class == FLOAT && is_ieee_float(message, size, bytes))
        return tdi_numbers_of(TDI_NUMBERS_FLOAT, bytes, big_endian, numbers);
    return tdi_numbers_of(TDI_NUMBERS_UNSIGNED, 1, false, numbers) && class == ENUMERATION && bytes == 1;
}
