/* device.h - what the engine knows of a device: its memory, its threads, its kernels, its roofline. */
#ifndef TDI_DEVICE_DEVICE_H
#define TDI_DEVICE_DEVICE_H

#include <stdio.h>

#include "base/error.h"
#include "device/kernel.h"

typedef struct tdi_device tdi_device;

/* A type of device. All functions may be called from any thread that owns no step, and may block. */
typedef struct tdi_device_interface {
    const char *type; /* "cpu" */

    /* How many devices of the type can be named: "cpu:0" to "cpu:<count - 1>". -1: as many as asked for, which share
     * the hardware. */
    int (*count)(void);

    /* Opens device `index` of the `siblings` devices of this type that a context uses together. The caller closes it.
     * Fails with a sentence. */
    td_status (*open)(int index, int siblings, tdi_device **device, tdi_error *error);

    /* From now on devices of this process use no instruction set of a higher rank (tdi_device.instruction_set): those
     * of all processes that compute the same numbers have to be the same. False where a device is open, whose kernels
     * are chosen already. NULL: there is but one. */
    bool (*limit)(int instruction_set);

    /* Writes a line per fact, for `tandem doctor`. */
    void (*describe)(FILE *out);
} tdi_device_interface;

/* Every type of device, NULL-terminated; defined by the composition root. */
extern const tdi_device_interface *const tdi_device_interfaces[];

/* Loops that do one thing as fast as the device can, on the calling thread. The roofline is measured with them. */
typedef struct tdi_roofline_loops {
    const char *name; /* the instruction set: "avx512" */
    double flops;     /* of one turn of multiply_add's loop, in float32 */
    void (*multiply_add)(int64_t times);
    double bfloat16_flops; /* of one turn of multiply_add_bfloat16's; 0 and NULL: the device has no such products */
    void (*multiply_add_bfloat16)(int64_t times);
    void (*read)(const float *data, int64_t count); /* count: a multiple of 128; data: from `allocate` */
    void (*update)(float *data, int64_t count);     /* reads and writes each number */
} tdi_roofline_loops;

struct tdi_device {
    const tdi_device_interface *interface;
    char name[16];                    /* "cpu:0" */
    char identity[192];               /* processor, instruction set, libraries: the tuning cache's key of the machine */
    int threads;                      /* threads that its kernels may share work among, >= 1 */
    int instruction_set;              /* its rank among those that its kernels are made for */
    int batch_interleaved;            /* samples of a block of batch-interleaved values; 0: its kernels take none */
    const tdi_kernel *const *kernels; /* best first, NULL-terminated */
    const char *no_bfloat16;          /* why it is not faster in bfloat16 ("this CPU has neither AMX nor AVX512-BF16"),
                                         so that plans ask it for float32 throughout; NULL: it is faster */
    bool multiplies_bfloat16;         /* it has a unit for bfloat16 products, many times faster than float32 */

    /* Returns zeroed, 64-byte aligned memory, which the host and the other devices in use read and write in place;
     * NULL: out of memory. Called from any thread while a plan, a runtime or a model is made, never within a step. */
    void *(*allocate)(tdi_device *device, size_t size);
    /* Frees what allocate returned. As allocate. */
    void (*release)(tdi_device *device, void *buffer);

    /* Converts `count` bytes to floats, value * scale, rounded once: images on their way to a step's inputs. Called
     * from any thread; does not block. NULL: a plain loop does it. */
    void (*convert_bytes)(const uint8_t *from, float *to, int64_t count, double scale);

    /* Fills *loops. Called from any thread; does not block. Never NULL. */
    void (*roofline)(tdi_roofline_loops *loops);

    /* Each thread calls enter_thread before it runs kernels, and leave_thread, with what enter_thread returned, when it
     * has run them: in between libraries start no threads of their own. leave_thread restores what the thread had. Both
     * or neither may be NULL. */
    int (*enter_thread)(tdi_device *device);
    void (*leave_thread)(tdi_device *device, int state);

    /* Closes the device; nothing that it allocated may be used afterwards. */
    void (*close)(tdi_device *device);
};

#endif
