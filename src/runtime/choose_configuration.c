/* choose_configuration.c - which configurations a step's time is compared in: in which precision, whether cores take
 * rows of the batch or share each op, and how many threads share it.
 *
 * Why: a trial of whole steps costs time and memory. It is held where the outcome is open; elsewhere rules decide.
 *
 * Design: precision is open wherever bfloat16 is wished for, but for long steps most of which a matrix unit such as AMX
 * computes by kernels that no other was compared with. Division and sharing are open for steps so short that meeting
 * may cost more than other cores bring. Division is open for longer ones too, where there are fewer rows than cores, or
 * where threads share the weights and hand each other activations of one to four times the weights' size: with less the
 * threads that share the weights are sure to be faster, with more rows are, if each core gets several. How many threads
 * share a step is asked once for batches up to the same power of two. All threads are preferred there: what slows a
 * core down now may soon be over, and a plan for fewer threads would stay.
 *
 * Limits: of models of more than four million numbers only short predictions and evaluations that read little of them
 * are tried, since each configuration of a step that trains would have gradients of its own. */
#include <inttypes.h>
#include <stdio.h>

#include "runtime/runtime_struct.h"

enum { LARGEST_MODEL = 1 << 22 /* floats */, LARGEST_SHARE = 8 /* of the memory, an eighth */, SEVERAL_ROWS = 4 };
static const double sure_flops = 20e6, sure_bytes = 1e6; /* of a core: a tenth of a millisecond */
static const double long_flops = 5e9;                    /* of a core: some hundredths of a second; a trial is felt */
/* Activations to weights, in bytes, of a step that trains: below the first, threads that share the weights are sure to
 * be faster than rows of the batch for each core; above the second, rows are. */
static const double few_activations = 0.9, many_activations = 4;
/* The share of all threads' time that fewer threads must stay below to be chosen (explain_text.c says the number). */
static const double worth_fewer_threads = 0.9;

static bool is_little(const tdi_runtime *runtime, double bytes)
{
    return bytes < (double)runtime->memory / LARGEST_SHARE;
}

/* Of a large model only steps are tried that do not train and read little of it, so that little is packed; and there
 * must be memory for the clone. */
static bool may_be_tried(const tdi_runtime *runtime, tdi_mode mode, const tdi_plan *plan)
{
    int64_t floats = runtime->model->architecture->total;
    return floats <= LARGEST_MODEL ||
           (!tdi_trains(mode) && tdi_plan_bytes(plan) < sure_bytes * runtime->division.threads &&
            is_little(runtime, (double)floats * sizeof(float)));
}

/* Is a step of this plan so short that meeting may cost more than other cores bring? */
static bool is_short(const tdi_runtime *runtime, tdi_mode mode, const tdi_plan *plan)
{
    return may_be_tried(runtime, mode, plan) && tdi_plan_flops(plan) < sure_flops * runtime->division.threads;
}

/* ---- threads ---- */

/* Lists one thread, all, and between them halves of all: fewest first. */
static int list_sharing(const tdi_runtime *runtime, tdi_configuration *configurations, char names[][16],
                        tdi_tuned *question)
{
    int count = 0, some[TDI_MAX_CANDIDATES];
    for (int n = runtime->division.threads; n > 1 && count < TDI_MAX_CANDIDATES - 1; n /= 2)
        some[count++] = n;
    some[count++] = 1;
    for (int i = 0; i < count; i++) {
        int threads = some[count - 1 - i];
        configurations[i] =
            (tdi_configuration){.division = runtime->division, .float32 = runtime->float32, .sharing = threads};
        snprintf(names[i], sizeof *names, "%d thread%s", threads, threads == 1 ? "" : "s");
        question->candidates[i].name = names[i];
    }
    return count;
}

/* Batches up to the same power of two have the same key. */
static int64_t most_alike(int64_t rows)
{
    int64_t most = 1;
    while (most < rows)
        most *= 2;
    return most;
}

void tdi_choose_sharing(tdi_runtime *runtime, tdi_mode mode, int64_t rows, const tdi_plan *plan, int *threads,
                        const tdi_tuned **answer)
{
    const tdi_division *d = &runtime->division;
    tdi_configuration configurations[TDI_MAX_CANDIDATES];
    char names[TDI_MAX_CANDIDATES][16], key[64];
    tdi_tuned question = {.key = key, .worth_it = worth_fewer_threads};
    *answer = NULL;
    *threads = d->threads;
    if (!runtime->chooser.cache || runtime->sharing || d->shards > 1 || d->threads == 1 ||
        !is_short(runtime, mode, plan))
        return;
    snprintf(key, sizeof key, "threads for up to %" PRId64 " rows", most_alike(rows));
    question.count = list_sharing(runtime, configurations, names, &question);
    question.preferred = question.count - 1;
    tdi_step_trial(runtime, mode, rows, plan, configurations, &question, answer);
    if (*answer)
        *threads = configurations[(*answer)->chosen].sharing;
}

/* ---- precision and division ---- */

