/* configuration.c - what of a model's whole step is left to the clock: in which precision, whether cores take rows of
 * the batch or share each op, and how many of them.
 *
 * Asked are only short steps, those in which it is a close thing, and all that are to be computed in bfloat16. */
#include <inttypes.h>
#include <stdio.h>

#include "runtime/runtime_struct.h"

enum { LARGEST_MODEL = 1 << 22 /* floats */, LARGEST_SHARE = 8 /* of the memory, an eighth */, SEVERAL_ROWS = 4 };
static const double sure_flops = 20e6, sure_bytes = 1e6; /* of a core: a tenth of a millisecond */
/* Of a core: some hundredths of a second; what it costs to rehearse such steps is felt. */
static const double long_flops = 5e9;
/* Activations to weights, in bytes, of a step that trains: below the first lanes that share the weights are sure to be
 * faster than rows of the batch for each core, above the second rows are. */
static const double few_activations = 0.9, many_activations = 4;
/* Of all lanes' time, what fewer lanes may take. What slows a core down now may soon be over, and while it lasts one
 * thread walks the lists of all lanes (thread_governor.c); a plan for fewer lanes would stay. (explain.c says the
 * number.) */
static const double worth_fewer_lanes = 0.9;

static bool is_little(const tdi_runtime *runtime, double bytes)
{
    return bytes < (double)runtime->memory / LARGEST_SHARE;
}

/* Of a large model steps that train are not rehearsed, since each way would have gradients of its own; others are where
 * they read little of it, so that little is packed, and there is room for the copy that a rehearsal makes. */
static bool may_be_asked(const tdi_runtime *runtime, tdi_mode mode, const tdi_plan *plan)
{
    int64_t floats = runtime->model->architecture->total;
    return floats <= LARGEST_MODEL ||
           (!tdi_trains(mode) && tdi_plan_bytes(plan) < sure_bytes * runtime->division.lanes &&
            is_little(runtime, (double)floats * sizeof(float)));
}

/* Is a step of this plan so short that meeting may cost more than other cores bring? */
static bool is_short(const tdi_runtime *runtime, tdi_mode mode, const tdi_plan *plan)
{
    return may_be_asked(runtime, mode, plan) && tdi_plan_flops(plan) < sure_flops * runtime->division.lanes;
}

/* ---- lanes ---- */

/* One lane, all, and between them halves of all: fewest first. */
static int list_sharing(const tdi_runtime *runtime, tdi_configuration *ways, char names[][16], tdi_tuned *choice)
{
    int count = 0, some[TDI_MAX_CANDIDATES];
    for (int n = runtime->division.lanes; n > 1 && count < TDI_MAX_CANDIDATES - 1; n /= 2)
        some[count++] = n;
    some[count++] = 1;
    for (int i = 0; i < count; i++) {
        int lanes = some[count - 1 - i];
        ways[i] = (tdi_configuration){.division = runtime->division, .float32 = runtime->float32, .sharing = lanes};
        snprintf(names[i], sizeof *names, "%d lane%s", lanes, lanes == 1 ? "" : "s");
        choice->candidates[i].name = names[i];
    }
    return count;
}

/* Batches up to the same power of two are asked about once. */
static int64_t most_alike(int64_t rows)
{
    int64_t most = 1;
    while (most < rows)
        most *= 2;
    return most;
}

void tdi_choose_sharing(tdi_runtime *runtime, tdi_mode mode, int64_t rows, const tdi_plan *plan, int *lanes,
                        const tdi_tuned **choice)
{
    const tdi_division *d = &runtime->division;
    tdi_configuration ways[TDI_MAX_CANDIDATES];
    char names[TDI_MAX_CANDIDATES][16];
    char question[64];
    tdi_tuned asked = {.key = question, .worth_it = worth_fewer_lanes};
    const tdi_tuned *chosen = NULL;
    *choice = NULL;
    if (!runtime->chooser.cache || runtime->sharing || d->parts > 1 || d->lanes == 1 || !is_short(runtime, mode, plan))
        return;
    snprintf(question, sizeof question, "lanes for up to %" PRId64 " rows", most_alike(rows));
    asked.count = list_sharing(runtime, ways, names, &asked);
    asked.preferred = asked.count - 1;
    tdi_step_trial(runtime, mode, rows, plan, ways, &asked, &chosen);
    *choice = chosen;
    *lanes = chosen ? ways[chosen->chosen].sharing : d->lanes;
}

