/* hdf5_file.h - reads an HDF5 file, on disk or in a store, and the headers of its objects, without libhdf5.
 *
 * libhdf5 crashes on many damaged files (docs/robustness.md). Here every address and length is compared with the file's
 * size before it is used.
 *
 * The format is "HDF5 File Format Specification", versions 1.1 to 4.0: original files (superblock 0) and newer ones. */
#ifndef TDI_FILES_HDF5_HDF5_FILE_H
#define TDI_FILES_HDF5_HDF5_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "files/store.h"

#define TDI_HDF5_UNDEFINED UINT64_MAX /* the address of something never written */

typedef struct tdi_hdf5_file {
    char *name; /* path or description, for messages */
    int fd;     /* -1: the file is in the store, which is borrowed */
    const tdi_store *store;
    uint64_t base, size; /* addresses are relative to `base`; bytes from there on */
    uint64_t root;       /* address of the root group's header */
    uint64_t budget;     /* bytes of structures that may still be read; ends loops in a damaged file */
} tdi_hdf5_file;

/* Opens a file for reading. TD_NOT_FOUND, TD_IO, or TD_BAD_FILE when it is no HDF5 file. */
td_status tdi_hdf5_file_open(const char *path, tdi_hdf5_file **file, tdi_error *error);
/* The same for a file in a store, which must outlive it. */
td_status tdi_hdf5_file_in_store(const tdi_store *store, const char *name, tdi_hdf5_file **file, tdi_error *error);
void tdi_hdf5_file_close(tdi_hdf5_file *file); /* accepts NULL */

/* Fails with TD_BAD_FILE, the file's name and the reason. */
td_status tdi_hdf5_damaged(const tdi_hdf5_file *file, const char *reason, tdi_error *error);

/* ---- bytes ---- */

/* Reads a little-endian number. */
static inline uint64_t tdi_hdf5_number(const unsigned char *at, unsigned bytes)
{
    uint64_t value = 0;
    while (bytes-- > 0)
        value = value << 8 | at[bytes];
    return value;
}

/* Reads data, which may be large. The only function here that several threads may call at once. */
td_status tdi_hdf5_bytes(const tdi_hdf5_file *file, uint64_t address, uint64_t length, void *to, tdi_error *error);
/* Reads a structure into memory, which the caller frees with free(). */
td_status tdi_hdf5_block(tdi_hdf5_file *file, uint64_t address, uint64_t length, unsigned char **block,
                         tdi_error *error);
/* The same for a structure with a signature of 4 characters (NULL: none) and a checksum at its end. */
td_status tdi_hdf5_checked(tdi_hdf5_file *file, uint64_t address, uint64_t length, const char *signature,
                           unsigned char **block, tdi_error *error);
/* Resets the budget; called before each walk over the file's structures. */
void tdi_hdf5_begin(tdi_hdf5_file *file);

/* ---- objects ---- */

enum {
    TDI_HDF5_SHAPE = 0x01,
    TDI_HDF5_LINKS = 0x02, /* the place of a large group's links */
    TDI_HDF5_TYPE = 0x03,
    TDI_HDF5_OLD_FILL = 0x04,
    TDI_HDF5_FILL = 0x05,
    TDI_HDF5_LINK = 0x06,
    TDI_HDF5_EXTERNAL = 0x07,
    TDI_HDF5_LAYOUT = 0x08,
    TDI_HDF5_FILTERS = 0x0B,
    TDI_HDF5_ATTRIBUTE = 0x0C,
    TDI_HDF5_CONTINUED = 0x10,
    TDI_HDF5_SYMBOLS = 0x11 /* the place of an original group's names */
};

typedef struct tdi_hdf5_message {
    unsigned type;
    bool shared; /* the data is only the place of the message */
    const unsigned char *data;
    uint64_t size;
} tdi_hdf5_message;

typedef struct tdi_hdf5_header {
    tdi_vec(tdi_hdf5_message) messages;
    tdi_vec(unsigned char *) blocks; /* memory of the messages */
} tdi_hdf5_header;

/* Reads an object's header, which the caller releases even after a failure. */
td_status tdi_hdf5_header_read(tdi_hdf5_file *file, uint64_t address, tdi_hdf5_header *header, tdi_error *error);
void tdi_hdf5_header_release(tdi_hdf5_header *header); /* accepts a zeroed one */
/* The first message of a type; NULL: there is none. */
const tdi_hdf5_message *tdi_hdf5_header_find(const tdi_hdf5_header *header, unsigned type);
/* True when the object has a place for links. */
bool tdi_hdf5_is_group(const tdi_hdf5_header *header);

/* Sets *address to the object at a path, "group/name". TD_NOT_FOUND when there is none; TD_UNSUPPORTED for soft and
 * external links. */
td_status tdi_hdf5_find(tdi_hdf5_file *file, const char *path, uint64_t *address, tdi_error *error);
/* True when there is an object at the path, damaged or not. */
bool tdi_hdf5_file_has(tdi_hdf5_file *file, const char *path);
/* Counts a group's members, soft and external links included; 0 when there is no group. */
td_status tdi_hdf5_file_count(tdi_hdf5_file *file, const char *path, int64_t *count, tdi_error *error);

#endif
