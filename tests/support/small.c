/* small.c - small models and data for tests of training. */
#define _GNU_SOURCE
#include "support/small.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/rng.h"
#include "support/devices.h"

static td_tensor *normalized(td_tensor *x, td_choice synchronized)
{
    td_tensor *y = td_conv2d(x, 3, 3, .padding = TD_SAME);
    y = td_batch_normalization(y, .synchronized = synchronized);
    return td_activation_layer(y, TD_RELU);
}

static td_tensor *normalized_dense(td_tensor *x, td_choice synchronized)
{
    td_tensor *y = td_batch_normalization(td_dense(x, 40), .synchronized = synchronized);
    return td_activation_layer(y, TD_RELU);
}

static td_tensor *body(td_tensor *x, small_kind kind)
{
    switch (kind) {
    case SMALL_CNN:
        x = td_conv2d(x, 3, 3, .padding = TD_SAME, .activation = TD_TANH);
        return td_flatten(td_average_pooling2d(x, 2));
    case SMALL_NORM:
        return td_flatten(normalized(x, TD_NO));
    case SMALL_SYNC:
        return td_flatten(normalized(x, TD_YES));
    case SMALL_MIXED:
        return td_flatten(normalized(normalized(x, TD_YES), TD_NO));
    case SMALL_DENSE:
        return normalized_dense(normalized_dense(td_flatten(x), TD_YES), TD_NO);
    case SMALL_DROPOUT:
        return td_dropout(td_dense(td_flatten(x), 40, .activation = TD_RELU), 0.4f);
    case SMALL_LSTM:
        x = td_reshape(x, TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH * SMALL_CHANNELS));
        return td_lstm(x, 40, .dropout = 0.2f, .recurrent_dropout = 0.1f);
    default:
        return td_dense(td_flatten(x), 70, .activation = TD_RELU, .kernel_regularizer = {.l2 = 0.01f});
    }
}

td_model *small_model(td_context *context, small_kind kind, td_optimizer optimizer, td_strategy strategy)
{
    td_tensor *x = td_input(context, TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS));
    td_tensor *y = td_dense(td_dense(body(x, kind), 33, .activation = TD_TANH), SMALL_CLASSES);
    td_model *model = td_model_create(x, y, .name = "small", .seed = 12);
    if (!strategy.devices)
        strategy.devices = test_devices(0);
    if (model)
        td_compile(model, .optimizer = optimizer, .loss = TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
                   .metrics = TD_METRICS(TD_ACCURACY), .strategy = strategy);
    return model;
}

void small_data(int64_t samples, float *x, float *y)
{
    tdi_random random = tdi_random_create(99, 1);
    for (int64_t i = 0; i < samples; i++) {
        int class = (int)tdi_random_below(&random, SMALL_CLASSES);
        y[i] = (float)class;
        for (int64_t j = 0; j < SMALL_SAMPLE; j++)
            x[i * SMALL_SAMPLE + j] = (float)tdi_random_normal(&random) + (float)(j % SMALL_CLASSES == class);
    }
}

float *small_weights(td_model *model, int64_t *count)
{
    *count = td_parameter_count(model, NULL);
    float *all = malloc((size_t)*count * sizeof *all);
    int64_t used = 0;
    for (int i = 0; all && i < td_weight_count(model); i++) {
        int64_t elements = model->architecture->weights.at[i]->variable.elements;
        td_get_weight(model, i, all + used, (size_t)elements);
        used += elements;
    }
    return all;
}

char *small_explained(td_model *model, int64_t batch)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(td_explain(model, out, .batch_size = batch), TD_OK);
    fclose(out);
    return text;
}

void small_expect_same(const float *a, float *b, int64_t count)
{
    assert_memory_equal(a, b, (size_t)count * sizeof *a);
    free(b);
}

typedef struct stopper {
    td_context *context;
    pthread_t thread;
} stopper;

static void *stop_soon(void *user)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* by then the epoch's steps have most likely begun */
    td_request_stop(((stopper *)user)->context);
    return NULL;
}

static td_status start_stopper(void *user, td_training *training)
{
    stopper *self = user;
    if (self->context)
        return TD_OK;
    self->context = td_training_model(training)->context;
    return pthread_create(&self->thread, NULL, stop_soon, self) == 0 ? TD_OK : TD_INTERNAL;
}

static void release_stopper(void *user)
{
    stopper *self = user;
    if (self->context)
        pthread_join(self->thread, NULL);
    free(self);
}

td_callback *small_stop_soon(void)
{
    static const td_callback_functions functions = {.epoch_begin = start_stopper, .release = release_stopper};
    return td_callback_create(&functions, calloc(1, sizeof(stopper)));
}

double relative_difference(const float *a, const float *b, int64_t count)
{
    double difference = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        difference = fmax(difference, fabs((double)a[i] - (double)b[i]));
        size = fmax(size, fabs((double)b[i]));
        if (!isfinite(a[i]) || !isfinite(b[i]))
            return INFINITY;
    }
    return difference / size;
}
