/* configuration.c - in which configuration a model's steps are run.
 *
 * Why: a configuration (division of the batch, precision) decides the bits of a result, and which one is the fastest
 * depends on the model and the machine. A user is promised the same bits for the same run, whatever else was asked of
 * the model before: predictions, a report, another batch size.
 *
 * Design: a configuration is chosen once for its key and is never changed afterwards; a runtime has one configuration
 * for life. The key is what the steps are for, and whether they have fewer rows than the rules' division has shards:
 * - Steps that train: the first of them chooses, for all modes. When it had few rows and was divided for them, the
 *   first steps of many rows choose again.
 * - Predictions and evaluations follow the configuration of the steps that train. Before the first of those they go by
 *   the rules; where they would compute in bfloat16, or the model cannot be trained, they choose one of their own,
 *   which steps that train do not follow. Steps of few rows then have threads that share each row, and steps of many
 *   rows by a model that trains with few go by the rules' division.
 *
 * Candidates and questions are choose_configuration.c's. A model holds a runtime for each configuration that is in use;
 * when steps that train have chosen, the runtimes of all other configurations are freed.
 *
 * Limits: runtimes of one model hold their activations at the same time. */
#include "base/machine.h"
#include "runtime/runtime_struct.h"
#include "tune/tuning_cache_file.h"

enum { TRAINING, INFERENCE, PURPOSES };

struct tdi_runtimes {
    tdi_configuration rules;
    tdi_configuration chosen[PURPOSES];
    bool is_chosen[PURPOSES];
    tdi_vec(tdi_runtime *) all;
};

/* ---- the runtimes of a model ---- */

static void free_runtimes(tdi_runtimes *runtimes)
{
    for (int i = 0; i < runtimes->all.count; i++)
        tdi_runtime_free(runtimes->all.at[i]);
    tdi_vec_free(&runtimes->all);
    free(runtimes);
}

static td_status add_runtime(td_model *model, const tdi_configuration *configuration, tdi_runtime **runtime,
                             tdi_error *error)
{
    TDI_TRY(tdi_runtime_open(model, configuration, runtime, error));
    if (tdi_push(&model->runtimes->all, *runtime))
        return TD_OK;
    tdi_runtime_free(*runtime);
    return tdi_no_memory(error);
}

/* Makes the set, with a runtime of the rules' configuration in it. */
static td_status need_runtimes(td_model *model, tdi_error *error)
{
    tdi_runtime *by_rules;
    if (model->runtimes)
        return TD_OK;
    model->free_runtimes = free_runtimes;
    model->runtimes = calloc(1, sizeof *model->runtimes);
    if (!model->runtimes)
        return tdi_no_memory(error);
    td_status status = add_runtime(model, NULL, &by_rules, error);
    if (status == TD_OK)
        model->runtimes->rules = (tdi_configuration){.division = by_rules->division, .float32 = by_rules->float32};
    else
        tdi_model_drop_runtimes(model);
    return status;
}

/* Though its model is trained in a group. */
static bool is_alone(const tdi_runtime *runtime)
{
    return tdi_in_group(runtime->model) && runtime->strategy == &tdi_mirrored;
}

static bool has(const tdi_runtime *runtime, const tdi_configuration *c)
{
    const tdi_division *a = &runtime->division, *b = &c->division;
    return a->replicas == b->replicas && a->shards == b->shards && a->groups == b->groups && a->workers == b->workers &&
           a->threads == b->threads && runtime->float32 == c->float32 && is_alone(runtime) == c->alone;
}

static tdi_runtime *find_runtime(const tdi_runtimes *runtimes, const tdi_configuration *configuration)
{
    for (int i = 0; i < runtimes->all.count; i++)
        if (has(runtimes->all.at[i], configuration))
            return runtimes->all.at[i];
    return NULL;
}

static td_status runtime_of(td_model *model, const tdi_configuration *configuration, tdi_runtime **runtime,
                            tdi_error *error)
{
    *runtime = find_runtime(model->runtimes, configuration);
    return *runtime ? TD_OK : add_runtime(model, configuration, runtime, error);
}

static void keep_only(tdi_runtimes *runtimes, tdi_runtime *kept)
{
    for (int i = 0; i < runtimes->all.count; i++)
        if (runtimes->all.at[i] != kept)
            tdi_runtime_free(runtimes->all.at[i]);
    runtimes->all.count = 1;
    runtimes->all.at[0] = kept;
}

/* ---- choosing ---- */

void tdi_say_float32(td_model *model, const char *why)
{
    if (!model->compiled.float32_said)
        tdi_log(model->context, TD_LOG_INFO, "computing in float32 instead of bfloat16: %s", why);
    model->compiled.float32_said = true;
}

