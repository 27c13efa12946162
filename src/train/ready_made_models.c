/* ready_made_models.c - the models of td_new. */
#include <string.h>
#include <tandem/model.h>

#include "model/model.h"

static td_tensor *mlp(td_context *context, td_tensor **x)
{
    *x = td_input(context, TD_SHAPE(784));
    td_tensor *y = td_dense(*x, 256, .activation = TD_RELU);
    y = td_dense(y, 256, .activation = TD_RELU);
    return td_dense(y, 10);
}

static td_tensor *lenet5(td_context *context, td_tensor **x)
{
    *x = td_input(context, TD_SHAPE(28, 28, 1));
    td_tensor *y = td_conv2d(*x, 6, 5, .activation = TD_TANH, .padding = TD_SAME);
    y = td_average_pooling2d(y, 2);
    y = td_conv2d(y, 16, 5, .activation = TD_TANH);
    y = td_average_pooling2d(y, 2);
    y = td_flatten(y);
    y = td_dense(y, 120, .activation = TD_TANH);
    y = td_dense(y, 84, .activation = TD_TANH);
    return td_dense(y, 10);
}

static td_tensor *cifar(td_context *context, td_tensor **x)
{
    *x = td_input(context, TD_SHAPE(32, 32, 3));
    td_tensor *y = td_conv2d(*x, 32, 3, .activation = TD_RELU);
    y = td_max_pooling2d(y, 2);
    y = td_conv2d(y, 64, 3, .activation = TD_RELU);
    y = td_max_pooling2d(y, 2);
    y = td_conv2d(y, 64, 3, .activation = TD_RELU);
    y = td_flatten(y);
    y = td_dense(y, 64, .activation = TD_RELU);
    return td_dense(y, 10);
}

/* The tensors and layers are the model's, as nobody else has them. */
static td_model *finish(td_context *context, tdi_parts *made, td_model *model)
{
    tdi_context_end_model(context);
    if (model)
        model->made = made;
    else
        tdi_parts_free(made);
    return td_failed(context) ? NULL : model;
}

static tdi_parts *begin(td_context *context)
{
    tdi_parts *made = tdi_context_begin_model(context);
    if (!made)
        tdi_no_memory(&context->error);
    return made;
}

typedef struct architecture {
    const char *name;
    td_tensor *(*build)(td_context *context, td_tensor **x);
} architecture;

td_model *td_new_lstm(td_context *context, int64_t steps, int64_t features, int64_t outputs, uint64_t seed)
{
    if (!context)
        return NULL;
    if (steps < 0 || features < 0 || outputs < 0) {
        tdi_fail(&context->error, TD_INVALID_ARGUMENT,
                 "td_new_lstm: %lld steps of %lld features to %lld outputs; none can be negative", (long long)steps,
                 (long long)features, (long long)outputs);
        return NULL;
    }
    tdi_parts *made = begin(context);
    if (!made)
        return NULL;
    td_tensor *x = td_input(context, TD_SHAPE(steps ? steps : 50, features ? features : 8));
    td_model *model =
        td_model_create(x, td_dense(td_lstm(x, 128), outputs ? outputs : 1), .name = "lstm", .seed = seed);
    if (model)
        td_compile(model, .optimizer = td_adam(), .loss = TD_MEAN_SQUARED_ERROR);
    return finish(context, made, model);
}

td_model *td_new_char_lstm(td_context *context, int64_t characters, int64_t window, uint64_t seed)
{
    tdi_parts *made = context ? begin(context) : NULL;
    if (!made)
        return NULL;
    td_tensor *x = td_input(context, TD_SHAPE(window ? window : 100), .dtype = TD_INT32);
    td_tensor *y = td_lstm(td_embedding(x, characters, 64), 256, .return_sequences = TD_YES);
    td_model *model = td_model_create(x, td_dense(y, characters), .name = "char_lstm", .seed = seed);
    if (model)
        td_compile(model, .optimizer = td_adam(.learning_rate = 4e-3f),
                   .loss = TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, .metrics = TD_METRICS(TD_ACCURACY));
    return finish(context, made, model);
}

