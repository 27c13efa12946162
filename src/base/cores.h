/* cores.h - which core a thread is on, and how it leaves one to another thread. */
#ifndef TDI_BASE_CORES_H
#define TDI_BASE_CORES_H

#include <stdint.h>

/* A bit for the calling thread's core; 0 beyond the 64th, which are not told apart. */
uint64_t tdi_core(void);

/* Moves the calling thread to a core that it may use and that is not `taken`, if there is one; it may use the same
 * cores as before when it has moved. The system may wake a thread on the core of the one that woke it though another is
 * idle, and leave it there for milliseconds: on virtual machines, whose idle cores pass for taken by others, it does so
 * each time. */
void tdi_core_leave(uint64_t taken);

#endif
