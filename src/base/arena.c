/* arena.c - chunks of doubling size, freed together. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "base/machine.h"

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

/* Buffers begin at eight different places of a page. Zen's first-level cache cannot hold two lines whose addresses
 * differ in certain pairs of bits (AMD's "linear address utags"): at an unlucky distance, weights and slots, read side
 * by side, would throw each other out, and an update take three times as long. */
enum { LINE = 64, PAGE = 4096, STEP = 1536 };

static size_t next_place(void)
{
    static atomic_uint made;
    return atomic_fetch_add(&made, 1) * STEP % PAGE;
}

/* Where pages of 2 MB are to be had, large buffers take them: far fewer to look up, and to be given one by one. */
enum { LARGE_PAGE = 2 << 20 };

/* What has been freed may still be held by malloc, and count as taken. */
static bool is_left(size_t size)
{
    if (!tdi_memory_suffices(size))
        tdi_buffers_trim();
    return tdi_memory_suffices(size);
}

static char *lines_for(size_t size)
{
    bool large = size >= (size_t)2 * LARGE_PAGE;
    void *start = NULL;
    if (large && !is_left(size))
        return NULL;
    if (posix_memalign(&start, large ? LARGE_PAGE : LINE, size) != 0)
        return NULL;
#ifdef MADV_HUGEPAGE
    if (large)
        madvise(start, size, MADV_HUGEPAGE);
#endif
    return start;
}

void *tdi_buffer_create(size_t size)
{
    if (size > SIZE_MAX - PAGE - 2 * LINE)
        return NULL;
    size_t before = LINE + next_place();
    size = size ? (size + LINE - 1) / LINE * LINE : LINE;
    char *start = lines_for(before + size);
    if (!start)
        return NULL;
    memcpy(start + before - sizeof start, &start, sizeof start);
    return memset(start + before, 0, size);
}

void tdi_buffer_free(void *buffer)
{
    char *start = NULL;
    if (buffer)
        memcpy(&start, (char *)buffer - sizeof start, sizeof start);
    free(start);
}

void tdi_buffers_trim(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}
