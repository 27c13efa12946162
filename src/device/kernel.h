/* kernel.h - one way of computing an op on a device. */
#ifndef TDI_DEVICE_KERNEL_H
#define TDI_DEVICE_KERNEL_H

#include "device/call.h"
#include "graph/op.h"

/* How sure a kernel is to be the best for a call that it takes. What is not sure is timed against the candidates after
 * it, up to the first that is sure; where nothing may be timed, the first that is not unlikely is taken. */
typedef enum tdi_doubt { TDI_SURE = 0, TDI_LIKELY, TDI_UNLIKELY } tdi_doubt;

/* Whether a kernel takes values whose samples stand abreast (tdi_value), in any mixture with values that do not: a
 * leader is a reason to lay them out so, a follower does as its neighbours do. */
typedef enum tdi_abreast { TDI_NOT_ABREAST = 0, TDI_FOLLOWS_ABREAST, TDI_LEADS_ABREAST } tdi_abreast;

/* Which calls a kernel sees at all: those with a bfloat16 operand, those with none, or both. */
typedef enum tdi_takes { TDI_TAKES_FLOAT32 = 0, TDI_TAKES_BFLOAT16, TDI_TAKES_BOTH } tdi_takes;

/* A device has an ordered list of kernels; for each op the first that does not decline is taken, the op's reference
 * last; between those in doubt the clock decides. Everything a kernel needs is settled in `prepare`; `run` allocates
 * nothing and decides nothing. */
typedef struct tdi_kernel {
    const char *name; /* "onednn conv2d", as explain shows it */
    const tdi_op *op;
    tdi_takes takes;
    bool widens;     /* computes in float32 all the same */
    unsigned splits; /* TDI_CAN_...: how it can share an output among lanes; 0: whole only */

    /* Element by element: what it makes of a stretch depends on the same stretch of inputs of the result's size, and of
     * smaller ones on all. It may then be run for any part of its share, by TDI_FLAT, and does not tell prepare's
     * share from another. */
    bool pointwise;

    /* Not NULL: shared by columns, its lanes wait for each other inside, by call->lockstep, so that all of them must
     * run at once; their calls lie side by side, lane by lane, so that one finds what another has in its scratch. This
     * makes what they make, `calls` being theirs, on one thread: the same values, bit for bit. The clock, which has no
     * such lockstep, times none: it is never in doubt. */
    void (*together)(const tdi_call *calls, int lanes);

    /* NULL when the kernel takes this call, else why not, in a few words ("float64 input"); borrowed. `call` has
     * shapes, dtypes and attributes, but no addresses. NULL function: takes all. */
    const char *(*declines)(const tdi_call *call);

    /* NULL: sure. `call` as for declines. */
    tdi_doubt (*doubts)(const tdi_call *call);

    /* NULL: not. Otherwise the device says how many stand abreast; then a lane makes the whole of a value. */
    tdi_abreast (*abreast)(const tdi_call *call);

    /* Called once per lane for its range: may set *state (released by `release`) and *scratch (bytes). A prepare that
     * fails with TD_UNSUPPORTED makes the plan fall to the next candidate, the sentence kept for explain. May be NULL.
     */
    td_status (*prepare)(const tdi_call *call, void **state, size_t *scratch, tdi_error *error);
    void (*release)(void *state);

    /* NULL: nothing. The bytes that a call, which is prepared, keeps from run to run: for what it makes of steady
     * inputs (tdi_kept). */
    size_t (*keeps)(const tdi_call *call);

    /* Makes call->out's [begin, end) of the split axis. Under TDI_DEPTH it makes the sums over [begin, end) into the
     * lane's own of call->sums, of all but what `finish` makes on this lane. */
    void (*run)(const tdi_call *call);

    /* For TDI_CAN_DEPTH, when all lanes have run: makes call->out's [begin, end) of the split axis from the other
     * lanes' sums and its own, over the depth of call->other_half. */
    void (*finish)(const tdi_call *call);
} tdi_kernel;

#endif
