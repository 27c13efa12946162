/* latch.c - the first outcome holds. */
#include "comm/communicator.h"

tdi_outcome tdi_latch_outcome(tdi_latch *latch, uint32_t step, tdi_outcome outcome)
{
    uint64_t seen = atomic_load(&latch->latched), wanted = (uint64_t)step << 2 | outcome;
    if (seen >> 2 != step && (outcome == TDI_PENDING || atomic_compare_exchange_strong(&latch->latched, &seen, wanted)))
        return outcome;
    return (tdi_outcome)(seen & 3);
}
