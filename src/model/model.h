/* model.h - the inside of a td_model: an architecture, a state of it, and how it was compiled. */
#ifndef TDI_MODEL_MODEL_H
#define TDI_MODEL_MODEL_H

#include "layers/metrics.h"
#include "layers/optimizers.h"
#include "model/model_state.h"

#define TDI_MAX_METRICS 8

typedef struct tdi_runtimes tdi_runtimes; /* src/runtime/configuration.c: a compiled model at work */

typedef struct tdi_output_training {
    tdi_loss loss;             /* kind NONE: the output is not trained */
    const char *unknown_loss;  /* its file's JSON, in the context's arena: none that Tandem knows, to be replaced before
                                  the model is trained, and written back until then; NULL: there is none */
    float loss_weight;         /* 1 */
    int n_metrics, n_weighted; /* all of them; the last ones, Keras's weighted_metrics */
    td_metric metrics[TDI_MAX_METRICS]; /* resolved; their names and lists are in the model's `kept` */
} tdi_output_training;

/* Is metric `m` weighted as the loss is? */
static inline bool tdi_is_weighted(const tdi_output_training *training, int m)
{
    return m >= training->n_metrics - training->n_weighted;
}

/* How the losses of a kind of step are weighted, by its data's sample_weight and by class_weight; zero: not at all. */
typedef struct tdi_weighting {
    int columns;                  /* of sample weights: 0, 1 that all outputs share, or one for each output, of which
                                   * those that tdi_model_is_weighted are fed */
    bool by_position[TDI_MAX_IO]; /* per column: a weight for each position of the output's losses; else one a sample */
    int classes;                  /* classes 0 .. classes - 1 of the only output have class_weights; 0: none has */
    float *class_weights;         /* malloc'd */
} tdi_weighting;

/* How the model is trained and run. Plans are made of it, so that it changes only where they are dropped. */
typedef struct tdi_compiled {
    bool is_set; /* an output has a loss, and none an unknown one */
    tdi_output_training outputs[TDI_MAX_IO];
    const char *unknown_optimizer; /* the same of the optimizer */
    char *devices;                 /* malloc'd; NULL: "cpu" */
    int shards;
    bool rematerialize;          /* cheap activations are computed anew for backpropagation rather than kept */
    int64_t steps_per_execution; /* 0: as many as the progress line allows */
    td_precision precision;
    bool by_rules;                       /* rules choose, without timing, as in the run that is resumed */
    bool float32_said;                   /* it was said that float32 replaces bfloat16 */
    bool separate_replicas;              /* replicas are never computed as one: the tests of replicas ask for it */
    const struct tdi_strategy *strategy; /* how steps are spread over devices; NULL: mirrored */
} tdi_compiled;

/* The optimizer's slots in the file that a model was read from. They are read when they are first needed, since
 * predictions and evaluations do without. */
typedef struct tdi_stored_slots {
    td_status (*read)(struct tdi_stored_slots *stored, td_model *model, tdi_error *error);
    void (*free)(struct tdi_stored_slots *stored);
} tdi_stored_slots;

struct td_model {
    td_context *context;
    const tdi_architecture *architecture;
    tdi_model_state *state;
    tdi_compiled compiled;
    tdi_weighting weighting[2]; /* of steps that evaluate, and of those that train; set by their data */
    tdi_parts *made;            /* its tensors and layers, where nobody else has them; NULL: they are the context's */
    tdi_arena *kept;            /* copies of lists and names that `compiled` and the optimizer's schedule refer to */
    char *recipe;               /* how the data it was trained on was read (src/data/recipe.h); malloc'd; NULL: none */
    bool bfloat16;              /* the Sequential's own policy in its file is mixed_bfloat16: kept to be written back */
    bool fitting;               /* a td_fit of it is under way */

    tdi_stored_slots *stored_slots; /* NULL: there are none, or they have been read */

    tdi_runtimes *runtimes; /* NULL until first used; freed by `free_runtimes`, since they are above this folder */
    void (*free_runtimes)(tdi_runtimes *runtimes);
};

/* Makes a model of the calls between inputs and outputs, its weights 0; `seed` 0: from the clock. */
td_status tdi_model_create(td_context *context, const char *name, bool sequential, int n_inputs,
                           td_tensor *const *inputs, int n_outputs, td_tensor *const *outputs, uint64_t seed,
                           td_model **model, tdi_error *error);

/* Adds a metric of output `output` to `training`: resolved, its name and lists copied. TD_INVALID_ARGUMENT when it
 * cannot be. */
td_status tdi_model_add_metric(const td_model *model, int output, tdi_output_training *training,
                               const td_metric *metric, tdi_error *error);

