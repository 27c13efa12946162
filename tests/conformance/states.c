/* states.c - for stateful.py: a stateful model trained, evaluated and asked, its states kept or reset as Keras users
 * do.
 *
 * states MODEL.keras X Y SAMPLES EPOCHS DEVICES SAVED.keras PREDICTED
 *
 * X, Y and PREDICTED are raw floats. Every epoch begins from reset states. Prints the epochs' losses, then that of an
 * evaluation that goes on from the last; PREDICTED is of all of X three times: going on from there, after a reset of
 * every layer, and batch by batch after a reset of the first stateful layer alone. */
#include <string.h>

#include "support/floats.h"

typedef struct run {
    td_context *context;
    td_model *model;
    int64_t samples, batch;
    td_shape in, out;
    float *x, *y;
} run;

static void open_run(run *r, char **arguments)
{
    r->context = must(td_context_create(NULL), "context");
    r->model = td_load(r->context, arguments[0]);
    must_work(r->context, td_error_status(r->context));
    r->samples = atoll(arguments[3]);
    must_work(r->context, td_input_shape(r->model, 0, &r->in));
    must_work(r->context, td_output_shape(r->model, 0, &r->out));
    r->x = read_floats(arguments[1], (size_t)r->samples * elements(&r->in));
    r->y = read_floats(arguments[2], (size_t)r->samples * elements(&r->out));
    must_work(r->context, td_compile(r->model, .strategy = td_mirrored(arguments[5])));
}

static td_status reset(void *user, td_training *training)
{
    (void)user;
    return td_reset_states(td_training_model(training));
}

static td_status print_loss(void *user, td_training *training, td_epoch *epoch)
{
    (void)user, (void)training;
    printf("%.9g\n", epoch->logs.entry[0].value);
    return TD_OK;
}

static void train(run *r, int epochs)
{
    td_callback *callback =
        td_callback_create(&(td_callback_functions){.epoch_begin = reset, .epoch_end = print_loss}, NULL);
    td_data *data = td_arrays(r->samples, r->x, r->in, .y = r->y, .y_shape = r->out);
    must_work(r->context,
              td_fit(r->model, data, .epochs = epochs, .shuffle = TD_NO, .callbacks = TD_CALLBACKS(callback)));
    td_logs logs;
    must_work(r->context,
              td_evaluate(r->model, td_arrays(r->samples, r->x, r->in, .y = r->y, .y_shape = r->out), &logs));
    printf("%.9g\n", logs.entry[0].value);
}

static const char *stateful_layer(const run *r)
{
    td_weight_info info = {0};
    for (int i = 0; i < td_weight_count(r->model); i++)
        if (td_weight(r->model, i, &info) == TD_OK && strcmp(info.name, "recurrent_kernel") == 0)
            break;
    return info.layer;
}

static void predict(run *r, int64_t batch, const char *path)
{
    size_t per_row = elements(&r->out), count = (size_t)r->samples * per_row;
    float *p = must(malloc(3 * count * sizeof *p), "predictions");
    must_work(r->context, td_predict(r->model, td_arrays(r->samples, r->x, r->in), p, count));
    must_work(r->context, td_reset_states(r->model));
    must_work(r->context, td_predict(r->model, td_arrays(r->samples, r->x, r->in), p + count, count));
    must_work(r->context, td_reset_layer_states(r->model, stateful_layer(r)));
    for (int64_t i = 0; i < r->samples; i += batch)
        must_work(r->context, td_predict_on_batch(r->model, batch, r->x + (size_t)i * elements(&r->in),
                                                  p + 2 * count + (size_t)i * per_row));
    write_floats(path, p, 3 * count);
    free(p);
}

int main(int count, char **arguments)
{
    if (count != 10)
        return fprintf(stderr, "usage: states MODEL X Y SAMPLES EPOCHS DEVICES SAVED PREDICTED BATCH\n"), 2;
    run r = {0};
    open_run(&r, arguments + 1);
    train(&r, atoi(arguments[5]));
    predict(&r, atoll(arguments[9]), arguments[8]);
    must_work(r.context, td_save(r.model, arguments[7]));
    free(r.x);
    free(r.y);
    td_context_free(r.context);
    return 0;
}
