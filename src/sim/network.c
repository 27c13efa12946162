/* network.c - connections, cuts, and ports that refuse. */
#include "sim/network.h"

#include <stdlib.h>
#include <string.h>

#define RETRANSMIT_SECONDS 0.2 /* within which what was held up is sent again */

void tdi_network_init(tdi_network *network, tdi_world *world, tdi_sim_host *hosts, int count, tdi_sim_ears ears)
{
    memset(network, 0, sizeof *network);
    network->world = world;
    network->hosts = hosts;
    network->count = count;
    network->ears = ears;
}

static void drop_held(tdi_sim_end *end)
{
    for (int i = 0; i < end->held.count; i++)
        free(end->held.at[i].bytes);
    end->held.count = 0;
}

void tdi_network_release(tdi_network *network)
{
    for (int a = 0; a < network->count; a++)
        for (int b = 0; b < network->count; b++) {
            drop_held(&network->end[a][b]);
            tdi_vec_free(&network->end[a][b].held);
        }
}

static double delay(tdi_network *network)
{
    return network->latency + tdi_world_between(network->world, 0, network->jitter);
}

/* Behind all that was sent before, on the same way. */
static void travel(tdi_network *network, tdi_happening event)
{
    tdi_sim_end *end = &network->end[event.from][event.to];
    if (end->cut || end->held.count) {
        if (!tdi_push(&end->held, event)) {
            free(event.bytes);
            network->world->no_memory = true;
        }
        return;
    }
    double at = network->world->now + delay(network);
    end->last = event.at = at > end->last ? at : end->last;
    tdi_world_add(network->world, event);
}

/* ---- frames and ends ---- */

static bool is_of_connection(const tdi_network *network, const tdi_happening *event)
{
    const tdi_sim_end *end = &network->end[event->to][event->from];
    return network->hosts[event->to].alive && end->up && end->session == event->name;
}

static void deliver_end(void *user, tdi_happening *event)
{
    tdi_network *network = user;
    if (tdi_sim_host_puts_off(&network->hosts[event->to], network->world, event) || !is_of_connection(network, event))
        return;
    network->end[event->to][event->from].up = false;
    network->ears.down(network->ears.user, event->to, event->from);
}

/* The system answers what comes for a connection that it does not know: so a half-open one ends. */
static void refuse(tdi_network *network, const tdi_happening *event)
{
    if (network->hosts[event->to].powered)
        travel(network,
               (tdi_happening){
                   .fire = deliver_end, .user = network, .from = event->to, .to = event->from, .name = event->name});
}

static void deliver_frame(void *user, tdi_happening *event)
{
    tdi_network *network = user;
    if (tdi_sim_host_puts_off(&network->hosts[event->to], network->world, event))
        return;
    if (!is_of_connection(network, event)) {
        refuse(network, event);
        return;
    }
    tdi_frame frame = tdi_frame_decode(event->bytes);
    network->ears.frame(network->ears.user, event->to, event->from, &frame,
                        (unsigned char *)event->bytes + TDI_FRAME_BYTES);
}

void tdi_network_send(tdi_network *network, int self, int peer, const tdi_frame *frame, const unsigned char *payload)
{
    const tdi_sim_end *end = &network->end[self][peer];
    if (!end->up)
        return;
    unsigned char *bytes = malloc(TDI_FRAME_BYTES + (size_t)frame->length);
    if (!bytes) {
        network->world->no_memory = true;
        return;
    }
    tdi_frame_encode(frame, bytes);
    if (frame->length)
        memcpy(bytes + TDI_FRAME_BYTES, payload, frame->length);
    travel(network,
           (tdi_happening){
               .fire = deliver_frame, .user = network, .from = self, .to = peer, .name = end->session, .bytes = bytes});
}

static void say_end(tdi_network *network, int self, int peer)
{
    tdi_sim_end *end = &network->end[self][peer];
    if (!end->up)
        return;
    end->up = false;
    if (network->hosts[self].powered)
        travel(network,
               (tdi_happening){.fire = deliver_end, .user = network, .from = self, .to = peer, .name = end->session});
    else
        drop_held(end);
}

