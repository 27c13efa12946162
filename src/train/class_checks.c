/* class_checks.c - holds the classes that data name against those of a model and of other data. */
#include "train/class_checks.h"

#include <stdio.h>
#include <string.h>

#include "base/context.h"
#include "data/recipe.h"

enum { NAMES_TEXT = 400 };

/* Writes the names of a recipe's classes as "cat, dog, ...", and returns how many there are. */
static int list_classes(const char *recipe, char text[NAMES_TEXT])
{
    char name[128];
    int count = td_recipe_class(recipe, 0, NULL, 0);
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < count && used < NAMES_TEXT; i++) {
        td_recipe_class(recipe, i, name, sizeof name);
        used += (size_t)snprintf(text + used, NAMES_TEXT - used, "%s%s", i ? ", " : "", name);
    }
    if (used >= NAMES_TEXT)
        snprintf(text + NAMES_TEXT - 4, 4, "...");
    return count;
}

/* The number of classes that the first output tells apart; 0: its loss knows of none, or the targets are no single
 * classes. */
static int64_t classes_of_output(const td_model *model, const tdi_source *source)
{
    const tdi_loss *loss = &model->compiled.outputs[0].loss;
    const td_shape *output = &model->architecture->outputs[0]->shape;
    if (!source->n_y || tdi_sample_elements(&source->columns[source->n_x].shape) != 1)
        return 0;
    if (loss->kind == TDI_LOSS_BINARY && tdi_shape_elements(output) == 1)
        return 2;
    return loss->kind == TDI_LOSS_SPARSE_CATEGORICAL ? output->dim[output->rank - 1] : 0;
}

td_status tdi_check_classes(const td_model *model, const tdi_source *source, tdi_error *error)
{
    char names[NAMES_TEXT];
    const tdi_loss *loss = &model->compiled.outputs[0].loss;
    int count = list_classes(source->recipe, names);
    int64_t told = classes_of_output(model, source);
    int last = count - 1;
    while (last >= 0 && tdi_ignores(&loss->ignore, last))
        last--;
    if (!told || last < told)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT,
                    "%s has %d classes (%s), but output \"%s\" of model \"%s\", with %s, tells %lld apart: keep only "
                    "the classes that the model is for, or give the model an output for each",
                    source->name, count, names, model->architecture->outputs[0]->site->layer->name,
                    model->architecture->name, tdi_loss_class(loss->kind), (long long)told);
}

void tdi_warn_of_few_classes(const td_model *model, const tdi_source *source)
{
    char names[NAMES_TEXT];
    int count = list_classes(source->recipe, names);
    int64_t told = classes_of_output(model, source);
    json_t *folders = tdi_recipe_of(source->recipe, "images");
    if (folders && count && count < told)
        tdi_log(
            model->context, TD_LOG_WARNING,
            "%s has %d class%s (%s), but output \"%s\" of model \"%s\" tells %lld apart: no sample is of the others",
            source->name, count, count == 1 ? "" : "es", names, model->architecture->outputs[0]->site->layer->name,
            model->architecture->name, (long long)told);
    json_decref(folders);
}

td_status tdi_check_same_classes(const tdi_source *train, const tdi_source *validation, tdi_error *error)
{
    char of_train[NAMES_TEXT], of_validation[NAMES_TEXT];
    if (tdi_recipes_agree(train->recipe, validation->recipe))
        return TD_OK;
    list_classes(train->recipe, of_train);
    list_classes(validation->recipe, of_validation);
    return tdi_fail(error, TD_INVALID_ARGUMENT,
                    "%s numbers the classes %s, but the training data %s: open the validation data with .recipe = "
                    "td_data_recipe of the training data",
                    validation->name, of_validation, of_train);
}