/* How many of the outputs have a loss. */
int tdi_model_losses(const td_model *model);
/* What compiled.is_set is to be. */
bool tdi_model_losses_known(const td_model *model);
/* True when data must hold a target for the output: it has a loss, or a metric. */
bool tdi_model_has_target(const td_model *model, int output);
/* How many of the outputs have a target. */
int tdi_model_targets(const td_model *model);
/* True when weights change something of the output: its loss, or a weighted metric. */
bool tdi_model_is_weighted(const td_model *model, int output);
/* Of an output without a loss, the metrics say whether its targets are class numbers. */
void tdi_model_choose_targets(td_model *model, int output);

/* The number of weights of a sample in a column of such steps: 0 where nothing of its output is weighted. */
int64_t tdi_model_weight_elements(const td_model *model, bool trains, int column);
/* The shape of a sample's weights in a column of such steps: rank 0, or that of its output's losses. */
td_shape tdi_model_weight_shape(const td_model *model, bool trains, int column);
/* Forgets how losses were weighted. */
void tdi_model_clear_weighting(td_model *model);

/* Copies what `compiled` and the optimizer refer to into a new arena and frees what was there before, so that a model
 * can be compiled any number of times. After a failure, TD_NO_MEMORY, all is as it was. */
td_status tdi_model_keep_anew(td_model *model, tdi_error *error);

/* Keeps a copy of the recipe; NULL: the one there is stays. */
td_status tdi_model_set_recipe(td_model *model, const char *recipe, tdi_error *error);

/* Makes the optimizer's slots, of zeros or by the model's file: before each use of them. After a failure there are
 * none, and the next call tries again. */
td_status tdi_model_need_slots(td_model *model, tdi_error *error);
/* Takes the optimizer (resolved and checked), with slots of zeros, iteration 0, and drops the plans. compiled.outputs[]
 * is set by the caller. */
td_status tdi_model_set_optimizer(td_model *model, const td_optimizer *optimizer, tdi_error *error);
/* TD_INVALID_ARGUMENT, with nothing changed, when it cannot be set. */
td_status tdi_model_set_learning_rate(td_model *model, float learning_rate, tdi_error *error);
/* TD_INVALID_ARGUMENT when a callback of the model's own td_fit has called `function`. */
td_status tdi_model_check_idle(const td_model *model, const char *function, tdi_error *error);
/* Frees devices, plans and what was chosen for them: the next use makes them anew. */
void tdi_model_drop_runtimes(td_model *model);

/* ---- clone.c ---- */

/* Makes *clone a model of the same architecture and context with a state of its own, slots in it where it `trains`
 * (tdi_model_need_slots comes before), so that `model` stays as it is. After a failure there is nothing to release. */
td_status tdi_model_clone(const td_model *model, bool trains, td_model *clone, tdi_error *error);
/* Gives the model the clone's values, iteration and learning rate, and the clone's slots if it has any, which it loses.
 */
void tdi_model_take_clone(td_model *model, td_model *clone);
void tdi_model_release_clone(td_model *clone); /* a zeroed one too */

/* ---- stateful_layers.c ---- */

/* The batch size asked for; for 0 that of the stateful layers, or without such layers Keras's 32. */
int64_t tdi_model_batch_size(const td_model *model, int64_t asked);
/* What a refusal says of samples: "samples" or "validation samples", of which source, and what leaves some of them out.
 */
typedef struct tdi_samples_words {
    const char *source, *what, *option;
} tdi_samples_words;
/* TD_INVALID_ARGUMENT when stateful layers take batches of another size. */
td_status tdi_model_check_rows(const td_model *model, int64_t rows, tdi_error *error);
/* The same for so many samples in batches of `batch`, the last one included. */
td_status tdi_model_check_samples(const td_model *model, int64_t samples, int64_t batch, const tdi_samples_words *words,
                                  tdi_error *error);
static inline bool tdi_model_is_stateful(const td_model *model)
{
    return model->architecture->total > model->architecture->states;
}

/* ---- the model's own state, through its accessors (model_state.h) ---- */

static inline const float *tdi_model_values(const td_model *model)
{
    return tdi_model_state_values(model->state);
}
static inline float *tdi_model_write_values(td_model *model)
{
    return tdi_model_state_write_values(model->state);
}
static inline const float *tdi_model_value(const td_model *model, const tdi_variable *variable)
{
    return tdi_model_values(model) + variable->offset;
}
static inline float *tdi_model_write_value(td_model *model, const tdi_variable *variable)
{
    return tdi_model_write_values(model) + variable->offset;
}
/* NULL: the optimizer has no such slot. */
static inline const float *tdi_model_slots(const td_model *model, int slot)
{
    return tdi_model_state_slots(model->state, slot);
}
static inline float *tdi_model_write_slots(td_model *model, int slot)
{
    return tdi_model_state_write_slots(model->state, slot);
}
static inline const float *tdi_model_slot(const td_model *model, const tdi_variable *variable, int slot)
{
    return tdi_model_slots(model, slot) + variable->offset;
}

#endif
