/* keras_weights.c - model.weights.h5: what is where.
 *
 *   /layers/<class in snake case>[_1, _2, ...]/vars/0, 1, ...   a layer's weights, in Keras's order; an LSTM's are its
 *                                                               cell's, in .../cell/vars
 *   /optimizer/vars/0        iteration
 *   /optimizer/vars/1        learning rate, unless it is a schedule
 *   /optimizer/vars/2, ...   (or from 1 on) slots: use_ema's averages; the accumulators of gradient_accumulation_steps;
 * SGD's momentum, or Adam's m and v, variable by variable; then amsgrad's v_hat
 *
 * Folders are counted per class in the order of model.layers, whatever the layers' names. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/keras_json.h"

#define PATH_SIZE 160

/* ---- folders ---- */

static bool has_folder(const td_model *model, const tdi_layer *layer)
{
    return !model->architecture->sequential || strcmp(layer->type->class_name, "InputLayer") != 0;
}

/* How many of the first `count` layers are of a type. */
static int count_layers(const td_model *model, int count, const char *base)
{
    int found = 0;
    for (int i = 0; i < count; i++)
        found += strcmp(model->architecture->layers.at[i]->type->base_name, base) == 0;
    return found;
}

/* "dense", "dense_1", ... for the layer at `position`. */
static void folder_of(const td_model *model, int position, char *folder, size_t size)
{
    const char *base = model->architecture->layers.at[position]->type->base_name;
    int before = count_layers(model, position, base);
    if (before)
        snprintf(folder, size, "%s_%d", base, before);
    else
        snprintf(folder, size, "%s", base);
}

/* The path of the layer's weights below its folder. */
static void vars_of(const td_model *model, int position, const char *layers, char vars[PATH_SIZE])
{
    char folder[64];
    const char *cell = model->architecture->layers.at[position]->type->cell;
    folder_of(model, position, folder, sizeof folder);
    snprintf(vars, PATH_SIZE, "%s/%s/%s%svars", layers, folder, cell ? cell : "", cell ? "/" : "");
}

/* How many numbers Keras 2.13 has given to layers of a type before this one: to one that has weights it gave two, since
 * it met such layers twice ("dense", "dense_2", "dense_4"). */
static int count_twice(const td_model *model, int position, const char *base)
{
    int found = 0;
    for (int i = 0; i < position; i++) {
        const tdi_layer *layer = model->architecture->layers.at[i];
        if (strcmp(layer->type->base_name, base) == 0)
            found += layer->weights.count ? 2 : 1;
    }
    return found;
}

/* Keras 2.13 and 2.14 have the layers under another name. */
static void find_vars(const td_model *model, int position, tdi_hdf5_file *file, char vars[PATH_SIZE])
{
    const tdi_layer_type *type = model->architecture->layers.at[position]->type;
    char second[PATH_SIZE];
    vars_of(model, position, "layers", vars);
    if (tdi_hdf5_file_has(file, vars) || !tdi_hdf5_file_has(file, "_layer_checkpoint_dependencies"))
        return;
    snprintf(second, sizeof second, "_layer_checkpoint_dependencies/%s_1", type->base_name);
    int before = count_twice(model, position, type->base_name);
    vars_of(model, position, "_layer_checkpoint_dependencies", vars);
    if (before && !tdi_hdf5_file_has(file, second))
        snprintf(vars, PATH_SIZE, "_layer_checkpoint_dependencies/%s_%d/%s%svars", type->base_name, before,
                 type->cell ? type->cell : "", type->cell ? "/" : "");
}

/* ---- reading ---- */

static td_status read_layer(td_model *model, int position, tdi_hdf5_file *file, tdi_error *error)
{
    const tdi_layer *layer = model->architecture->layers.at[position];
    char vars[PATH_SIZE], path[PATH_SIZE + 16];
    int64_t count;
    if (layer->weights.count == 0)
        return TD_OK;
    find_vars(model, position, file, vars);
    TDI_TRY(tdi_hdf5_file_count(file, vars, &count, error));
    if (count == 0)
        return tdi_fail(error, TD_BAD_FILE, "the file holds no weights for it: there is no \"%s\"", vars);
    if (count != layer->weights.count)
        return tdi_fail(error, TD_BAD_FILE, "there are %lld weights in \"%s\" where it has %d", (long long)count, vars,
                        layer->weights.count);
    for (int i = 0; i < layer->weights.count; i++) {
        const tdi_variable *variable = &layer->weights.at[i]->variable;
        snprintf(path, sizeof path, "%s/%d", vars, i);
        TDI_TRY(tdi_hdf5_read(file, path, &variable->shape, tdi_model_write_value(model, variable), error));
    }
    return TD_OK;
}

