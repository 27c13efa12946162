/* host.h - a process and the host on which it runs: alive or dead, frozen, with a clock of its own.
 *
 * A frozen process (SIGSTOP, or a host without a processor to spare) does nothing, while the system goes on taking what
 * comes for it: all of it, and its timers, come at once when it thaws. */
#ifndef TDI_SIM_HOST_H
#define TDI_SIM_HOST_H

#include "sim/world.h"

typedef struct tdi_sim_host {
    bool alive;
    bool powered;         /* false: nobody at the address, and nobody that says so either */
    double froze, thaws;  /* frozen from then until then */
    double rate, offset;  /* of its clock: offset + rate * now */
    uint64_t incarnation; /* of its process; 0: there has been none */
} tdi_sim_host;

/* Powered, without a process; the clock errs by up to a ten-thousandth. */
void tdi_sim_host_init(tdi_sim_host *host, tdi_world *world);
void tdi_sim_host_start(tdi_sim_host *host); /* a new incarnation */
void tdi_sim_host_kill(tdi_sim_host *host);
void tdi_sim_host_freeze(tdi_sim_host *host, double now, double until);

static inline bool tdi_sim_host_is_frozen(const tdi_sim_host *host, const tdi_world *world)
{
    return host->alive && world->now < host->thaws;
}

static inline double tdi_sim_host_clock(const tdi_sim_host *host, const tdi_world *world)
{
    return host->offset + host->rate * world->now;
}

/* True: the event is of a process that is frozen, and has been put off until it thaws; it must not be handled. */
bool tdi_sim_host_puts_off(const tdi_sim_host *host, tdi_world *world, tdi_happening *event);

#endif
