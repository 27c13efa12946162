/* call_order.c - the calls of a model in order, and its layers in Keras's order, which names the folders of the weights
 * in its files: by depth (distance from the outputs), then as a walk from the outputs meets them
 * (keras/src/ops/function.py, map_graph). Calls of one layer follow each other as Keras makes them, by depth too: of a
 * batch normalization the later call has more weight in the moving statistics. */
#include "model/call_order.h"

#include <string.h>

typedef struct met {
    tdi_layer *layer;
    int index, depth;
} met;

/* A call. Keras makes calls of one depth in the order in which their depth was first set: `turn`. */
typedef struct made {
    tdi_call_site *site;
    int depth, turn;
} made;

typedef struct walk {
    tdi_architecture *architecture;
    tdi_vec(met) layers; /* in the order met */
    tdi_vec(made) calls; /* those that outputs depend on, each behind its inputs */
    int turns;
    bool failed; /* memory */
} walk;

static bool is_input(const walk *w, const tdi_call_site *site)
{
    for (int i = 0; i < w->architecture->n_inputs; i++)
        if (w->architecture->inputs[i]->site == site)
            return true;
    return false;
}

static bool is_listed(const tdi_architecture *architecture, const tdi_call_site *site)
{
    for (int i = 0; i < architecture->sites.count; i++)
        if (architecture->sites.at[i] == site)
            return true;
    return false;
}

static made *call_of(const walk *w, const tdi_call_site *site)
{
    for (int i = 0; i < w->calls.count; i++)
        if (w->calls.at[i].site == site)
            return &w->calls.at[i];
    return NULL;
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

static bool is_earlier(const made *a, const made *b)
{
    return a->depth != b->depth ? a->depth > b->depth : a->turn < b->turn;
}

/* The call of the same layer that Keras makes before this one; NULL: this is the first, or depths are not known yet. */
static tdi_call_site *call_before(const walk *w, const tdi_call_site *site)
{
    const made *call = call_of(w, site), *last = NULL;
    for (int i = 0; call && i < w->calls.count; i++) {
        const made *other = &w->calls.at[i];
        if (other->site->layer == site->layer && is_earlier(other, call) && (!last || is_earlier(last, other)))
            last = other;
    }
    return last ? last->site : NULL;
}

/* Depth first, so that a call stands behind its inputs. Calls cannot form a cycle: a tensor exists before it is used,
 * and Keras's order has a call behind its inputs too. */
static td_status visit(walk *w, tdi_call_site *site, tdi_error *error)
{
    if (is_listed(w->architecture, site))
        return TD_OK;
    meet(w, site->layer);
    if (site->n_in == 0 && !is_input(w, site))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "model: an output depends on input \"%s\", which is not among the model's inputs",
                        site->layer->name);
    tdi_call_site *before = call_before(w, site);
    if (before)
        TDI_TRY(visit(w, before, error));
    for (int i = 0; i < site->n_in && !is_input(w, site); i++)
        TDI_TRY(visit(w, site->in[i]->site, error));
    if (!tdi_push(&w->architecture->sites, site))
        w->failed = true;
    return w->failed ? tdi_no_memory(error) : TD_OK;
}

static td_status visit_outputs(walk *w, tdi_error *error)
{
    for (int i = 0; i < w->architecture->n_outputs; i++)
        TDI_TRY(visit(w, w->architecture->outputs[i]->site, error));
    return TD_OK;
}

/* Makes the call at least so deep. */
static void raise_depth(walk *w, made *call, int depth)
{
    if (call->turn < 0)
        call->turn = w->turns++;
    if (call->depth < depth)
        call->depth = depth;
}

static void find_depths(walk *w)
{
    for (int i = w->calls.count - 1; i >= 0; i--) {
        made *call = &w->calls.at[i];
        met *layer = &w->layers.at[layer_position(w, call->site->layer)];
        raise_depth(w, call, layer->depth);
        layer->depth = call->depth;
        for (int j = 0; j < call->site->n_in; j++) {
            made *in = call_of(w, call->site->in[j]->site);
            if (in)
                raise_depth(w, in, call->depth + 1);
        }
    }
}

/* Lists calls as a walk from the outputs meets them; where a layer is called several times, walks once more to list
 * its calls as Keras makes them. */
static td_status order_calls(walk *w, tdi_error *error)
{
    TDI_TRY(visit_outputs(w, error));
    if (w->architecture->sites.count > TDI_MAX_LAYERS)
        return tdi_fail(error, TD_UNSUPPORTED, "model: it has %d calls of layers; at most %d are possible",
                        w->architecture->sites.count, TDI_MAX_LAYERS);
    for (int i = 0; i < w->architecture->sites.count; i++)
        if (!tdi_push(&w->calls, ((made){w->architecture->sites.at[i], 0, -1})))
            return tdi_no_memory(error);
    find_depths(w);
    if (w->calls.count == w->layers.count)
        return TD_OK; /* no layer is called twice */
    w->architecture->sites.count = 0;
    return visit_outputs(w, error);
}

static td_status add_unused_inputs(walk *w, tdi_error *error)
{
    for (int i = 0; i < w->architecture->n_inputs; i++)
        TDI_TRY(visit(w, w->architecture->inputs[i]->site, error));
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
        if (!tdi_push(&w->architecture->layers, layer))
            return tdi_no_memory(error);
    }
    return TD_OK;
}

td_status tdi_architecture_order(tdi_architecture *architecture, tdi_error *error)
{
    walk w = {.architecture = architecture};
    td_status status = order_calls(&w, error);
    if (status == TD_OK)
        status = add_unused_inputs(&w, error);
    if (status == TD_OK)
        status = list_layers(&w, error);
    tdi_vec_free(&w.layers);
    tdi_vec_free(&w.calls);
    return status;
}
