/* library_onednn.c - which oneDNN this is; keeps its OpenMP to one thread in the engine's threads. */
#include <oneapi/dnnl/dnnl.h>

#include "cpu/onednn/library.h"

/* libgomp's functions; not every compiler has omp.h. */
extern int omp_get_max_threads(void);
extern void omp_set_num_threads(int threads);

int tdi_cpu_enter_thread(void)
{
    int before = omp_get_max_threads();
    omp_set_num_threads(1);
    return before;
}

void tdi_cpu_leave_thread(int state)
{
    omp_set_num_threads(state);
}

const char *tdi_cpu_library_name(char *text, size_t size)
{
    const dnnl_version_t *version = dnnl_version();
    snprintf(text, size, "oneDNN %d.%d.%d up to ISA 0x%x", version->major, version->minor, version->patch,
             (unsigned)dnnl_get_effective_cpu_isa()); /* the variable ONEDNN_MAX_CPU_ISA can lower it */
    return text;
}

/* oneDNN's bits for AMX include those for AVX512-BF16. */
const char *tdi_cpu_library_no_bfloat16(void)
{
    unsigned isa = (unsigned)dnnl_get_effective_cpu_isa(), needed = (unsigned)dnnl_cpu_isa_avx512_core_bf16;
    return (isa & needed) == needed ? NULL : "oneDNN is kept from AVX512-BF16 here, by ONEDNN_MAX_CPU_ISA or its build";
}

bool tdi_cpu_library_has_amx(void)
{
    unsigned isa = (unsigned)dnnl_get_effective_cpu_isa(), needed = (unsigned)dnnl_cpu_isa_avx512_core_amx;
    return (isa & needed) == needed;
}

void tdi_cpu_describe_library(FILE *out)
{
    const dnnl_version_t *version = dnnl_version();
    fprintf(out, "oneDNN: %d.%d.%d (convolutions of many channels, large matrix products)\n", version->major,
            version->minor, version->patch);
}
