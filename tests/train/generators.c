/* Samples that functions make: the weights are those of the same samples in memory; streams of known and unknown
 * length, restarted or going on; a shuffle's buffer; what a function may get wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/tandem.h>

#include "data/source.h"
#include "files/npy_file.h"
#include "files/scratch.h"
#include "support/devices.h"
#include "support/small.h"

enum { SAMPLES = 203, BATCH = 16 };

static float x[SAMPLES * SMALL_SAMPLE], y[SAMPLES];

typedef struct stream {
    int64_t at, end;        /* end: the samples it has; 0: it goes round for ever */
    int64_t restarts, most; /* most: the largest number taken */
    td_status fails;        /* at sample 50 */
    int released;
} stream;

static td_status any(void *user, int64_t sample, void *const *to_x, void *const *to_y)
{
    stream *of = user;
    if (to_x[0])
        memcpy(to_x[0], x + sample * SMALL_SAMPLE, SMALL_SAMPLE * sizeof *x);
    if (to_y[0])
        memcpy(to_y[0], y + sample, sizeof *y);
    return sample == 50 ? of->fails : TD_OK;
}

static td_status next(void *user, void *const *to_x, void *const *to_y)
{
    stream *of = user;
    if (of->end && of->at == of->end)
        return TD_STOPPED;
    of->most = of->at > of->most ? of->at : of->most;
    return any(user, of->at++ % SAMPLES, to_x, to_y);
}

static td_status restart(void *user)
{
    stream *of = user;
    of->at = 0;
    of->restarts++;
    return TD_OK;
}

static void release(void *user)
{
    ((stream *)user)->released++;
}

static td_shape shape(void)
{
    return TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS);
}

typedef struct run {
    td_choice shuffle;
    int64_t buffer, steps;
    int epochs;
    double split;
    td_choice drop;
    const char *devices;
} run;

static float *trained(td_data *data, run r, td_epoch *last)
{
    int64_t count;
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_MLP, td_adam(), (td_strategy){.devices = r.devices, .shards = 2});
    td_fit(model, data, .batch_size = BATCH, .epochs = r.epochs, .shuffle = r.shuffle, .shuffle_buffer = r.buffer,
           .steps_per_epoch = r.steps, .validation_split = r.split, .drop_remainder = r.drop, .seed = 4, .last = last);
    assert_string_equal(td_error(context), "");
    float *weights = small_weights(model, &count);
    assert_true(count > 1000);
    td_context_free(context);
    return weights;
}

static void expect_same(float *a, float *b)
{
    assert_memory_equal(a, b, 1000 * sizeof *a);
    free(a);
    free(b);
}

static td_data *arrays(int64_t samples)
{
    return td_arrays(samples, x, shape(), .y = y);
}

static void test_any_sample(void **state)
{
    (void)state;
    stream of = {0};
    run r = {.epochs = 2};
    td_data *data = td_generator(shape(), .read = any, .samples = SAMPLES, .user = &of, .release = release);
    expect_same(trained(data, r, NULL), trained(arrays(SAMPLES), r, NULL));
    assert_int_equal(of.released, 1);
}

static void test_a_stream_of_known_length(void **state)
{
    (void)state;
    const char *const devices[] = {test_devices(1), test_devices(2)};
    for (int d = 0; d < 2; d++)
        for (int64_t buffer = 0; buffer < 40; buffer += 13) {
            stream of = {.end = SAMPLES};
            run r = {.epochs = 3, .buffer = buffer, .devices = devices[d]}, ordered = r;
            ordered.shuffle = buffer ? TD_YES : TD_NO; /* a stream is not shuffled whole */
            td_data *data = td_generator(shape(), .next = next, .restart = restart, .samples = SAMPLES, .user = &of);
            expect_same(trained(data, r, NULL), trained(arrays(SAMPLES), ordered, NULL));
            assert_int_equal(of.restarts, 3);
        }
}

