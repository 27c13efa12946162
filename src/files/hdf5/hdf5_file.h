/* hdf5_file.h - an HDF5 file, on disk or in a store, and the objects in it, read without libhdf5, which
 * crashes on many damaged files. Here every address and length is held against the file before it is used.
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

#define TDI_HDF5_UNDEFINED UINT64_MAX /* the address of what was never written */

typedef struct tdi_hdf5_file {
    char *name; /* its path, or what it is, for sentences */
    int fd;     /* -1: it lies in the store, which is borrowed */
    const tdi_store *store;
    uint64_t base, size; /* addresses count from base; size is of what follows */
    uint64_t root;       /* the root group's header */
    uint64_t budget;     /* bytes of structures that may still be read: a damaged file's may form loops */
} tdi_hdf5_file;

/* Opens a file to read. TD_NOT_FOUND, TD_IO, or TD_BAD_FILE when it is no HDF5 file. */
td_status tdi_hdf5_file_open(const char *path, tdi_hdf5_file **file, tdi_error *error);
/* The same of one that lies in a store, which stays until it is closed. */
td_status tdi_hdf5_file_in_store(const tdi_store *store, const char *name, tdi_hdf5_file **file, tdi_error *error);
void tdi_hdf5_file_close(tdi_hdf5_file *file); /* NULL is accepted */

/* TD_BAD_FILE with the file's name and the reason. */
td_status tdi_hdf5_damaged(const tdi_hdf5_file *file, const char *reason, tdi_error *error);

/* ---- bytes ---- */

/* A little-endian number. */
static inline uint64_t tdi_hdf5_number(const unsigned char *at, unsigned bytes)
{
    uint64_t value = 0;
    while (bytes-- > 0)
        value = value << 8 | at[bytes];
    return value;
}

/* Reads data, which may be large. May be called by several threads at once, as nothing else here. */
td_status tdi_hdf5_bytes(const tdi_hdf5_file *file, uint64_t address, uint64_t length, void *to, tdi_error *error);
/* Reads a structure into memory that the caller frees with free(). */
td_status tdi_hdf5_block(tdi_hdf5_file *file, uint64_t address, uint64_t length, unsigned char **block,
                         tdi_error *error);
/* The same of one that begins with a signature of 4 characters (NULL: none) and ends in a checksum. */
td_status tdi_hdf5_checked(tdi_hdf5_file *file, uint64_t address, uint64_t length, const char *signature,
                           unsigned char **block, tdi_error *error);
/* Another walk over the file's structures begins. */
void tdi_hdf5_begin(tdi_hdf5_file *file);

/* ---- objects ---- */

enum {
    TDI_HDF5_SHAPE = 0x01,
    TDI_HDF5_LINKS = 0x02, /* where a group keeps many links */
    TDI_HDF5_TYPE = 0x03,
    TDI_HDF5_OLD_FILL = 0x04,
    TDI_HDF5_FILL = 0x05,
    TDI_HDF5_LINK = 0x06,
    TDI_HDF5_EXTERNAL = 0x07,
    TDI_HDF5_LAYOUT = 0x08,
    TDI_HDF5_FILTERS = 0x0B,
    TDI_HDF5_CONTINUED = 0x10,
    TDI_HDF5_SYMBOLS = 0x11 /* an original group's names */
};

typedef struct tdi_hdf5_message {
    unsigned type;
    bool shared; /* it only says where the message is */
    const unsigned char *data;
    uint64_t size;
} tdi_hdf5_message;

typedef struct tdi_hdf5_header {
    tdi_vec(tdi_hdf5_message) messages;
    tdi_vec(unsigned char *) blocks; /* that the messages lie in */
} tdi_hdf5_header;

/* Reads an object's header; to be released even after a failure. */
td_status tdi_hdf5_header_read(tdi_hdf5_file *file, uint64_t address, tdi_hdf5_header *header, tdi_error *error);
void tdi_hdf5_header_release(tdi_hdf5_header *header); /* a zeroed one too */
/* The first message of a type; NULL: there is none. */
const tdi_hdf5_message *tdi_hdf5_header_find(const tdi_hdf5_header *header, unsigned type);

/* The address of the object at a path, "group/name". TD_NOT_FOUND when there is none; TD_UNSUPPORTED for links that
 * lead elsewhere. */
td_status tdi_hdf5_find(tdi_hdf5_file *file, const char *path, uint64_t *address, tdi_error *error);
/* Whether there is something at a path, be it good or not. */
bool tdi_hdf5_file_has(tdi_hdf5_file *file, const char *path);
/* How many members a group has, 0 where there is none; links that lead elsewhere count. */
td_status tdi_hdf5_file_count(tdi_hdf5_file *file, const char *path, int64_t *count, tdi_error *error);

#endif
