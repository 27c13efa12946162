/* steps.c - trains or asks the model of a .keras file, a round each time it is told to, for bench/run.
 *
 * bench_steps fit MODEL BATCH STEPS CLASSES float|bytes DEVICES PRECISION   epochs of STEPS steps by td_fit
 * bench_steps train|predict MODEL BATCH 1 CLASSES float|bytes DEVICES PRECISION   calls with one batch, each timed
 *
 * CLASSES 0: one number is to be learnt. PRECISION: as --precision of `tandem fit`. Metrics are the file's, rows are
 * shuffled. The protocol is that of bench/peers/peer.py.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/tandem.h>
#include <time.h>

typedef struct bench {
    td_context *context;
    td_model *model;
    const char *what;
    int64_t samples, batch, steps;
    int classes;
    bool bytes;     /* x holds bytes, to be divided by 255 */
    td_shape shape; /* of a sample */
    size_t elements;
    void *x, *y; /* the data */
    float *batch_x, *batch_y, *output;
    double *calls; /* microseconds of every call so far */
    size_t n_calls, capacity;
} bench;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void must(const bench *bench, td_status status)
{
    if (status == TD_OK)
        return;
    fprintf(stderr, "bench_steps: %s\n", td_error(bench->context));
    exit(1);
}

static void *allocate(void *old, size_t size)
{
    void *memory = realloc(old, size);
    if (!memory) {
        perror("bench_steps");
        exit(1);
    }
    return memory;
}

static td_precision precision_of(const char *name)
{
    if (strcmp(name, "file") == 0)
        return TD_PRECISION_FILE;
    if (strcmp(name, "float32") == 0)
        return TD_PRECISION_FLOAT32;
    if (strcmp(name, "bfloat16") == 0)
        return TD_PRECISION_BFLOAT16;
    fprintf(stderr, "bench_steps: precision %s: expected file, float32 or bfloat16\n", name);
    exit(2);
}

static void make_model(bench *bench, const char *path, const char *devices, const char *precision)
{
    bench->context = td_context_create(NULL);
    bench->model = td_load(bench->context, path);
    must(bench, td_error_status(bench->context));
    must(bench, td_compile(bench->model, .strategy = td_mirrored(devices), .precision = precision_of(precision)));
    must(bench, td_input_shape(bench->model, 0, &bench->shape));
    bench->elements = 1;
    for (int i = 0; i < bench->shape.rank; i++)
        bench->elements *= (size_t)bench->shape.dim[i];
}

/* ---- data: noise ---- */

static uint32_t draw(uint32_t *state)
{
    return (*state = *state * 1664525u + 1013904223u) >> 8;
}

static float draw_unit(uint32_t *state)
{
    return (float)draw(state) / (float)(1 << 24);
}

static void make_targets(bench *bench, uint32_t *state)
{
    bench->y = allocate(NULL, (size_t)bench->samples * sizeof(float));
    for (int64_t i = 0; i < bench->samples; i++)
        if (bench->classes)
            ((int32_t *)bench->y)[i] = (int32_t)(draw(state) % (uint32_t)bench->classes);
        else
            ((float *)bench->y)[i] = draw_unit(state);
}

static void make_data(bench *bench)
{
    size_t values = (size_t)bench->samples * bench->elements;
    uint32_t state = 1;
    bench->x = allocate(NULL, values * (bench->bytes ? 1 : sizeof(float)));
    for (size_t i = 0; i < values; i++)
        if (bench->bytes)
            ((uint8_t *)bench->x)[i] = (uint8_t)draw(&state);
        else
            ((float *)bench->x)[i] = draw_unit(&state);
    make_targets(bench, &state);
}

static void make_batch(bench *bench)
{
    size_t values = (size_t)bench->batch * bench->elements, outputs = 1;
    td_shape shape;
    must(bench, td_output_shape(bench->model, 0, &shape));
    for (int i = 0; i < shape.rank; i++)
        outputs *= (size_t)shape.dim[i];
    bench->batch_x = allocate(NULL, values * sizeof(float));
    bench->batch_y = allocate(NULL, (size_t)bench->batch * sizeof(float));
    bench->output = allocate(NULL, (size_t)bench->batch * outputs * sizeof(float));
    uint32_t state = 1;
    for (size_t i = 0; i < values; i++)
        bench->batch_x[i] = draw_unit(&state);
    for (int64_t i = 0; i < bench->batch; i++)
        bench->batch_y[i] = bench->classes ? 0.0f : draw_unit(&state);
}

/* ---- rounds ---- */

