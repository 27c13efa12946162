/* amx.h - AMX: eight registers of 16 rows of 64 bytes, and a product of two of them (Intel SDM vol. 1, ch. 18). */
#ifndef TDI_CPU_AMX_H
#define TDI_CPU_AMX_H

#include <stdbool.h>

/* Whether processor and operating system let this process multiply tiles of bfloat16 numbers, and round vectors to
 * them. */
bool tdi_tiles_work(void);
/* Around instructions that use them, on the thread: all eight whole, and given back. */
void tdi_tiles_begin(void);
void tdi_tiles_end(void);

#endif