static void test_a_stream_is_counted(void **state)
{
    (void)state;
    stream of = {.end = SAMPLES};
    run r = {.epochs = 2, .shuffle = TD_NO, .split = 40};
    td_epoch last, in_memory;
    td_data *data = td_generator(shape(), .next = next, .restart = restart, .user = &of);
    assert_int_equal(td_data_samples(data), -1);
    expect_same(trained(data, r, &last), trained(arrays(SAMPLES), r, &in_memory));
    assert_int_equal(last.logs.count, in_memory.logs.count);
    for (int i = 0; i < last.logs.count; i++)
        assert_true(last.logs.entry[i].value == in_memory.logs.entry[i].value);
    assert_int_equal(of.restarts, 5); /* to count, and for two epochs and their validation */
}

/* Twice 5 steps of 16 are the first 160 samples, in the stream's order. */
static void test_an_endless_stream_goes_on(void **state)
{
    (void)state;
    stream of = {0};
    run r = {.epochs = 2, .steps = 5}, whole = {.epochs = 1, .steps = 10, .shuffle = TD_NO};
    td_epoch last;
    td_data *data = td_generator(shape(), .next = next, .user = &of);
    expect_same(trained(data, r, &last), trained(arrays(160), whole, NULL));
    assert_int_equal(of.at, 160);
    assert_int_equal(last.samples, 80);
}

static void test_stages_over_a_stream(void **state)
{
    (void)state;
    stream of = {.end = SAMPLES};
    run r = {.epochs = 3, .buffer = 20};
    for (int kind = 0; kind < 2; kind++) {
        td_data *data = td_generator(shape(), .next = next, .restart = restart, .user = &of), *plain = arrays(SAMPLES);
        if (kind == 0)
            expect_same(trained(td_cache(data), r, NULL), trained(plain, r, NULL));
        else
            expect_same(trained(td_augment(data, .flip = TD_FLIP_BOTH, .crop = 1), r, NULL),
                        trained(td_augment(plain, .flip = TD_FLIP_BOTH, .crop = 1), r, NULL));
    }
}

static void test_an_uneven_batch_is_left_out(void **state)
{
    (void)state;
    run r = {.epochs = 1, .shuffle = TD_NO, .drop = TD_YES}, whole = {.epochs = 1, .shuffle = TD_NO};
    td_epoch last;
    expect_same(trained(arrays(SAMPLES), r, &last), trained(arrays(SAMPLES / BATCH * BATCH), whole, NULL));
    assert_int_equal(last.samples, SAMPLES / BATCH * BATCH);
    assert_int_equal(last.steps, SAMPLES / BATCH);
}

/* ---- several inputs and targets ---- */

enum { WORDS = 7, SIDE = 3 };

static float words[SAMPLES], sides[SAMPLES * SIDE];

typedef struct several {
    int64_t at;
    atomic_int calls;
    bool predicts;
} several;

static td_status any_of_several(void *user, int64_t sample, void *const *to_x, void *const *to_y)
{
    several *of = user;
    int32_t word = (int32_t)words[sample];
    atomic_fetch_add(&of->calls, 1);
    assert_false(of->predicts && to_y && (to_y[0] || to_y[1]));
    if (to_x[0])
        memcpy(to_x[0], x + sample * SMALL_SAMPLE, SMALL_SAMPLE * sizeof *x);
    if (to_x[1])
        memcpy(to_x[1], &word, sizeof word);
    if (to_y && to_y[0])
        *(uint8_t *)to_y[0] = (uint8_t)y[sample];
    if (to_y && to_y[1])
        memcpy(to_y[1], sides + sample * SIDE, SIDE * sizeof *sides);
    return TD_OK;
}

static td_status next_of_several(void *user, void *const *to_x, void *const *to_y)
{
    several *of = user;
    return of->at == SAMPLES ? TD_STOPPED : any_of_several(user, of->at++, to_x, to_y);
}

static td_data *data_of_several(several *of, bool stream, td_choice targets)
{
    return td_generator(shape(), .more_x = TD_COLUMNS({.shape = TD_SHAPE(1), .dtype = TD_INT32}), .targets = targets,
                        .y_dtype = TD_UINT8, .more_y = targets ? NULL : TD_COLUMNS({.shape = TD_SHAPE(SIDE)}),
                        .read = stream ? NULL : any_of_several, .next = stream ? next_of_several : NULL,
                        .samples = SAMPLES, .user = of);
}