static void say_statistics(const td_model *model, const tdi_division *division)
{
    if (division->groups > 1 && tdi_has_statistics_per_replica(model))
        tdi_log(model->context, TD_LOG_INFO,
                "batch normalization takes its statistics from each of the %d slices of a batch, not from the whole as "
                "on one device; its layers are not `synchronized`",
                division->groups);
}

static bool has_few(const tdi_runtimes *runtimes, int64_t rows)
{
    return tdi_has_too_few(&runtimes->rules.division, rows);
}

/* On a failure nothing is chosen, and all runtimes are as they were. */
static td_status commit(td_model *model, int purpose, tdi_configuration *configuration, int64_t rows, tdi_error *error)
{
    tdi_runtime *runtime;
    tdi_runtimes *runtimes = model->runtimes;
    TDI_TRY(runtime_of(model, configuration, &runtime, error));
    configuration->few = configuration->division.shards != runtimes->rules.division.shards && has_few(runtimes, rows);
    runtime->tuned = configuration->tuned;
    runtime->trial_bytes =
        configuration->trial_bytes > runtime->trial_bytes ? configuration->trial_bytes : runtime->trial_bytes;
    runtimes->chosen[purpose] = *configuration;
    runtimes->is_chosen[INFERENCE] = purpose == INFERENCE;
    runtimes->is_chosen[TRAINING] = purpose == TRAINING;
    keep_only(runtimes, runtime);
    if (configuration->float32)
        tdi_say_float32(model, "a step takes no less time in bfloat16 here");
    return TD_OK;
}

/* A step's plans by the rules say what it costs. */
static td_status choose(td_model *model, int purpose, tdi_mode mode, int64_t rows, tdi_error *error)
{
    tdi_runtime *by_rules;
    tdi_plan *plans[TDI_MAX_SHARDS];
    tdi_configuration configuration = model->runtimes->rules;
    TDI_TRY(runtime_of(model, &configuration, &by_rules, error));
    const tdi_tuning_cache *cache = by_rules->chooser.cache;
    double seconds = cache ? cache->seconds : 0;
    if (mode == TDI_TRAIN)
        say_statistics(model, &by_rules->division);
    TDI_TRY(tdi_plans_of(by_rules, mode, rows, plans, error));
    if (!tdi_in_group(model)) /* in a group all processes have come to one division, and clocks differ */
        tdi_choose_configuration(by_rules, mode, rows, plans[tdi_last_shard(by_rules)], &configuration);
    TDI_TRY(commit(model, purpose, &configuration, rows, error));
    if (cache && cache->seconds > seconds)
        tdi_buffers_trim();
    return TD_OK;
}

/* ---- by key ---- */

static td_status configure_training(td_model *model, tdi_mode mode, int64_t rows, tdi_configuration *configuration,
                                    tdi_error *error)
{
    const tdi_runtimes *runtimes = model->runtimes;
    if (runtimes->is_chosen[TRAINING] && runtimes->chosen[TRAINING].few && !has_few(runtimes, rows)) {
        tdi_model_drop_runtimes(model);
        TDI_TRY(need_runtimes(model, error));
    }
    if (!model->runtimes->is_chosen[TRAINING])
        TDI_TRY(choose(model, TRAINING, mode, rows, error));
    *configuration = model->runtimes->chosen[TRAINING];
    return TD_OK;
}

/* Is a prediction to choose, before any step that trains has? */
static bool must_choose(const td_model *model, int64_t rows)
{
    const tdi_runtimes *runtimes = model->runtimes;
    if (runtimes->is_chosen[TRAINING] || runtimes->is_chosen[INFERENCE])
        return false;
    return tdi_computes_bfloat16(runtimes->all.at[0]) || (!model->compiled.is_set && !has_few(runtimes, rows));
}

static const tdi_configuration *base_of(const tdi_runtimes *runtimes)
{
    return runtimes->is_chosen[TRAINING]    ? &runtimes->chosen[TRAINING]
           : runtimes->is_chosen[INFERENCE] ? &runtimes->chosen[INFERENCE]
                                            : &runtimes->rules;
}

/* As the cores of this process would divide batches if it had no group. */
static td_status configure_alone(td_model *model, tdi_configuration *configuration, tdi_error *error)
{
    const tdi_runtime *first = model->runtimes->all.at[0];
    int cores = 0;
    *configuration = (tdi_configuration){.alone = true, .float32 = base_of(model->runtimes)->float32};
    for (int i = 0; i < first->n_devices; i++)
        cores += first->devices[i]->threads;
    cores = cores < tdi_cores_allowed() ? cores : tdi_cores_allowed();
    return tdi_mirrored.divide(model, model->compiled.shards ? 1 : first->n_devices, cores, &configuration->division,
                               error);
}

