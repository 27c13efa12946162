/* Wires of one view: processes, which are threads here, send each other frames of all sizes at once; one that goes is
 * reported to the others, and closed fabrics write nowhere. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "link/wire.h"
#include "support/link_end.h"

enum { PROCESSES = 3, ROUNDS = 40, LARGEST = 2000000 };

static const uint32_t sizes[] = {0, 4, 4096, 65536, 16384, 1000001, 17, LARGEST};

/* One process of the view. Shards are the senders' numbers, steps the rounds. */
typedef struct process {
    int self;
    tdi_engine *engine;
    tdi_fabric *fabric;
    tdi_wire *wires[PROCESSES];
    tdi_sinks sinks;
    unsigned char *memory; /* own data, then a place for each peer's */
    int arrived, sent, lost, held, last_step[PROCESSES];
    int leaves_after; /* so many frames; 0: it stays */
    bool done;
    atomic_int *all_done;
} process;

static unsigned char *place_of(const process *p, int peer)
{
    return p->memory + (size_t)(1 + peer) * LARGEST;
}

static uint32_t size_of(int step)
{
    return sizes[step % (int)(sizeof sizes / sizeof *sizes)];
}

static tdi_sink_answer on_place(void *user, int peer, const tdi_frame *frame, void **place, tdi_error *error)
{
    process *p = user;
    const tdi_frame_expected expected = {
        {.kind = 1, .generation = 5, .step = (uint32_t)p->last_step[peer] + 1, .shard = (uint32_t)peer}, LARGEST};
    if (tdi_frame_check(frame, &expected, error) != TD_OK)
        return TDI_REFUSE;
    if (frame->step % 7 == 3 && p->held++ % 3 < 2) /* not yet */
        return TDI_HOLD;
    *place = place_of(p, peer);
    return TDI_TAKE;
}

static void on_arrived(void *user, int peer, const tdi_frame *frame, void *place)
{
    process *p = user;
    const unsigned char *bytes = place;
    for (uint32_t i = 0; i < frame->length; i += 997)
        if (bytes[i] != (unsigned char)(i * 31 + (uint32_t)peer))
            fail_msg("byte %u of %u from %d differs", i, frame->length, peer);
    p->last_step[peer] = (int)frame->step;
    p->arrived++;
}

static void on_sent(void *user, int peer, const tdi_frame *frame, const void *payload)
{
    process *p = user;
    (void)peer;
    (void)frame;
    assert_ptr_equal(payload, p->memory);
    p->sent++;
}

static void on_lost(void *user, int peer, const tdi_error *why)
{
    process *p = user;
    assert_int_equal(why->status, TD_IO);
    assert_int_not_equal(peer, p->self);
    p->lost++;
}

static void send_step(const process *p, int step)
{
    tdi_frame frame = {
        .kind = 1, .generation = 5, .shard = (uint32_t)p->self, .step = (uint32_t)step + 1, .length = size_of(step)};
    for (int peer = 0; peer < PROCESSES; peer++)
        if (peer != p->self)
            p->wires[peer]->send(p->wires[peer], &frame, p->memory);
}

static void wait_a_little(const process *p)
{
    int fd = p->fabric->sleep(p->fabric);
    if (fd >= 0)
        poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 100);
    for (int peer = 0; peer < PROCESSES; peer++)
        if (peer != p->self)
            p->wires[peer]->resume(p->wires[peer]);
}

/* What was taken over may still have to be written: nobody leaves before all have everything. */
static bool is_done(process *p)
{
    if (p->leaves_after)
        return p->arrived >= p->leaves_after;
    if (!p->done && p->arrived == ROUNDS * (PROCESSES - 1) && p->sent == ROUNDS * (PROCESSES - 1)) {
        p->done = true;
        atomic_fetch_add(p->all_done, 1);
    }
    return p->lost > 0 || atomic_load(p->all_done) == PROCESSES;
}