static const char *file_of_several(td_context *context)
{
    td_shape images = TD_SHAPE(SAMPLES, SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS);
    const td_named_array arrays[] = {{"x0", x, images},
                                     {"x1", words, TD_SHAPE(SAMPLES, 1)},
                                     {"y0", y, TD_SHAPE(SAMPLES)},
                                     {"y1", sides, TD_SHAPE(SAMPLES, SIDE)}};
    const char *path = scratch_path("several.npz");
    assert_int_equal(td_save_npz(context, path, 4, arrays), TD_OK);
    return path;
}

static td_model *model_of_several(td_context *context)
{
    td_tensor *image = td_input(context, shape());
    td_tensor *word = td_input(context, TD_SHAPE(1), .dtype = TD_INT32);
    td_tensor *both = td_concatenate(TD_TENSORS(td_flatten(image), td_flatten(td_embedding(word, WORDS, 4))));
    td_tensor *hidden = td_dense(both, 20, .activation = TD_TANH);
    td_tensor *outputs[] = {td_dense(hidden, 1), td_dense(hidden, SIDE), NULL};
    td_model *model = td_model_create(NULL, NULL, .inputs = TD_TENSORS(image, word), .outputs = outputs, .seed = 5);
    if (model)
        td_compile(model, .optimizer = td_adam(), .loss = TD_MEAN_SQUARED_ERROR,
                   .strategy = td_mirrored(test_devices(0)));
    return model;
}

/* Of a stream one epoch, in its order. */
static void train_several(td_data *data, bool stream, int64_t *count, float **weights)
{
    td_context *context = td_context_create(NULL);
    td_model *model = model_of_several(context);
    td_fit(model, data, .batch_size = BATCH, .epochs = stream ? 1 : 2, .shuffle = stream ? TD_NO : TD_YES, .seed = 4);
    assert_string_equal(td_error(context), "");
    *weights = small_weights(model, count);
    td_context_free(context);
}

static void test_several_inputs_and_targets(void **state)
{
    (void)state;
    for (int stream = 0; stream < 2; stream++) {
        int64_t count;
        float *made, *read;
        several of = {0};
        td_context *context = td_context_create(NULL);
        train_several(data_of_several(&of, stream, TD_DEFAULT), stream, &count, &made);
        assert_int_equal(atomic_load(&of.calls), stream ? SAMPLES : 2 * SAMPLES);
        train_several(td_open(file_of_several(context)), stream, &count, &read);
        assert_memory_equal(made, read, (size_t)count * sizeof *made);
        free(made);
        free(read);
        td_context_free(context);
    }
}

/* What is not wanted is not asked for: targets to predict. */
static void test_several_are_predicted_from(void **state)
{
    (void)state;
    static float first[2][SAMPLES], second[2][SAMPLES * SIDE];
    for (int stream = 0; stream < 2; stream++) {
        several of = {.predicts = true};
        td_context *context = td_context_create(NULL);
        td_model *model = model_of_several(context);
        td_predict(model, data_of_several(&of, stream, stream ? TD_NO : TD_DEFAULT),
                   .outputs = (float *[]){first[stream], second[stream]});
        assert_string_equal(td_error(context), "");
        assert_int_equal(atomic_load(&of.calls), SAMPLES);
        td_context_free(context);
    }
    assert_memory_equal(first[0], first[1], sizeof first[0]);
    assert_memory_equal(second[0], second[1], sizeof second[0]);
}

/* ---- the order of a buffer ---- */

static void test_a_buffer_s_order(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    int64_t order[COUNT], again[COUNT];
    for (int64_t buffer = 1; buffer <= 2 * COUNT; buffer = buffer * 3 + 1) {
        bool seen[COUNT] = {false};
        int moved = 0;
        assert_int_equal(tdi_buffered_order(order, COUNT, buffer, 7, 3, NULL), TD_OK);
        assert_int_equal(tdi_buffered_order(again, COUNT, buffer, 7, 3, NULL), TD_OK);
        assert_memory_equal(order, again, sizeof order);
        for (int i = 0; i < COUNT; i++) {
            assert_false(seen[order[i]]);
            seen[order[i]] = true;
            assert_true(order[i] < i + buffer);
            moved += order[i] != i;
        }
        assert_true(buffer == 1 ? moved == 0 : moved > COUNT / 3);
        assert_int_equal(tdi_buffered_order(again, COUNT, buffer, 7, 4, NULL), TD_OK);
        if (buffer > 1)
            assert_memory_not_equal(order, again, sizeof order);
    }
}

