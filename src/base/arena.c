/* arena.c - chunks of doubling size, freed together. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct chunk {
    struct chunk *next;
    size_t used, size;
    _Alignas(16) unsigned char bytes[];
} chunk;

struct tdi_arena {
    chunk *newest;
};

tdi_arena *tdi_arena_create(void)
{
    return calloc(1, sizeof(tdi_arena));
}

void tdi_arena_free(tdi_arena *arena)
{
    if (!arena)
        return;
    for (chunk *c = arena->newest, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    free(arena);
}

static chunk *chunk_add(tdi_arena *arena, size_t need)
{
    size_t size = arena->newest ? 2 * arena->newest->size : 4096;
    if (size > (1u << 20))
        size = 1u << 20;
    if (size < need)
        size = need;
    chunk *c = calloc(1, sizeof *c + size);
    if (c) {
        c->size = size;
        c->next = arena->newest;
        arena->newest = c;
    }
    return c;
}

void *tdi_alloc(tdi_arena *arena, size_t size)
{
    if (!arena || size > SIZE_MAX / 2)
        return NULL;
    size = size ? (size + 15) & ~(size_t)15 : 16;
    chunk *c = arena->newest;
    if (!c || c->size - c->used < size)
        c = chunk_add(arena, size);
    if (!c)
        return NULL;
    void *p = c->bytes + c->used;
    c->used += size;
    return p;
}

char *tdi_strdup(tdi_arena *arena, const char *text)
{
    if (!text)
        return NULL;
    size_t size = strlen(text) + 1;
    char *copy = tdi_alloc(arena, size);
    return copy ? memcpy(copy, text, size) : NULL;
}

char *tdi_format(tdi_arena *arena, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    char *text = length >= 0 ? tdi_alloc(arena, (size_t)length + 1) : NULL;
    if (text)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(args);
    return text;
}

void *tdi_buffer_create(size_t size)
{
    if (size > SIZE_MAX - 64)
        return NULL;
    size = size ? (size + 63) & ~(size_t)63 : 64;
    void *buffer = aligned_alloc(64, size);
    return buffer ? memset(buffer, 0, size) : NULL;
}

void tdi_buffer_free(void *buffer)
{
    free(buffer);
}
