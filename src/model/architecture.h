/* architecture.h - what a model computes: its layers, how they are joined, and the layout of its variables. Nothing in
 * it changes once it is made, so that any number of states (model_state.h) may share one. */
#ifndef TDI_MODEL_ARCHITECTURE_H
#define TDI_MODEL_ARCHITECTURE_H

#include <tandem/model.h>

#include "layers/layer.h"

#define TDI_MAX_IO     8    /* inputs, or outputs, of a model */
#define TDI_MAX_FED    24   /* what a step is fed: its inputs, targets, and weights of losses */
#define TDI_MAX_LAYERS 4096 /* of a model, and calls of them */

typedef struct tdi_architecture {
    const char *name;
    bool sequential; /* made as, and written back as, Keras's Sequential */
    int n_inputs, n_outputs;
    td_tensor *inputs[TDI_MAX_IO], *outputs[TDI_MAX_IO];
    int64_t indices[TDI_MAX_IO];    /* an input that holds indices, whole numbers below this; 0: numbers */
    tdi_vec(tdi_call_site *) sites; /* in an order that respects edges; InputLayer calls included */
    tdi_vec(tdi_layer *) layers;    /* Keras's model.layers: by depth, then as a walk from the outputs meets them */
    tdi_vec(tdi_weight *) weights;  /* Keras's model.weights: layer by layer; variable.index is the position */

    /* The layout of the variables, in floats: the trained ones stand in [0, trained), other weights in [trained,
     * states), what stateful layers keep from batch to batch in [states, total); each at its variable.offset. */
    int64_t trained, states, total;
} tdi_architecture;

/* What an architecture is made of. */
typedef struct tdi_architecture_spec {
    td_context *context;
    const void *owner; /* what its layers then belong to */
    const char *name;  /* copied; NULL: one of the context's */
    bool sequential;
    int n_inputs, n_outputs;
    td_tensor *const *inputs, *const *outputs;
} tdi_architecture_spec;

td_status tdi_architecture_create(const tdi_architecture_spec *spec, tdi_architecture **architecture, tdi_error *error);
void tdi_architecture_free(const tdi_architecture *architecture); /* its layers and tensors are the context's */

#endif
