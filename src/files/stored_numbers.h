/* stored_numbers.h - numbers as files store them: either order of bytes, sizes that Tandem has no dtype of. */
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
    td_dtype dtype; /* the smallest of Tandem's that holds it, at least as large */
} tdi_numbers;

/* Integers of 8 to 64 bits, IEEE floats of 16 to 64 bits; false: there are no such numbers. Unsigned ones of 64 bits
 * are read as int64, those beyond it as its largest. */
bool tdi_numbers_of(tdi_number_kind kind, unsigned size, bool big_endian, tdi_numbers *numbers);
/* They lie in the file as `dtype` does in memory. */
bool tdi_numbers_plain(const tdi_numbers *numbers);
/* `count` numbers as numbers->dtype; `from` is the end of `to`'s memory, where they were read to as they are stored. */
void tdi_numbers_widen(const tdi_numbers *numbers, unsigned char *from, void *to, uint64_t count);

#endif