static void *run_process(void *argument)
{
    process *p = argument;
    for (int step = 0; step < ROUNDS; step++)
        send_step(p, step);
    while (!is_done(p))
        if (!p->fabric->pump(p->fabric))
            wait_a_little(p);
    if (p->leaves_after || p->lost)
        p->fabric->close(p->fabric);
    return NULL;
}

static void join(process *p, int peer, tdi_link *link)
{
    tdi_peer_address address = {.link = link};
    assert_int_equal(p->fabric->join(p->fabric, peer, &address, &p->wires[peer], NULL), TD_OK);
}

static void connect_pair(process *a, process *b, tdi_security *security)
{
    link_end ends[2] = {0};
    link_pair_open(ends, security, security);
    link_pair_shake(ends);
    join(a, b->self, ends[0].link);
    join(b, a->self, ends[1].link);
}

static void open_process(process *p, int self)
{
    *p = (process){.self = self, .engine = tdi_tls_engine()};
    p->sinks = (tdi_sinks){p, on_place, on_arrived, on_sent, on_lost};
    assert_non_null(p->engine);
    p->memory = p->engine->memory(p->engine, (size_t)(1 + PROCESSES) * LARGEST);
    assert_non_null(p->memory);
    for (uint32_t i = 0; i < LARGEST; i++)
        p->memory[i] = (unsigned char)(i * 31 + (uint32_t)self);
    const tdi_fabric_spec spec = {.generation = 5, .token = 1, .peers = PROCESSES, .sinks = &p->sinks};
    assert_int_equal(p->engine->open(p->engine, &spec, &p->fabric, NULL), TD_OK);
}

static void run_view(process processes[PROCESSES])
{
    tdi_security *security = link_security(1);
    pthread_t threads[PROCESSES];
    atomic_int all_done = 0;
    for (int i = 0; i < PROCESSES; i++)
        for (int j = 0; j < i; j++)
            connect_pair(&processes[i], &processes[j], security);
    for (int i = 0; i < PROCESSES; i++)
        processes[i].all_done = &all_done;
    for (int i = 0; i < PROCESSES; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_process, &processes[i]), 0);
    for (int i = 0; i < PROCESSES; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < PROCESSES; i++) {
        process *p = &processes[i];
        if (!p->leaves_after && !p->lost)
            p->fabric->close(p->fabric);
        p->engine->release_memory(p->engine, p->memory);
        p->engine->release(p->engine);
    }
    tdi_security_free(security);
}

static void all_send_to_all(void **state)
{
    (void)state;
    process processes[PROCESSES];
    for (int i = 0; i < PROCESSES; i++)
        open_process(&processes[i], i);
    run_view(processes);
    for (int i = 0; i < PROCESSES; i++)
        assert_true(processes[i].held > 0 && processes[i].lost == 0);
}

static void who_goes_is_reported(void **state)
{
    (void)state;
    for (int after = 1; after < 40; after += 6) {
        process processes[PROCESSES];
        for (int i = 0; i < PROCESSES; i++)
            open_process(&processes[i], i);
        processes[after % PROCESSES].leaves_after = after;
        run_view(processes);
        for (int i = 0; i < PROCESSES; i++)
            assert_int_equal(processes[i].lost > 0, i != after % PROCESSES);
    }
}

static void wrong_joins_are_refused(void **state)
{
    (void)state;
    process p;
    tdi_error error = {0};
    open_process(&p, 0);
    tdi_peer_address nothing = {0};
    assert_int_equal(p.fabric->join(p.fabric, 1, &nothing, &p.wires[1], &error), TD_INVALID_ARGUMENT);
    assert_null(p.wires[1]);
    p.fabric->close(p.fabric);
    p.engine->release_memory(p.engine, p.memory);
    p.engine->release_memory(p.engine, NULL);
    p.engine->release(p.engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_send_to_all), cmocka_unit_test(who_goes_is_reported),
                                       cmocka_unit_test(wrong_joins_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
