/* mixed.c - wires of two engines in one fabric: by UCX to whom it reaches, by TLS to all others.
 *
 * A peer is joined by the engine that its address is for: one with a link by TLS, one with bytes by UCX. Both
 * fabrics are moved in turn, and waited for by one descriptor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "link/wire.h"

typedef struct mixed_engine {
    tdi_engine engine;
    tdi_engine *near, *far;
} mixed_engine;

typedef struct mixed_fabric {
    tdi_fabric fabric;
    tdi_fabric *near, *far;
    int epoll;      /* of both; -1: not made yet */
    int watched[2]; /* descriptors in it */
} mixed_fabric;

static void *mixed_memory(tdi_engine *engine, size_t bytes)
{
    tdi_engine *near = ((mixed_engine *)engine)->near;
    return near->memory(near, bytes);
}

static void mixed_release_memory(tdi_engine *engine, void *memory)
{
    tdi_engine *near = ((mixed_engine *)engine)->near;
    near->release_memory(near, memory);
}

static const void *mixed_address(tdi_fabric *fabric, size_t *size)
{
    tdi_fabric *near = ((mixed_fabric *)fabric)->near;
    return near->address(near, size);
}

static td_status mixed_join(tdi_fabric *fabric, int peer, const tdi_peer_address *address, tdi_wire **wire,
                            tdi_error *error)
{
    mixed_fabric *mixed = (mixed_fabric *)fabric;
    tdi_fabric *of = address->link ? mixed->far : mixed->near;
    return of->join(of, peer, address, wire, error);
}

static bool mixed_pump(tdi_fabric *fabric)
{
    mixed_fabric *mixed = (mixed_fabric *)fabric;
    bool near = mixed->near->pump(mixed->near), far = mixed->far->pump(mixed->far);
    return near || far;
}

/* Descriptors stay the same as a rule. */
static bool watch(mixed_fabric *mixed, int which, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (mixed->watched[which] == fd)
        return true;
    if (mixed->watched[which] >= 0)
        epoll_ctl(mixed->epoll, EPOLL_CTL_DEL, mixed->watched[which], NULL);
    mixed->watched[which] = fd;
    return epoll_ctl(mixed->epoll, EPOLL_CTL_ADD, fd, &event) == 0 || errno == EEXIST;
}

static int mixed_sleep(tdi_fabric *fabric)
{
    mixed_fabric *mixed = (mixed_fabric *)fabric;
    int far = mixed->far->sleep(mixed->far), near = far < 0 ? -1 : mixed->near->sleep(mixed->near);
    if (near < 0 || !watch(mixed, 0, near) || !watch(mixed, 1, far))
        return -1;
    return mixed->epoll;
}

static void mixed_close(tdi_fabric *fabric)
{
    mixed_fabric *mixed = (mixed_fabric *)fabric;
    if (mixed->near)
        mixed->near->close(mixed->near);
    if (mixed->far)
        mixed->far->close(mixed->far);
    if (mixed->epoll >= 0)
        close(mixed->epoll);
    free(mixed);
}

static td_status mixed_open(tdi_engine *engine, const tdi_fabric_spec *spec, tdi_fabric **fabric, tdi_error *error)
{
    const mixed_engine *of = (const mixed_engine *)engine;
    mixed_fabric *made = calloc(1, sizeof *made);
    *fabric = NULL;
    if (!made)
        return tdi_no_memory(error);
    *made = (mixed_fabric){.fabric = {mixed_address, mixed_join, mixed_pump, mixed_sleep, mixed_close},
                           .epoll = epoll_create1(EPOLL_CLOEXEC),
                           .watched = {-1, -1}};
    td_status status = made->epoll < 0 ? tdi_fail(error, TD_IO, "epoll_create1: %s", strerror(errno)) : TD_OK;
    if (status == TD_OK)
        status = of->near->open(of->near, spec, &made->near, error);
    if (status == TD_OK)
        status = of->far->open(of->far, spec, &made->far, error);
    if (status != TD_OK) {
        mixed_close(&made->fabric);
        return status;
    }
    *fabric = &made->fabric;
    return TD_OK;
}

static void mixed_release(tdi_engine *engine)
{
    mixed_engine *mixed = (mixed_engine *)engine;
    if (mixed->near)
        mixed->near->release(mixed->near);
    if (mixed->far)
        mixed->far->release(mixed->far);
    free(mixed);
}

td_status tdi_mixed_engine(const tdi_ucx_spec *spec, tdi_engine **engine, tdi_error *error)
{
    mixed_engine *made = calloc(1, sizeof *made);
    *engine = NULL;
    if (!made)
        return tdi_no_memory(error);
    made->engine = (tdi_engine){.name = "UCX and TLS",
                                .takes_links = true,
                                .encrypts = true,
                                .memory = mixed_memory,
                                .release_memory = mixed_release_memory,
                                .open = mixed_open,
                                .release = mixed_release};
    td_status status = tdi_ucx_engine(spec, &made->near, error);
    if (status == TD_OK && !(made->far = tdi_tls_engine()))
        status = tdi_no_memory(error);
    if (status == TD_OK)
        *engine = &made->engine;
    else
        mixed_release(&made->engine);
    return status;
}
