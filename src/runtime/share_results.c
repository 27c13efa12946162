/* share_results.c - a job's results, packed one behind the other: whether it was stopped, the accumulators of the
 * process's shards, its rows of the states of stateful layers. */
#include "runtime/share_results.h"

#include <string.h>

#include "comm/exchange.h"

/* What is copied, and which way. */
typedef struct packing {
    tdi_runtime *runtime;
    const tdi_job *job;
    int process; /* whose results they are */
    bool out;    /* out of this process; else into it */
    char *at;    /* NULL: sizes are added up alone */
    size_t used;
} packing;

static void copy(packing *p, void *values, size_t bytes)
{
    char *there = p->at ? p->at + p->used : NULL;
    p->used += bytes;
    if (!there)
        return;
    p->out ? memcpy(there, values, bytes) : memcpy(values, there, bytes);
}

static void copy_sums(packing *p)
{
    const tdi_deal *deal = p->runtime->strategy->deal;
    size_t bytes = tdi_metric_bytes(&p->runtime->modes[p->job->mode].program.slots);
    for (int shard = deal->first_shard[p->process]; shard < deal->first_shard[p->process + 1]; shard++)
        copy(p, p->runtime->shards[shard].metrics[p->job->mode], bytes);
}

/* The process's rows of a state, [batch, units]. */
static void copy_rows(packing *p, const tdi_variable *state)
{
    const tdi_deal *deal = p->runtime->strategy->deal;
    int64_t units = state->shape.dim[state->shape.rank - 1], rows = p->job->batch;
    int64_t first = tdi_shard_first_row(rows, deal->first_shard[p->process], deal->shards);
    int64_t end = tdi_shard_first_row(rows, deal->first_shard[p->process + 1], deal->shards);
    copy(p, p->runtime->state->host_values + state->offset + first * units,
         (size_t)((end - first) * units) * sizeof(float));
}

static void copy_states(packing *p)
{
    const tdi_architecture *architecture = p->runtime->model->architecture;
    for (int i = 0; i < architecture->layers.count; i++)
        for (int s = 0; s < architecture->layers.at[i]->states.count; s++)
            copy_rows(p, architecture->layers.at[i]->states.at[s]);
}

static size_t pack(packing p)
{
    copy_sums(&p);
    copy_states(&p);
    return p.used;
}

static td_status share(tdi_runtime *runtime, const tdi_job *job, char *slots, size_t size, bool stopped,
                       tdi_error *error)
{
    const tdi_deal *deal = runtime->strategy->deal;
    char *own = slots + (size_t)deal->self * size;
    *(int64_t *)(void *)own = stopped;
    pack((packing){
        .runtime = runtime, .job = job, .process = deal->self, .out = true, .at = own, .used = sizeof(int64_t)});
    TDI_TRY(tdi_exchange_gather(runtime->strategy->exchange, slots, size, error));
    for (int process = 0; process < deal->processes; process++) {
        char *at = slots + (size_t)process * size;
        stopped = stopped || *(int64_t *)(void *)at;
        if (process != deal->self)
            pack((packing){.runtime = runtime, .job = job, .process = process, .at = at, .used = sizeof(int64_t)});
    }
    return stopped ? TD_STOPPED : TD_OK;
}

td_status tdi_share_results(tdi_runtime *runtime, const tdi_job *job, bool stopped, tdi_error *error)
{
    const tdi_deal *deal = runtime->strategy->deal;
    size_t size = 0;
    for (int process = 0; process < deal->processes; process++) {
        size_t bytes = pack((packing){.runtime = runtime, .job = job, .process = process, .used = sizeof(int64_t)});
        size = bytes > size ? bytes : size;
    }
    size = (size + sizeof(double) - 1) / sizeof(double) * sizeof(double);
    char *slots = tdi_buffer_create(size * (size_t)deal->processes);
    if (!slots)
        return tdi_no_memory(error);
    td_status status = share(runtime, job, slots, size, stopped, error);
    tdi_buffer_free(slots);
    return status;
}
