/* floats.h - files of raw floats, by which scripts and programs hand each other numbers. */
#ifndef TEST_CONFORMANCE_FLOATS_H
#define TEST_CONFORMANCE_FLOATS_H

#include "must.h"

static inline size_t elements(const td_shape *shape)
{
    size_t product = 1;
    for (int i = 0; i < shape->rank; i++)
        product *= (size_t)shape->dim[i];
    return product;
}

static inline size_t count_floats(const char *path)
{
    FILE *file = must(fopen(path, "rb"), path);
    fseek(file, 0, SEEK_END);
    size_t count = (size_t)ftell(file) / sizeof(float);
    fclose(file);
    return count;
}

/* The file's first floats, which the caller frees. */
static inline float *read_floats(const char *path, size_t count)
{
    FILE *file = must(fopen(path, "rb"), path);
    float *floats = must(malloc(count * sizeof *floats + 1), path);
    if (fread(floats, sizeof *floats, count, file) != count)
        must(NULL, path);
    fclose(file);
    return floats;
}

static inline void write_floats(const char *path, const float *floats, size_t count)
{
    FILE *file = must(fopen(path, "wb"), path);
    if (fwrite(floats, sizeof *floats, count, file) != count || fclose(file) != 0)
        must(NULL, path);
}

#endif
