/* features.h - what the running CPU can do. */
#ifndef TDI_CPU_FEATURES_H
#define TDI_CPU_FEATURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tdi_cpu_features {
    bool avx2, fma, avx512f, avx512dq, avx512bw, avx512vl, avx512_bf16, avx512_fp16, amx_bf16;
} tdi_cpu_features;

/* What CPU and operating system both support. */
tdi_cpu_features tdi_cpu_detect(void);
/* "Intel(R) Xeon(R) Processor"; "unknown" where it cannot be told. Returns `text`. */
const char *tdi_cpu_model(char *text, size_t size);
/* Bytes of a core's first data cache; 32 KB where it cannot be told. */
int64_t tdi_cpu_first_cache(void);

#endif
