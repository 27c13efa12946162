/* amx.c - asks the system for AMX, and sets it up. */
#define _GNU_SOURCE
#include "cpu/amx.h"

#include <stdatomic.h>
#include <stdint.h>

#include "cpu/features.h"

#ifdef TANDEM_X86

#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool ask(void)
{
    enum { REQUEST = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM */
    tdi_cpu_features f = tdi_cpu_detect();
    return f.amx_bf16 && f.avx512_bf16 && syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}

/* The answer never changes, so it does no harm when two threads ask at once. */
bool tdi_amx_works(void)
{
    enum { UNKNOWN, NO, YES };
    static atomic_int known;
    if (atomic_load(&known) == UNKNOWN)
        atomic_store(&known, ask() ? YES : NO);
    return atomic_load(&known) == YES;
}

typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16]; /* in a row */
    uint8_t rows[16];
} tile_config;

__attribute__((target("amx-tile"))) void tdi_amx_begin(void)
{
    tile_config config = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        config.bytes[i] = 64;
        config.rows[i] = 16;
    }
    /* GCC 12 believes that its intrinsic reads the first bytes alone, and would drop the other stores. */
    __asm__ volatile("" : : "r"(&config) : "memory");
    _tile_loadconfig(&config);
}

__attribute__((target("amx-tile"))) void tdi_amx_end(void)
{
    _tile_release();
}

#else

bool tdi_amx_works(void)
{
    return false;
}

#endif