/* ---- precision and division ---- */

/* Most of a long step are products that a matrix unit makes, by kernels that nothing is held against. */
static bool bfloat16_is_faster(const tdi_runtime *runtime, const tdi_plan *plan)
{
    double flops = tdi_plan_flops(plan);
    return runtime->devices[0]->multiplies_bfloat16 && flops > long_flops * runtime->division.lanes &&
           tdi_plan_sure_bfloat16_flops(plan) > flops * 2 / 3;
}

/* A rehearsal has weights and slots of its own. */
static bool has_room(const tdi_runtime *runtime, const tdi_plan *plan)
{
    return is_little(runtime, (double)tdi_plan_activation_bytes(plan) * runtime->division.parts +
                                  (double)runtime->model->architecture->total * 4 * sizeof(float));
}

static bool precision_in_doubt(const tdi_runtime *runtime, const tdi_plan *plan)
{
    return runtime->chooser.cache && tdi_model_wishes_bfloat16(runtime->model) && !runtime->devices[0]->no_bfloat16 &&
           !bfloat16_is_faster(runtime, plan) && has_room(runtime, plan);
}

/* Lanes that share the weights hand activations to each other; cores with rows of their own add up gradients of all
 * weights. */
static double activations_to_weights(const tdi_runtime *runtime, const tdi_plan *plan)
{
    return (double)tdi_plan_activation_bytes(plan) / ((double)runtime->model->architecture->total * sizeof(float) + 1);
}

/* By lanes that share the weights, though they need not. */
static bool trains_by_lanes(const tdi_runtime *runtime, tdi_mode mode)
{
    return tdi_trains(mode) && runtime->division.lanes > 1;
}

/* A core with few rows of its own would read all weights for little. */
static bool rows_are_sure(const tdi_runtime *runtime, tdi_mode mode, int64_t rows, const tdi_plan *plan)
{
    double gradients = (double)runtime->model->architecture->total * sizeof(float) * runtime->division.lanes;
    return trains_by_lanes(runtime, mode) && rows >= (int64_t)SEVERAL_ROWS * runtime->division.lanes &&
           !is_short(runtime, mode, plan) && activations_to_weights(runtime, plan) > many_activations &&
           is_little(runtime, gradients);
}

/* Where workers would have no rows; of shorter steps meetings may cost as much as other cores bring. */
static bool lanes_are_sure(const tdi_runtime *runtime, tdi_mode mode, const tdi_plan *plan)
{
    bool asked = runtime->chooser.cache && has_room(runtime, plan) && tdi_plan_flops(plan) < long_flops;
    return tdi_trains(mode) && !is_short(runtime, mode, plan) && !asked;
}

static bool division_in_doubt(const tdi_runtime *runtime, tdi_mode mode, bool few, const tdi_plan *plan)
{
    if (is_short(runtime, mode, plan) || (few && tdi_trains(mode)))
        return true;
    return trains_by_lanes(runtime, mode) && runtime->model->architecture->total <= LARGEST_MODEL &&
           tdi_plan_flops(plan) < long_flops * runtime->division.lanes && has_room(runtime, plan) &&
           activations_to_weights(runtime, plan) > few_activations;
}

static void add_way(tdi_configuration *ways, char names[][48], tdi_tuned *choice, const tdi_division *d,
                    const char *precision)
{
    int i = choice->count++;
    ways[i] = (tdi_configuration){.division = *d, .float32 = precision && *precision == 'f'};
    snprintf(names[i], sizeof *names, "%d worker%s of %d lane%s%s%s", d->workers, d->workers == 1 ? "" : "s", d->lanes,
             d->lanes == 1 ? "" : "s", precision ? ", " : "", precision ? precision : "");
    choice->candidates[i].name = names[i];
}

