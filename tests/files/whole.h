/* whole.h - all bytes of an HDF5 file that Tandem makes piece by piece. Include cmocka first. */
#ifndef TESTS_FILES_WHOLE_H
#define TESTS_FILES_WHOLE_H

#include <stdlib.h>

#include "files/hdf5/hdf5_write.h"

/* In pieces of an odd size, so that they begin and end within arrays and between them; freed by the caller. */
static inline void *hdf5_whole(tdi_hdf5_writer *file, size_t *size)
{
    uint64_t bytes;
    assert_int_equal(tdi_hdf5_end(file, &bytes, NULL), TD_OK);
    char *all = malloc((size_t)bytes);
    assert_non_null(all);
    for (uint64_t at = 0, part; at < bytes; at += part) {
        part = bytes - at < 37 ? bytes - at : 37;
        tdi_hdf5_piece(file, at, all + at, (size_t)part);
    }
    *size = (size_t)bytes;
    return all;
}

#endif