/* ---- streams to their end ---- */

static td_data *unknown(stream *of, bool restarted)
{
    return td_generator(shape(), .next = next, .restart = restarted ? restart : NULL, .user = of);
}

static void expect_same_logs(const td_logs *a, const td_logs *b)
{
    assert_int_equal(a->count, b->count);
    for (int i = 0; i < a->count; i++)
        assert_true(a->entry[i].value == b->entry[i].value);
}

static const int64_t lengths[] = {1, 15, 16, 17, 32, 160, 203};

enum { LENGTHS = sizeof lengths / sizeof *lengths };

/* Evaluated as they come, whether or not the last batch is full, and with stages above. */
static void test_evaluated_to_its_end(void **state)
{
    (void)state;
    for (int i = 0; i < 3 * LENGTHS; i++) {
        int64_t length = lengths[i % LENGTHS];
        int kind = i / LENGTHS;
        stream of = {.end = length};
        td_logs made, in_memory;
        td_context *context = td_context_create(NULL);
        td_model *model = small_model(context, SMALL_CNN, td_adam(),
                                      (td_strategy){.devices = kind == 1 ? test_devices(2) : test_devices(1)});
        td_data *data = unknown(&of, false);
        data = kind == 2 ? td_resize(td_augment(data, .crop = 1), SMALL_HEIGHT, SMALL_WIDTH) : data;
        td_evaluate(model, data, &made, .batch_size = BATCH);
        td_evaluate(model, arrays(length), &in_memory, .batch_size = BATCH);
        assert_string_equal(td_error(context), "");
        expect_same_logs(&made, &in_memory);
        assert_int_equal(of.at, length);
        td_context_free(context);
    }
}

static void *read_npy(const char *name, size_t *floats)
{
    size_t size;
    char *bytes = scratch_read(name, &size);
    assert_true(size >= 128);
    *floats = (size - 128) / sizeof(float);
    memmove(bytes, bytes + 128, size - 128);
    return bytes;
}

static void test_predicted_to_its_end(void **state)
{
    (void)state;
    static float expected[SAMPLES * SMALL_CLASSES], made[SAMPLES * SMALL_CLASSES + 5];
    for (int i = 0; i < LENGTHS; i++) {
        stream of = {.end = lengths[i]};
        size_t floats, wanted = (size_t)lengths[i] * SMALL_CLASSES;
        int64_t samples = 0, again = 0;
        td_context *context = td_context_create(NULL);
        td_model *model = small_model(context, SMALL_CNN, td_adam(), (td_strategy){0});
        td_predict(model, arrays(lengths[i]), expected, wanted, .batch_size = BATCH);
        td_predict(model, unknown(&of, true), made, SAMPLES * SMALL_CLASSES, .batch_size = BATCH, .samples = &samples);
        td_predict(model, unknown(&of, true), .path = scratch_path("p.npy"), .batch_size = BATCH, .samples = &again);
        assert_string_equal(td_error(context), "");
        assert_true(samples == lengths[i] && again == samples);
        assert_memory_equal(made, expected, wanted * sizeof *made);
        float *written = read_npy("p.npy", &floats);
        assert_int_equal(floats, wanted);
        assert_memory_equal(written, expected, wanted * sizeof *written);
        free(written);
        td_data *read = td_open(scratch_path("p.npy"));
        assert_int_equal(td_data_samples(read), lengths[i]);
        td_data_release(read);
        td_context_free(context);
    }
}

