/* arena.h - memory that is freed all at once. */
#ifndef TDI_BASE_ARENA_H
#define TDI_BASE_ARENA_H

#include <stddef.h>

typedef struct tdi_arena tdi_arena;

tdi_arena *tdi_arena_create(void); /* NULL when memory is out */
void tdi_arena_free(tdi_arena *arena);

/* Zeroed memory aligned to 16 bytes; NULL when memory is out. */
void *tdi_alloc(tdi_arena *arena, size_t size);
/* A copy of a string; NULL for NULL. */
char *tdi_strdup(tdi_arena *arena, const char *text);
__attribute__((format(printf, 2, 3))) char *tdi_format(tdi_arena *arena, const char *format, ...);

#define TDI_NEW(arena, type)              ((type *)tdi_alloc((arena), sizeof(type)))
#define TDI_NEW_ARRAY(arena, type, count) ((type *)tdi_alloc((arena), sizeof(type) * (size_t)(count)))

/* Zeroed buffers for numbers, aligned to 64 bytes. NULL when memory is out, when a large one needs more than is left to
 * the process, or when the size overflows. */
void *tdi_buffer_create(size_t size);
void tdi_buffer_free(void *buffer);
/* What has been freed goes back to the system as far as it can, after much that was needed for a while. */
void tdi_buffers_trim(void);

#endif
