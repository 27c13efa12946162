/* group.c - agreement before the first step, and between steps.
 *
 * Every process computes the whole update, so they stay alike only where their callbacks do alike: that is checked
 * where they agree on the next steps. */
#include "train/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/tfrecord_file.h"
#include "strategy/multi_worker.h"
#include "train/backup/run_contents.h"

bool tdi_is_chief(const td_model *model)
{
    const td_cluster *cluster = tdi_cluster_of(model);
    return !cluster || td_cluster_is_chief(cluster);
}

td_callback **tdi_group_callbacks(const td_model *model, td_callback *const *callbacks, tdi_error *error)
{
    int count = 0, kept = 0;
    while (callbacks && callbacks[count])
        count++;
    td_callback **list = callbacks ? calloc((size_t)count + 1, sizeof *list) : NULL;
    for (int i = 0; list && i < count; i++)
        if (!callbacks[i]->writes || tdi_is_chief(model))
            list[kept++] = callbacks[i];
    if (callbacks && !list)
        tdi_no_memory(error);
    return list;
}

/* ---- agreement ---- */

static td_status refuse(const td_cluster *cluster, int member, const tdi_facts_difference *found, tdi_error *error)
{
    return tdi_fail(error, TD_INVALID_ARGUMENT,
                    "%s and the chief disagree on the %s: %s there, %s at the chief; give all processes the same",
                    td_cluster_task_name(cluster, member), found->about, found->after, found->before);
}

static bool is_same_call(json_t *chiefs, json_t *theirs)
{
    return json_is_object(chiefs) && json_is_object(theirs) &&
           json_equal(json_object_get(chiefs, "call"), json_object_get(theirs, "call"));
}

static td_status compare(const td_cluster *cluster, const tdi_shared *all, tdi_error *error)
{
    tdi_facts_difference found;
    td_status status = TD_OK;
    json_t *chiefs = json_loadb(all[0].bytes, all[0].size, 0, NULL);
    for (int i = 1; i < cluster->members && status == TD_OK; i++) {
        json_t *theirs = json_loadb(all[i].bytes, all[i].size, 0, NULL);
        if (!is_same_call(chiefs, theirs))
            status = tdi_fail(error, TD_INVALID_ARGUMENT,
                              "%s and the chief are at different calls: all processes make the same calls",
                              td_cluster_task_name(cluster, i));
        else if (tdi_facts_differ(chiefs, theirs, &found))
            status = refuse(cluster, i, &found, error);
        json_decref(theirs);
    }
    json_decref(chiefs);
    return status;
}

static td_status agree(td_cluster *cluster, const json_t *facts, tdi_error *error)
{
    char *text = json_dumps(facts, JSON_COMPACT | JSON_REAL_PRECISION(17));
    tdi_shared *all = calloc((size_t)cluster->members, sizeof *all);
    td_status status = text && all ? tdi_cluster_share(cluster, text, strlen(text), all, error) : tdi_no_memory(error);
    if (status == TD_OK)
        status = compare(cluster, all, error);
    if (all)
        tdi_shared_free(all, cluster->members);
    free(all);
    free(text);
    return status;
}

static void add_number(json_t *facts, const char *about, int64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)number);
    json_object_set_new(facts, about, json_string(text));
}

td_status tdi_group_agree_on_run(const td_training *training, const tdi_run *run, tdi_error *error)
{
    json_t *facts;
    td_cluster *cluster = tdi_cluster_of(training->model);
    if (!cluster)
        return TD_OK;
    TDI_TRY(tdi_run_facts(training->model, run, &facts, error));
    json_object_set_new(facts, "call", json_string("td_fit"));
    add_number(facts, "epochs", training->epochs);
    add_number(facts, "seed", (int64_t)training->seed);
    td_status status = agree(cluster, facts, error);
    json_decref(facts);
    return status;
}

/* ---- the chief's state ---- */

static td_status give(td_cluster *cluster, const td_state *state, tdi_error *error)
{
    void *bytes;
    size_t size;
    TDI_TRY(tdi_state_outcome(state, error));
    TDI_TRY(tdi_state_pack(state, &bytes, &size, error));
    td_status status = tdi_cluster_broadcast(cluster, &bytes, &size, error);
    free(bytes);
    return status;
}

