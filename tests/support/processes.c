#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "support/link_end.h"
#include "support/processes.h"

static const char *const names[MOST_PROCESSES] = {"chief", "worker 0", "worker 1", "worker 2", "worker 3"};

static td_status divide(const td_model *model, int replicas, int cores, tdi_division *division, tdi_error *error)
{
    (void)replicas, (void)cores, (void)error;
    *division = ((const group_process *)(const void *)model->compiled.strategy)->division;
    return TD_OK;
}

static td_status connect_group(const tdi_strategy *strategy, const tdi_group_spec *group, tdi_communicator **handles,
                               tdi_error *error)
{
    return tdi_exchange_connect(strategy->exchange, strategy->deal, group, handles, error);
}

static tdi_engine *make_engine(process_wires wires)
{
    tdi_engine *engine = NULL;
    tdi_error error = {0};
    if (wires == WIRES_TLS)
        engine = tdi_tls_engine();
    else if (tdi_ucx_engine(&(tdi_ucx_spec){.reach = TDI_UCX_HOST}, &engine, &error) != TD_OK)
        fail_msg("%s", error.message);
    assert_non_null(engine);
    return engine;
}

static void open_one(group_process *p, int self, int count, const int *first, int groups, int workers,
                     process_wires wires)
{
    int own = first[self + 1] - first[self];
    tdi_deal_member members[MOST_PROCESSES];
    tdi_exchange_spec spec = {.processes = count, .self = self, .names = names};
    *p = (group_process){.self = self, .engine = make_engine(wires)};
    p->division = (tdi_division){.replicas = first[count],
                                 .shards = first[count],
                                 .groups = groups,
                                 .own_first = first[self],
                                 .own = own,
                                 .workers = own < workers ? own : workers,
                                 .threads = 1};
    assert_int_equal(tdi_exchange_create(&spec, &p->exchange, NULL), TD_OK);
    for (int i = 0; i < count; i++)
        members[i] = (tdi_deal_member){.devices = first[i + 1] - first[i], .shards = first[i + 1] - first[i]};
    assert_int_equal(tdi_deal_create(members, count, self, 0, &p->deal, NULL), TD_OK);
    p->strategy = (tdi_strategy){
        .exchange = p->exchange, .deal = p->deal, .can_break = true, .divide = divide, .connect = connect_group};
    const tdi_fabric_spec fabric = {.generation = 1, .peers = count, .sinks = tdi_exchange_sinks(p->exchange)};
    assert_int_equal(p->engine->open(p->engine, &fabric, &p->fabric, NULL), TD_OK);
}

static void join(group_process *p, int peer, tdi_peer_address address)
{
    address.name = names[peer];
    assert_int_equal(p->fabric->join(p->fabric, peer, &address, &p->wires[peer], NULL), TD_OK);
}

static void join_by_link(group_process *a, group_process *b, tdi_security *security)
{
    link_end ends[2] = {0};
    link_pair_open(ends, security, security);
    link_pair_shake(ends);
    join(a, b->self, (tdi_peer_address){.link = ends[0].link});
    join(b, a->self, (tdi_peer_address){.link = ends[1].link});
}

static tdi_peer_address address_of(const group_process *p)
{
    tdi_peer_address address = {0};
    address.bytes = p->fabric->address(p->fabric, &address.size);
    return address;
}

static void join_pair(group_process *a, group_process *b, tdi_security *security)
{
    if (a->engine->takes_links) {
        join_by_link(a, b, security);
        return;
    }
    join(a, b->self, address_of(b));
    join(b, a->self, address_of(a));
}

void processes_open(group_process *processes, int count, const int *first, int groups, int workers, process_wires wires)
{
    tdi_security *security = link_security(1);
    for (int i = 0; i < count; i++)
        open_one(&processes[i], i, count, first, groups, workers, wires);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++)
            join_pair(&processes[i], &processes[j], security);
    for (int i = 0; i < count; i++)
        assert_int_equal(tdi_exchange_start(processes[i].exchange, processes[i].fabric, processes[i].wires, NULL),
                         TD_OK);
    processes[0].security = security; /* whose links all are */
}

typedef struct call {
    void (*function)(void *argument, int process);
    void *argument;
    int process;
} call;

static void *run_one(void *argument)
{
    const call *c = argument;
    c->function(c->argument, c->process);
    return NULL;
}

void processes_run(int count, void (*function)(void *argument, int process), void *argument)
{
    pthread_t threads[MOST_PROCESSES];
    call calls[MOST_PROCESSES];
    for (int i = 0; i < count; i++) {
        calls[i] = (call){function, argument, i};
        assert_int_equal(pthread_create(&threads[i], NULL, run_one, &calls[i]), 0);
    }
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

void processes_close(group_process *processes, int count)
{
    for (int i = 0; i < count; i++) {
        tdi_exchange_free(processes[i].exchange);
        tdi_deal_free(processes[i].deal);
        processes[i].engine->release(processes[i].engine);
    }
    tdi_security_free(processes[0].security);
}