/* Of an endless stream, and of data whose end is known. */
static void test_so_many_steps(void **state)
{
    (void)state;
    static float expected[SAMPLES * SMALL_CLASSES], made[SAMPLES * SMALL_CLASSES];
    for (int endless = 0; endless < 2; endless++) {
        stream of = {0}, other = {0};
        int64_t samples = 0;
        td_logs logs, in_memory;
        td_epoch last;
        td_context *context = td_context_create(NULL);
        td_model *model = small_model(context, SMALL_MLP, td_adam(), (td_strategy){0});
        td_data *some = endless ? unknown(&of, true) : arrays(SAMPLES);
        td_evaluate(model, td_data_retain(some), &logs, .batch_size = BATCH, .steps = 3);
        td_evaluate(model, arrays(3 * BATCH), &in_memory, .batch_size = BATCH);
        expect_same_logs(&logs, &in_memory);
        td_predict(model, arrays(3 * BATCH), expected, 3 * BATCH * SMALL_CLASSES, .batch_size = BATCH);
        td_predict(model, td_data_retain(some), .outputs = (float *[]){made}, .batch_size = BATCH, .steps = 3,
                   .samples = &samples);
        assert_int_equal(samples, 3 * BATCH);
        assert_memory_equal(made, expected, 3 * BATCH * SMALL_CLASSES * sizeof *made);
        td_fit(model, unknown(&other, false), .batch_size = BATCH, .steps_per_epoch = 2, .validation = some,
               .validation_steps = 3, .epochs = 2, .last = &last);
        td_evaluate(model, arrays(3 * BATCH), &in_memory, .batch_size = BATCH);
        assert_string_equal(td_error(context), "");
        assert_true(last.logs.entry[2].value == in_memory.entry[0].value);
        td_context_free(context);
    }
}

/* Validation goes to the end of a stream that can be restarted, after each epoch. */
static void test_validated_to_its_end(void **state)
{
    (void)state;
    stream of = {.end = 100};
    td_epoch last;
    td_logs in_memory;
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_MLP, td_adam(), (td_strategy){0});
    td_fit(model, arrays(SAMPLES), .batch_size = BATCH, .validation = unknown(&of, true), .epochs = 3, .last = &last);
    td_evaluate(model, arrays(100), &in_memory, .batch_size = BATCH);
    assert_string_equal(td_error(context), "");
    assert_int_equal(of.restarts, 3);
    assert_true(last.logs.entry[2].value == in_memory.entry[0].value);
    td_context_free(context);
}

/* A list of rows that grew with the stream would show. */
static void test_a_long_stream(void **state)
{
    (void)state;
    stream of = {.end = 100000};
    int64_t samples;
    static float made[100000];
    td_context *context = td_context_create(NULL);
    td_tensor *input = td_input(context, shape());
    td_model *model = td_model_create(input, td_dense(td_flatten(input), 1), .seed = 3);
    assert_int_equal(td_compile(model, .strategy = td_mirrored(test_devices(1))), TD_OK);
    assert_int_equal(td_predict(model, unknown(&of, false), made, 100000, .batch_size = 37, .samples = &samples),
                     TD_OK);
    assert_int_equal(samples, 100000);
    for (int i = SAMPLES; i < 100000; i++)
        assert_true(made[i] == made[i - SAMPLES]);
    td_context_free(context);
}

/* ---- what goes wrong ---- */

static void expect_failure(td_data *data, int64_t steps, int epochs, td_status status, const char *word)
{
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_MLP, td_adam(), (td_strategy){0});
    assert_int_equal(td_fit(model, data, .batch_size = BATCH, .steps_per_epoch = steps, .epochs = epochs), status);
    if (!strstr(td_error(context), word))
        fail_msg("\"%s\" lacks \"%s\"", td_error(context), word);
    td_context_free(context);
}

static void test_failures(void **state)
{
    (void)state;
    stream of = {.end = SAMPLES, .fails = TD_IO};
    expect_failure(td_generator(shape(), .next = next, .user = &of), 10, 1, TD_IO, "sample 50: the generator's");
    expect_failure(td_generator(shape(), .read = any, .samples = SAMPLES, .user = &of), 0, 1, TD_IO, "sample 50");
    of = (stream){.end = 100};
    expect_failure(td_generator(shape(), .next = next, .user = &of), 5, 2, TD_INVALID_ARGUMENT,
                   "ended after 100 samples");
    of = (stream){.end = 100};
    expect_failure(td_generator(shape(), .next = next, .user = &of), 0, 1, TD_INVALID_ARGUMENT, "steps_per_epoch");
    of = (stream){.end = 100};
    expect_failure(td_generator(shape(), .next = next, .restart = restart, .samples = 120, .user = &of), 0, 1,
                   TD_INVALID_ARGUMENT, "ended after 100 samples");
    expect_failure(td_generator(shape(), .user = &of), 1, 1, TD_INVALID_ARGUMENT, "one of .read and .next");
    expect_failure(td_generator(shape(), .read = any, .user = &of), 1, 1, TD_INVALID_ARGUMENT, "samples is 0");
    expect_failure(td_generator(TD_SHAPE(0), .next = next, .user = &of), 1, 1, TD_INVALID_ARGUMENT,
                   "the shape, the dtype or the scale of x0");
    expect_failure(td_generator(shape(), .next = next, .targets = TD_NO, .user = &of), 1, 1, TD_INVALID_ARGUMENT,
                   "holds no targets");
    td_context *context = td_context_create(NULL);
    td_data *data = td_generator(shape(), .next = next, .samples = 9, .user = &of);
    float one[SMALL_SAMPLE];
    assert_int_equal(td_data_read(context, data, NULL, 1, one, NULL), TD_UNSUPPORTED);
    td_data_release(data);
    td_context_free(context);
}

