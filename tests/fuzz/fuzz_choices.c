/* fuzz_choices.c - any bytes as choices.json: loaded, or ignored and written anew, and what is then written is loaded;
 * or, of another version, left as they are. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tune/tuning_cache_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static char folder[] = "/tmp/fuzz-choices-XXXXXX", path[64];

static void remove_folder(void)
{
    unlink(path);
    rmdir(folder);
}

static void make_folder(void)
{
    if (!mkdtemp(folder) || setenv("TANDEM_CACHE", folder, 1) != 0)
        abort();
    snprintf(path, sizeof path, "%s/choices.json", folder);
    atexit(remove_folder);
}

static void put(const uint8_t *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
        abort();
}

static int holds(const uint8_t *bytes, size_t size)
{
    FILE *file = fopen(path, "rb");
    int same = file != NULL;
    for (size_t i = 0; same && i < size; i++)
        same = fgetc(file) == bytes[i];
    same = same && fgetc(file) == EOF;
    if (file)
        fclose(file);
    return same;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const tdi_tuned tuned = {.machine = "this",
                                    .key = "matmul",
                                    .count = 2,
                                    .measured = true,
                                    .used = true,
                                    .candidates = {{"quick", 1.5}, {"slow", 2.25}}};
    if (!*path)
        make_folder();
    put(bytes, size);
    for (int again = 0; again < 2; again++) {
        td_context *context = td_context_create(NULL);
        tdi_tuning_cache *cache = tdi_tuning_cache_of(context);
        if (again && !tdi_tuning_cache_find(cache, &tuned) && !holds(bytes, size))
            abort();
        tdi_tuning_cache_put(cache, &tuned);
        cache->changed = true;
        tdi_tuning_cache_save(context);
        td_context_free(context);
    }
    return 0;
}
