/* model.h - the inside of a td_model: its layers, its variables and their values, how it was compiled. */
#ifndef TDI_MODEL_MODEL_H
#define TDI_MODEL_MODEL_H

#include <tandem/model.h>

#include "layers/layer.h"
#include "layers/metrics.h"
#include "layers/optimizers.h"

#define TDI_MAX_IO      8    /* inputs, or outputs, of a model */
#define TDI_MAX_LAYERS  4096 /* of a model, and calls of them */
#define TDI_MAX_METRICS 8
#define TDI_MAX_SLOTS   5

typedef struct tdi_runtime tdi_runtime; /* src/dist: devices, replicas and plans of a compiled model */

typedef struct tdi_output_training {
    tdi_loss loss;
    float loss_weight; /* 1 */
    int n_metrics;
    td_metric metrics[TDI_MAX_METRICS]; /* settled; their names and lists are in the context's arena */
} tdi_output_training;

struct td_model {
    td_context *context;
    const char *name;
    char *recipe;    /* how the data it was trained on was read (src/data/recipe.h); malloc'd; NULL: none */
    bool sequential; /* made as, and written back as, Keras's Sequential */
    bool bfloat16;   /* the Sequential's own policy in its file is mixed_bfloat16: kept to be written back */
    uint64_t seed;
    int n_inputs, n_outputs;
    td_tensor *inputs[TDI_MAX_IO], *outputs[TDI_MAX_IO];
    int64_t indices[TDI_MAX_IO];    /* an input that holds indices, whole numbers below this; 0: numbers */
    tdi_vec(tdi_call_site *) sites; /* in an order that respects edges; InputLayer calls included */
    tdi_vec(tdi_layer *) layers;    /* Keras's model.layers: by depth, then as a walk from the outputs meets them */
    tdi_vec(tdi_weight *) weights;  /* Keras's model.weights: layer by layer; variable.index is the position */

    /* Host storage of all variables: values, then the optimizer's slots in the same layout. Trained ones come first, at
     * variable.offset, `trained` floats of them; last, from `states` on, what stateful layers keep. */
    int64_t trained, states, total;
    const float *values;         /* [total]; written through tdi_model_write_values() */
    uint64_t written;            /* how often that may have been */
    float *slots[TDI_MAX_SLOTS]; /* [trained] each; NULL where the optimizer has none */

    bool compiled;
    td_optimizer optimizer; /* resolved */
    float last_rate;        /* the learning rate of the last step; 0: not known */
    int64_t iteration;      /* steps taken, those that accumulate gradients included: Keras's iteration */
    tdi_output_training training[TDI_MAX_IO];
    char *devices; /* malloc'd */
    int shards;
    bool rematerialize;          /* cheap activations are computed anew for backpropagation rather than kept */
    int64_t steps_per_execution; /* 0: as many as the progress line allows */
    td_precision precision;
    bool fitting;                        /* a td_fit of it is under way */
    bool by_rules;                       /* the clock is asked nothing: so it was in the run that is resumed */
    bool float32_said;                   /* that it takes the place of the bfloat16 asked for */
    bool separate_replicas;              /* replicas are never computed as one: the tests of replicas ask for it */
    const struct tdi_strategy *strategy; /* how steps are spread over devices; NULL: mirrored */
    tdi_runtime *runtime;                /* NULL until first used; freed by tdi_runtime_free through `free_runtime` */
    /* The same, of predictions and evaluations that go another way: in one part, in several. */
    tdi_runtime *runtimes_apart[2];
    void (*free_runtime)(tdi_runtime *runtime);
};

/* Makes a model of the calls between inputs and outputs, its weights 0; `seed` 0: from the clock. */
td_status tdi_model_create(td_context *context, const char *name, bool sequential, int n_inputs,
                           td_tensor *const *inputs, int n_outputs, td_tensor *const *outputs, uint64_t seed,
                           td_model **model, tdi_error *error);

/* Adds a metric of output `output` to `training`: settled, its name and list copied. TD_INVALID_ARGUMENT when it cannot
 * be. */
td_status tdi_model_add_metric(const td_model *model, int output, tdi_output_training *training,
                               const td_metric *metric, tdi_error *error);

/* Keeps a copy of the recipe; NULL: the one there is stays. */
td_status tdi_model_set_recipe(td_model *model, const char *recipe, tdi_error *error);

/* Takes the optimizer (resolved and checked, slots zeroed; Adam's `iteration` 0) and drops the plans. training[] is set
 * by the caller. */
td_status tdi_model_set_optimizer(td_model *model, const td_optimizer *optimizer, tdi_error *error);
/* TD_INVALID_ARGUMENT, with nothing changed, when it cannot be set. */
td_status tdi_model_set_learning_rate(td_model *model, float learning_rate, tdi_error *error);
/* TD_INVALID_ARGUMENT when a callback of the model's own td_fit has called `function`. */
td_status tdi_model_check_idle(const td_model *model, const char *function, tdi_error *error);
/* Drops devices and plans: the next use makes them anew. */
void tdi_model_drop_runtime(td_model *model);
/* TD_NO_MEMORY: what needs so many floats. */
td_status tdi_model_short(const char *what, int64_t floats, tdi_error *error);

/* ---- clone.c ---- */

/* A copy of the model with weights, states and, where it `trains`, optimizer's state of its own, so that the model
 * stays as it is; layers and context are the model's. Poison is never left: after a failure there is nothing to
 * release. */
td_status tdi_model_clone(const td_model *model, bool trains, td_model *clone, tdi_error *error);
/* Makes what the clone holds the model's: weights, states, the optimizer's state and learning rate. */
void tdi_model_take_clone(td_model *model, const td_model *clone);
void tdi_model_release_clone(td_model *clone); /* a zeroed one too */

/* ---- states.c ---- */

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
    return model->total > model->states;
}

/* To write there: what was made of the values before is not to be used any longer. */
float *tdi_model_write_values(td_model *model);
static inline float *tdi_model_write_value(td_model *model, const tdi_variable *variable)
{
    return tdi_model_write_values(model) + variable->offset;
}
static inline const float *tdi_model_value(const td_model *model, const tdi_variable *variable)
{
    return model->values + variable->offset;
}
static inline float *tdi_model_slot(const td_model *model, const tdi_variable *variable, int slot)
{
    return model->slots[slot] + variable->offset;
}

#endif
