/* kernel.h - one implementation of an op on a device.
 *
 * A device has one ordered list of kernels, best first. For each step the plan asks those of the step's op in that
 * order, and takes the first that does not decline, or, between kernels that are not sure to be the best, the one that
 * a kernel trial finds fastest; the op's reference serves when all decline. All is decided in `prepare`: `run`
 * allocates nothing, and waits only where its threads wait for each other (call->lockstep). A library that runs out of
 * memory in `run` fails the step (tdi_call_fail). */
#ifndef TDI_DEVICE_KERNEL_H
#define TDI_DEVICE_KERNEL_H

#include "device/call.h"
#include "graph/op.h"

/* A kernel's confidence that it is the fastest for a call. A kernel that is not sure is timed against the candidates
 * behind it, up to the first that is sure. Where nothing may be timed, the first candidate that is not unlikely is
 * taken. */
typedef enum tdi_confidence { TDI_SURE = 0, TDI_LIKELY, TDI_UNLIKELY } tdi_confidence;

/* Whether a kernel takes batch-interleaved values (tdi_value), in any mixture with values that are row after row. One
 * that prefers them is a reason to lay values out so; one that accepts them does as its neighbours do. */
typedef enum tdi_batch_interleaving {
    TDI_NO_INTERLEAVING = 0,
    TDI_ACCEPTS_INTERLEAVING,
    TDI_PREFERS_INTERLEAVING
} tdi_batch_interleaving;

/* The calls that a kernel is asked about: those without a bfloat16 value, those with one, or both. */
typedef enum tdi_takes { TDI_TAKES_FLOAT32 = 0, TDI_TAKES_BFLOAT16, TDI_TAKES_BOTH } tdi_takes;

/* Functions that look at a call to choose (declines, confidence, interleaving, prepare, packed_cache_bytes) are called
 * by the one thread that makes the plan. They get shapes, dtypes and attributes but no addresses. None may block. */
typedef struct tdi_kernel {
    const char *name; /* as explain shows it: "onednn conv2d" */
    const tdi_op *op;
    tdi_takes takes;
    bool widens;     /* it computes bfloat16 calls in float32 */
    unsigned splits; /* TDI_CAN_...: how threads can share its output; 0: one thread makes it all */

    /* Returns why the kernel cannot take the call, in a few words that explain shows ("float64 input"), borrowed; NULL:
     * it can. NULL function: it takes every call. */
    const char *(*declines)(const tdi_call *call);

    /* NULL function: sure. Asked of calls that were not declined. */
    tdi_confidence (*confidence)(const tdi_call *call);

    /* NULL function: none. Asked before the values' layouts are chosen. The device says how many samples a block has
     * (tdi_device); one thread makes the whole of a batch-interleaved value. */
    tdi_batch_interleaving (*interleaving)(const tdi_call *call);

    /* Prepares one thread's call, for its range: may set *state and *scratch, the bytes of scratch that run needs.
     * Fails with TD_UNSUPPORTED and a sentence when the range does not suit the kernel: the plan then asks the next
     * candidate, and explain shows the sentence. Any other failure (TD_NO_MEMORY) fails the plan. NULL: nothing to
     * prepare. */
    td_status (*prepare)(const tdi_call *call, void **state, size_t *scratch, tdi_error *error);

    /* Frees what prepare set *state to; called once for each call that was prepared, when the plan is freed. NULL:
     * there is nothing to free. */
    void (*release)(void *state);

    /* Bytes of the call's packed-weight cache: what run packs of constant inputs and finds again at its next run
     * (tdi_packed_cache). Asked behind prepare. 0 or NULL: no cache. */
    size_t (*packed_cache_bytes)(const tdi_call *call);

    /* Makes call->out's [begin, end) of the split axis. Called at each step by each thread that shares it, at the same
     * time as the others. Under TDI_DEPTH it sums over [begin, end) of the depth into its own of call->sums, all but
     * what `finish` makes on the same thread. May wait for the other threads only by call->lockstep, and only where
     * run_serially is set. Never NULL. */
    void (*run)(const tdi_call *call);

    /* Under TDI_DEPTH: makes call->out's [begin, end) of the split axis, from the other threads' sums and its own over
     * the depth of call->other_half. Called when all threads' runs have returned. NULL: no TDI_CAN_DEPTH. */
    void (*finish)(const tdi_call *call);

    /* Set when column-split threads synchronize inside run, by call->lockstep: all of them must then run at once. This
     * is the bit-identical serial version: it makes the shares of all threads on the calling one, `calls` [threads]
     * being theirs, side by side as the plan has them. Such a kernel must be sure: a trial has no lockstep. NULL: run
     * waits for nobody. */
    void (*run_serially)(const tdi_call *calls, int threads);
} tdi_kernel;

#endif