/* With the loss, as the peers' calls return it. */
static void call(bench *bench)
{
    td_logs logs;
    if (strcmp(bench->what, "predict") == 0)
        must(bench, td_predict_on_batch(bench->model, bench->batch, bench->batch_x, bench->output));
    else
        must(bench, td_train_on_batch(bench->model, bench->batch, bench->batch_x, bench->batch_y, &logs));
}

static void run_epoch(bench *bench)
{
    td_data *data = td_arrays(bench->samples, bench->x, bench->shape, .x_dtype = bench->bytes ? TD_UINT8 : TD_FLOAT32,
                              .y = bench->y, .y_dtype = bench->classes ? TD_INT32 : TD_FLOAT32,
                              .scale = bench->bytes ? 1.0f / 255.0f : 1.0f);
    must(bench, td_fit(bench->model, data, .batch_size = bench->batch));
}

/* Microseconds a step. */
static double run_epochs(bench *bench, double seconds)
{
    double began = now();
    int64_t epochs = 0;
    for (; epochs == 0 || now() - began < seconds; epochs++)
        run_epoch(bench);
    return (now() - began) * 1e6 / (double)(epochs * bench->steps);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median's microseconds. */
static double run_calls(bench *bench, double seconds)
{
    size_t first = bench->n_calls;
    for (double end = now() + seconds, began; (began = now()) < end;) {
        call(bench);
        double microseconds = (now() - began) * 1e6;
        if (bench->n_calls == bench->capacity)
            bench->calls = allocate(bench->calls, (bench->capacity = 2 * bench->capacity + 4096) * sizeof(double));
        bench->calls[bench->n_calls++] = microseconds;
    }
    size_t count = bench->n_calls - first;
    qsort(bench->calls + first, count, sizeof(double), compare);
    return count ? bench->calls[first + count / 2] : 0;
}

/* Of the whole life of this process. (ru_maxrss would begin with the size of the parent.) */
static long kilobytes(void)
{
    long most = 0;
    FILE *status = fopen("/proc/self/status", "r");
    for (char line[256]; status && fgets(line, sizeof line, status);)
        if (sscanf(line, "VmHWM: %ld", &most) == 1)
            break;
    if (status)
        fclose(status);
    return most;
}

static void report_end(bench *bench)
{
    static const char *const names[] = {"50", "99", "99.9"};
    printf("{\"kilobytes\": %ld", kilobytes());
    if (bench->n_calls) {
        qsort(bench->calls, bench->n_calls, sizeof(double), compare);
        printf(", \"calls\": %zu, \"percentiles\": {", bench->n_calls);
        for (int i = 0; i < 3; i++)
            printf("%s\"%s\": %.3f", i ? ", " : "", names[i],
                   bench->calls[(size_t)((double)bench->n_calls * atof(names[i]) / 100)]);
        printf("}");
    }
    printf("}\n");
}

static void release(bench *bench)
{
    free(bench->x);
    free(bench->y);
    free(bench->batch_x);
    free(bench->batch_y);
    free(bench->output);
    free(bench->calls);
    td_context_free(bench->context);
}

int main(int count, char **arguments)
{
    if (count != 9)
        return fprintf(stderr, "usage: bench_steps fit|train|predict MODEL BATCH STEPS CLASSES float|bytes DEVICES "
                               "PRECISION\n"),
               2;
    const char *started = getenv("BENCH_STARTED");
    bench bench = {.what = arguments[1],
                   .batch = atoll(arguments[3]),
                   .steps = atoll(arguments[4]),
                   .classes = atoi(arguments[5]),
                   .bytes = strcmp(arguments[6], "bytes") == 0};
    bool fits = strcmp(bench.what, "fit") == 0;
    make_model(&bench, arguments[2], arguments[7], arguments[8]);
    make_batch(&bench);
    call(&bench);
    int64_t parameters;
    td_parameter_count(bench.model, &parameters);
    printf("{\"first\": %.6f, \"parameters\": %lld}\n", now() - (started ? atof(started) : now()),
           (long long)parameters);
    fflush(stdout);
    bench.samples = bench.batch * bench.steps;
    if (fits)
        make_data(&bench);
    int round = 0;
    for (char line[32]; fgets(line, sizeof line, stdin);) {
        double seconds = 0;
        sscanf(line, "round %lf", &seconds);
        printf("{\"us\": %.3f}\n", fits ? run_epochs(&bench, seconds) : run_calls(&bench, seconds));
        fflush(stdout);
        if (round++ == 0)
            bench.n_calls = 0; /* those that warmed up */
    }
    report_end(&bench);
    release(&bench);
    return 0;
}