void tdi_network_end(tdi_network *network, int self)
{
    for (int peer = 0; peer < network->count; peer++)
        say_end(network, self, peer);
}

void tdi_network_reset(tdi_network *network, int self, int peer)
{
    if (!network->end[self][peer].up)
        return;
    say_end(network, self, peer);
    network->ears.down(network->ears.user, self, peer);
}

/* ---- connecting ---- */

/* What was left of an earlier connection ends here. */
static void end_earlier(tdi_network *network, int self, int peer)
{
    tdi_sim_end *end = &network->end[self][peer];
    drop_held(end);
    if (!end->up)
        return;
    end->up = false;
    network->ears.down(network->ears.user, self, peer);
}

static bool can_connect(const tdi_network *network, int a, int b)
{
    const tdi_sim_host *one = &network->hosts[a], *other = &network->hosts[b];
    return one->alive && other->alive && !tdi_sim_host_is_frozen(one, network->world) &&
           !tdi_sim_host_is_frozen(other, network->world) && !network->end[a][b].cut && !network->end[b][a].cut;
}

/* Both sides have said who they are. What they do on hearing of it can end either of them. */
static void deliver_connection(void *user, tdi_happening *event)
{
    tdi_network *network = user;
    int a = event->from, b = event->to;
    if (network->hosts[a].incarnation != event->name || network->end[a][b].up || !can_connect(network, a, b))
        return;
    end_earlier(network, a, b);
    end_earlier(network, b, a);
    if (!can_connect(network, a, b))
        return;
    uint64_t session = ++network->sessions;
    network->end[a][b].session = network->end[b][a].session = session;
    network->end[a][b].up = network->end[b][a].up = true;
    network->ears.up(network->ears.user, a, b);
    if (network->hosts[a].alive && network->hosts[b].alive)
        network->ears.up(network->ears.user, b, a);
}

void tdi_network_connect(tdi_network *network, int self, int peer)
{
    tdi_world_add(network->world, (tdi_happening){.at = network->world->now + 2 * delay(network),
                                                  .fire = deliver_connection,
                                                  .user = network,
                                                  .from = self,
                                                  .to = peer,
                                                  .name = network->hosts[self].incarnation});
}

/* ---- ports ---- */

static void deliver_refusal(void *user, tdi_happening *event)
{
    tdi_network *network = user;
    if (tdi_sim_host_puts_off(&network->hosts[event->to], network->world, event))
        return;
    if (network->hosts[event->to].alive && !network->end[event->from][event->to].cut)
        network->ears.gone(network->ears.user, event->to, event->from, event->name);
}

static void deliver_probe(void *user, tdi_happening *event)
{
    tdi_network *network = user;
    const tdi_sim_host *host = &network->hosts[event->to];
    if (host->alive || !host->powered || network->end[event->from][event->to].cut)
        return;
    tdi_world_add(network->world, (tdi_happening){.at = network->world->now + delay(network),
                                                  .fire = deliver_refusal,
                                                  .user = network,
                                                  .from = event->to,
                                                  .to = event->from,
                                                  .name = event->name});
}

void tdi_network_probe(tdi_network *network, int self, int peer, uint64_t incarnation)
{
    tdi_world_add(network->world, (tdi_happening){.at = network->world->now + delay(network),
                                                  .fire = deliver_probe,
                                                  .user = network,
                                                  .from = self,
                                                  .to = peer,
                                                  .name = incarnation});
}

/* ---- cuts ---- */

void tdi_network_cut(tdi_network *network, int from, int to)
{
    network->end[from][to].cut = true;
}

void tdi_network_heal(tdi_network *network, int from, int to)
{
    tdi_sim_end *end = &network->end[from][to];
    if (!end->cut)
        return;
    end->cut = false;
    double at = network->world->now + delay(network) + tdi_world_between(network->world, 0, RETRANSMIT_SECONDS);
    if (at > end->last)
        end->last = at;
    for (int i = 0; i < end->held.count; i++) {
        end->held.at[i].at = end->last;
        tdi_world_add(network->world, end->held.at[i]);
    }
    end->held.count = 0;
}