/* Are most of a long step products of a matrix unit, by kernels that no other was compared with? */
static bool bfloat16_is_faster(const tdi_runtime *runtime, const tdi_plan *plan)
{
    double flops = tdi_plan_flops(plan);
    return runtime->devices[0]->multiplies_bfloat16 && flops > long_flops * runtime->division.threads &&
           tdi_plan_sure_bfloat16_flops(plan) > flops * 2 / 3;
}

/* A trial has weights and slots of its own. */
static bool has_room(const tdi_runtime *runtime, const tdi_plan *plan)
{
    return is_little(runtime, (double)tdi_plan_activation_bytes(plan) * runtime->division.shards +
                                  (double)runtime->model->architecture->total * 4 * sizeof(float));
}

static bool precision_is_open(const tdi_runtime *runtime, const tdi_plan *plan)
{
    return runtime->chooser.cache && tdi_model_wishes_bfloat16(runtime->model) && !runtime->devices[0]->no_bfloat16 &&
           !bfloat16_is_faster(runtime, plan) && has_room(runtime, plan);
}

/* Threads that share the weights hand activations to each other; cores with rows of their own add up gradients of all
 * weights. */
static double activations_to_weights(const tdi_runtime *runtime, const tdi_plan *plan)
{
    return (double)tdi_plan_activation_bytes(plan) / ((double)runtime->model->architecture->total * sizeof(float) + 1);
}

/* By threads that share the weights, though they need not. */
static bool trains_by_threads(const tdi_runtime *runtime, tdi_mode mode)
{
    return tdi_trains(mode) && runtime->division.threads > 1;
}

/* A core with few rows of its own would read all weights for little. */
static bool rows_are_sure(const tdi_runtime *runtime, tdi_mode mode, int64_t rows, const tdi_plan *plan)
{
    double gradients = (double)runtime->model->architecture->total * sizeof(float) * runtime->division.threads;
    return trains_by_threads(runtime, mode) && rows >= (int64_t)SEVERAL_ROWS * runtime->division.threads &&
           !is_short(runtime, mode, plan) && activations_to_weights(runtime, plan) > many_activations &&
           is_little(runtime, gradients);
}

/* Of few rows, that threads had better share each: but for shorter steps, whose meetings may cost what other cores
 * bring. */
static bool threads_are_sure(const tdi_runtime *runtime, tdi_mode mode, const tdi_plan *plan)
{
    bool asked = runtime->chooser.cache && has_room(runtime, plan) && tdi_plan_flops(plan) < long_flops;
    return tdi_trains(mode) && !is_short(runtime, mode, plan) && !asked;
}

static bool division_is_open(const tdi_runtime *runtime, tdi_mode mode, bool few, const tdi_plan *plan)
{
    if (is_short(runtime, mode, plan) || (few && tdi_trains(mode)))
        return true;
    return trains_by_threads(runtime, mode) && runtime->model->architecture->total <= LARGEST_MODEL &&
           tdi_plan_flops(plan) < long_flops * runtime->division.threads && has_room(runtime, plan) &&
           activations_to_weights(runtime, plan) > few_activations;
}

static void add_configuration(tdi_configuration *configurations, char names[][48], tdi_tuned *question,
                              const tdi_division *d, const char *precision)
{
    int i = question->count++;
    configurations[i] = (tdi_configuration){.division = *d, .float32 = precision && *precision == 'f'};
    snprintf(names[i], sizeof *names, "%d worker%s of %d thread%s%s%s", d->workers, d->workers == 1 ? "" : "s",
             d->threads, d->threads == 1 ? "" : "s", precision ? ", " : "", precision ? precision : "");
    question->candidates[i].name = names[i];
}

void tdi_choose_configuration(tdi_runtime *runtime, tdi_mode mode, int64_t rows, const tdi_plan *plan,
                              tdi_configuration *configuration)
{
    bool few = tdi_has_too_few(&runtime->division, rows);
    tdi_division divisions[2] = {runtime->division, few ? tdi_divide_few(&runtime->division, rows)
                                                        : tdi_divide_otherwise(&runtime->division)};
    bool narrow = precision_is_open(runtime, plan);
    bool possible = runtime->division.either && rows >= divisions[1].shards; /* every shard has a row */
    bool sure = possible && (few ? threads_are_sure(runtime, mode, plan) : rows_are_sure(runtime, mode, rows, plan));
    bool both = possible && !sure && runtime->chooser.cache && division_is_open(runtime, mode, few, plan);
    tdi_configuration configurations[4];
    char names[4][48], key[64];
    tdi_tuned question = {.key = key, .lasting = narrow};
    const tdi_tuned *answer = NULL;
    snprintf(key, sizeof key, "configuration for %" PRId64 " rows", rows);
    for (int i = sure; i < 1 + (sure || both); i++) {
        add_configuration(configurations, names, &question, &divisions[i], narrow ? "bfloat16" : NULL);
        if (narrow)
            add_configuration(configurations, names, &question, &divisions[i], "float32");
    }
    if (question.count > 1)
        tdi_step_trial(runtime, mode, rows, plan, configurations, &question, &answer);
    *configuration = configurations[answer ? answer->chosen : 0];
    configuration->tuned = answer;
    configuration->trial_bytes = runtime->trial_bytes;
    if (sure && !few)
        snprintf(configuration->division.why, sizeof configuration->division.why,
                 "with more activations than weights each core computes rows of the batch");
}
