/* stored_numbers.h - the types of numbers in files, in either byte order and of sizes that are no dtype of Tandem's,
 * and their conversion to dtypes. */
#ifndef TDI_FILES_STORED_NUMBERS_H
#define TDI_FILES_STORED_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>
#include <tandem/tensor.h>

typedef enum tdi_number_kind { TDI_NUMBERS_UNSIGNED, TDI_NUMBERS_SIGNED, TDI_NUMBERS_FLOAT } tdi_number_kind;

typedef struct tdi_numbers {
    tdi_number_kind kind;
    unsigned size; /* bytes: 1, 2, 4, 8 */
    bool big_endian;
    td_dtype dtype; /* the smallest dtype of at least that size that holds the numbers */
} tdi_numbers;

/* Describes integers of 8 to 64 bits and IEEE floats of 16 to 64 bits. False for other sizes. Unsigned 64-bit numbers
 * become int64; those beyond it become its largest. */
bool tdi_numbers_of(tdi_number_kind kind, unsigned size, bool big_endian, tdi_numbers *numbers);
/* True when the bytes in the file are those of `dtype` in memory. */
bool tdi_numbers_plain(const tdi_numbers *numbers);
/* Converts `count` stored numbers at `from` to numbers->dtype at `to`. `from` is the end of the memory of `to`, so that
 * no number is overwritten before it is read. */
void tdi_numbers_widen(const tdi_numbers *numbers, unsigned char *from, void *to, uint64_t count);

#endif
