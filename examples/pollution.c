/* pollution.c - an LSTM forecasts Beijing's PM2.5 an hour ahead from the last day's weather. It is compared with
 * persistence, the forecast that the next hour is like this one.
 *
 *     pollution POLLUTION.csv [EPOCHS [OUTPUT.keras]]          4 epochs, to pollution.keras
 *
 * A row is an hour. The first four fifths are for training and the last fifth for validation. The model's Normalization
 * layers have the training rows' means and variances, so that it takes and gives micrograms, here and in Keras. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tandem/tandem.h>

enum { HOURS = 24, FEATURES = 11, PART = 512 };

#define COLUMNS "x=pm2.5,DEWP,TEMP,PRES,cbwd:one-hot,Iws,Is,Ir,y=pm2.5"

static td_data *hours(const char *path)
{
    return td_open(path, .features = COLUMNS, .missing = TD_MISSING_PREVIOUS, .window = HOURS);
}

static td_model *forecaster(td_context *ctx)
{
    td_tensor *x = td_input(ctx, TD_SHAPE(HOURS, FEATURES));
    td_tensor *y = td_lstm(td_normalization(x), 32);
    y = td_normalization(td_dense(y, 1), .invert = TD_YES);
    td_model *model = td_model_create(x, y, .name = "pollution", .seed = 1);
    td_compile(model, .optimizer = td_adam(.learning_rate = 2e-3f), .loss = TD_MEAN_SQUARED_ERROR);
    return model;
}

/* Prints the root mean squared errors of persistence and of the model, over the samples from `first` on. */
static void compare(td_context *ctx, td_model *model, td_data *data, int64_t first)
{
    static float x[PART * HOURS * FEATURES], y[PART], forecast[PART];
    int64_t rows[PART], samples = td_data_samples(data);
    double persistence = 0, model_error = 0;
    for (int64_t begin = first; begin < samples && !td_failed(ctx); begin += PART) {
        int64_t count = samples - begin < PART ? samples - begin : PART;
        for (int64_t i = 0; i < count; i++)
            rows[i] = begin + i;
        td_data_read(ctx, data, rows, count, x, y);
        td_predict_on_batch(model, count, x, forecast);
        for (int64_t i = 0; i < count; i++) {
            double now = (double)x[(i * HOURS + HOURS - 1) * FEATURES];
            persistence += pow((double)y[i] - now, 2);
            model_error += pow((double)y[i] - (double)forecast[i], 2);
        }
    }
    double count = (double)(samples - first);
    printf("Root mean squared error over the last %lld hours, in micrograms per cubic metre:\n", (long long)count);
    printf("  as this hour (persistence)  %.2f\n  the model                   %.2f\n", sqrt(persistence / count),
           sqrt(model_error / count));
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: pollution POLLUTION.csv [EPOCHS [OUTPUT.keras]]\n");
        return 2;
    }
    const char *output = argc > 3 ? argv[3] : "pollution.keras";
    td_context *ctx = td_context_create(NULL);
    td_model *model = forecaster(ctx);
    td_data *data = hours(argv[1]);
    if (td_data_error(data)) {
        fprintf(stderr, "%s\n", td_data_error(data));
        td_context_free(ctx);
        return 1;
    }
    int64_t kept = td_data_samples(data) * 4 / 5;
    td_fit(model, td_data_retain(data), .epochs = argc > 2 ? atoi(argv[2]) : 4, .batch_size = 128, .adapt = TD_YES,
           .validation_split = (double)(td_data_samples(data) - kept), .progress = stdout);
    td_save(model, output);
    if (!td_failed(ctx))
        compare(ctx, model, data, kept);
    td_data_release(data);

    int failed = td_failed(ctx);
    if (failed)
        fprintf(stderr, "%s\n", td_error(ctx));
    td_context_free(ctx);
    return failed;
}
