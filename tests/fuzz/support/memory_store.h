/* memory_store.h - bytes as a store. */
#ifndef TEST_FUZZ_MEMORY_STORE_H
#define TEST_FUZZ_MEMORY_STORE_H

#include <stdlib.h>

#include "files/store.h"

/* Holds a copy of them; the caller frees it. */
static inline tdi_store *memory_store(const void *bytes, size_t size, const char *name)
{
    tdi_store *store;
    tdi_error error = {0};
    if (tdi_store_create(name, (int64_t)size, &store, &error) != TD_OK ||
        tdi_store_put(store, bytes, size, &error) != TD_OK || tdi_store_end(store, &error) != TD_OK)
        abort();
    return store;
}

#endif