/* The caller releases *state after a success. */
static td_status take(td_cluster *cluster, td_state *state, tdi_error *error)
{
    void *bytes = NULL;
    size_t size = 0;
    TDI_TRY(tdi_cluster_broadcast(cluster, &bytes, &size, error));
    td_status status = tdi_state_unpack(state, bytes, size, error);
    free(bytes);
    return status;
}

static td_status give_run(td_cluster *cluster, td_training *training, tdi_error *error)
{
    td_state state = {0};
    td_training without_callbacks = *training;
    without_callbacks.callbacks = NULL;
    tdi_state_begin(&state);
    tdi_run_save(&state, &without_callbacks, 0);
    json_object_set_new(state.root, "resumed", json_boolean(training->resumed));
    td_status status = give(cluster, &state, error);
    tdi_state_release(&state);
    return status;
}

static td_status take_run(td_cluster *cluster, td_training *training, const tdi_run *run, tdi_error *error)
{
    td_state state;
    TDI_TRY(take(cluster, &state, error));
    bool resumed = json_is_true(json_object_get(state.root, "resumed"));
    td_status status = tdi_run_take(&state, training, run, resumed, error);
    tdi_state_release(&state);
    return status;
}

td_status tdi_group_share_run(td_training *training, const tdi_run *run, tdi_error *error)
{
    td_cluster *cluster = tdi_cluster_of(training->model);
    if (!cluster)
        return TD_OK;
    return td_cluster_is_chief(cluster) ? give_run(cluster, training, error) : take_run(cluster, training, run, error);
}

td_status tdi_group_share_callbacks(td_training *training, tdi_error *error)
{
    td_state state = {0};
    td_cluster *cluster = tdi_cluster_of(training->model);
    if (!cluster || !training->resumed || !training->callbacks)
        return TD_OK;
    if (td_cluster_is_chief(cluster)) {
        tdi_state_begin(&state);
        tdi_run_visit_callbacks(&state, training);
    }
    td_status status = td_cluster_is_chief(cluster) ? give(cluster, &state, error) : take(cluster, &state, error);
    if (status == TD_OK && !td_cluster_is_chief(cluster)) {
        state.training = training;
        tdi_run_visit_callbacks(&state, training);
        status = tdi_state_outcome(&state, error);
    }
    tdi_state_release(&state);
    return status;
}

/* ---- evaluation ---- */

/* By which processes see whether they have the same. */
typedef struct likeness {
    uint64_t seed;
    int64_t iteration, total;
    uint32_t values;
} likeness;

static likeness likeness_of(const td_model *model)
{
    likeness own;
    memset(&own, 0, sizeof own); /* its padding is compared too */
    own.seed = model->state->seed;
    own.iteration = model->state->iteration;
    own.total = model->architecture->total;
    own.values = tdi_crc32c(0, tdi_model_values(model), (size_t)own.total * sizeof(float));
    return own;
}

static td_status compare_likeness(td_cluster *cluster, const td_model *model, likeness *chiefs, bool *same,
                                  tdi_error *error)
{
    likeness own = likeness_of(model);
    tdi_shared *all = calloc((size_t)cluster->members, sizeof *all);
    td_status status = all ? tdi_cluster_share(cluster, &own, sizeof own, all, error) : tdi_no_memory(error);
    *same = true;
    for (int i = 0; i < cluster->members && status == TD_OK; i++) {
        if (all[i].size != sizeof *chiefs ||
            memcmp(&((likeness *)(void *)all[i].bytes)->total, &own.total, sizeof own.total) != 0)
            status = tdi_fail(error, TD_INVALID_ARGUMENT, "%s has a model of another size than this process",
                              td_cluster_task_name(cluster, i));
        else if (memcmp(all[i].bytes, all[0].bytes, sizeof *chiefs) != 0)
            *same = false;
    }
    if (status == TD_OK)
        memcpy(chiefs, all[0].bytes, sizeof *chiefs);
    if (all)
        tdi_shared_free(all, cluster->members);
    free(all);
    return status;
}

/* Weights travel only where a process has others. */
static td_status share_weights(td_cluster *cluster, td_model *model, tdi_error *error)
{
    size_t size = (size_t)model->architecture->total * sizeof(float), got = size;
    likeness chiefs;
    bool same;
    TDI_TRY(compare_likeness(cluster, model, &chiefs, &same, error));
    if (same)
        return TD_OK;
    void *values = td_cluster_is_chief(cluster) ? (void *)tdi_model_values(model) : NULL;
    TDI_TRY(tdi_cluster_broadcast(cluster, &values, &got, error));
    if (td_cluster_is_chief(cluster))
        return TD_OK;
    if (got == size)
        memcpy(tdi_model_write_values(model), values, size);
    model->state->seed = chiefs.seed;
    model->state->iteration = chiefs.iteration;
    free(values);
    return got == size ? TD_OK : tdi_fail(error, TD_IO, "the chief's weights are of another size");
}

