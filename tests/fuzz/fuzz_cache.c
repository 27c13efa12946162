/* fuzz_cache.c - any bytes as the file of a cache: refused, or its samples read. Checksums keep nearly all bytes out,
 * so that they are also tried behind a good page of facts, with the checksum of checksums put right. */
#define _GNU_SOURCE
#include <string.h>

#include "data/source.h"
#include "data/stage/cache_file.h"
#include "files/tfrecord_file.h"
#include "support/memory_file.h"

enum {
    SAMPLES = 5,
    WIDTH = 3,
    PAGE = 4096,
    SUMS = 4 * 2 * SAMPLES,
    SIZE = PAGE + SAMPLES * (WIDTH + 1) * 4 + SUMS + 4
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const float x[SAMPLES * WIDTH] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                               y[SAMPLES] = {0, 1, 0, 1, 0};
static const float *const columns[2] = {x, y};
static const int widths[2] = {WIDTH, 1};

static tdi_source *open_source(void)
{
    tdi_source *source;
    td_arrays_args args = {.samples = SAMPLES, .x = x, .x_shape = TD_SHAPE(WIDTH), .y = y};
    if (tdi_source_arrays(&args, &source, NULL) != TD_OK)
        abort();
    return source;
}

/* A good file's bytes, made once. */
static const uint8_t *good_file(tdi_source *source)
{
    static uint8_t bytes[SIZE];
    char path[] = "/tmp/fuzz-cache-XXXXXX";
    tdi_cache_file *file;
    bool complete;
    if (bytes[0])
        return bytes;
    close(mkstemp(path));
    unlink(path);
    if (tdi_cache_file_open(path, source, &file, &complete, NULL) != TD_OK)
        abort();
    for (int column = 0; column < 2; column++)
        for (int row = 0; row < SAMPLES; row++)
            tdi_cache_file_write(file, column, row, columns[column] + row * widths[column], NULL);
    FILE *made = tdi_cache_file_complete(file, NULL) == TD_OK ? fopen(path, "rb") : NULL;
    if (!made || fread(bytes, 1, SIZE, made) != SIZE || getc(made) != EOF)
        abort();
    fclose(made);
    unlink(path);
    tdi_cache_file_close(file);
    return bytes;
}

static void read_samples(const tdi_cache_file *file)
{
    float seen[WIDTH];
    for (int column = 0; column < 2; column++)
        for (int row = 0; row < SAMPLES; row++)
            tdi_cache_file_read(file, column, row, seen, NULL);
}

static void open_bytes(tdi_source *source, const uint8_t *bytes, size_t size)
{
    char path[MEMORY_PATH];
    bool complete;
    tdi_cache_file *file;
    int fd = memory_file(bytes, size, path);
    if (tdi_cache_file_open(path, source, &file, &complete, NULL) == TD_OK) {
        read_samples(file);
        tdi_cache_file_close(file);
    }
    close(fd);
}

static void put_right(uint8_t *bytes)
{
    uint32_t sum = tdi_masked_crc(bytes + SIZE - 4 - SUMS, SUMS);
    memcpy(bytes + SIZE - 4, &sum, sizeof sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    uint8_t behind[SIZE];
    tdi_source *source = open_source();
    memcpy(behind, good_file(source), SIZE);
    open_bytes(source, bytes, size);
    memcpy(behind + PAGE, bytes, size < SIZE - PAGE ? size : SIZE - PAGE);
    put_right(behind);
    open_bytes(source, behind, SIZE);
    open_bytes(source, behind, size < SIZE ? size : SIZE);
    source->release(source);
    return 0;
}
