/* roofs_kernels.c - the loops, once per instruction set; a function's attributes say for which it is compiled, so that
 * the program builds and runs on any x86-64, and with the first set alone on other processors.
 *
 * The empty asm statements keep the compiler from seeing that the sums are never used. */
#define _GNU_SOURCE
#include "roofs_kernels.h"

#define SUMS   12 /* chains of multiply-adds at once: more than latency times units, fewer than registers */
#define UNROLL _Pragma("GCC unroll 16")

#if defined __x86_64__
#define OPAQUE(x) __asm__ volatile("" : "+v"(x))
#elif defined __aarch64__
#define OPAQUE(x) __asm__ volatile("" : "+w"(x))
#else
#define OPAQUE(x) __asm__ volatile("" : "+m"(x))
#endif

#define KERNELS(isa, bytes, attributes)                                                                                \
    typedef float vector_##isa __attribute__((vector_size(bytes), may_alias));                                         \
    attributes static void multiply_add_##isa(int64_t times)                                                           \
    {                                                                                                                  \
        vector_##isa sums[SUMS] = {{0}}, a = {0}, b = {0};                                                             \
        OPAQUE(a);                                                                                                     \
        OPAQUE(b);                                                                                                     \
        for (int64_t i = 0; i < times; i++) {                                                                          \
            UNROLL for (int s = 0; s < SUMS; s++)                                                                      \
            {                                                                                                          \
                sums[s] = sums[s] * a + b;                                                                             \
                OPAQUE(sums[s]);                                                                                       \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    attributes static void read_##isa(const float *data, size_t count)                                                 \
    {                                                                                                                  \
        const vector_##isa *values = (const vector_##isa *)(const void *)data;                                         \
        vector_##isa sums[8] = {{0}};                                                                                  \
        for (size_t i = 0; i < count / (bytes / 4); i += 8)                                                            \
            UNROLL for (size_t s = 0; s < 8; s++) sums[s] += values[i + s];                                            \
        UNROLL for (size_t s = 0; s < 8; s++) OPAQUE(sums[s]);                                                         \
    }                                                                                                                  \
    attributes static void update_##isa(float *data, size_t count)                                                     \
    {                                                                                                                  \
        vector_##isa *values = (vector_##isa *)(void *)data, a = {0};                                                  \
        OPAQUE(a);                                                                                                     \
        for (size_t i = 0; i < count / (bytes / 4); i += 8)                                                            \
            UNROLL for (size_t s = 0; s < 8; s++) values[i + s] += a;                                                  \
    }                                                                                                                  \
    static const bench_kernels isa = {.name = #isa,                                                                    \
                                      .flops = 2.0 * SUMS * (bytes / 4),                                               \
                                      .multiply_add = multiply_add_##isa,                                              \
                                      .read = read_##isa,                                                              \
                                      .update = update_##isa};

KERNELS(baseline, 16, )

#if defined __x86_64__

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

KERNELS(avx2, 32, __attribute__((target("avx2,fma"))))
KERNELS(avx512, 64, __attribute__((target("avx512f"))))

const bench_kernels *bench_kernels_of_this_cpu(void)
{
    if (__builtin_cpu_supports("avx512f"))
        return &avx512;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &avx2 : &baseline;
}

void bench_pause(void)
{
    _mm_pause();
}

/* Bit `bit` of register `which` (0: eax ... 3: edx) of CPU leaf 7. */
static bool leaf_7(unsigned part, int which, int bit)
{
    unsigned registers[4];
    if (!__get_cpuid_count(7, part, &registers[0], &registers[1], &registers[2], &registers[3]))
        return false;
    return registers[which] >> bit & 1;
}

static bool vectors_work(void)
{
    return __builtin_cpu_supports("avx512f") && leaf_7(1, 0, 5);
}

__attribute__((target("avx512f,avx512bf16"))) static void run_vectors(int64_t times)
{
    __m512 sums[SUMS];
    __m512i raw = _mm512_setzero_si512();
    OPAQUE(raw);
    __m512bh a = (__m512bh)raw;
    UNROLL for (int s = 0; s < SUMS; s++) sums[s] = _mm512_setzero_ps();
    for (int64_t i = 0; i < times; i++) {
        UNROLL for (int s = 0; s < SUMS; s++)
        {
            sums[s] = _mm512_dpbf16_ps(sums[s], a, a);
            OPAQUE(sums[s]);
        }
    }
}

const bench_bf16 bench_bf16_vectors = {vectors_work, 2.0 * SUMS * 32, run_vectors};

static bool tiles_work(void)
{
    enum { REQUEST = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM */
    return leaf_7(0, 3, 22) && leaf_7(0, 3, 24) && syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}

typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16]; /* of a row */
    uint8_t rows[16];
} tile_config;

/* Four tiles of sums, two of each factor: as a matrix product would use them. */
__attribute__((target("amx-tile,amx-bf16"))) static void run_tiles(int64_t times)
{
    tile_config config = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        config.bytes[i] = 64;
        config.rows[i] = 16;
    }
    __asm__ volatile(""
                     :
                     : "r"(&config)
                     : "memory"); /* GCC 12's intrinsic reads only its first bytes, as GCC sees it */
    _tile_loadconfig(&config);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(5);
    _tile_zero(6);
    _tile_zero(7);
    for (int64_t i = 0; i < times; i++) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_release();
}

const bench_bf16 bench_bf16_tiles = {tiles_work, 4 * 2.0 * 16 * 16 * 32, run_tiles};

#else

const bench_kernels *bench_kernels_of_this_cpu(void)
{
    return &baseline;
}

void bench_pause(void)
{
}

static bool never(void)
{
    return false;
}

static void run_nothing(int64_t times)
{
    (void)times;
}

const bench_bf16 bench_bf16_vectors = {never, 0, run_nothing};
const bench_bf16 bench_bf16_tiles = {never, 0, run_nothing};

#endif