static td_status read_layers(td_model *model, tdi_hdf5_file *file, tdi_error *error)
{
    for (int i = 0; i < model->architecture->layers.count; i++)
        if (read_layer(model, i, file, error) != TD_OK) {
            tdi_error_prefix(error, "layer \"%.64s\"", model->architecture->layers.at[i]->name);
            return error ? error->status : TD_BAD_FILE;
        }
    return TD_OK;
}

/* ---- the optimizer's slots, in the file's order ---- */

typedef struct slot_place {
    const tdi_variable *variable;
    int slot, number; /* in the file */
} slot_place;

static int trained_count(const td_model *model)
{
    int count = 0;
    for (int i = 0; i < model->architecture->weights.count; i++)
        count += model->architecture->weights.at[i]->variable.trainable;
    return count;
}

/* How many arrays stand before the slots. */
static int counters(const td_model *model)
{
    return model->state->optimizer.schedule.kind ? 1 : 2;
}

/* Keras 2 wrote no learning rate beside the iteration. */
static bool lacks_rate(const td_model *model, int64_t arrays)
{
    int64_t slots = (int64_t)trained_count(model) * tdi_optimizer_slots(&model->state->optimizer);
    return slots > 0 && arrays == 1 + slots && !model->state->optimizer.schedule.kind;
}

/* The update's slots stand together, variable by variable; amsgrad's third, averages and accumulators each form a block
 * of their own. */
static slot_place place_of(const td_model *model, const tdi_variable *variable, int nth, int slot)
{
    const td_optimizer *optimizer = &model->state->optimizer;
    int update = tdi_optimizer_update_slots(optimizer), together = update > 2 ? 2 : update;
    int before = tdi_optimizer_slots(optimizer) - update, trained = trained_count(model);
    int number = slot < together ? trained * before + nth * together + slot : trained * (before + together) + nth;
    if (slot >= update)
        number = trained * (slot - update) + nth;
    return (slot_place){variable, slot, counters(model) + number};
}

/* `file`: a slot_reader, or a tdi_hdf5_writer. */
typedef td_status (*slot_visitor)(const td_model *model, void *file, const slot_place *place, tdi_error *error);

static td_status for_each_slot(const td_model *model, void *file, slot_visitor visit, tdi_error *error)
{
    int slots = tdi_optimizer_slots(&model->state->optimizer), nth = 0;
    for (int i = 0; i < model->architecture->weights.count; i++) {
        const tdi_variable *variable = &model->architecture->weights.at[i]->variable;
        if (!variable->trainable)
            continue;
        for (int slot = 0; slot < slots; slot++) {
            slot_place place = place_of(model, variable, nth, slot);
            TDI_TRY(visit(model, file, &place, error));
        }
        nth++;
    }
    return TD_OK;
}

typedef struct slot_reader {
    td_model *model;
    tdi_hdf5_file *file;
    int missing; /* arrays before the slots that the file lacks */
} slot_reader;

static td_status read_slot(const td_model *model, void *file, const slot_place *place, tdi_error *error)
{
    const slot_reader *reader = file;
    char path[PATH_SIZE];
    (void)model;
    snprintf(path, sizeof path, "optimizer/vars/%d", place->number - reader->missing);
    return tdi_hdf5_read(reader->file, path, &place->variable->shape,
                         tdi_model_write_slots(reader->model, place->slot) + place->variable->offset, error);
}

/* Slots that were never made are zeros. */
static td_status write_slot(const td_model *model, void *file, const slot_place *place, tdi_error *error)
{
    char path[PATH_SIZE];
    bool made = tdi_model_slots(model, place->slot) != NULL;
    snprintf(path, sizeof path, "optimizer/vars/%d", place->number);
    return tdi_hdf5_write(file, path, &place->variable->shape,
                          made ? tdi_model_slot(model, place->variable, place->slot) : NULL, error);
}

