/* world.c - the queue, and the draws. */
#include "sim/world.h"

#include <stdlib.h>

void tdi_world_init(tdi_world *world, uint64_t seed)
{
    *world = (tdi_world){.random = tdi_random_create(seed, 0)};
}

void tdi_world_release(tdi_world *world)
{
    for (int i = 0; i < world->queue.count; i++)
        free(world->queue.at[i].bytes);
    tdi_vec_free(&world->queue);
}

static bool is_before(const tdi_happening *a, const tdi_happening *b)
{
    return a->at < b->at || (a->at == b->at && a->number < b->number);
}

void tdi_world_add(tdi_world *world, tdi_happening event)
{
    event.number = world->count++;
    if (event.at < world->now)
        event.at = world->now;
    if (!tdi_push(&world->queue, event)) {
        free(event.bytes);
        world->no_memory = true;
        return;
    }
    tdi_happening *heap = world->queue.at;
    int i = world->queue.count - 1;
    for (; i > 0 && is_before(&event, &heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = event;
}

static tdi_happening take_first(tdi_world *world)
{
    tdi_happening *heap = world->queue.at, first = heap[0];
    int count = --world->queue.count, i = 0;
    tdi_happening last = heap[count];
    for (int child; (child = 2 * i + 1) < count; i = child) {
        if (child + 1 < count && is_before(&heap[child + 1], &heap[child]))
            child++;
        if (!is_before(&heap[child], &last))
            break;
        heap[i] = heap[child];
    }
    if (count > 0)
        heap[i] = last;
    return first;
}

bool tdi_world_step(tdi_world *world)
{
    if (world->queue.count == 0 || world->no_memory)
        return false;
    tdi_happening event = take_first(world);
    world->now = event.at;
    world->fired++;
    event.fire(event.user, &event);
    free(event.bytes);
    return true;
}

double tdi_world_between(tdi_world *world, double low, double high)
{
    return low + (high - low) * tdi_random_uniform(&world->random);
}

int tdi_world_below(tdi_world *world, int count)
{
    return (int)tdi_random_below(&world->random, (uint64_t)count);
}

bool tdi_world_chance(tdi_world *world, double probability)
{
    return tdi_random_uniform(&world->random) < probability;
}