/* Without a bias: batch normalization has one. The decay is Keras's l2 |w|^2, half of the paper's 1e-4. */
static td_tensor *convolution(td_tensor *x, int64_t filters, int size, int stride)
{
    return td_conv2d(x, filters, size, .strides = TD_SIZE(stride, stride), .padding = TD_SAME, .use_bias = TD_NO,
                     .kernel_initializer = {.kind = TD_HE_NORMAL}, .kernel_regularizer = {.l2 = 5e-5f});
}

static td_tensor *normalized(td_tensor *x, td_initializer_kind gamma)
{
    return td_batch_normalization(x, .momentum = TD_SET(0.9f), .epsilon = TD_SET(1e-5f),
                                  .gamma_initializer = {.kind = gamma});
}

/* Two convolutions beside a shortcut, which is a 1x1 convolution where the shape changes (He et al.'s option B). */
static td_tensor *residual_block(td_tensor *x, int64_t filters, int stride, td_initializer_kind last_gamma)
{
    td_tensor *shortcut = stride == 1 ? x : normalized(convolution(x, filters, 1, stride), TD_ONES);
    td_tensor *y = td_relu(normalized(convolution(x, filters, 3, stride), TD_ONES));
    y = normalized(convolution(y, filters, 3, 1), last_gamma);
    return td_relu(td_add(TD_TENSORS(y, shortcut)));
}

td_model *td_new_resnet20(td_context *context, td_choice zero_gamma, uint64_t seed)
{
    tdi_parts *made = context ? begin(context) : NULL;
    if (!made)
        return NULL;
    td_tensor *x = td_input(context, TD_SHAPE(32, 32, 3)), *y = td_relu(normalized(convolution(x, 16, 3, 1), TD_ONES));
    for (int stage = 0; stage < 3; stage++)
        for (int block = 0; block < 3; block++)
            y = residual_block(y, 16 << stage, stage && !block ? 2 : 1, zero_gamma == TD_YES ? TD_ZEROS : TD_ONES);
    y = td_dense(td_global_average_pooling2d(y), 10, .kernel_initializer = {.kind = TD_HE_NORMAL},
                 .kernel_regularizer = {.l2 = 5e-5f});
    td_model *model = td_model_create(x, y, .name = "resnet20", .seed = seed);
    if (model)
        td_compile(model, .optimizer = td_sgd(.learning_rate = 0.1f, .momentum = 0.9f),
                   .loss = TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, .metrics = TD_METRICS(TD_ACCURACY));
    return finish(context, made, model);
}

td_model *td_new(td_context *context, const char *name, uint64_t seed)
{
    static const architecture known[] = {{"mlp", mlp}, {"lenet5", lenet5}, {"cifar", cifar}};
    if (!context)
        return NULL;
    name = name ? name : "NULL";
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, name) != 0)
            continue;
        tdi_parts *made = begin(context);
        if (!made)
            return NULL;
        td_tensor *x, *y = known[i].build(context, &x);
        td_model *model = td_model_create(x, y, .name = name, .seed = seed);
        if (model)
            td_compile(model, .optimizer = td_adam(), .loss = TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
                       .metrics = TD_METRICS(TD_ACCURACY));
        return finish(context, made, model);
    }
    if (strcmp(name, "lstm") == 0)
        return td_new_lstm(context, 0, 0, 0, seed);
    if (strcmp(name, "resnet20") == 0)
        return td_new_resnet20(context, TD_NO, seed);
    tdi_fail(&context->error, TD_INVALID_ARGUMENT,
             "there is no architecture \"%s\"; known are mlp, lenet5, cifar, resnet20 and lstm (td_new_char_lstm: of a "
             "text's "
             "characters)",
             name);
    return NULL;
}