static td_status read_counters(td_model *model, tdi_hdf5_file *file, bool has_rate, tdi_error *error)
{
    double iteration, rate = (double)model->state->optimizer.learning_rate;
    TDI_TRY(tdi_hdf5_read_number(file, "optimizer/vars/0", &iteration, error));
    if (has_rate)
        TDI_TRY(tdi_hdf5_read_number(file, "optimizer/vars/1", &rate, error));
    if (!(iteration >= 0 && iteration < 0x1p53) || !(rate >= 0) || !isfinite((float)rate))
        return tdi_fail(error, TD_BAD_FILE, "the optimizer's iteration is %g and its learning rate %g, which cannot be",
                        iteration, rate);
    model->state->iteration = (int64_t)iteration;
    model->state->optimizer.learning_rate = (float)rate;
    return TD_OK;
}

/* Slots that stay in the file: of models that only predict, they would take twice the memory of the weights. */
typedef struct slots_in_file {
    tdi_stored_slots stored;
    tdi_hdf5_file *file;
    tdi_store *store;
    int missing; /* slot_reader's */
} slots_in_file;

enum { FEW_SLOTS = 1 << 20 }; /* bytes that are read at once: open files are few, too */

static td_status read_stored(tdi_stored_slots *stored, td_model *model, tdi_error *error)
{
    const slots_in_file *slots = (slots_in_file *)stored;
    td_status status = for_each_slot(model, &(slot_reader){model, slots->file, slots->missing}, read_slot, error);
    if (status != TD_OK && status != TD_NO_MEMORY)
        tdi_error_prefix(error, "cannot read the optimizer's state that \"%.64s\" was loaded with",
                         model->architecture->name);
    return status;
}

static void free_stored(tdi_stored_slots *stored)
{
    slots_in_file *slots = (slots_in_file *)stored;
    tdi_hdf5_file_close(slots->file);
    tdi_store_free(slots->store);
    free(slots);
}

static bool are_few(const td_model *model, const tdi_store *store)
{
    int64_t floats = model->architecture->trained * tdi_optimizer_slots(&model->state->optimizer);
    return floats * (int64_t)sizeof(float) <= FEW_SLOTS || (store && tdi_store_bytes(store));
}

static td_status read_slots(td_model *model, tdi_hdf5_file **file, tdi_store **store, int missing, tdi_error *error)
{
    slots_in_file *slots = are_few(model, store ? *store : NULL) ? NULL : calloc(1, sizeof *slots);
    if (!slots) {
        TDI_TRY(tdi_model_state_make_slots(model->state, error));
        return for_each_slot(model, &(slot_reader){model, *file, missing}, read_slot, error);
    }
    *slots = (slots_in_file){{read_stored, free_stored}, *file, store ? *store : NULL, missing};
    model->stored_slots = &slots->stored;
    *file = NULL;
    if (store)
        *store = NULL;
    return TD_OK;
}

/* Like Keras, keeps the fresh state when the file has none, or another optimizer's. */
static td_status read_optimizer(td_model *model, tdi_hdf5_file **kept, tdi_store **store, tdi_error *error)
{
    tdi_hdf5_file *file = *kept;
    int64_t wanted = counters(model) + (int64_t)trained_count(model) * tdi_optimizer_slots(&model->state->optimizer);
    int64_t count;
    TDI_TRY(tdi_hdf5_file_count(file, "optimizer/vars", &count, error));
    bool lacks = lacks_rate(model, count);
    if (count == wanted || lacks) {
        TDI_TRY(read_counters(model, file, !lacks && !model->state->optimizer.schedule.kind, error));
        return read_slots(model, kept, store, lacks ? 1 : 0, error);
    }
    if (count > counters(model))
        tdi_log(model->context, TD_LOG_WARNING,
                "the file's optimizer state has %lld arrays where %lld are needed: it is left out", (long long)count,
                (long long)wanted);
    return TD_OK;
}

