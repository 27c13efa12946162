/* unroll.h - loops over small arrays that shall stay in registers. */
#ifndef TDI_CPU_UNROLL_H
#define TDI_CPU_UNROLL_H

/* Stands before each loop over an array of sums that shall stay in registers; the bounds are small constants after
 * inlining. Without it GCC unrolls the loop so late that the array is stored to memory and loaded again. */
#if defined(__clang__)
#define TDI_UNROLL
#else
#define TDI_UNROLL _Pragma("GCC unroll 16")
#endif

/* The same for loops that Clang, too, would unroll too late. Clang demands that the bounds are constants. */
#if defined(__clang__)
#define TDI_UNROLL_ALL _Pragma("clang loop unroll(full)")
#else
#define TDI_UNROLL_ALL TDI_UNROLL
#endif

#endif
