/* device.h - what the engine knows of a device: its kernels, its memory, its lanes. */
#ifndef TDI_DEVICE_DEVICE_H
#define TDI_DEVICE_DEVICE_H

#include <stdio.h>

#include "base/error.h"
#include "device/kernel.h"

typedef struct tdi_device tdi_device;

typedef struct tdi_device_interface {
    const char *type; /* "cpu" */
    /* How many devices of the type there are to name: "cpu:0" .. "cpu:count-1"; -1: as many as asked (cores are dealt
     * out among them). */
    int (*count)(void);
    /* Opens device `index` of `siblings` of this type that are used together. The caller closes it. */
    td_status (*open)(int index, int siblings, tdi_device **device, tdi_error *error);
    /* One line per fact for `tandem doctor`. */
    void (*describe)(FILE *out);
} tdi_device_interface;

/* Every device type there is, NULL-terminated; defined by the composition root. */
extern const tdi_device_interface *const tdi_device_interfaces[];

/* Loops that do one thing as fast as the device can, on the thread that calls them: what they take is what the device's
 * kernels need at least. */
typedef struct tdi_roofline_loops {
    const char *name; /* "avx512" */
    double flops;     /* of one multiply_add, in float32 */
    void (*multiply_add)(int64_t times);
    double bfloat16_flops; /* the same of products of bfloat16 numbers; 0 and NULL: the device is not made for them */
    void (*multiply_add_bfloat16)(int64_t times);
    void (*read)(const float *data, int64_t count); /* count: a multiple of 128; data as `allocate` gives it */
    void (*update)(float *data, int64_t count);     /* reads and writes each */
} tdi_roofline_loops;

struct tdi_device {
    const tdi_device_interface *interface;
    char name[16];                    /* "cpu:0" */
    char identity[192];               /* processor, instruction set, libraries: what a timing was taken with */
    int lanes;                        /* host threads that its kernels may share work among, >= 1 */
    int abreast;                      /* samples that its kernels take side by side; 0: they do not */
    const tdi_kernel *const *kernels; /* ordered candidates, NULL-terminated */
    const char *no_bfloat16;          /* NULL: it computes faster in bfloat16; else why it does not, as in "this CPU has
                                         neither AMX nor AVX512-BF16": it is asked for float32 throughout */
    bool multiplies_bfloat16;         /* by a unit of its own, many times faster than float32 */
    /* Zeroed, 64-byte aligned; NULL when memory is out. The host and the devices used beside this one read and write it
     * in place. */
    void *(*allocate)(tdi_device *device, size_t size);
    void (*release)(tdi_device *device, void *buffer);
    /* `count` bytes as floats, each value * scale rounded once: how images become inputs. NULL: a plain loop does it.
     */
    void (*convert_bytes)(const uint8_t *from, float *to, int64_t count, double scale);
    /* The loops by which its floors are measured; not NULL. From any thread; starts none. */
    void (*roofline)(tdi_roofline_loops *loops);
    /* Around a run of kernels, on each thread that makes one: libraries are kept from starting threads of their own.
     * leave_thread gets what enter_thread returned, and puts back what the thread had. Both may be NULL. */
    int (*enter_thread)(tdi_device *device);
    void (*leave_thread)(tdi_device *device, int state);
    void (*close)(tdi_device *device);
};

#endif
