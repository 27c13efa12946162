/* folder.h - a temporary folder of a test, and files written into it. Include after cmocka.h. */
#ifndef TESTS_DATA_FOLDER_H
#define TESTS_DATA_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "support/remove_folder.h"

typedef struct folder {
    char path[256];
} folder;

static inline int folder_make(void **state)
{
    folder *made = calloc(1, sizeof *made);
    const char *base = getenv("TMPDIR");
    if (!made)
        return -1;
    snprintf(made->path, sizeof made->path, "%s/tandem-data-XXXXXX", base && base[0] ? base : "/tmp");
    *state = made;
    return mkdtemp(made->path) ? 0 : -1;
}

static inline int folder_drop(void **state)
{
    folder *made = *state;
    int left = remove_folder(made->path);
    free(made);
    return left;
}

/* The path of `name` in the folder; overwritten by the next call but three. */
static inline const char *folder_path(const folder *in, const char *name)
{
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", in->path, name);
    return path;
}

static inline void folder_write(const folder *in, const char *name, const void *bytes, size_t size)
{
    FILE *file = fopen(folder_path(in, name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static inline void folder_write_gz(const folder *in, const char *name, const void *bytes, size_t size)
{
    gzFile file = gzopen(folder_path(in, name), "wb");
    assert_non_null(file);
    if (size)
        assert_int_equal(gzwrite(file, bytes, (unsigned)size), size);
    assert_int_equal(gzclose(file), Z_OK);
}

static inline size_t folder_read(const folder *in, const char *name, void *bytes, size_t capacity)
{
    FILE *file = fopen(folder_path(in, name), "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, capacity, file);
    assert_true(feof(file) || size < capacity);
    fclose(file);
    return size;
}

#endif
