/* architecture.c - making an architecture: the order of its calls and layers, the layout of its variables. */
#include "model/architecture.h"

#include <string.h>

#include "model/call_order.h"

static int64_t padded(int64_t elements)
{
    return (elements + 15) & ~(int64_t)15;
}

static td_status adopt_layer(tdi_architecture *a, const void *owner, tdi_layer *layer, tdi_error *error)
{
    if (layer->owner)
        return tdi_fail(error, TD_UNSUPPORTED,
                        "layer \"%s\" belongs to another model already; make the layer again for this one",
                        layer->name);
    layer->owner = owner;
    for (int i = 0; i < layer->weights.count; i++) {
        layer->weights.at[i]->variable.index = a->weights.count;
        if (!tdi_push(&a->weights, layer->weights.at[i]))
            return tdi_no_memory(error);
    }
    return TD_OK;
}

/* Trained variables stand in the order in which backpropagation finishes their gradients: the last layer's first. */
static void lay_out(tdi_architecture *a)
{
    int64_t offset = 0;
    for (int i = a->weights.count - 1; i >= 0; i--) {
        tdi_variable *variable = &a->weights.at[i]->variable;
        if (variable->trainable) {
            variable->offset = offset;
            offset += padded(variable->elements);
        }
    }
    a->trained = offset;
    for (int i = 0; i < a->weights.count; i++) {
        tdi_variable *variable = &a->weights.at[i]->variable;
        if (!variable->trainable) {
            variable->offset = offset;
            offset += padded(variable->elements);
        }
    }
    a->states = offset;
    for (int i = 0; i < a->layers.count; i++)
        for (int s = 0; s < a->layers.at[i]->states.count; s++) {
            tdi_variable *state = a->layers.at[i]->states.at[s];
            state->offset = offset;
            offset += padded(state->elements);
        }
    a->total = offset;
}

/* All stateful layers are made for one batch size. */
static td_status check_batches(const tdi_architecture *a, tdi_error *error)
{
    const tdi_layer *first = NULL;
    for (int i = 0; i < a->layers.count; i++) {
        const tdi_layer *layer = a->layers.at[i];
        if (first && layer->states.count && layer->batch != first->batch)
            return tdi_fail(error, TD_INVALID_ARGUMENT,
                            "stateful layers \"%s\" and \"%s\" are made for batches of %lld and of %lld samples",
                            first->name, layer->name, (long long)first->batch, (long long)layer->batch);
        if (layer->states.count)
            first = layer;
    }
    return TD_OK;
}

/* The rows of the smallest table that `input` is looked up in; 0 where a layer takes the input as numbers. */
static int64_t indices_of(const tdi_architecture *a, const td_tensor *input)
{
    int64_t least = 0;
    for (int i = 0; i < a->sites.count; i++) {
        const tdi_call_site *site = a->sites.at[i];
        for (int j = 0; j < site->n_in; j++) {
            if (site->in[j] != input)
                continue;
            if (!site->layer->type->indices)
                return 0;
            int64_t rows = site->layer->type->indices(site->layer);
            least = least && least < rows ? least : rows;
        }
    }
    return least;
}

static bool is_output(const tdi_architecture *a, const td_tensor *input)
{
    for (int o = 0; o < a->n_outputs; o++)
        if (a->outputs[o] == input)
            return true;
    return false;
}

/* Finds which inputs hold indices. An input that is an output too is given back as numbers. */
static td_status find_indices(tdi_architecture *a, tdi_error *error)
{
    for (int i = 0; i < a->n_inputs; i++) {
        const td_tensor *input = a->inputs[i];
        bool given_back = is_output(a, input);
        if (given_back && input->dtype != TD_FLOAT32)
            return tdi_fail(error, TD_UNSUPPORTED,
                            "model: input \"%s\" of %s is an output as well: make it float32, or leave it out of the "
                            "outputs",
                            input->site->layer->name, td_dtype_name(input->dtype));
        a->indices[i] = given_back ? 0 : indices_of(a, input);
    }
    return TD_OK;
}

static td_status check_io(const tdi_architecture_spec *spec, tdi_error *error)
{
    int n_inputs = spec->n_inputs, n_outputs = spec->n_outputs;
    if (n_inputs < 1 || n_inputs > TDI_MAX_IO || n_outputs < 1 || n_outputs > TDI_MAX_IO)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "model: 1 to %d inputs and outputs are possible, not %d and %d",
                        TDI_MAX_IO, n_inputs, n_outputs);
    for (int i = 0; i < n_inputs + n_outputs; i++) {
        const td_tensor *tensor = i < n_inputs ? spec->inputs[i] : spec->outputs[i - n_inputs];
        if (!tensor || !tensor->site)
            return tdi_fail(error, TD_INVALID_ARGUMENT, "model: %s %d is not a tensor (an earlier call failed)",
                            i < n_inputs ? "input" : "output", i < n_inputs ? i : i - n_inputs);
        if (i < n_inputs && tensor->site->n_in)
            return tdi_fail(error, TD_INVALID_ARGUMENT,
                            "model: input %d is the output of layer \"%s\"; give what td_input made", i,
                            tensor->site->layer->name);
    }
    return TD_OK;
}

static td_status fill(tdi_architecture *a, const tdi_architecture_spec *spec, tdi_error *error)
{
    a->name = spec->name ? tdi_strdup(spec->context->arena, spec->name)
                         : tdi_context_name(spec->context, spec->sequential ? "sequential" : "functional");
    if (!a->name)
        return tdi_no_memory(error);
    a->sequential = spec->sequential;
    a->n_inputs = spec->n_inputs;
    a->n_outputs = spec->n_outputs;
    memcpy(a->inputs, spec->inputs, (size_t)spec->n_inputs * sizeof *a->inputs);
    memcpy(a->outputs, spec->outputs, (size_t)spec->n_outputs * sizeof *a->outputs);
    TDI_TRY(tdi_architecture_order(a, error));
    TDI_TRY(check_batches(a, error));
    TDI_TRY(find_indices(a, error));
    for (int i = 0; i < a->layers.count; i++)
        TDI_TRY(adopt_layer(a, spec->owner, a->layers.at[i], error));
    lay_out(a);
    return TD_OK;
}

td_status tdi_architecture_create(const tdi_architecture_spec *spec, tdi_architecture **architecture, tdi_error *error)
{
    *architecture = NULL;
    TDI_TRY(check_io(spec, error));
    tdi_architecture *made = calloc(1, sizeof *made);
    td_status status = made ? fill(made, spec, error) : tdi_no_memory(error);
    if (status == TD_OK)
        *architecture = made;
    else
        tdi_architecture_free(made);
    return status;
}

void tdi_architecture_free(const tdi_architecture *architecture)
{
    tdi_architecture *a = (tdi_architecture *)(uintptr_t)architecture;
    if (!a)
        return;
    tdi_vec_free(&a->sites);
    tdi_vec_free(&a->layers);
    tdi_vec_free(&a->weights);
    free(a);
}
