/* steps.c - trains a .keras file in file order, for scripts that hold it against Keras.
 *
 * steps MODEL.keras X Y SAMPLES BATCH DEVICES SAVED.keras PREDICTED
 *
 * X, Y and PREDICTED are raw floats. Prints the loss of each step; then saves, and predicts X's first batch. */
#include "support/floats.h"

static void train(td_context *context, td_model *model, int64_t samples, int64_t batch, const float *x, size_t x_row,
                  const float *y, size_t y_row)
{
    for (int64_t first = 0; first < samples; first += batch) {
        int64_t rows = samples - first < batch ? samples - first : batch;
        td_logs logs = {0};
        must_work(context, td_train_on_batch(model, rows, x + (size_t)first * x_row, y + (size_t)first * y_row, &logs));
        printf("%.9g\n", logs.entry[0].value);
    }
}

static void predict(td_context *context, td_model *model, int64_t rows, const float *x, const char *path)
{
    td_shape shape;
    must_work(context, td_output_shape(model, 0, &shape));
    size_t count = (size_t)rows * elements(&shape);
    float *output = must(calloc(count, sizeof(float)), "predictions");
    must_work(context, td_predict_on_batch(model, rows, x, output));
    write_floats(path, output, count);
    free(output);
}

int main(int count, char **arguments)
{
    if (count != 9)
        return fprintf(stderr, "usage: steps MODEL X Y SAMPLES BATCH DEVICES SAVED PREDICTED\n"), 2;
    td_context *context = must(td_context_create(NULL), "context");
    td_model *model = td_load(context, arguments[1]);
    must_work(context, td_error_status(context));
    int64_t samples = atoll(arguments[4]), batch = atoll(arguments[5]);
    size_t x_row = count_floats(arguments[2]) / (size_t)samples, y_row = count_floats(arguments[3]) / (size_t)samples;
    float *x = read_floats(arguments[2], (size_t)samples * x_row);
    float *y = read_floats(arguments[3], (size_t)samples * y_row);

    must_work(context, td_compile(model, .strategy = td_mirrored(arguments[6])));
    train(context, model, samples, batch, x, x_row, y, y_row);
    must_work(context, td_save(model, arguments[7]));
    predict(context, model, batch, x, arguments[8]);
    free(x);
    free(y);
    td_context_free(context);
    return 0;
}