static td_status configure_inference(td_model *model, tdi_mode mode, int64_t rows, tdi_configuration *configuration,
                                     tdi_error *error)
{
    if (!tdi_in_group(model) && must_choose(model, rows))
        TDI_TRY(choose(model, INFERENCE, mode, rows, error));
    const tdi_configuration *base = base_of(model->runtimes);
    *configuration = *base;
    if (mode == TDI_PREDICT && tdi_in_group(model))
        return configure_alone(model, configuration, error);
    if (mode == TDI_CONFUSION || tdi_in_group(model))
        return TD_OK;
    if (tdi_has_too_few(&base->division, rows))
        configuration->division = tdi_divide_few(&base->division, 1);
    else if (base->few && !has_few(model->runtimes, rows))
        configuration->division = model->runtimes->rules.division;
    return TD_OK;
}

/* ---- for others ---- */

td_status tdi_runtime_for(td_model *model, tdi_mode mode, int64_t rows, tdi_runtime **runtime, tdi_error *error)
{
    tdi_configuration configuration;
    TDI_TRY(need_runtimes(model, error));
    if (tdi_trains(mode))
        TDI_TRY(tdi_model_need_slots(model, error));
    TDI_TRY((tdi_trains(mode) ? configure_training : configure_inference)(model, mode, rows, &configuration, error));
    return runtime_of(model, &configuration, runtime, error);
}

td_status tdi_runtime_alone_for(td_model *model, tdi_mode mode, int64_t rows, tdi_runtime **runtime, tdi_error *error)
{
    tdi_configuration configuration;
    if (!tdi_in_group(model))
        return tdi_runtime_for(model, mode, rows, runtime, error);
    TDI_TRY(need_runtimes(model, error));
    TDI_TRY(configure_alone(model, &configuration, error));
    return runtime_of(model, &configuration, runtime, error);
}

td_status tdi_runtime_for_report(td_model *model, tdi_mode mode, int64_t rows, tdi_runtime **runtime, tdi_error *error)
{
    tdi_runtimes *runtimes = model->runtimes;
    if (tdi_trains(mode) && runtimes && runtimes->is_chosen[TRAINING])
        return runtime_of(model, &runtimes->chosen[TRAINING], runtime, error);
    return tdi_runtime_for(model, mode, rows, runtime, error);
}

tdi_runtime *tdi_runtime_own(const td_model *model)
{
    return model->runtimes ? find_runtime(model->runtimes, base_of(model->runtimes)) : NULL;
}

void tdi_runtimes_drop_steps(const td_model *model, bool trains)
{
    for (int i = 0; model->runtimes && i < model->runtimes->all.count; i++) {
        tdi_runtime_drop_mode(model->runtimes->all.at[i], trains ? TDI_TRAIN : TDI_EVALUATE);
        tdi_runtime_drop_mode(model->runtimes->all.at[i], trains ? TDI_GRADIENTS : TDI_CONFUSION);
    }
}

const tdi_configuration *tdi_configuration_of(const td_model *model, tdi_mode mode)
{
    const tdi_runtimes *runtimes = model->runtimes;
    if (!runtimes)
        return NULL;
    if (runtimes->is_chosen[TRAINING])
        return &runtimes->chosen[TRAINING];
    return !tdi_trains(mode) && runtimes->is_chosen[INFERENCE] ? &runtimes->chosen[INFERENCE] : NULL;
}

td_status tdi_configure(td_model *model, tdi_configuration configuration, int64_t rows, tdi_error *error)
{
    TDI_TRY(need_runtimes(model, error));
    return commit(model, TRAINING, &configuration, rows, error);
}

td_status tdi_configure_clone(td_model *clone, const td_model *model, tdi_error *error)
{
    TDI_TRY(need_runtimes(clone, error));
    for (int purpose = 0; model->runtimes && purpose < PURPOSES; purpose++) {
        clone->runtimes->chosen[purpose] = model->runtimes->chosen[purpose];
        clone->runtimes->is_chosen[purpose] = model->runtimes->is_chosen[purpose];
    }
    return TD_OK;
}

bool tdi_runtime_is_chosen(const td_model *model, int *shards, bool *float32)
{
    const tdi_configuration *chosen = tdi_configuration_of(model, TDI_TRAIN);
    *shards = chosen ? chosen->division.shards : 0;
    *float32 = chosen && chosen->float32;
    return chosen;
}

td_status tdi_runtime_resume(td_model *model, int shards, bool float32, int64_t rows, tdi_error *error)
{
    tdi_configuration configuration = {.float32 = float32};
    TDI_TRY(need_runtimes(model, error));
    if (tdi_in_group(model)) /* the processes that are there divide */
        return TD_OK;
    if (!tdi_divide_again(&model->runtimes->rules.division, shards, rows, &configuration.division))
        return TD_OK;
    return commit(model, TRAINING, &configuration, rows, error);
}
