/* tfrecord_file.h - reads the records of TFRecord files, plain or gzipped, in any order and from any thread. */
#ifndef TDI_FILES_TFRECORD_FILE_H
#define TDI_FILES_TFRECORD_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct tdi_records tdi_records;

/* Extends the CRC-32C (Castagnoli) `crc`, 0 at first, by `size` bytes. */
uint32_t tdi_crc32c(uint32_t crc, const void *bytes, size_t size);
/* The format's checksum: CRC-32C, rotated and offset so that a record may contain records. */
uint32_t tdi_masked_crc(const void *bytes, size_t size);

/* True when the file begins as a record does: with a length, and that number's checksum. */
bool tdi_records_begin(const char *path);
/* Finds the records of a file; a gzipped file is unpacked into a temporary file. The caller closes *records.
 * TD_NOT_FOUND, TD_IO, or TD_BAD_FILE naming record and offset where the chain of records breaks. With `skip` a break
 * is no failure: the records before it are kept, and tdi_records_break has the sentence. */
td_status tdi_records_open(const char *path, bool skip, tdi_records **records, tdi_error *error);
void tdi_records_close(tdi_records *records); /* accepts NULL */

int64_t tdi_records_count(const tdi_records *records);
int64_t tdi_records_size(const tdi_records *records, int64_t index);   /* bytes of a record's data */
int64_t tdi_records_offset(const tdi_records *records, int64_t index); /* of the record in the unpacked file */
const char *tdi_records_break(const tdi_records *records);             /* NULL: there is no break */
uint32_t tdi_records_checksum(const tdi_records *records);             /* over the checksums of all records' data */

/* Reads a record's data. TD_BAD_FILE when its checksum does not match. Several threads may call it. */
td_status tdi_records_read(const tdi_records *records, int64_t index, void *to, tdi_error *error);

#endif