td_status tdi_group_share_weights(td_model *model, tdi_error *error)
{
    td_cluster *cluster = tdi_cluster_of(model);
    return cluster ? share_weights(cluster, model, error) : TD_OK;
}

td_status tdi_group_begin_evaluation(td_model *model, const tdi_run *run, tdi_error *error)
{
    json_t *facts;
    td_cluster *cluster = tdi_cluster_of(model);
    if (!cluster || model->fitting)
        return TD_OK;
    TDI_TRY(tdi_run_facts(model, run, &facts, error));
    json_object_set_new(facts, "call", json_string("td_evaluate"));
    td_status status = agree(cluster, facts, error);
    json_decref(facts);
    return status == TD_OK ? share_weights(cluster, model, error) : status;
}

/* ---- what is said ---- */

static void say_member(td_training *training, const td_cluster *cluster, const tdi_deal *deal, int member)
{
    char line[TDI_MEMBER_NAME + 120];
    int64_t first = tdi_shard_first_row(training->batch, deal->first_shard[member], deal->shards);
    int64_t end = tdi_shard_first_row(training->batch, deal->first_shard[member + 1], deal->shards);
    snprintf(line, sizeof line, "  %s%s: %lld of %lld rows", td_cluster_task_name(cluster, member),
             member ? "" : ", the chief", (long long)(end - first), (long long)training->batch);
    td_training_say(training, line);
}

void tdi_group_say_begin(td_training *training)
{
    char line[200];
    const td_model *model = training->model;
    const td_cluster *cluster = tdi_cluster_of(model);
    if (!cluster)
        return;
    snprintf(line, sizeof line, "%d processes in step, over %s; gradients of %.3g MB:", cluster->members,
             cluster->carrier.name, (double)model->architecture->trained * sizeof(float) / 1e6);
    td_training_say(training, line);
    for (int i = 0; i < cluster->members; i++)
        say_member(training, cluster, tdi_strategy_of(model)->deal, i);
}

void tdi_group_say_end(td_training *training)
{
    char line[200];
    const td_cluster *cluster = tdi_cluster_of(training->model);
    if (!cluster || !training->batches)
        return;
    snprintf(line, sizeof line, "%s sent %.3g MB a step, and waited %.3g ms of it for others.",
             td_cluster_task_name(cluster, cluster->self),
             (double)tdi_exchange_sent(cluster->exchange) / 1e6 / (double)training->batches,
             tdi_exchange_waited(cluster->exchange) * 1e3 / (double)training->batches);
    td_training_say(training, line);
}

/* ---- data of each process alone ---- */

static tdi_own_rows rows_of(const tdi_deal *deal, int process)
{
    return (tdi_own_rows){deal->first_shard[process], deal->first_shard[process + 1], deal->shards};
}

/* Everybody's number, to be freed. */
static td_status gather(const td_cluster *cluster, int64_t own, int64_t **all, tdi_error *error)
{
    *all = calloc((size_t)cluster->members, sizeof **all);
    if (!*all)
        return tdi_no_memory(error);
    (*all)[cluster->self] = own;
    td_status status = tdi_exchange_gather(cluster->exchange, *all, sizeof **all, error);
    if (status != TD_OK)
        free(*all);
    return status;
}

static td_status least_steps(const td_cluster *cluster, const tdi_deal *deal, const int64_t *samples, int64_t batch,
                             int64_t *steps, tdi_error *error)
{
    *steps = INT64_MAX;
    for (int i = 0; i < cluster->members; i++) {
        int64_t each;
        tdi_own_rows own = rows_of(deal, i);
        (void)tdi_own_rows_of(&own, batch, &each);
        if (samples[i] < each || each < 1)
            return tdi_fail(
                error, TD_INVALID_ARGUMENT,
                "%s has %lld samples of its own, which do not fill its %lld rows of one batch of %lld; give "
                "it more, or take another batch size",
                td_cluster_task_name(cluster, i), (long long)samples[i], (long long)each, (long long)batch);
        *steps = samples[i] / each < *steps ? samples[i] / each : *steps;
    }
    return TD_OK;
}

