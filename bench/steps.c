/* steps.c - trains a network over data in memory, a round each time it is asked, for bench/run.
 *
 * bench_steps ARCHITECTURE SAMPLES BATCH DEVICES
 *
 * Speaks bench/run's protocol (bench/peers/peer.py): says "first SECONDS" after its first step; then for each line read
 * trains one epoch and says its microseconds a step; at the end of input says its largest resident size in kilobytes.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <tandem/tandem.h>
#include <time.h>

typedef struct bench {
    td_context *context;
    td_model *model;
    int64_t samples, batch;
    td_shape shape; /* of a sample */
    size_t elements;
    uint8_t *x;
    int32_t *y;
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

static void *allocate(size_t size)
{
    void *memory = malloc(size);
    if (!memory) {
        perror("bench_steps");
        exit(1);
    }
    return memory;
}

/* Noise in the form of MNIST: 8-bit images, ten classes. */
static void make_data(bench *bench)
{
    size_t values = (size_t)bench->samples * bench->elements;
    uint32_t state = 1;
    bench->x = allocate(values);
    bench->y = allocate((size_t)bench->samples * sizeof *bench->y);
    for (size_t i = 0; i < values; i++)
        bench->x[i] = (uint8_t)((state = state * 1664525u + 1013904223u) >> 24);
    for (int64_t i = 0; i < bench->samples; i++)
        bench->y[i] = (int32_t)((state = state * 1664525u + 1013904223u) >> 16) % 10;
}

static void make_model(bench *bench, const char *architecture, const char *devices)
{
    bench->context = td_context_create(NULL);
    bench->model = td_new(bench->context, architecture, 1);
    must(bench, td_error_status(bench->context));
    must(bench, td_compile(bench->model, .optimizer = td_adam(.learning_rate = 1e-3f),
                           .loss = TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, .strategy = td_mirrored(devices)));
    must(bench, td_input_shape(bench->model, 0, &bench->shape));
    bench->elements = 1;
    for (int i = 0; i < bench->shape.rank; i++)
        bench->elements *= (size_t)bench->shape.dim[i];
}

static void first_step(bench *bench)
{
    float *x = allocate((size_t)bench->batch * bench->elements * sizeof *x);
    float *y = allocate((size_t)bench->batch * sizeof *y);
    for (size_t i = 0; i < (size_t)bench->batch * bench->elements; i++)
        x[i] = 0.5f;
    memset(y, 0, (size_t)bench->batch * sizeof *y);
    must(bench, td_train_on_batch(bench->model, bench->batch, x, y, NULL));
    free(x);
    free(y);
}

/* Microseconds a step. */
static double run_epoch(bench *bench)
{
    td_data *data = td_arrays(bench->samples, bench->x, bench->shape, .x_dtype = TD_UINT8, .y = bench->y,
                              .y_dtype = TD_INT32, .scale = 1.0f / 255.0f);
    double began = now();
    must(bench, td_fit(bench->model, data, .batch_size = bench->batch));
    return (now() - began) * 1e6 / (double)((bench->samples + bench->batch - 1) / bench->batch);
}

int main(int count, char **arguments)
{
    if (count != 5)
        return fprintf(stderr, "usage: bench_steps ARCHITECTURE SAMPLES BATCH DEVICES\n"), 2;
    const char *started = getenv("BENCH_STARTED");
    bench bench = {.samples = atoll(arguments[2]), .batch = atoll(arguments[3])};
    make_model(&bench, arguments[1], arguments[4]);
    first_step(&bench);
    printf("first %.6f\n", now() - (started ? atof(started) : now()));
    fflush(stdout);
    make_data(&bench);
    for (char line[16]; fgets(line, sizeof line, stdin);) {
        printf("%.3f\n", run_epoch(&bench));
        fflush(stdout);
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%ld\n", usage.ru_maxrss);
    free(bench.x);
    free(bench.y);
    td_context_free(bench.context);
    return 0;
}