td_status tdi_keras_read_weights(td_model *model, tdi_hdf5_file **file, tdi_store **store, tdi_error *error)
{
    TDI_TRY(read_layers(model, *file, error));
    return model->state->optimizer.kind ? read_optimizer(model, file, store, error) : TD_OK;
}

static bool has_weights(tdi_hdf5_file *file, const char *layer, const char *cell)
{
    char vars[PATH_SIZE];
    int64_t count = 0;
    snprintf(vars, sizeof vars, "layers/%s/%s%svars", layer, cell ? cell : "", cell ? "/" : "");
    return tdi_hdf5_file_count(file, vars, &count, NULL) == TD_OK && count > 0;
}

bool tdi_keras_find_unused(const td_model *model, tdi_hdf5_file *file, char *layer, size_t size)
{
    for (const tdi_layer_type *const *type = tdi_layer_types; *type; type++) {
        int used = count_layers(model, model->architecture->layers.count, (*type)->base_name);
        snprintf(layer, size, used ? "%s_%d" : "%s", (*type)->base_name, used);
        if (has_weights(file, layer, (*type)->cell))
            return true;
    }
    return false;
}

/* ---- writing ---- */

static td_status write_vars(tdi_hdf5_writer *file, const char *vars, const char *name, tdi_error *error)
{
    TDI_TRY(tdi_hdf5_write_group(file, vars, error));
    return tdi_hdf5_write_attribute(file, vars, "name", name, error);
}

static td_status write_layer(const td_model *model, int position, tdi_hdf5_writer *file, tdi_error *error)
{
    const tdi_layer *layer = model->architecture->layers.at[position];
    char folder[64], vars[PATH_SIZE], path[PATH_SIZE + 16], name[64];
    folder_of(model, position, folder, sizeof folder);
    snprintf(vars, sizeof vars, "layers/%s/vars", folder);
    TDI_TRY(write_vars(file, vars, layer->name, error));
    vars_of(model, position, "layers", vars);
    snprintf(name, sizeof name, "%s_%s", layer->type->base_name, layer->type->cell ? layer->type->cell : "");
    if (layer->type->cell)
        TDI_TRY(write_vars(file, vars, name, error));
    for (int i = 0; i < layer->weights.count; i++) {
        const tdi_variable *variable = &layer->weights.at[i]->variable;
        snprintf(path, sizeof path, "%s/%d", vars, i);
        TDI_TRY(tdi_hdf5_write(file, path, &variable->shape, tdi_model_value(model, variable), error));
    }
    return TD_OK;
}

static td_status write_optimizer(const td_model *model, tdi_hdf5_writer *file, tdi_error *error)
{
    const float *rate = &model->state->optimizer.learning_rate;
    TDI_TRY(write_vars(file, "optimizer/vars",
                       tdi_config_type_of(tdi_optimizer_types, model->state->optimizer.kind)->name, error));
    TDI_TRY(tdi_hdf5_write_int(file, "optimizer/vars/0", model->state->iteration, error));
    if (!model->state->optimizer.schedule.kind)
        TDI_TRY(tdi_hdf5_write(file, "optimizer/vars/1", &(td_shape){0}, rate, error));
    return for_each_slot(model, file, write_slot, error);
}

static td_status write_weights(const td_model *model, tdi_hdf5_writer *file, tdi_error *error)
{
    TDI_TRY(write_vars(file, "vars", model->architecture->name, error));
    for (int i = 0; i < model->architecture->layers.count; i++)
        if (has_folder(model, model->architecture->layers.at[i]))
            TDI_TRY(write_layer(model, i, file, error));
    return model->state->optimizer.kind ? write_optimizer(model, file, error) : TD_OK;
}

td_status tdi_keras_make_weights(const td_model *model, tdi_hdf5_writer **made, uint64_t *size, tdi_error *error)
{
    tdi_hdf5_writer *file;
    *made = NULL;
    TDI_TRY(tdi_hdf5_create(TDI_KERAS_WEIGHTS, &file, error));
    td_status status = write_weights(model, file, error);
    if (status == TD_OK)
        status = tdi_hdf5_end(file, size, error);
    if (status == TD_OK)
        *made = file;
    else
        tdi_hdf5_close(file);
    return status;
}
