/* order.c - the calls of a model in order, and its layers in Keras's order, which names the folders of the weights in
 * its files: by depth (distance from the outputs), then as a walk from the outputs meets them
 * (keras/src/ops/function.py, map_graph). */
#include "model/order.h"

#include <string.h>

typedef struct met {
    tdi_layer *layer;
    int index, depth;
} met;

typedef struct walk {
    td_model *model;
    tdi_vec(met) layers; /* in the order met */
    tdi_vec(int) depths; /* of model->sites */
    bool failed;         /* memory */
} walk;

static bool is_input(const walk *w, const tdi_call_site *site)
{
    for (int i = 0; i < w->model->n_inputs; i++)
        if (w->model->inputs[i]->site == site)
            return true;
    return false;
}

static int position(const td_model *model, const tdi_call_site *site)
{
    for (int i = 0; i < model->sites.count; i++)
        if (model->sites.at[i] == site)
            return i;
    return -1;
}

static int layer_position(const walk *w, const tdi_layer *layer)
{
    for (int i = 0; i < w->layers.count; i++)
        if (w->layers.at[i].layer == layer)
            return i;
    return -1;
}

static void meet(walk *w, tdi_layer *layer)
{
    if (layer_position(w, layer) < 0 && !tdi_push(&w->layers, ((met){layer, w->layers.count, 0})))
        w->failed = true;
}

/* Depth first, so that a call stands behind its inputs. Calls cannot form a cycle: a tensor exists before it is used.
 */
static td_status visit(walk *w, tdi_call_site *site, tdi_error *error)
{
    if (position(w->model, site) >= 0)
        return TD_OK;
    meet(w, site->layer);
    if (site->n_in == 0 && !is_input(w, site))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "model: an output depends on input \"%s\", which is not among the model's inputs",
                        site->layer->name);
    for (int i = 0; i < site->n_in && !is_input(w, site); i++)
        TDI_TRY(visit(w, site->in[i]->site, error));
    if (!tdi_push(&w->model->sites, site) || !tdi_push(&w->depths, 0))
        w->failed = true;
    return w->failed ? tdi_no_memory(error) : TD_OK;
}

static void raise_depth(walk *w, const tdi_call_site *site, int depth)
{
    int i = position(w->model, site);
    if (i >= 0 && w->depths.at[i] < depth)
        w->depths.at[i] = depth;
}

static void find_depths(walk *w)
{
    for (int i = w->model->sites.count - 1; i >= 0; i--) {
        const tdi_call_site *site = w->model->sites.at[i];
        met *layer = &w->layers.at[layer_position(w, site->layer)];
        if (w->depths.at[i] < layer->depth)
            w->depths.at[i] = layer->depth;
        layer->depth = w->depths.at[i];
        for (int j = 0; j < site->n_in; j++)
            raise_depth(w, site->in[j]->site, w->depths.at[i] + 1);
    }
}

static td_status add_unused_inputs(walk *w, tdi_error *error)
{
    for (int i = 0; i < w->model->n_inputs; i++)
        TDI_TRY(visit(w, w->model->inputs[i]->site, error));
    return TD_OK;
}

static int deeper_first(const void *a, const void *b)
{
    const met *x = a, *y = b;
    return x->depth != y->depth ? y->depth - x->depth : x->index - y->index;
}

static td_status list_layers(walk *w, tdi_error *error)
{
    qsort(w->layers.at, (size_t)w->layers.count, sizeof *w->layers.at, deeper_first);
    for (int i = 0; i < w->layers.count; i++) {
        tdi_layer *layer = w->layers.at[i].layer;
        for (int j = 0; j < i; j++)
            if (strcmp(w->layers.at[j].layer->name, layer->name) == 0)
                return tdi_fail(error, TD_INVALID_ARGUMENT, "model: two layers are named \"%s\"; names must differ",
                                layer->name);
        if (!tdi_push(&w->model->layers, layer))
            return tdi_no_memory(error);
    }
    return TD_OK;
}

td_status tdi_model_order(td_model *model, tdi_error *error)
{
    walk w = {.model = model};
    td_status status = TD_OK;
    for (int i = 0; i < model->n_outputs && status == TD_OK; i++)
        status = visit(&w, model->outputs[i]->site, error);
    if (status == TD_OK) {
        find_depths(&w);
        status = add_unused_inputs(&w, error);
    }
    if (status == TD_OK)
        status = list_layers(&w, error);
    tdi_vec_free(&w.layers);
    tdi_vec_free(&w.depths);
    return status;
}
