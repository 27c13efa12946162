/* features.h - what the running CPU can do. */
#ifndef TDI_CPU_FEATURES_H
#define TDI_CPU_FEATURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tdi_cpu_features {
    bool avx2, fma, avx512f, avx512dq, avx512bw, avx512vl, avx512_bf16, avx512_fp16, amx_bf16;
} tdi_cpu_features;

/* The features that both the CPU and the operating system support. */
tdi_cpu_features tdi_cpu_detect(void);
/* Writes the CPU's model, such as "Intel(R) Xeon(R) Processor", or "unknown"; returns `text`. */
const char *tdi_cpu_model(char *text, size_t size);
/* Bytes of a core's first-level data cache; 32 KB where the system does not tell. */
int64_t tdi_cpu_first_cache(void);

#endif
