/* library.h - what the CPU device says of oneDNN, with it or without. */
#ifndef TDI_CPU_ONEDNN_LIBRARY_H
#define TDI_CPU_ONEDNN_LIBRARY_H

#include "cpu/cpu.h"

/* "oneDNN 2.6.3 up to ISA 0xff", which is part of what timings are known by, or "no oneDNN". Returns `text`. */
const char *tdi_cpu_library_name(char *text, size_t size);
/* NULL when oneDNN multiplies bfloat16 numbers by the processor's instructions for them; else why it does not. */
const char *tdi_cpu_library_no_bfloat16(void);
/* Whether oneDNN multiplies bfloat16 numbers by AMX. */
bool tdi_cpu_library_has_tiles(void);
/* One line for `tandem doctor`. */
void tdi_cpu_describe_library(FILE *out);

#endif
