/* evaluate.c - `tandem evaluate`: prints a model's loss and metrics on data. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "class_weights.h"
#include "confusion_table.h"
#include "options.h"
#include "output_conflicts.h"
#include "output_path.h"
#include "picture.h"
#include "session.h"

static int write_confusion(const char *path, struct session *session, const td_confusion *confusion,
                           const char *const *names)
{
    if (picture_is_named(path))
        return confusion_draw(confusion, names, path);
    return td_confusion_save(session->context, path, confusion) == TD_OK ? TOOL_DONE : session_failed(session);
}

/* Prints the results. Classes are named by the options, else by `recipe`. */
static int report(const struct options *options, struct session *session, const td_logs *logs,
                  const td_confusion *confusion, const char *recipe)
{
    for (int i = 0; i < logs->count; i++) {
        char name[TD_MAX_LOG_NAME];
        memcpy(name, logs->entry[i].name, sizeof name);
        printf("%s: %.6g\n", td_printable(name), logs->entry[i].value);
    }
    if (!confusion)
        return TOOL_DONE;
    const char **names = options->class_names ? confusion_names(options->class_names)
                                              : confusion_names_of(recipe, td_confusion_classes(confusion));
    if (options->class_names && !names)
        return tool_fail("out of memory");
    confusion_print(confusion, names);
    const char *path = options->confusion_file;
    int status = path ? write_confusion(path, session, confusion, names) : TOOL_DONE;
    free(names);
    return status;
}

/* Checks, before the work begins, that each class has a name and that the picture's file can be drawn. */
static int check_confusion(const struct options *options, const struct session *session)
{
    td_shape shape;
    int64_t classes = 1, names = 1;
    const char *path = options->confusion_file;
    int status = path && picture_is_named(path) ? picture_check_path("confusion-file", path) : TOOL_DONE;
    if (status == TOOL_DONE && path)
        status = output_check_folder("--confusion-file", path);
    if (status != TOOL_DONE)
        return status;
    if (td_output_shape(session->model, (int)options->confusion_output, &shape) == TD_OK && shape.rank > 0)
        classes = shape.dim[shape.rank - 1] > 1 ? shape.dim[shape.rank - 1] : 2;
    for (const char *at = options->class_names; at && *at; at++)
        names += *at == ',';
    if (options->class_names && names != classes)
        return tool_refuse("--class-names: expected %lld names with commas between them, one for each class, got %lld",
                           (long long)classes, (long long)names);
    return TOOL_DONE;
}

static int read_weights(const struct options *options, const char *recipe, struct class_weights *weights)
{
    if (options->class_weight && strcmp(options->class_weight, "balanced") == 0)
        return tool_refuse("--class-weight: expected the weights of the training, as 0:1,1:5: balanced would be others "
                           "for other data");
    return class_weights_read(options->class_weight, recipe, NULL, weights);
}

static int evaluate(const struct options *options, struct session *session)
{
    td_data *data;
    int status = session_data(options,
                              &(struct request){.option = "data",
                                                .path = options->data,
                                                .role = TD_TEST,
                                                .model = session->model,
                                                .recipe = td_model_recipe(session->model)},
                              &data);
    if (status != TOOL_DONE)
        return status;
    td_logs logs = {0};
    td_confusion *confusion = NULL;
    const char *recipe = td_model_recipe(session->model);
    if (!td_recipe_class(recipe, 0, NULL, 0))
        recipe = td_data_recipe(data);
    char *named = recipe ? strdup(recipe) : NULL; /* the evaluation releases the data */
    struct class_weights weights;
    status = read_weights(options, named, &weights);
    if (status != TOOL_DONE) {
        td_data_release(data);
        class_weights_release(&weights);
        free(named);
        return status;
    }
    bool wanted = options->confusion || options->confusion_file || options->confusion_output || options->class_names ||
                  options->confusion_ignore.is_set;
    td_status done = td_evaluate_(&(td_evaluate_args){.model = session->model,
                                                      .data = data,
                                                      .logs = &logs,
                                                      .batch_size = options->batch_size,
                                                      .steps = options->batches,
                                                      .class_weight = weights.list,
                                                      .progress = options->quiet ? NULL : stdout,
                                                      .confusion = wanted ? &confusion : NULL,
                                                      .confusion_output = (int)options->confusion_output,
                                                      .ignore_class = options->confusion_ignore});
    if (done != TD_OK)
        status = session_failed(session);
    else if (td_cluster_is_chief(session->cluster))
        status = report(options, session, &logs, confusion, named);
    td_confusion_free(confusion);
    class_weights_release(&weights);
    free(named);
    return status;
}

