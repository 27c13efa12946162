/* steps.c - trains or asks the model of a .keras file, a round each time it is told to, for bench/run.
 *
 * bench_steps fit MODEL BATCH STEPS CLASSES float|bytes|FOLDER DEVICES PRECISION   epochs of STEPS steps by td_fit
 * bench_steps train|predict MODEL BATCH 1 CLASSES float|bytes DEVICES PRECISION   calls with one batch, each timed:
 * back to back, and in a round that is given a tick at each tick
 *
 * float, bytes: noise; FOLDER: where MNIST's training images and labels are, unpacked. CLASSES 0: one number is to be
 * learnt. PRECISION: as --precision of `tandem fit`. Metrics are the file's, rows are shuffled. The protocol is that of
 * bench/peers/peer.py.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/tandem.h>
#include <time.h>

#include "overhead.h"

/* Microseconds of every call so far. */
typedef struct calls {
    double *us;
    size_t count, capacity;
} calls;

typedef struct bench {
    td_context *context;
    td_model *model;
    const char *what;
    int64_t samples, batch, steps;
    int classes;
    bool bytes;         /* x holds bytes, to be divided by 255 */
    const char *folder; /* of MNIST's files, or NULL: noise */
    td_shape shape;     /* of a sample */
    size_t elements;
    void *x, *y; /* the data */
    float *batch_x, *batch_y, *output;
    calls in_a_row, at_ticks;
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

/* ---- data ---- */

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

/* `size` bytes of an IDX file, behind its header. */
static void read_idx(const bench *bench, const char *name, long header, size_t size, uint8_t *bytes)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", bench->folder, name);
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, header, SEEK_SET) || fread(bytes, 1, size, file) != size) {
        fprintf(stderr, "bench_steps: %s: expected %zu bytes of MNIST behind the first %ld\n", path, size, header);
        exit(1);
    }
    fclose(file);
}

static void read_digits(bench *bench)
{
    enum { PIXELS = 28 * 28 };
    size_t samples = (size_t)bench->samples;
    if (bench->elements != PIXELS) {
        fprintf(stderr, "bench_steps: the model takes samples of %zu numbers, MNIST's have %d\n", bench->elements,
                PIXELS);
        exit(1);
    }
    bench->x = allocate(NULL, samples * bench->elements);
    bench->y = allocate(NULL, samples * sizeof(int32_t));
    read_idx(bench, "train-images-idx3-ubyte", 16, samples * bench->elements, bench->x);
    uint8_t *labels = allocate(NULL, samples);
    read_idx(bench, "train-labels-idx1-ubyte", 8, samples, labels);
    for (size_t i = 0; i < samples; i++)
        ((int32_t *)bench->y)[i] = labels[i];
    free(labels);
}

static void make_noise(bench *bench)
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

