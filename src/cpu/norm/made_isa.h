/* made_isa.h - what a kernel `shows` (tdi_kernel) of the value it is making, and what the kernel that `follows` makes
 * of that: statistics of each channel, or a batch normalization by moving statistics. Nothing where call->follower is
 * NULL. */
#ifndef TDI_CPU_NORM_MADE_ISA_H
#define TDI_CPU_NORM_MADE_ISA_H

#include "cpu/isa.h"

/* Of out, as [rows, channels], the channels [begin, end); rows before `row` have been shown, and the statistics of the
 * groups before `group` are there. */
typedef struct tdi_made {
    const tdi_call *follower;
    int64_t row, begin, end, group;
    void *room;
} tdi_made;

/* What they need of the scratch, where doubles may stand. */
size_t TDI_ISA_NAME(tdi_made_bytes)(int64_t channels);

tdi_made TDI_ISA_NAME(tdi_made_none)(const tdi_call *call, int64_t row, int64_t channel, int64_t channels, void *room);
void TDI_ISA_NAME(tdi_made_until)(tdi_made *made, int64_t row);
void TDI_ISA_NAME(tdi_made_all)(tdi_made *made);

#endif
