/* roofline.h - what the threads of a step can do at most, all at once: operations a second, and bytes a second by the
 * size of the data; and from them a floor, the least time for so many operations and bytes. */
#ifndef TDI_PROFILE_ROOFLINE_H
#define TDI_PROFILE_ROOFLINE_H

#include "base/thread.h"
#include "device/device.h"

enum { TDI_ROOFLINE_SIZES = 16, TDI_LEAST_ROOFLINE_SIZE = 1 << 13 }; /* 8 KiB, doubled up to 256 MiB */

/* Of all threads together. Bytes that are read and then written count twice. */
typedef struct tdi_roofline {
    int threads;
    double flops;
    double bfloat16_flops; /* 0: not measured */
    int sizes;             /* size i is TDI_LEAST_ROOFLINE_SIZE << i bytes of data of each thread's own */
    double read[TDI_ROOFLINE_SIZES], update[TDI_ROOFLINE_SIZES];
} tdi_roofline;

/* The first `threads` of an idle team, as the device's loops keep them busy; for data of up to `bytes` a thread. Takes
 * some tenths of a second. */
td_status tdi_roofline_measure(const tdi_device *device, tdi_team *team, int threads, bool bfloat16, double bytes,
                               tdi_roofline *roofline, tdi_error *error);

/* Bytes a second over `bytes` of data, shared by the threads. */
double tdi_roofline_bandwidth(const tdi_roofline *roofline, double bytes);

/* What an op asks for. */
typedef struct tdi_demand {
    double flops, bytes;
    double kept_bytes; /* of `bytes`: of weights and slots, which come from as far as the step's data reaches */
    bool bfloat16;     /* its products are of bfloat16 numbers */
} tdi_demand;

/* Operations over the peak, or bytes over the bandwidth, whichever is longer: the smaller hides behind it. Bytes that
 * the step has made are moved as fast as the op's own data may lie, the kept ones as fast as the data of the whole
 * step, `in_use` bytes. */
typedef struct tdi_floor {
    double seconds;
    bool by_memory;
} tdi_floor;
tdi_floor tdi_floor_of(const tdi_roofline *roofline, const tdi_demand *demand, double in_use);

#endif