/* The data of so many steps. */
static void make_data(bench *bench, int64_t steps)
{
    free(bench->x);
    free(bench->y);
    bench->samples = bench->batch * steps;
    if (bench->folder)
        read_digits(bench);
    else
        make_noise(bench);
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
static void call(void *context)
{
    bench *bench = context;
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

/* As the rounds go on: an epoch of one step, or a call. */
static void run_first(bench *bench, bool fits)
{
    if (fits) {
        make_data(bench, 1);
        run_epoch(bench);
    } else {
        make_batch(bench);
        call(bench);
    }
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

static void add_call(calls *calls, double us)
{
    if (calls->count == calls->capacity)
        calls->us = allocate(calls->us, (calls->capacity = 2 * calls->capacity + 4096) * sizeof(double));
    calls->us[calls->count++] = us;
}

/* Sleeps until the next of the instants first + n * tick. */
static void await_tick(double first, double tick)
{
    double next = first + tick * (double)(int64_t)((now() - first) / tick + 1);
    struct timespec at = {.tv_sec = (time_t)next, .tv_nsec = (long)((next - (double)(time_t)next) * 1e9)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

/* The median's microseconds; tick 0: back to back. */
static double run_calls(bench *bench, double seconds, double tick)
{
    calls *calls = tick > 0 ? &bench->at_ticks : &bench->in_a_row;
    size_t first = calls->count;
    for (double start = now(), began = start; began < start + seconds;) {
        if (tick > 0)
            await_tick(start, tick);
        began = now();
        call(bench);
        add_call(calls, (now() - began) * 1e6);
    }
    size_t count = calls->count - first;
    qsort(calls->us + first, count, sizeof(double), compare);
    return count ? calls->us[first + count / 2] : 0;
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

static void report_percentiles(const char *name, calls *calls)
{
    static const char *const percents[] = {"50", "99", "99.9"};
    if (!calls->count)
        return;
    qsort(calls->us, calls->count, sizeof(double), compare);
    printf(", \"%s\": {\"calls\": %zu", name, calls->count);
    for (int i = 0; i < 3; i++)
        printf(", \"%s\": %.3f", percents[i], calls->us[(size_t)((double)calls->count * atof(percents[i]) / 100)]);
    printf("}");
}

static void report_end(bench *bench)
{
    overhead found;
    bool trains = strcmp(bench->what, "train") == 0, calls = trains || strcmp(bench->what, "predict") == 0;
    printf("{\"kilobytes\": %ld", kilobytes());
    report_percentiles("percentiles", &bench->in_a_row);
    report_percentiles("at_ticks", &bench->at_ticks);
    if (calls && measure_overhead(bench->model, trains, bench->batch, call, bench, &found))
        printf(", \"overhead\": {\"call\": %.4f, \"kernels\": %.4f, \"around\": %.4f}", found.call, found.kernels,
               found.around);
    printf("}\n");
}

static void release(bench *bench)
{
    free(bench->x);
    free(bench->y);
    free(bench->batch_x);
    free(bench->batch_y);
    free(bench->output);
    free(bench->in_a_row.us);
    free(bench->at_ticks.us);
    td_context_free(bench->context);
}

static bool is_noise(const char *data)
{
    return strcmp(data, "float") == 0 || strcmp(data, "bytes") == 0;
}

int main(int count, char **arguments)
{
    if (count != 9)
        return fprintf(stderr,
                       "usage: bench_steps fit|train|predict MODEL BATCH STEPS CLASSES float|bytes|FOLDER DEVICES "
                       "PRECISION\n"),
               2;
    const char *started = getenv("BENCH_STARTED");
    bench bench = {.what = arguments[1],
                   .batch = atoll(arguments[3]),
                   .steps = atoll(arguments[4]),
                   .classes = atoi(arguments[5]),
                   .bytes = strcmp(arguments[6], "float") != 0,
                   .folder = is_noise(arguments[6]) ? NULL : arguments[6]};
    bool fits = strcmp(bench.what, "fit") == 0;
    if (!fits && bench.folder)
        return fprintf(stderr, "bench_steps: %s: calls are timed with float or bytes\n", bench.folder), 2;
    make_model(&bench, arguments[2], arguments[7], arguments[8]);
    run_first(&bench, fits);
    int64_t parameters;
    td_parameter_count(bench.model, &parameters);
    printf("{\"first\": %.6f, \"parameters\": %lld}\n", now() - (started ? atof(started) : now()),
           (long long)parameters);
    fflush(stdout);
    if (fits)
        make_data(&bench, bench.steps);
    int round = 0;
    for (char line[64]; fgets(line, sizeof line, stdin);) {
        double seconds = 0, tick = 0;
        sscanf(line, "round %lf %lf", &seconds, &tick);
        printf("{\"us\": %.3f}\n", fits ? run_epochs(&bench, seconds) : run_calls(&bench, seconds, tick));
        fflush(stdout);
        if (round++ == 0)
            bench.in_a_row.count = 0; /* those that warmed up */
    }
    report_end(&bench);
    release(&bench);
    return 0;
}
