/* unroll.h - sums that stay in registers. */
#ifndef TDI_CPU_UNROLL_H
#define TDI_CPU_UNROLL_H

/* Before each loop over an array of sums that is to stay in registers: its bounds are constants after inlining, and are
 * few. GCC would otherwise unroll it so late that the array goes by way of memory, before and after the loop between.
 */
#if defined(__clang__)
#define TDI_UNROLL
#else
#define TDI_UNROLL _Pragma("GCC unroll 16")
#endif

/* The same where Clang too would unroll them so late; it demands constants. */
#if defined(__clang__)
#define TDI_UNROLL_ALL _Pragma("clang loop unroll(full)")
#else
#define TDI_UNROLL_ALL TDI_UNROLL
#endif

#endif
