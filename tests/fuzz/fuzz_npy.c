/* fuzz_npy.c - any bytes as a .npy array: every element it claims to have is there. */
#include <stdint.h>
#include <stdlib.h>

#include "files/npy_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    tdi_npy npy;
    tdi_error error = {0};
    if (tdi_npy_parse(bytes, size, "input", &npy, &error) != TD_OK) {
        if (!error.message[0])
            abort();
        return 0;
    }
    size_t used = (size_t)npy.elements * npy.numbers.size;
    if (npy.elements < 0 || npy.offset > size || used > size - npy.offset || npy.shape.rank > TD_MAX_RANK)
        abort();
    unsigned sum = 0;
    for (size_t i = 0; i < used; i++)
        sum += bytes[npy.offset + i];
    *(volatile unsigned *)&sum; /* the reads are the test */
    return 0;
}
