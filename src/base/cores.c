/* cores.c - a thread's core, by its affinity. */
#define _GNU_SOURCE
#include "base/cores.h"

#include <sched.h>

uint64_t tdi_core(void)
{
    int core = sched_getcpu();
    return core >= 0 && core < 64 ? 1ull << core : 0;
}

static cpu_set_t without(cpu_set_t cores, uint64_t taken)
{
    for (size_t i = 0; i < 64; i++)
        if (taken >> i & 1)
            CPU_CLR(i, &cores);
    return cores;
}

/* Who sets the thread's cores meanwhile is to have what he set; but between two of these calls it is lost, as is `rest`
 * itself, which cannot be told from what is set here. */
void tdi_core_leave(uint64_t taken)
{
    cpu_set_t allowed, now;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    cpu_set_t rest = without(allowed, taken);
    if (CPU_COUNT(&rest) == 0 || sched_setaffinity(0, sizeof rest, &rest) != 0)
        return;
    if (sched_getaffinity(0, sizeof now, &now) == 0 && CPU_EQUAL(&now, &rest))
        sched_setaffinity(0, sizeof allowed, &allowed);
}
