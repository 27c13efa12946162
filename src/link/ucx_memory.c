/* ucx_memory.c - memory of the engine: shared by UCX where it can be, else of this process alone. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "link/ucx_struct.h"

static bool map(const tdi_ucx *ucx, size_t bytes, tdi_ucx_memory *memory)
{
    const ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS,
                                         .length = bytes,
                                         .flags = UCP_MEM_MAP_ALLOCATE};
    ucp_mem_attr_t attributes = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH};
    ucp_context_h context = ucx->contexts[TDI_UCX_NEAR];
    if (!context || ucx->api->ucp_mem_map(context, &params, &memory->handle) != UCS_OK)
        return false;
    if (ucx->api->ucp_mem_query(memory->handle, &attributes) == UCS_OK &&
        ucx->api->ucp_rkey_pack(context, memory->handle, &memory->key, &memory->key_size) == UCS_OK) {
        memory->address = attributes.address;
        memory->size = bytes;
        return true;
    }
    (void)ucx->api->ucp_mem_unmap(context, memory->handle);
    return false;
}

bool tdi_ucx_memory_share(tdi_ucx *ucx, size_t bytes, tdi_ucx_memory *memory)
{
    *memory = (tdi_ucx_memory){0};
    pthread_mutex_lock(&ucx->lock);
    bool shared = map(ucx, bytes, memory);
    pthread_mutex_unlock(&ucx->lock);
    if (!shared)
        *memory = (tdi_ucx_memory){0};
    return shared;
}

void tdi_ucx_memory_unshare(tdi_ucx *ucx, tdi_ucx_memory *memory)
{
    if (!memory->handle)
        return;
    pthread_mutex_lock(&ucx->lock);
    ucx->api->ucp_rkey_buffer_release(memory->key);
    (void)ucx->api->ucp_mem_unmap(ucx->contexts[TDI_UCX_NEAR], memory->handle);
    pthread_mutex_unlock(&ucx->lock);
    *memory = (tdi_ucx_memory){0};
}

static bool take_own(size_t bytes, tdi_ucx_memory *memory)
{
    *memory = (tdi_ucx_memory){.size = bytes};
    if (posix_memalign(&memory->address, (size_t)sysconf(_SC_PAGESIZE), bytes) != 0)
        return false;
    memset(memory->address, 0, bytes);
    return true;
}

static void give_back(tdi_ucx *ucx, tdi_ucx_memory *memory)
{
    if (memory->handle)
        tdi_ucx_memory_unshare(ucx, memory);
    else
        free(memory->address);
}

void *tdi_ucx_memory_get(tdi_engine *engine, size_t bytes)
{
    tdi_ucx *ucx = (tdi_ucx *)engine;
    tdi_ucx_memory memory;
    bytes = bytes ? bytes : 1;
    if (!tdi_ucx_memory_share(ucx, bytes, &memory) && !take_own(bytes, &memory))
        return NULL;
    pthread_mutex_lock(&ucx->lock);
    memory.serial = atomic_load(&ucx->serial) + 1;
    bool kept = tdi_push(&ucx->memories, memory);
    if (kept)
        atomic_store(&ucx->serial, memory.serial);
    pthread_mutex_unlock(&ucx->lock);
    if (!kept)
        give_back(ucx, &memory);
    return kept ? memory.address : NULL;
}

void tdi_ucx_memory_release(tdi_engine *engine, void *address)
{
    tdi_ucx *ucx = (tdi_ucx *)engine;
    tdi_ucx_memory memory = {0};
    pthread_mutex_lock(&ucx->lock);
    for (int i = 0; address && i < ucx->memories.count; i++)
        if (ucx->memories.at[i].address == address) {
            memory = ucx->memories.at[i];
            ucx->memories.count--;
            memmove(&ucx->memories.at[i], &ucx->memories.at[i + 1],
                    (size_t)(ucx->memories.count - i) * sizeof *ucx->memories.at);
            break;
        }
    pthread_mutex_unlock(&ucx->lock);
    give_back(ucx, &memory);
}

static bool holds(const tdi_ucx_memory *memory, const void *bytes, size_t size, uint64_t *position)
{
    uintptr_t from = (uintptr_t)memory->address, at = (uintptr_t)bytes;
    if (!memory->handle || at < from || at - from > memory->size || memory->size - (at - from) < size)
        return false;
    *position = at - from;
    return true;
}

uint64_t tdi_ucx_memory_find(tdi_ucx *ucx, const void *bytes, size_t size, uint64_t *position)
{
    uint64_t serial = 0;
    pthread_mutex_lock(&ucx->lock);
    for (int i = 0; i < ucx->memories.count && !serial; i++)
        if (holds(&ucx->memories.at[i], bytes, size, position))
            serial = ucx->memories.at[i].serial;
    pthread_mutex_unlock(&ucx->lock);
    return serial;
}

static bool copy_with_key(const tdi_ucx_memory *from, tdi_ucx_memory *memory)
{
    bool shown = from->handle && from->key_size <= TDI_UCX_PIECE;
    *memory = *from;
    memory->key_size = shown ? from->key_size : 0;
    memory->key = shown ? malloc(from->key_size) : NULL;
    if (memory->key)
        memcpy(memory->key, from->key, from->key_size);
    return memory->key || !shown;
}

bool tdi_ucx_memory_next(tdi_ucx *ucx, uint64_t serial, tdi_ucx_memory *memory)
{
    bool copied = false;
    int i = 0;
    pthread_mutex_lock(&ucx->lock);
    while (i < ucx->memories.count && ucx->memories.at[i].serial <= serial)
        i++;
    if (i < ucx->memories.count)
        copied = copy_with_key(&ucx->memories.at[i], memory);
    pthread_mutex_unlock(&ucx->lock);
    return copied;
}
