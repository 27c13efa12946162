/* cpu_device.c - the CPU as a device. Devices that are opened together (cpu:0, cpu:1, ...) divide the cores among them
 * and share the memory. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/thread.h"
#include "cpu/amx.h"
#include "cpu/features.h"
#include "cpu/onednn/library.h"
#include "cpu/roofline_loops.h"
#include "cpu/vector_loops.h"

static atomic_int open_devices;
static const char *const isa_names[] = {"baseline", "AVX2", "AVX-512"};

static int count(void)
{
    return -1;
}

static void *allocate(tdi_device *device, size_t size)
{
    (void)device;
    return tdi_buffer_create(size);
}

static void release(tdi_device *device, void *buffer)
{
    (void)device;
    tdi_buffer_free(buffer);
}

static int enter_thread(tdi_device *device)
{
    (void)device;
    return tdi_cpu_enter_thread();
}

static void leave_thread(tdi_device *device, int state)
{
    (void)device;
    tdi_cpu_leave_thread(state);
}

static void close_device(tdi_device *device)
{
    atomic_fetch_sub(&open_devices, 1);
    free(device);
}

/* Cores that are left over go to the first devices. */
static int threads_of(int index, int siblings)
{
    int cores = tdi_cores_allowed();
    int threads = cores / siblings + (index < cores % siblings);
    return threads > 1 ? threads : 1;
}

static bool limit(int instruction_set)
{
    if (instruction_set >= (int)tdi_cpu_best_isa())
        return true;
    if (atomic_load(&open_devices))
        return false;
    tdi_cpu_limit((tdi_cpu_isa)instruction_set);
    return true;
}

static const char *no_bfloat16(void)
{
    tdi_cpu_features f = tdi_cpu_detect();
    return f.amx_bf16 || f.avx512_bf16 ? tdi_cpu_library_no_bfloat16() : "this CPU has neither AMX nor AVX512-BF16";
}

static td_status open_device(int index, int siblings, tdi_device **opened, tdi_error *error)
{
    if (index < 0 || index >= siblings)
        return tdi_fail(error, TD_INTERNAL, "cpu:%d of %d devices cannot be opened", index, siblings);
    tdi_device *device = calloc(1, sizeof *device);
    if (!device)
        return tdi_no_memory(error);
    *device = (tdi_device){.interface = &tdi_cpu_device,
                           .threads = threads_of(index, siblings),
                           .instruction_set = (int)tdi_cpu_best_isa(),
                           .batch_interleaved = tdi_cpu_width(tdi_cpu_best_isa()),
                           .kernels = tdi_cpu_kernels(tdi_cpu_best_isa()),
                           .no_bfloat16 = no_bfloat16(),
                           .multiplies_bfloat16 = tdi_amx_works() && tdi_cpu_library_has_amx(),
                           .allocate = allocate,
                           .release = release,
                           .convert_bytes = tdi_cpu_vector_loops()->convert_bytes,
                           .roofline = tdi_cpu_roofline_loops,
                           .enter_thread = enter_thread,
                           .leave_thread = leave_thread,
                           .close = close_device};
    char model[64], library[64];
    snprintf(device->identity, sizeof device->identity, "%s, %s, %s, Tandem %s", tdi_cpu_model(model, sizeof model),
             isa_names[tdi_cpu_best_isa()], tdi_cpu_library_name(library, sizeof library), td_version());
    snprintf(device->name, sizeof device->name, "cpu:%d", index);
    atomic_fetch_add(&open_devices, 1);
    *opened = device;
    return TD_OK;
}

/* ---- the facts that `tandem doctor` prints ---- */

static void add_name(char *text, size_t size, bool present, const char *name)
{
    size_t used = strlen(text);
    if (present)
        snprintf(text + used, size - used, "%s%s", used ? " " : "", name);
}

static void describe_features(FILE *out)
{
    tdi_cpu_features f = tdi_cpu_detect();
    char names[128] = "";
    add_name(names, sizeof names, f.avx2, "avx2");
    add_name(names, sizeof names, f.fma, "fma");
    add_name(names, sizeof names, f.avx512f, "avx512f");
    add_name(names, sizeof names, f.avx512_bf16, "avx512_bf16");
    add_name(names, sizeof names, f.avx512_fp16, "avx512_fp16");
    add_name(names, sizeof names, f.amx_bf16, "amx_bf16");
    fprintf(out, "features: %s; vector loops: %s\n", names[0] ? names : "none", isa_names[tdi_cpu_best_isa()]);
}

static void describe_cache(FILE *out, const char *name, int key)
{
    long size = sysconf(key);
    if (size > 0)
        fprintf(out, "%s: %ld KiB\n", name, size / 1024);
}

static void describe(FILE *out)
{
    char model[64];
    fprintf(out, "cpu: %s\n", tdi_cpu_model(model, sizeof model));
    describe_features(out);
    fprintf(out, "bfloat16: %s%s\n", no_bfloat16() ? "computed in float32, since " : "yes, by ",
            no_bfloat16()               ? no_bfloat16()
            : tdi_cpu_detect().amx_bf16 ? "AMX"
                                        : "AVX512-BF16");
    fprintf(out, "cores allowed: %d of %ld\n", tdi_cores_allowed(), sysconf(_SC_NPROCESSORS_ONLN));
    fprintf(out, "memory allowed: %.0f MB\n", (double)tdi_memory_allowed() * 1e-6);
#ifdef _SC_LEVEL1_DCACHE_SIZE
    describe_cache(out, "L1 data cache", _SC_LEVEL1_DCACHE_SIZE);
    describe_cache(out, "L2 cache", _SC_LEVEL2_CACHE_SIZE);
    describe_cache(out, "L3 cache", _SC_LEVEL3_CACHE_SIZE);
#endif
    tdi_cpu_describe_library(out);
}

const tdi_device_interface tdi_cpu_device = {
    .type = "cpu", .count = count, .open = open_device, .limit = limit, .describe = describe};
