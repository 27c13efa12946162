/* world.h - virtual time: a queue of events by (time, number), and the draws of one seed.
 *
 * Nothing here or in what is built on it looks at a clock, at addresses or at memory it has not written: a run is a
 * function of its seed. */
#ifndef TDI_SIM_WORLD_H
#define TDI_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/rng.h"
#include "base/vec.h"

/* What happens at a time. Which numbers mean what is for `fire` to know. */
typedef struct tdi_happening tdi_happening;
struct tdi_happening {
    double at;       /* seconds */
    uint64_t number; /* events of one time happen in the order in which they were added */
    void (*fire)(void *user, tdi_happening *event);
    void *user;
    int from, to;
    uint64_t name;
    void *bytes; /* freed after `fire` by free(), which may take it away by setting it to NULL */
};

typedef struct tdi_world {
    double now;
    uint64_t count; /* events that have been added */
    uint64_t fired;
    bool no_memory;
    tdi_random random;
    tdi_vec(tdi_happening) queue; /* a heap */
} tdi_world;

void tdi_world_init(tdi_world *world, uint64_t seed);
void tdi_world_release(tdi_world *world);

/* Adds an event; its `at` is not before now. When memory is out the world has no_memory, and the run is void. */
void tdi_world_add(tdi_world *world, tdi_happening event);
/* Fires the next event and makes its time now. False: there is none, or memory is out. */
bool tdi_world_step(tdi_world *world);

/* Draws: evenly from [low, high); true once in `count`. */
double tdi_world_between(tdi_world *world, double low, double high);
int tdi_world_below(tdi_world *world, int count);
bool tdi_world_chance(tdi_world *world, double probability);

#endif
