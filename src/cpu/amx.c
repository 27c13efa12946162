/* amx.c - asking for AMX, and setting it up. */
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

/* The answer stays the same: who asks twice at once gets it twice. */
bool tdi_tiles_work(void)
{
    enum { UNKNOWN, NO, YES };
    static atomic_int known;
    if (atomic_load(&known) == UNKNOWN)
        atomic_store(&known, ask() ? YES : NO);
    return atomic_load(&known) == YES;
}

typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16]; /* of a row */
    uint8_t rows[16];
} tile_config;

__attribute__((target("amx-tile"))) void tdi_tiles_begin(void)
{
    tile_config config = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        config.bytes[i] = 64;
        config.rows[i] = 16;
    }
    /* GCC 12's intrinsic reads only its first bytes, as GCC sees it. */
    __asm__ volatile("" : : "r"(&config) : "memory");
    _tile_loadconfig(&config);
}

__attribute__((target("amx-tile"))) void tdi_tiles_end(void)
{
    _tile_release();
}

#else

bool tdi_tiles_work(void)
{
    return false;
}

#endif
