/* predict.c - loads a .keras file and predicts the classes of a few samples.
 *
 *     predict MODEL.keras [COUNT [DATA]]          10 samples of MNIST's test split */
#include <stdio.h>
#include <stdlib.h>
#include <tandem/tandem.h>

static int64_t size_of(const td_shape *shape)
{
    int64_t size = 1;
    for (int i = 0; i < shape->rank; i++)
        size *= shape->dim[i];
    return size;
}

static int64_t largest(const float *values, int64_t count)
{
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        if (values[i] > values[best])
            best = i;
    return best;
}

/* Predicts the first `count` samples and prints a line for each. */
static int predict(td_context *ctx, td_model *model, td_data *data, int64_t count)
{
    td_shape input = {0}, output = {0}, sample = {0}, target;
    td_input_shape(model, 0, &input);
    td_output_shape(model, 0, &output);
    if (td_data_x_shape(data, &sample) == TD_OK && size_of(&sample) != size_of(&input)) {
        fprintf(stderr, "a sample has %lld values, but the model takes %lld\n", (long long)size_of(&sample),
                (long long)size_of(&input));
        return 1;
    }
    int labelled = td_data_y_shape(data, &target) == TD_OK && size_of(&target) == 1;
    int64_t classes = size_of(&output);
    float *x = calloc((size_t)(count * size_of(&input)), sizeof *x);
    float *scores = calloc((size_t)(count * classes), sizeof *scores), *y = calloc((size_t)count, sizeof *y);
    int failed = !x || !scores || !y || td_data_read(ctx, data, NULL, count, x, labelled ? y : NULL) != TD_OK ||
                 td_predict_on_batch(model, count, x, scores) != TD_OK;
    for (int64_t i = 0; i < count && !failed; i++) {
        printf("sample %lld: class %lld", (long long)i, (long long)largest(scores + i * classes, classes));
        if (labelled)
            printf(", labelled %.0f", (double)y[i]);
        printf("\n");
    }
    free(x);
    free(scores);
    free(y);
    return failed;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s MODEL.keras [COUNT [DATA]]\n", argv[0]);
        return 2;
    }
    int64_t count = argc > 2 ? atoll(argv[2]) : 10;
    if (count < 1 || count > 1 << 20) {
        fprintf(stderr, "COUNT must be from 1 to %d, not %s\n", 1 << 20, argv[2]);
        return 2;
    }
    td_context *ctx = td_context_create(NULL);
    td_data *data = argc > 3 ? td_open(argv[3], .role = TD_TEST) : td_mnist("test");
    td_model *model = td_load(ctx, argv[1]);
    int failed = !model || predict(ctx, model, data, count);
    if (td_failed(ctx))
        fprintf(stderr, "%s\n", td_error(ctx));
    td_data_release(data);
    td_context_free(ctx);
    return failed;
}
