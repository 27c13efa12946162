/* program.cpp - the interface as a C++20 program uses it: a model built, trained a little and asked. */
#include <cstdio>
#include <tandem/tandem.h>
#include <vector>

namespace
{
constexpr int64_t samples = 64;

td_model *build(td_context *context)
{
    td_tensor *x = td_input({.context = context, .shape = TD_SHAPE(4, 4, 1)});
    td_tensor *a = td_conv2d({.x = x, .filters = 2, .kernel_size = 3, .strides = TD_SIZE(1, 1), .padding = TD_SAME});
    td_tensor *b = td_conv2d({.x = x, .filters = 2, .kernel_size = 1, .activation = TD_RELU});
    td_tensor *y = td_max_pooling2d({.x = td_add({.inputs = TD_TENSORS(a, b)}), .pool_size = 2});
    y = td_dense({.x = td_flatten({.x = y}), .units = 2, .kernel_regularizer = {.l2 = 1e-4f}});
    return td_model_create({.x = x, .y = y, .name = "cpp", .seed = 1});
}

/* Class 1 is the brighter half of the images. */
td_data *data_of(const std::vector<float> &x, const std::vector<int32_t> &y)
{
    return td_arrays(
        {.samples = samples, .x = x.data(), .x_shape = TD_SHAPE(4, 4, 1), .y = y.data(), .y_dtype = TD_INT32});
}

/* The same images, half as bright. */
td_data *darker(td_data *data)
{
    return td_map({.data = data,
                   .function = [](void *, const td_map_sample *sample) {
                       float *to = static_cast<float *>(sample->to_x[0]);
                       for (int i = 0; i < 16; i++)
                           to[i] = sample->x[0][i] / 2;
                       return TD_OK;
                   },
                   .x = TD_COLUMNS({.shape = TD_SHAPE(4, 4, 1)})});
}

td_status train(td_model *model, td_logs *logs)
{
    std::vector<float> x(16 * samples);
    std::vector<int32_t> y(samples);
    for (size_t i = 0; i < x.size(); i++)
        x[i] = static_cast<float>(i / 16 % 2) + static_cast<float>(i % 7) / 10;
    for (size_t i = 0; i < y.size(); i++)
        y[i] = static_cast<int32_t>(i % 2);
    td_status status = td_compile({.model = model,
                                   .optimizer = td_adam(.learning_rate = 0.05f, .beta_1 = TD_SET(0.8f)),
                                   .loss = TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
                                   .metrics = TD_METRICS(TD_ACCURACY),
                                   .strategy = td_mirrored("cpu:0,cpu:1")});
    if (status == TD_OK)
        status = td_fit({.model = model, .data = darker(data_of(x, y)), .epochs = 20, .batch_size = 16});
    if (status == TD_OK)
        status = td_evaluate({.model = model, .data = darker(data_of(x, y)), .logs = logs});
    return status;
}
} // namespace

int main()
{
    td_context *context = td_context_create(nullptr);
    td_model *model = build(context);
    td_logs logs{};
    td_status status = model ? train(model, &logs) : td_error_status(context);
    if (status != TD_OK)
        std::fprintf(stderr, "%s\n", td_error(context));
    bool learned = status == TD_OK && logs.count == 2 && logs.entry[1].value > 0.95;
    td_context_free(context);
    return learned ? 0 : 1;
}
