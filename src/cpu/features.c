/* features.c - what the running CPU can do, by CPUID and, for register state, XGETBV (Intel SDM vol. 1, ch. 13-14). */
#include "cpu/features.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cpu/cpu.h"

#ifdef TANDEM_X86
#include <cpuid.h>

static bool bit(unsigned word, int number)
{
    return word >> number & 1u;
}

/* The register states that the operating system saves, as bits of XCR0. */
static uint64_t saved_states(void)
{
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !bit(c, 27))
        return 0;
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

tdi_cpu_features tdi_cpu_detect(void)
{
    const uint64_t ymm = 0x6, zmm = 0xe6, tiles = 0x60000;
    tdi_cpu_features f = {0};
    unsigned a = 0, b = 0, c = 0, d = 0;
    uint64_t saved = saved_states();
    bool avx = (saved & ymm) == ymm, avx512 = (saved & zmm) == zmm;
    if (__get_cpuid(1, &a, &b, &c, &d))
        f.fma = avx && bit(c, 12);
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
        return f;
    f.avx2 = avx && bit(b, 5);
    f.avx512f = avx512 && bit(b, 16);
    f.avx512dq = avx512 && bit(b, 17);
    f.avx512bw = avx512 && bit(b, 30);
    f.avx512vl = avx512 && bit(b, 31);
    f.avx512_fp16 = avx512 && bit(d, 23);
    f.amx_bf16 = (saved & tiles) == tiles && bit(d, 22) && bit(d, 24);
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d))
        f.avx512_bf16 = avx512 && bit(a, 5);
    return f;
}

const char *tdi_cpu_model(char *text, size_t size)
{
    unsigned words[12] = {0};
    char name[sizeof words + 1] = "unknown";
    if ((unsigned)__get_cpuid_max(0x80000000u, NULL) >= 0x80000004u) {
        for (unsigned i = 0; i < 3; i++)
            __get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2], &words[4 * i + 3]);
        memcpy(name, words, sizeof words);
        name[sizeof words] = '\0';
    }
    snprintf(text, size, "%s", name + strspn(name, " "));
    return text;
}

/* What tdi_cpu_limit allows. Changed while no device is open. */
static tdi_cpu_isa highest = TDI_CPU_AVX512;

void tdi_cpu_limit(tdi_cpu_isa isa)
{
    highest = isa < highest ? isa : highest;
}

/* Hot paths call this. It asks the compiler's start-up code, which has looked already: CPUID itself may be trapped by a
 * virtual machine. */
tdi_cpu_isa tdi_cpu_best_isa(void)
{
    if (highest == TDI_CPU_BASELINE || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return TDI_CPU_BASELINE;
    bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    tdi_cpu_isa best = avx512 ? TDI_CPU_AVX512 : TDI_CPU_AVX2;
    return best < highest ? best : highest;
}

#else

tdi_cpu_features tdi_cpu_detect(void)
{
    return (tdi_cpu_features){0};
}

const char *tdi_cpu_model(char *text, size_t size)
{
    snprintf(text, size, "unknown");
    return text;
}

void tdi_cpu_limit(tdi_cpu_isa isa)
{
    (void)isa;
}

tdi_cpu_isa tdi_cpu_best_isa(void)
{
    return TDI_CPU_BASELINE;
}

#endif

int64_t tdi_cpu_first_cache(void)
{
    long size = 0;
#ifdef _SC_LEVEL1_DCACHE_SIZE
    size = sysconf(_SC_LEVEL1_DCACHE_SIZE);
#endif
    return size > 0 ? size : 32768;
}
