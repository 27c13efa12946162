/* fuzz_text.c - any bytes as a UTF-8 text: read or refused, its samples gathered, and read again by its own recipe. */
#define _GNU_SOURCE
#include <string.h>

#include "data/source.h"
#include "support/memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void gather_last(tdi_source *source)
{
    static int32_t codes[64];
    tdi_error error = {0};
    int64_t last = source->samples - 1;
    for (int i = 0; i < tdi_source_columns(source); i++)
        source->gather(source, i, &last, 1, codes, TD_INT32, &error);
}

static char *read_text(const char *path, int64_t window, const char *recipe)
{
    tdi_source *source;
    tdi_error error = {0};
    td_open_args args = {.path = path, .window = window, .recipe = recipe};
    if (tdi_source_text.open(&args, &source, &error) != TD_OK)
        return NULL;
    gather_last(source);
    char *made = source->recipe ? strdup(source->recipe) : NULL;
    source->release(source);
    return made;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[MEMORY_PATH];
    int fd = memory_file(bytes, size, path);
    char *recipe = read_text(path, 3, NULL);
    free(recipe ? read_text(path, 0, recipe) : NULL);
    free(recipe);
    close(fd);
    return 0;
}
