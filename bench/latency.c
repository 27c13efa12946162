/* latency.c - how long one call on one sample takes, as a control loop sees it.
 *
 * bench_latency MODEL.keras [CALLS [DEVICES]]
 *
 * Prints, for td_predict_on_batch and, where the model is compiled, td_train_on_batch: the least, and the percentiles
 * 50, 99 and 99.9 of the calls' times in microseconds. */
#include <stdio.h>
#include <stdlib.h>
#include <tandem/tandem.h>
#include <time.h>

enum { WARM_UP = 200 };

static double microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static int lower_first(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static size_t elements(const td_shape *shape)
{
    size_t product = 1;
    for (int i = 0; i < shape->rank; i++)
        product *= (size_t)shape->dim[i];
    return product;
}

typedef struct sample {
    float *x, *y, *output;
} sample;

static td_status call(td_model *model, int train, const sample *one)
{
    return train ? td_train_on_batch(model, 1, one->x, one->y, NULL)
                 : td_predict_on_batch(model, 1, one->x, one->output);
}

static td_status measure(td_model *model, int train, int calls, const sample *one, double *times)
{
    td_status status = TD_OK;
    for (int i = -WARM_UP; i < calls && status == TD_OK; i++) {
        double began = microseconds();
        status = call(model, train, one);
        if (i >= 0)
            times[i] = microseconds() - began;
    }
    if (status != TD_OK)
        return status;
    qsort(times, (size_t)calls, sizeof *times, lower_first);
    printf("%-8s least %9.2f   50%% %9.2f   99%% %9.2f   99.9%% %9.2f us\n", train ? "train" : "predict", times[0],
           times[calls / 2], times[(int64_t)calls * 99 / 100], times[(int64_t)calls * 999 / 1000]);
    return TD_OK;
}

static td_status run(td_model *model, int calls, const char *devices)
{
    td_shape in, out;
    td_status status = td_compile(model, .strategy = td_mirrored(devices));
    td_input_shape(model, 0, &in);
    td_output_shape(model, 0, &out);
    sample one = {calloc(elements(&in), sizeof(float)), calloc(elements(&out), sizeof(float)),
                  calloc(elements(&out), sizeof(float))};
    double *times = calloc((size_t)calls, sizeof *times);
    int ready = one.x && one.y && one.output && times;
    for (size_t i = 0; ready && i < elements(&in); i++)
        one.x[i] = (float)(i * 7919 % 1000) / 1000 - 0.5f;
    if (ready && status == TD_OK)
        status = measure(model, 0, calls, &one, times);
    if (ready && status == TD_OK && td_model_optimizer(model).kind != TD_OPTIMIZER_NONE)
        status = measure(model, 1, calls, &one, times);
    free(times);
    free(one.output);
    free(one.y);
    free(one.x);
    return ready ? status : TD_NO_MEMORY;
}

int main(int count, char **arguments)
{
    int calls = count > 2 ? atoi(arguments[2]) : 10000;
    if (count < 2 || count > 4 || calls < 1)
        return fprintf(stderr, "usage: bench_latency MODEL.keras [CALLS [DEVICES]]\n"), 2;
    td_context *context = td_context_create(NULL);
    td_model *model = context ? td_load(context, arguments[1]) : NULL;
    td_status status = model ? run(model, calls, count > 3 ? arguments[3] : "cpu") : TD_IO;
    if (status != TD_OK)
        fprintf(stderr, "bench_latency: %s\n", context ? td_error(context) : "out of memory");
    td_context_free(context);
    return status == TD_OK ? 0 : 1;
}