bool tdi_choose_other(tdi_runtime *runtime, tdi_mode mode, int64_t rows, const tdi_plan *plan, tdi_configuration *way)
{
    bool few = tdi_has_too_few(&runtime->division, rows);
    tdi_division divisions[2] = {runtime->division, few ? tdi_divide_few(&runtime->division, rows)
                                                        : tdi_divide_otherwise(&runtime->division)};
    bool narrow = precision_in_doubt(runtime, plan);
    bool possible = runtime->division.either && rows >= divisions[1].parts; /* every part has a row */
    bool sure = possible && (few ? lanes_are_sure(runtime, mode, plan) : rows_are_sure(runtime, mode, rows, plan));
    bool both = possible && !sure && runtime->chooser.cache && division_in_doubt(runtime, mode, few, plan);
    tdi_configuration ways[4];
    char names[4][48];
    char question[64];
    tdi_tuned asked = {.key = question, .lasting = narrow};
    const tdi_tuned *chosen = NULL;
    snprintf(question, sizeof question, "way for %" PRId64 " rows", rows);
    for (int i = sure; i < 1 + (sure || both); i++) {
        add_way(ways, names, &asked, &divisions[i], narrow ? "bfloat16" : NULL);
        if (narrow)
            add_way(ways, names, &asked, &divisions[i], "float32");
    }
    if (asked.count > 1)
        tdi_step_trial(runtime, mode, rows, plan, ways, &asked, &chosen);
    runtime->way = chosen;
    *way = ways[chosen ? chosen->chosen : 0];
    if (sure && !few)
        snprintf(way->division.why, sizeof way->division.why,
                 "with more activations than weights each core computes rows of the batch");
    return sure || (chosen && chosen->chosen > 0);
}

/* ---- the runtime's own ---- */

static const char float32_is_faster[] = "a step takes no less time in bfloat16 here";

void tdi_say_float32(td_model *model, const char *why)
{
    if (!model->compiled.float32_said)
        tdi_log(model->context, TD_LOG_INFO, "computing in float32 instead of bfloat16: %s", why);
    model->compiled.float32_said = true;
}

/* Is it not divided by the rules because steps of `rows` rows have too few? */
static bool is_for_few(const tdi_runtime *runtime, int64_t rows)
{
    return runtime->division.parts != runtime->by_rules.parts && tdi_has_too_few(&runtime->by_rules, rows);
}

/* Divided for few rows, is it to make many? */
static bool is_outgrown(const tdi_runtime *runtime, int64_t rows)
{
    return runtime->for_few && !tdi_has_too_few(&runtime->by_rules, rows);
}

void tdi_runtime_outgrow(td_model *model, int64_t rows)
{
    if (model->runtime && is_outgrown(model->runtime, rows))
        tdi_model_drop_runtime(model);
}

bool tdi_needs_other_runtime(const tdi_runtime *runtime, tdi_mode mode, int64_t rows, tdi_configuration *way)
{
    bool few = tdi_has_too_few(&runtime->division, rows), many = is_outgrown(runtime, rows);
    *way = (tdi_configuration){.division = few ? tdi_divide_few(&runtime->division, 1) : runtime->by_rules,
                               .float32 = runtime->float32};
    return (mode == TDI_PREDICT || mode == TDI_EVALUATE) && (few || many);
}

static td_status runtime_apart(td_model *model, const tdi_configuration *way, tdi_runtime **runtime, tdi_error *error)
{
    tdi_runtime **apart = &model->runtimes_apart[way->division.parts > 1];
    if (*apart && (*apart)->float32 != way->float32) {
        tdi_runtime_free(*apart);
        *apart = NULL;
    }
    if (!*apart)
        TDI_TRY(tdi_runtime_open(model, way, apart, error));
    *runtime = *apart;
    return TD_OK;
}

/* Whether to compute in bfloat16 is asked of the model's own, once. */
static bool lacks_precision(const tdi_runtime *runtime)
{
    return tdi_computes_bfloat16(runtime) && !runtime->settled && !runtime->settled_for_now;
}

td_status tdi_runtime_for(td_model *model, tdi_mode mode, int64_t rows, tdi_runtime **runtime, tdi_error *error)
{
    TDI_TRY(tdi_runtime_of(model, runtime, error));
    tdi_configuration way;
    bool own = !tdi_needs_other_runtime(*runtime, mode, rows, &way) || lacks_precision(*runtime);
    return own ? TD_OK : runtime_apart(model, &way, runtime, error);
}

