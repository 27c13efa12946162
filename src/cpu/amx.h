/* amx.h - AMX: eight tile registers of 16 rows of 64 bytes, and instructions that multiply two of them (Intel SDM vol.
 * 1, ch. 18). */
#ifndef TDI_CPU_AMX_H
#define TDI_CPU_AMX_H

#include <stdbool.h>

/* Whether CPU and operating system let this process multiply tiles of bfloat16 values, and round vectors to bfloat16.
 * The first call asks the system for permission, which holds for all threads. */
bool tdi_amx_works(void);
/* A thread calls these around its AMX instructions: `begin` configures all eight tiles at their full size, `end`
 * releases them. */
void tdi_amx_begin(void);
void tdi_amx_end(void);

#endif