/* Two files of unknown length in one. */
static void test_several_are_predicted_to_the_end(void **state)
{
    (void)state;
    float first[SAMPLES], second[SAMPLES * SIDE];
    several of = {0}, again = {0};
    td_context *context = td_context_create(NULL);
    td_model *model = model_of_several(context);
    const char *path = scratch_path("several-out.npz");
    td_data *stream_of = td_generator(shape(), .more_x = TD_COLUMNS({.shape = TD_SHAPE(1), .dtype = TD_INT32}),
                                      .targets = TD_NO, .next = next_of_several, .user = &again);
    td_predict(model, data_of_several(&of, false, TD_DEFAULT), .outputs = (float *[]){first, second});
    td_predict(model, stream_of, .path = path, .batch_size = BATCH);
    assert_string_equal(td_error(context), "");
    tdi_zip *zip;
    tdi_error error = {0};
    assert_int_equal(tdi_zip_open(path, &zip, &error), TD_OK);
    for (int o = 0; o < 2; o++) {
        tdi_npy npy;
        tdi_store *store;
        assert_int_equal(tdi_npz_open(zip, o ? "y1" : "y0", &npy, &store, &error), TD_OK);
        assert_true(npy.shape.rank == 2 && npy.shape.dim[0] == SAMPLES && npy.shape.dim[1] == (o ? SIDE : 1));
        assert_memory_equal((char *)tdi_store_bytes(store) + npy.offset, o ? second : first,
                            o ? sizeof second : sizeof first);
        tdi_store_free(store);
    }
    tdi_zip_close(zip);
    td_context_free(context);
}

static void test_columns_that_cannot_be(void **state)
{
    (void)state;
    several of = {0};
    const td_column many = {.shape = TD_SHAPE(1)}, end = {.shape = {.rank = -1}};
    expect_failure(td_generator(shape(), .read = any_of_several, .samples = 1, .user = &of,
                                .more_x = TD_COLUMNS({.shape = TD_SHAPE(2)}, {.shape = TD_SHAPE(3, -1)})),
                   0, 1, TD_INVALID_ARGUMENT, "the shape, the dtype or the scale of x2 is none");
    expect_failure(td_generator(shape(), .read = any_of_several, .samples = 1, .user = &of,
                                .more_y = TD_COLUMNS({.shape = TD_SHAPE(2), .scale = NAN})),
                   0, 1, TD_INVALID_ARGUMENT, "scale of y1");
    expect_failure(td_generator(shape(), .read = any_of_several, .samples = 1, .user = &of,
                                .more_x = (td_column[]){many, many, many, many, many, many, many, end}),
                   0, 1, TD_UNSUPPORTED, "at most 8 inputs, targets and weights");
    expect_failure(td_generator(shape(), .read = any_of_several, .samples = 1, .user = &of, .targets = TD_NO,
                                .more_y = TD_COLUMNS({.shape = TD_SHAPE(2)})),
                   0, 1, TD_INVALID_ARGUMENT, ".targets is TD_NO");
    expect_failure(data_of_several(&of, false, TD_DEFAULT), 0, 1, TD_INVALID_ARGUMENT, "has 2 input arrays");
}

static void expect_refused(td_status (*use)(td_model *, td_data *), td_data *data, const char *word)
{
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_MLP, td_adam(), (td_strategy){0});
    assert_int_equal(use(model, data), TD_INVALID_ARGUMENT);
    if (!strstr(td_error(context), word))
        fail_msg("\"%s\" lacks \"%s\"", td_error(context), word);
    td_context_free(context);
}

