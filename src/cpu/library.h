/* library.h - what the CPU device says of oneDNN, with it or without. */
#ifndef TDI_CPU_LIBRARY_H
#define TDI_CPU_LIBRARY_H

#include "cpu/cpu.h"

/* One line for `tandem doctor`. */
void tdi_cpu_describe_library(FILE *out);

#endif
