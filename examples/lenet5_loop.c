/* lenet5_loop.c - the loop inside td_fit, by hand: read a batch, compute gradients, look at them, apply them.
 *
 *     lenet5_loop [STEPS]          937 steps of 64 images: an epoch */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tandem/tandem.h>

enum { BATCH = 64, PIXELS = 28 * 28 };

static td_model *build(td_context *ctx)
{
    td_tensor *x = td_input(ctx, TD_SHAPE(28, 28, 1));
    td_tensor *y = td_conv2d(x, 6, 5, .activation = TD_TANH, .padding = TD_SAME);
    y = td_average_pooling2d(y, 2);
    y = td_conv2d(y, 16, 5, .activation = TD_TANH);
    y = td_average_pooling2d(y, 2);
    y = td_flatten(y);
    y = td_dense(y, 120, .activation = TD_TANH);
    y = td_dense(y, 84, .activation = TD_TANH);
    y = td_dense(y, 10);
    return td_model_create(x, y, .name = "lenet5");
}

static int64_t size_of(const td_shape *shape)
{
    int64_t size = 1;
    for (int i = 0; i < shape->rank; i++)
        size *= shape->dim[i];
    return size;
}

/* The norm of all gradients as one vector. */
static double gradient_norm(td_model *model)
{
    double sum = 0;
    for (int i = 0; i < td_weight_count(model); i++) {
        td_weight_info info;
        if (td_weight(model, i, &info) != TD_OK || !info.trainable)
            continue;
        const float *gradient = td_gradient(model, i);
        for (int64_t j = 0; j < size_of(&info.shape); j++)
            sum += (double)gradient[j] * (double)gradient[j];
    }
    return sqrt(sum);
}

/* Trains one step on the samples `rows`. */
static td_status train_step(td_context *ctx, td_model *model, td_data *data, const int64_t *rows, td_logs *logs,
                            double *norm)
{
    static float x[BATCH * PIXELS], y[BATCH];
    td_status status = td_data_read(ctx, data, rows, BATCH, x, y);
    if (status == TD_OK)
        status = td_compute_gradients(model, BATCH, x, y, logs);
    if (status == TD_OK) {
        *norm = gradient_norm(model);
        status = td_apply_gradients(model);
    }
    return status;
}

static td_status train(td_context *ctx, td_model *model, td_data *data, long steps)
{
    int64_t samples = td_data_samples(data);
    for (long step = 0; step < steps; step++) {
        int64_t rows[BATCH];
        for (int i = 0; i < BATCH; i++)
            rows[i] = rand() % samples; /* a fresh draw each time; td_fit uses a permutation */
        td_logs logs;
        double norm;
        td_status status = train_step(ctx, model, data, rows, &logs, &norm);
        if (status != TD_OK)
            return status;
        if (step % 100 == 0 || step + 1 == steps)
            printf("step %ld: loss %.4f, gradient norm %.4f\n", step, logs.entry[0].value, norm);
    }
    return TD_OK;
}

int main(int argc, char **argv)
{
    long steps = argc > 1 ? atol(argv[1]) : 937;
    td_context *ctx = td_context_create(NULL);
    td_data *digits = td_mnist("train");
    td_model *lenet = build(ctx);
    td_status status = td_compile(lenet, .optimizer = td_adam(.learning_rate = 1e-3f),
                                  .loss = TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS);
    if (status == TD_OK)
        status =
            td_data_error(digits) ? td_data_read(ctx, digits, NULL, 0, NULL, NULL) : train(ctx, lenet, digits, steps);
    td_logs logs;
    if (status == TD_OK)
        status = td_evaluate(lenet, td_mnist("test"), &logs);
    if (status == TD_OK)
        printf("test loss %.4f\n", logs.entry[0].value);
    else
        fprintf(stderr, "%s\n", td_error(ctx));
    td_data_release(digits);
    td_context_free(ctx);
    return status != TD_OK;
}
