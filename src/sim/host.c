/* host.c - processes that die, freeze and come back. */
#include "sim/host.h"

#define CLOCK_ERROR 1e-4

void tdi_sim_host_init(tdi_sim_host *host, tdi_world *world)
{
    *host = (tdi_sim_host){.powered = true,
                           .rate = tdi_world_between(world, 1 - CLOCK_ERROR, 1 + CLOCK_ERROR),
                           .offset = tdi_world_between(world, 0, 1000)};
}

void tdi_sim_host_start(tdi_sim_host *host)
{
    host->alive = host->powered = true;
    host->thaws = 0;
    host->incarnation++;
}

void tdi_sim_host_kill(tdi_sim_host *host)
{
    host->alive = false;
}

void tdi_sim_host_freeze(tdi_sim_host *host, double now, double until)
{
    if (now >= host->thaws)
        host->froze = now;
    if (until > host->thaws)
        host->thaws = until;
}

bool tdi_sim_host_puts_off(const tdi_sim_host *host, tdi_world *world, tdi_happening *event)
{
    if (!tdi_sim_host_is_frozen(host, world))
        return false;
    tdi_happening later = *event;
    later.at = host->thaws;
    event->bytes = NULL;
    tdi_world_add(world, later);
    return true;
}
