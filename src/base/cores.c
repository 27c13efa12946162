/* cores.c - a thread's core, by its affinity. */
#define _GNU_SOURCE
#include "base/cores.h"

#include <sched.h>

typedef struct own_cores {
    bool for_good;
    cpu_set_t allowed; /* by whoever started the process */
    cpu_set_t kept;    /* those it keeps to, when it left the others for good */
} own_cores;

static _Thread_local own_cores own;

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

void tdi_core_leave(uint64_t taken)
{
    cpu_set_t now;
    if (sched_getaffinity(0, sizeof now, &now) != 0)
        return;
    if (!CPU_EQUAL(&now, &own.kept))
        own.allowed = now;
    cpu_set_t rest = without(own.allowed, taken);
    if (CPU_COUNT(&rest) == 0 || sched_setaffinity(0, sizeof rest, &rest) != 0)
        return;
    if (own.for_good)
        own.kept = rest;
    else
        sched_setaffinity(0, sizeof now, &now);
}

void tdi_core_leave_for_good(void)
{
    own.for_good = true;
}
