/* cache.c - td_cache: keeps samples when they are first read, in memory or in a file.
 *
 * Threads do not wait for each other: a thread that finds a sample being stored by another one reads it from the source
 * below. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/stages.h>

#include "base/machine.h"
#include "data/sample_reader.h"
#include "data/stage/cache_file.h"

enum { ABSENT, BEING_KEPT, KEPT };

typedef struct cache_source {
    tdi_sample_reader reader;
    size_t row_bytes[TDI_MAX_COLUMNS];
    char *memory[TDI_MAX_COLUMNS]; /* [samples], as stored; NULL with a file */
    tdi_cache_file *file;
    atomic_uchar *states; /* [columns][samples]: ABSENT, ... */
    _Atomic int64_t left; /* number of states that are not KEPT */
} cache_source;

static td_status recall(const cache_source *cache, int column, int64_t row, void *to, tdi_error *error)
{
    if (cache->file)
        return tdi_cache_file_read(cache->file, column, row, to, error);
    memcpy(to, cache->memory[column] + (size_t)row * cache->row_bytes[column], cache->row_bytes[column]);
    return TD_OK;
}

static td_status keep(cache_source *cache, int column, int64_t row, const void *from, tdi_error *error)
{
    if (cache->file)
        return tdi_cache_file_write(cache->file, column, row, from, error);
    memcpy(cache->memory[column] + (size_t)row * cache->row_bytes[column], from, cache->row_bytes[column]);
    return TD_OK;
}

static td_status cache_read(tdi_sample_reader *reader, int column, int64_t row, void *to, tdi_error *error)
{
    cache_source *cache = (cache_source *)reader;
    tdi_source *of = tdi_stage_below(&cache->reader.source);
    atomic_uchar *state = &cache->states[column * reader->source.samples + row];
    unsigned char absent = ABSENT;
    if (atomic_load(state) == KEPT)
        return recall(cache, column, row, to, error);
    TDI_TRY(of->gather(of, column, &row, 1, to, of->columns[column].dtype, error));
    if (!atomic_compare_exchange_strong(state, &absent, BEING_KEPT))
        return TD_OK;
    TDI_TRY(keep(cache, column, row, to, error));
    atomic_store(state, KEPT);
    bool last = atomic_fetch_sub(&cache->left, 1) == 1;
    return last && cache->file ? tdi_cache_file_complete(cache->file, error) : TD_OK;
}

static void free_cache(cache_source *cache)
{
    for (int i = 0; i < TDI_MAX_COLUMNS; i++)
        free(cache->memory[i]);
    tdi_cache_file_close(cache->file);
    free(cache->states);
    free(cache);
}

static void cache_release(tdi_source *source)
{
    cache_source *cache = (cache_source *)source;
    td_data_release(source->of);
    free_cache(cache);
}

/* ---- making it ---- */

static td_status take_memory(cache_source *cache, tdi_error *error)
{
    const tdi_source *source = &cache->reader.source;
    int64_t bytes = 0;
    bool overflow = false;
    for (int i = 0; i < tdi_source_columns(source); i++) {
        int64_t all;
        overflow |= __builtin_mul_overflow((int64_t)cache->row_bytes[i], source->samples, &all) ||
                    __builtin_add_overflow(bytes, all, &bytes);
    }
    int64_t left = tdi_memory_left();
    if (overflow || bytes > left)
        return tdi_fail(error, TD_NO_MEMORY,
                        "%s: its %" PRId64 " samples take more than the %" PRId64
                        " bytes of memory that are left: cache them in a file",
                        source->name, source->samples, left);
    for (int i = 0; i < tdi_source_columns(source); i++) {
        cache->memory[i] = malloc(cache->row_bytes[i] * (size_t)source->samples + 1);
        if (!cache->memory[i])
            return tdi_fail(error, TD_NO_MEMORY, "%s: out of memory for its %" PRId64 " samples: cache them in a file",
                            source->name, source->samples);
    }
    return TD_OK;
}

static void set_columns(cache_source *cache)
{
    tdi_source *source = &cache->reader.source;
    for (int i = 0; i < tdi_source_columns(source); i++) {
        tdi_column *column = &source->columns[i];
        cache->row_bytes[i] = tdi_column_bytes(column);
        column->scale = tdi_stored_scale(column);
        column->values = NULL;
    }
}

static td_status fill(cache_source *cache, const td_cache_args *args, tdi_error *error)
{
    tdi_source *of = tdi_stage_below(&cache->reader.source);
    int64_t states;
    bool complete = false;
    if (args->guard)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "td_cache takes one argument by position (data): name the rest, as .file = \"train.cache\"");
    if (of->drawn)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s: a cache would keep what was drawn for the first epoch: cache first, then augment or map",
                        of->name);
    TDI_TRY(tdi_source_count(of, "", NULL, error));
    states = tdi_source_columns(of) * of->samples;
    cache->reader.source.samples = of->samples;
    set_columns(cache);
    TDI_TRY(args->file ? tdi_cache_file_open(args->file, of, &cache->file, &complete, error)
                       : take_memory(cache, error));
    cache->states = malloc((size_t)states);
    if (!cache->states)
        return tdi_no_memory(error);
    memset(cache->states, complete ? KEPT : ABSENT, (size_t)states);
    atomic_init(&cache->left, complete ? 0 : states);
    return TD_OK;
}

static td_status make_cache(td_data *of, const void *args, tdi_source **source, tdi_error *error)
{
    cache_source *cache = calloc(1, sizeof *cache);
    if (!cache)
        return tdi_no_memory(error);
    tdi_stage_init(&cache->reader.source, of);
    cache->reader.source.gather = tdi_sample_reader_gather;
    cache->reader.source.release = cache_release;
    cache->reader.read = cache_read;
    td_status status = fill(cache, args, error);
    if (status == TD_OK)
        *source = &cache->reader.source;
    else
        free_cache(cache);
    return status;
}

td_data *td_cache_(const td_cache_args *args)
{
    return tdi_data_stage(args->data, &args->at, make_cache, args);
}
