/* tfrecord_file.h - TFRecord files, plain or gzipped: their records in any order, from any thread. */
#ifndef TDI_FILES_TFRECORD_FILE_H
#define TDI_FILES_TFRECORD_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct tdi_records tdi_records;

/* CRC-32C (Castagnoli) of what `crc` is the checksum of, 0 of nothing, and `size` bytes behind it. */
uint32_t tdi_crc32c(uint32_t crc, const void *bytes, size_t size);
/* The checksum of the format: CRC-32C, rotated and offset so that a record may hold records. */
uint32_t tdi_masked_crc(const void *bytes, size_t size);

/* Finds the records of a file. A gzipped file is unpacked into a temporary file without a name. TD_NOT_FOUND, TD_IO, or
 * TD_BAD_FILE naming record and offset where the chain of records breaks; with `skip` the records before the break are
 * kept, and tdi_records_break gives the sentence. The caller closes it. */
td_status tdi_records_open(const char *path, bool skip, tdi_records **records, tdi_error *error);
void tdi_records_close(tdi_records *records); /* NULL is accepted */

int64_t tdi_records_count(const tdi_records *records);
int64_t tdi_records_size(const tdi_records *records, int64_t index);   /* bytes of a record's data */
int64_t tdi_records_offset(const tdi_records *records, int64_t index); /* of the record in the (unpacked) file */
const char *tdi_records_break(const tdi_records *records);             /* NULL: whole */
uint32_t tdi_records_checksum(const tdi_records *records);             /* of the checksums of all records' data */

/* Reads a record's data; TD_BAD_FILE when its checksum does not match. Several threads may read at once. */
td_status tdi_records_read(const tdi_records *records, int64_t index, void *to, tdi_error *error);

#endif