static float few[2 * SMALL_CLASSES];

static td_status predict_few(td_model *model, td_data *data)
{
    return td_predict(model, data, few, 2 * SMALL_CLASSES, .batch_size = 2);
}

static td_status predict_into_outputs(td_model *model, td_data *data)
{
    return td_predict(model, data, .outputs = (float *[]){few});
}

static td_status evaluate_steps(td_model *model, td_data *data)
{
    return td_evaluate(model, data, NULL, .batch_size = BATCH, .steps = 14);
}

static td_status evaluate_less_than_none(td_model *model, td_data *data)
{
    return td_evaluate(model, data, NULL, .steps = -1);
}

static td_status fit_long_epochs(td_model *model, td_data *data)
{
    return td_fit(model, data, .batch_size = BATCH, .steps_per_epoch = 14);
}

static td_status fit_with_shard(td_model *model, td_data *data)
{
    return td_fit(model, data, .batch_size = BATCH, .steps_per_epoch = 14, .validation_split = 0.5);
}

static td_status validate_twice(td_model *model, td_data *data)
{
    return td_fit(model, arrays(SAMPLES), .validation = data, .epochs = 2);
}

static td_status validate_nothing(td_model *model, td_data *data)
{
    return td_fit(model, data, .validation_steps = 2);
}

/* The advice is for the call that was made. */
static void test_what_is_refused_says_what_helps(void **state)
{
    (void)state;
    stream of = {.end = SAMPLES};
    expect_refused(predict_few, unknown(&of, false), "more than the 8 floats that the output has room for");
    expect_refused(predict_into_outputs, unknown(&of, false), "give steps, a path, or an output with its capacity");
    of.at = 0;
    expect_refused(evaluate_steps, unknown(&of, true), "more were expected: give fewer steps");
    of.at = 0;
    expect_refused(evaluate_steps, unknown(&of, false), "more were expected: give .restart, or fewer steps");
    expect_refused(evaluate_steps, arrays(SAMPLES),
                   "steps: 14, but the 203 samples of td_arrays make 13 batches of 16");
    expect_refused(evaluate_less_than_none, arrays(SAMPLES), "steps: -1");
    expect_refused(fit_long_epochs, unknown(&of, true), "more were expected: give a smaller steps_per_epoch");
    expect_refused(fit_with_shard, unknown(&of, false), "cannot be restarted to count them: give .restart, .samples");
    expect_refused(validate_nothing, arrays(SAMPLES), "validation_steps: there is no validation data");
    of.at = 0;
    expect_refused(validate_twice, unknown(&of, false), "epoch 2: td_generator: the stream ended before its first");
    of.at = 0;
    expect_refused(evaluate_steps, td_generator(shape(), .next = next, .restart = restart, .samples = 220, .user = &of),
                   ".samples is to be the number that it has");
}

int main(void)
{
    small_data(SAMPLES, x, y);
    for (int i = 0; i < SAMPLES; i++)
        words[i] = (float)(i % WORDS);
    for (int i = 0; i < SAMPLES * SIDE; i++)
        sides[i] = (float)(i % 11) / 10;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_sample),
        cmocka_unit_test(test_a_stream_of_known_length),
        cmocka_unit_test(test_a_stream_is_counted),
        cmocka_unit_test(test_an_endless_stream_goes_on),
        cmocka_unit_test(test_stages_over_a_stream),
        cmocka_unit_test(test_an_uneven_batch_is_left_out),
        cmocka_unit_test(test_a_buffer_s_order),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_several_inputs_and_targets),
        cmocka_unit_test(test_several_are_predicted_from),
        cmocka_unit_test(test_several_are_predicted_to_the_end),
        cmocka_unit_test(test_columns_that_cannot_be),
        cmocka_unit_test(test_evaluated_to_its_end),
        cmocka_unit_test(test_predicted_to_its_end),
        cmocka_unit_test(test_so_many_steps),
        cmocka_unit_test(test_validated_to_its_end),
        cmocka_unit_test(test_a_long_stream),
        cmocka_unit_test(test_what_is_refused_says_what_helps),
    };
    return cmocka_run_group_tests(tests, scratch_create, scratch_remove);
}
