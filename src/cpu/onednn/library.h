/* library.h - what the CPU device says about oneDNN; a build without oneDNN answers too. */
#ifndef TDI_CPU_ONEDNN_LIBRARY_H
#define TDI_CPU_ONEDNN_LIBRARY_H

#include "cpu/cpu.h"

/* Writes "oneDNN 2.6.3 up to ISA 0xff", or "no oneDNN"; the device's identity, by which timings are stored, contains
 * it. Returns `text`. */
const char *tdi_cpu_library_name(char *text, size_t size);
/* NULL when oneDNN uses the CPU's instructions for bfloat16; else a sentence that says why it does not. */
const char *tdi_cpu_library_no_bfloat16(void);
/* Whether oneDNN uses AMX. */
bool tdi_cpu_library_has_amx(void);
/* Prints a line for `tandem doctor`. */
void tdi_cpu_describe_library(FILE *out);

#endif