/* Makes all anew for another way; sums that a backup has brought before the first step stay. When it fails all is as it
 * was, and is asked again. */
static td_status change_way(tdi_runtime *runtime, tdi_mode mode, const tdi_configuration *way, tdi_error *error)
{
    int parts = runtime->division.parts, count = tdi_runtime_sums(runtime, mode);
    double *sums = calloc((size_t)parts * (size_t)count * 2 + 1, sizeof *sums);
    if (!sums)
        return tdi_no_memory(error);
    tdi_runtime_get_sums(runtime, mode, sums);
    tdi_runtime before = *runtime;
    tdi_runtime_forget(runtime);
    runtime->division = way->division;
    runtime->float32 = way->float32;
    td_status status = tdi_runtime_furnish(runtime, error);
    if (status == TD_OK && count)
        status = tdi_runtime_put_sums(runtime, mode, parts, count, sums, error);
    free(sums);
    if (status == TD_OK) {
        tdi_runtime_clear(&before);
        return TD_OK;
    }
    tdi_runtime_clear(runtime);
    *runtime = before;
    runtime->settled = false;
    return status;
}

td_status tdi_runtime_resume(tdi_runtime *runtime, int parts, bool float32, int64_t rows, tdi_error *error)
{
    tdi_division division;
    if (!tdi_divide_again(&runtime->division, parts, rows, &division))
        return TD_OK;
    runtime->settled = true;
    if (float32)
        tdi_say_float32(runtime->model, float32_is_faster);
    if (parts == runtime->division.parts && float32 == runtime->float32)
        return TD_OK;
    TDI_TRY(change_way(runtime, TDI_TRAIN, &(tdi_configuration){.division = division, .float32 = float32}, error));
    runtime->for_few = is_for_few(runtime, rows);
    return TD_OK;
}

/* The first steps that train (of a model that cannot be trained: that predict) say which way all go; until then a model
 * to be trained goes by the rules, and where it would compute in bfloat16 the way that its predictions say for now. */
static bool is_asked(tdi_runtime *runtime, tdi_mode mode)
{
    bool for_now = runtime->model->compiled.is_set && mode != TDI_TRAIN && mode != TDI_GRADIENTS;
    if (runtime->settled)
        return false;
    if (for_now && (runtime->settled_for_now || mode == TDI_APPLY || !tdi_computes_bfloat16(runtime)))
        return false;
    runtime->settled = !for_now;
    return true;
}

/* What predictions alone have settled: a run that trains makes the same choices with them and without. */
static td_status unsettle(tdi_runtime *runtime, tdi_mode mode, int64_t rows, tdi_plan **plans, tdi_error *error)
{
    bool changed = runtime->settled_for_now && runtime->way && runtime->way->chosen > 0;
    if (changed)
        TDI_TRY(change_way(runtime, mode, &(tdi_configuration){.division = runtime->by_rules}, error));
    runtime->way = NULL;
    runtime->for_few = false;
    runtime->settled_for_now = !runtime->settled;
    return changed ? tdi_plans_of(runtime, mode, rows, plans, error) : TD_OK;
}

td_status tdi_configure(tdi_runtime *runtime, tdi_mode mode, int64_t rows, tdi_plan **plans, tdi_error *error)
{
    tdi_configuration way;
    if (!is_asked(runtime, mode))
        return TD_OK;
    TDI_TRY(unsettle(runtime, mode, rows, plans, error));
    const tdi_plan *largest = plans[runtime->division.parts - 1];
    if (!tdi_choose_other(runtime, mode, rows, largest, &way))
        return TD_OK;
    td_status status = change_way(runtime, mode, &way, error);
    if (status != TD_OK) {
        runtime->settled_for_now = false;
        runtime->way = NULL;
        return status;
    }
    runtime->for_few = is_for_few(runtime, rows);
    if (way.float32)
        tdi_say_float32(runtime->model, float32_is_faster);
    return tdi_plans_of(runtime, mode, rows, plans, error);
}
