/* guarded.h - memory whose end is guarded: what stands behind it must be unchanged when it is freed, and the address
 * sanitizer catches any access from the first byte behind it on. (tdi_buffer_create itself rounds up to 64 bytes.) */
#ifndef TEST_CPU_GUARDED_H
#define TEST_CPU_GUARDED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "support/sanitized.h"

#if SANITIZED_ADDRESS
#include <sanitizer/asan_interface.h>
#define GUARDED_CLOSE(from, size) __asan_poison_memory_region(from, size)
#define GUARDED_OPEN(from, size)  __asan_unpoison_memory_region(from, size)
#else
#define GUARDED_CLOSE(from, size) ((void)(from))
#define GUARDED_OPEN(from, size)  ((void)(from))
#endif

enum { GUARD = 32 * 1024, NAN_BYTE = 0xff }; /* a float32 or bfloat16 number of such bytes is NaN */

/* Returns memory filled with NAN_BYTE. */
static void *guarded_create(size_t size)
{
    char *memory = tdi_buffer_create(size + GUARD);
    assert_non_null(memory);
    memset(memory, NAN_BYTE, size + GUARD);
    GUARDED_CLOSE(memory + size, GUARD);
    return memory;
}

/* Returns false when something was written behind the end. */
static bool guarded_free(void *memory, size_t size)
{
    const unsigned char *guard = (const unsigned char *)memory + size;
    if (!memory)
        return true;
    GUARDED_OPEN(guard, GUARD);
    bool whole = guard[0] == NAN_BYTE && memcmp(guard, guard + 1, GUARD - 1) == 0;
    tdi_buffer_free(memory);
    return whole;
}

#endif