static int run(const struct options *given)
{
    struct options own = *given, *options = &own;
    struct session session = {0};
    if (!options->data)
        return tool_refuse("--data: expected the data to evaluate on, got none; try --data mnist/");
    int status = session_join(options, &session);
    if (status == TOOL_DONE && td_cluster_is_chief(session.cluster))
        status = output_conflicts_check(options, NULL);
    if (status == TOOL_DONE)
        status = session_load(options, &session);
    if (status == TOOL_DONE)
        status = session_compile(options, &session, TO_EVALUATE);
    if (status == TOOL_DONE)
        status = check_confusion(options, &session);
    if (status == TOOL_DONE)
        status = evaluate(options, &session);
    status = session_end_trace(options, &session, status);
    session_close(&session);
    return status;
}

static const struct argp_option options[] = {OPTION_GROUP("Data:", 1),
                                             OPTION_DATA,
                                             OPTION_SHARD,
                                             OPTIONS_READING,
                                             OPTIONS_LOSS_WEIGHTS,
                                             OPTION_GROUP("Work:", 2),
                                             OPTION_WEIGHTS,
                                             OPTION_BATCH_SIZE,
                                             OPTION_BATCHES,
                                             OPTION_DEVICES,
                                             OPTION_SHARDS,
                                             OPTIONS_CLUSTER,
                                             OPTION_PRECISION,
                                             OPTION_GROUP("Over the file's compile configuration:", 3),
                                             OPTIONS_LOSS,
                                             OPTION_GROUP("Results:", 4),
                                             OPTIONS_CONFUSION,
                                             OPTION_TRACE,
                                             OPTION_QUIET,
                                             OPTIONS_END};

const struct command evaluate_command = {"evaluate",
                                         "MODEL.keras",
                                         "the loss and the metrics of a model on data", /* */
                                         "Prints the loss and the metrics of MODEL.keras on data it was not trained "
                                         "on: exact means over all samples. The file "
                                         "is not changed.\n\n" HELP_DATA "\v"
                                         "Examples:\n"
                                         "\n"
                                         "  On MNIST's 10,000 test images:\n"
                                         "    tandem evaluate mlp-trained.keras --data mnist/\n"
                                         "\n"
                                         "  Which digits are taken for which, and each one's precision and recall:\n"
                                         "    tandem evaluate mlp-trained.keras --data mnist/ --confusion\n"
                                         "\n"
                                         "  IoU of each class of a segmentation, class 11 being unlabelled:\n"
                                         "    tandem evaluate segnet.keras --data images/,labels/ --confusion \\\n"
                                         "      --ignore-class 11 --confusion-file classes.csv\n"
                                         "\n"
                                         "  The same as a picture, with names:\n"
                                         "    tandem evaluate pets.keras --data pets/ --confusion-file pets.png \\\n"
                                         "      --class-names cat,dog,rabbit\n"
                                         "\n"
                                         "  Only the numbers, of a model saved without a loss:\n"
                                         "    tandem evaluate net.keras --data test.npz --quiet --metrics accuracy \\\n"
                                         "      --loss sparse_categorical_crossentropy --from-logits\n",
                                         options,
                                         run};