td_status tdi_group_share_out(const td_model *model, int64_t samples, int64_t batch, tdi_own_rows *own, int64_t *steps,
                              tdi_error *error)
{
    int64_t *all;
    const td_cluster *cluster = tdi_cluster_of(model);
    const tdi_deal *deal = tdi_strategy_of(model)->deal;
    TDI_TRY(gather(cluster, samples, &all, error));
    td_status status = least_steps(cluster, deal, all, batch, steps, error);
    *own = rows_of(deal, cluster->self);
    free(all);
    return status;
}

static td_status check_rows(const td_cluster *cluster, const tdi_deal *deal, const int64_t *brought, int64_t rows,
                            tdi_error *error)
{
    for (int i = 0; i < cluster->members; i++) {
        int64_t each;
        tdi_own_rows own = rows_of(deal, i);
        (void)tdi_own_rows_of(&own, rows, &each);
        if (brought[i] != each)
            return tdi_fail(error, TD_INVALID_ARGUMENT,
                            "%s brings %lld rows of a batch of %lld, and its devices are for %lld of them; give every "
                            "process rows in proportion to its devices",
                            td_cluster_task_name(cluster, i), (long long)brought[i], (long long)rows, (long long)each);
    }
    return TD_OK;
}

td_status tdi_group_add_rows(const td_model *model, int64_t own, int64_t *rows, int64_t *first, tdi_error *error)
{
    int64_t *all;
    const td_cluster *cluster = tdi_cluster_of(model);
    *rows = own;
    *first = 0;
    if (!cluster)
        return TD_OK;
    TDI_TRY(gather(cluster, own, &all, error));
    *rows = 0;
    for (int i = 0; i < cluster->members; i++) {
        *first += i < cluster->self ? all[i] : 0;
        *rows += all[i];
    }
    td_status status = check_rows(cluster, tdi_strategy_of(model)->deal, all, *rows, error);
    free(all);
    return status;
}

/* ---- between steps ---- */

typedef struct wish {
    int64_t steps, stops;
    double rate;     /* the learning rate of the next step */
    int64_t weights; /* their checksum; 0: not looked at */
} wish;

static td_status compare_wishes(const td_cluster *cluster, const wish *wishes, tdi_error *error)
{
    for (int i = 1; i < cluster->members; i++) {
        if (memcmp(&wishes[i].rate, &wishes[0].rate, sizeof wishes->rate) != 0)
            return tdi_fail(error, TD_INVALID_ARGUMENT,
                            "%s and the chief disagree on the learning rate: %.9g there, %.9g at the chief; give all "
                            "processes the same callbacks (--reduce-lr, --learning-rate-scheduler)",
                            td_cluster_task_name(cluster, i), wishes[i].rate, wishes[0].rate);
        if (wishes[i].weights != wishes[0].weights)
            return tdi_fail(error, TD_INVALID_ARGUMENT,
                            "%s and the chief have different weights; only callbacks change them between steps, so "
                            "give all processes the same",
                            td_cluster_task_name(cluster, i));
    }
    return TD_OK;
}

static wish own_wish(const td_model *model, const td_training *training, int64_t steps)
{
    wish own = {.steps = steps};
    if (!training)
        return own;
    own.stops = training->stop;
    own.rate = tdi_training_rate(training);
    own.weights = steps ? 0 : likeness_of(model).values; /* once an epoch */
    return own;
}

td_status tdi_group_agree_on_steps(const td_model *model, td_training *training, int64_t *steps, tdi_error *error)
{
    const td_cluster *cluster = tdi_cluster_of(model);
    if (!cluster)
        return TD_OK;
    wish *wishes = calloc((size_t)cluster->members, sizeof *wishes);
    if (!wishes)
        return tdi_no_memory(error);
    wishes[cluster->self] = own_wish(model, training, *steps);
    td_status status = tdi_exchange_gather(cluster->exchange, wishes, sizeof *wishes, error);
    if (status == TD_OK)
        status = compare_wishes(cluster, wishes, error);
    *steps = wishes[0].steps;
    for (int i = 0; i < cluster->members && training && status == TD_OK; i++)
        training->stop = training->stop || wishes[i].stops;
    free(wishes);
    return status;
}
