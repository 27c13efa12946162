/* What records hold: labels that are texts, SequenceExamples, and records that differ, in whatever order they come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <files/example.pb-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/tandem.h>

#include "base/context.h"
#include "data/folder.h"
#include "files/image_codec.h"
#include "files/tfrecord_file.h"

/* ---- writing records ---- */

static void *made(size_t size)
{
    void *memory = calloc(1, size);
    assert_non_null(memory);
    return memory;
}

static Tandem__Example *example(void)
{
    Tandem__Example *record = made(sizeof *record);
    tandem__example__init(record);
    record->features = made(sizeof *record->features);
    tandem__features__init(record->features);
    return record;
}

static Tandem__Feature *floats(size_t count, const float *values)
{
    Tandem__Feature *feature = made(sizeof *feature);
    tandem__feature__init(feature);
    feature->kind_case = TANDEM__FEATURE__KIND_FLOAT_LIST;
    feature->float_list = made(sizeof *feature->float_list);
    tandem__float_list__init(feature->float_list);
    feature->float_list->n_value = count;
    feature->float_list->value = made(count * sizeof *values);
    memcpy(feature->float_list->value, values, count * sizeof *values);
    return feature;
}

static Tandem__Feature *integer(int64_t value)
{
    Tandem__Feature *feature = made(sizeof *feature);
    tandem__feature__init(feature);
    feature->kind_case = TANDEM__FEATURE__KIND_INT64_LIST;
    feature->int64_list = made(sizeof *feature->int64_list);
    tandem__int64_list__init(feature->int64_list);
    feature->int64_list->n_value = 1;
    feature->int64_list->value = made(sizeof value);
    feature->int64_list->value[0] = value;
    return feature;
}

static Tandem__Feature *bytes(const void *value, size_t size)
{
    Tandem__Feature *feature = made(sizeof *feature);
    tandem__feature__init(feature);
    feature->kind_case = TANDEM__FEATURE__KIND_BYTES_LIST;
    feature->bytes_list = made(sizeof *feature->bytes_list);
    tandem__bytes_list__init(feature->bytes_list);
    feature->bytes_list->n_value = 1;
    feature->bytes_list->value = made(sizeof *feature->bytes_list->value);
    feature->bytes_list->value[0] = (ProtobufCBinaryData){size, made(size + 1)};
    memcpy(feature->bytes_list->value[0].data, value, size);
    return feature;
}

static Tandem__Feature *text(const char *value)
{
    return bytes(value, strlen(value));
}

static Tandem__Example *with(Tandem__Example *record, const char *key, Tandem__Feature *feature)
{
    Tandem__Features *all = record->features;
    Tandem__FeatureEntry *entry = made(sizeof *entry);
    tandem__feature_entry__init(entry);
    entry->key = strdup(key);
    entry->value = feature;
    all->feature = realloc(all->feature, (all->n_feature + 1) * sizeof(void *));
    all->feature[all->n_feature++] = entry;
    return record;
}

/* Adds a feature list of `steps` steps; the caller fills it. */
static Tandem__Feature **with_list(Tandem__Example *record, const char *key, size_t steps)
{
    Tandem__FeatureListEntry *entry = made(sizeof *entry);
    tandem__feature_list_entry__init(entry);
    entry->key = strdup(key);
    entry->value = made(sizeof *entry->value);
    tandem__feature_list__init(entry->value);
    entry->value->n_feature = steps;
    entry->value->feature = made((steps + 1) * sizeof(void *));
    record->feature_lists = made(sizeof *record->feature_lists);
    tandem__feature_lists__init(record->feature_lists);
    record->feature_lists->n_feature_list = 1;
    record->feature_lists->feature_list = made(sizeof(void *));
    record->feature_lists->feature_list[0] = entry;
    return entry->value->feature;
}

static void put(FILE *file, Tandem__Example *record)
{
    uint64_t size = tandem__example__get_packed_size(record);
    uint8_t *packed = made(size + 1);
    tandem__example__pack(record, packed);
    uint32_t crc = tdi_masked_crc(&size, sizeof size);
    fwrite(&size, sizeof size, 1, file);
    fwrite(&crc, sizeof crc, 1, file);
    fwrite(packed, 1, size, file);
    crc = tdi_masked_crc(packed, size);
    fwrite(&crc, sizeof crc, 1, file);
    free(packed);
    tandem__example__free_unpacked(record, NULL);
}

static FILE *begin(const folder *in, const char *name)
{
    FILE *file = fopen(folder_path(in, name), "wb");
    assert_non_null(file);
    return file;
}

/* A record of x, `count` numbers from `first` on, and of y. */
static Tandem__Example *sample(float first, size_t count, Tandem__Feature *y)
{
    float values[8];
    for (size_t i = 0; i < count; i++)
        values[i] = first + (float)i;
    Tandem__Example *record = with(example(), "x", floats(count, values));
    return y ? with(record, "y", y) : record;
}

static const char *put_labels(const folder *in, const char *name, const char *const *labels)
{
    FILE *file = begin(in, name);
    for (int i = 0; labels[i]; i++)
        put(file, sample((float)i, 2, text(labels[i])));
    fclose(file);
    return folder_path(in, name);
}
#define PUT_LABELS(in, name, ...) put_labels(in, name, (const char *const[]){__VA_ARGS__, NULL})

/* ---- what is expected ---- */

#define XY .features = "x=x,y=y"

static void expect_error(td_data *data, const char *first, const char *second)
{
    const char *error = td_data_error(data);
    if (!error || !strstr(error, first) || !strstr(error, second))
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", error ? error : "no error", first, second);
    td_data_release(data);
}

static void expect_column(td_data *data, bool y, int64_t samples, const float *expected, int count)
{
    float x[256], seen[256];
    td_context *context = td_context_create(NULL);
    if (td_data_error(data))
        fail_msg("%s", td_data_error(data));
    assert_int_equal(td_data_samples(data), samples);
    if (td_data_read(context, data, NULL, samples, x, y ? seen : NULL) != TD_OK)
        fail_msg("%s", td_error(context));
    for (int i = 0; i < count; i++)
        if ((y ? seen : x)[i] != expected[i])
            fail_msg("number %d is %g, not %g", i, (double)(y ? seen : x)[i], (double)expected[i]);
    td_context_free(context);
}
#define EXPECT_X(data, samples, ...)                                                                                   \
    expect_column(data, false, samples, (float[]){__VA_ARGS__}, sizeof((float[]){__VA_ARGS__}) / sizeof(float))
#define EXPECT_Y(data, samples, ...)                                                                                   \
    expect_column(data, true, samples, (float[]){__VA_ARGS__}, sizeof((float[]){__VA_ARGS__}) / sizeof(float))

static void expect_class(const td_data *data, int number, const char *name)
{
    char seen[32];
    td_recipe_class(td_data_recipe(data), number, seen, sizeof seen);
    assert_string_equal(seen, name);
}

static void expect_skipped(const td_data *data, int64_t count, const char *words)
{
    const char *reason;
    assert_int_equal(td_data_skipped(data, &reason), count);
    if (!strstr(reason, words))
        fail_msg("\"%s\" lacks \"%s\"", reason, words);
}

/* ---- labels that are texts ---- */

static void test_words_are_classes(void **state)
{
    const folder *in = *state;
    td_data *train = td_open(PUT_LABELS(in, "t.tfrecord", "dog", "cat", "dog", "horse"), XY);
    EXPECT_Y(train, 4, 1, 0, 1, 2);
    assert_int_equal(td_recipe_class(td_data_recipe(train), 0, NULL, 0), 3);
    expect_class(train, 2, "horse");
    const char *recipe = td_data_recipe(train);
    td_data *other = td_open(PUT_LABELS(in, "o.tfrecord", "horse", "dog"), .recipe = recipe); /* its features too */
    EXPECT_Y(other, 2, 2, 1);
    expect_class(other, 0, "cat");
    td_data_release(other);
    const char *path = PUT_LABELS(in, "u.tfrecord", "horse", "eel", "dog");
    expect_error(td_open(path, XY, .recipe = recipe), "u.tfrecord: record 1 at offset 53: \"y\": the label \"eel\"",
                 "none of those that the model knows: cat, dog, horse");
    other = td_open(path, XY, .recipe = recipe, .skip_errors = TD_YES);
    EXPECT_Y(other, 2, 2, 1);
    expect_skipped(other, 1, "\"eel\"");
    td_data_release(other);
    td_data_release(train);
}

static void test_digits_are_numbers(void **state)
{
    const folder *in = *state;
    td_data *train = td_open(PUT_LABELS(in, "t.tfrecord", "1", "10", "2", "0"), XY);
    EXPECT_Y(train, 4, 1, 10, 2, 0);
    assert_int_equal(td_recipe_class(td_data_recipe(train), 0, NULL, 0), 0);
    expect_error(td_open(PUT_LABELS(in, "w.tfrecord", "1", "two"), XY, .recipe = td_data_recipe(train)),
                 "the label \"two\"", "no number");
    td_data_release(train);
    train = td_open(PUT_LABELS(in, "f.tfrecord", "-1.5", "2e1", "007"), XY);
    EXPECT_Y(train, 3, -1.5f, 20, 7);
    td_data_release(train);
    train = td_open(PUT_LABELS(in, "m.tfrecord", "1", "10", "one"), XY); /* not all: they are names */
    EXPECT_Y(train, 3, 0, 1, 2);
    td_data_release(train);
}

/* The only word stands behind many digits. */
static void test_all_labels_are_looked_at(void **state)
{
    const folder *in = *state;
    const char *labels[302];
    for (int i = 0; i < 300; i++)
        labels[i] = i % 2 ? "1" : "0";
    labels[299] = "none";
    labels[300] = NULL;
    td_data *data = td_open(put_labels(in, "t.tfrecord", labels), XY);
    assert_null(td_data_error(data));
    assert_int_equal(td_recipe_class(td_data_recipe(data), 0, NULL, 0), 3);
    expect_class(data, 2, "none");
    td_data_release(data);
}

static void test_texts_that_are_no_labels(void **state)
{
    const folder *in = *state;
    expect_error(td_open(PUT_LABELS(in, "l.tfrecord", "caf\xe9", "cafe"), XY), "record 0", "no UTF-8 text");
    expect_error(td_open(PUT_LABELS(in, "x.tfrecord", "cat", "dog"), .features = "x=y"), "\"y\" holds text",
                 "write numbers that stand for it");
    expect_error(td_open(PUT_LABELS(in, "e.tfrecord", "cat", ""), XY), "record 1", "\"y\" is empty");
    FILE *file = begin(in, "b.tfrecord");
    for (int i = 0; i < 3; i++)
        put(file, sample(0, 2, bytes((char[]){(char)i}, 1)));
    fclose(file);
    td_data *data = td_open(folder_path(in, "b.tfrecord"), XY);
    EXPECT_Y(data, 3, 0, 1, 2);
    td_data_release(data);
    td_data *words = td_open(PUT_LABELS(in, "t.tfrecord", "cat", "dog"), XY);
    file = begin(in, "n.tfrecord");
    put(file, sample(0, 2, integer(1)));
    fclose(file);
    expect_error(td_open(folder_path(in, "n.tfrecord"), .recipe = td_data_recipe(words)), "\"y\" holds no text",
                 "trained on");
    td_data_release(words);
}

/* ---- SequenceExamples ---- */

/* x: [steps, width], as feature lists; y: a number of the context. */
static Tandem__Example *sequence(float first, size_t steps, size_t width)
{
    Tandem__Example *record = with(example(), "y", floats(1, &first));
    Tandem__Feature **list = with_list(record, "x", steps);
    for (size_t i = 0; i < steps; i++) {
        float values[] = {first + (float)i, 10 * (float)i, 0};
        list[i] = floats(width, values);
    }
    return record;
}

static void test_feature_lists_are_steps(void **state)
{
    const folder *in = *state;
    FILE *file = begin(in, "s.tfrecord");
    put(file, sequence(1, 3, 2));
    put(file, sequence(5, 3, 2));
    fclose(file);
    td_shape shape;
    td_data *data = td_open(folder_path(in, "s.tfrecord"), XY);
    EXPECT_X(data, 2, 1, 0, 2, 10, 3, 20, 5, 0, 6, 10, 7, 20);
    EXPECT_Y(data, 2, 1, 5);
    assert_int_equal(td_data_x_shape(data, &shape), TD_OK);
    assert_true(shape.rank == 2 && shape.dim[0] == 3 && shape.dim[1] == 2);
    td_data_release(data);
    expect_error(td_open(folder_path(in, "s.tfrecord"), .features = "x=z"), "no feature \"z\"", "y; feature lists x");
}

static void test_sequences_of_other_lengths(void **state)
{
    const folder *in = *state;
    FILE *file = begin(in, "s.tfrecord");
    put(file, sequence(1, 2, 1));
    put(file, sequence(5, 3, 1));
    put(file, sequence(7, 3, 1));
    fclose(file);
    const char *path = folder_path(in, "s.tfrecord");
    expect_error(td_open(path, XY), "record 0 at offset 0: \"x\" holds 2 steps of 1 floats, where 3 steps",
                 "pad them when they are written");
    td_data *data = td_open(path, XY, .skip_errors = TD_YES);
    EXPECT_X(data, 2, 5, 6, 7, 7, 8, 9);
    td_data_release(data);
    const td_shape two = TD_SHAPE(2, 1); /* of the model, which decides */
    data = td_open(path, XY, .skip_errors = TD_YES, .input_shapes = &two, .inputs = 1);
    EXPECT_X(data, 1, 1, 2);
    expect_skipped(data, 2, "record 1");
    td_data_release(data);
}

static void test_lists_that_cannot_be_read(void **state)
{
    const folder *in = *state;
    Tandem__Example *record = sequence(1, 2, 2);
    tandem__feature__free_unpacked(record->feature_lists->feature_list[0]->value->feature[1], NULL);
    record->feature_lists->feature_list[0]->value->feature[1] = integer(3);
    FILE *file = begin(in, "s.tfrecord");
    put(file, record);
    fclose(file);
    expect_error(td_open(folder_path(in, "s.tfrecord"), XY), "step 1 of the feature list \"x\"", "same type");
    record = example();
    with_list(record, "x", 1)[0] = text("word");
    file = begin(in, "t.tfrecord");
    put(file, record);
    fclose(file);
    expect_error(td_open(folder_path(in, "t.tfrecord"), .features = "x=x"), "feature list \"x\" holds texts",
                 "write numbers");
    file = begin(in, "e.tfrecord");
    record = example();
    with_list(record, "x", 0);
    put(file, record);
    fclose(file);
    expect_error(td_open(folder_path(in, "e.tfrecord"), .features = "x=x"), "feature list \"x\" is empty", "record 0");
}

/* ---- records that differ ---- */

/* Records 0, 1, ... of which number `odd` is another. */
static const char *put_odd(const folder *in, int records, int odd, Tandem__Example *other)
{
    FILE *file = begin(in, "odd.tfrecord");
    for (int i = 0; i < records; i++)
        put(file, i == odd ? other : sample((float)i, 2, integer(i)));
    fclose(file);
    return folder_path(in, "odd.tfrecord");
}

static Tandem__Example *odd_one(int kind)
{
    switch (kind) {
    case 0:
        return sample(0, 2, NULL);
    case 1:
        return sample(0, 3, integer(1));
    case 2:
        return with(with(example(), "x", integer(4)), "y", integer(1));
    case 3:
        return with(with(example(), "x", text("ab")), "y", integer(1));
    default:
        return sample(0, 2, text("cat"));
    }
}

static void test_an_odd_record_is_named_wherever_it_is(void **state)
{
    static const char *const words[] = {"no feature \"y\" but: x", "\"x\" holds 3 floats, where 2 floats",
                                        "\"x\" holds 1 integers, where 2 floats", "\"x\" holds 2 bytes, where 2 floats",
                                        "\"y\" holds 3 bytes, where 1 integers"};
    char where[32];
    for (int kind = 0; kind < 5; kind++)
        for (int odd = 0; odd < 5; odd += 2) {
            snprintf(where, sizeof where, "record %d at", odd);
            expect_error(td_open(put_odd(*state, 5, odd, odd_one(kind)), XY), where, words[kind]);
            td_data *data = td_open(put_odd(*state, 5, odd, odd_one(kind)), XY, .skip_errors = TD_YES);
            EXPECT_Y(data, 4, odd == 0 ? 1 : 0, odd == 4 ? 1 : odd == 2 ? 1 : 2);
            expect_skipped(data, 1, words[kind]);
            td_data_release(data);
        }
}

/* Behind those that are looked at when the file is opened. */
static void test_the_thousandth_record(void **state)
{
    float x[2];
    int64_t row = 998;
    td_context *context = td_context_create(NULL);
    td_data *data = td_open(put_odd(*state, 1000, 998, odd_one(1)), XY);
    assert_null(td_data_error(data));
    assert_int_equal(td_data_read(context, data, &row, 1, x, NULL), TD_BAD_FILE);
    if (!strstr(td_error(context), "record 998 at offset") || !strstr(td_error(context), "holds 3 floats"))
        fail_msg("%s", td_error(context));
    td_data_release(data);
    td_context_free(context);
}

static void test_labels_are_not_needed_to_predict(void **state)
{
    td_data *data = td_open(put_odd(*state, 1, 0, odd_one(0)), XY, .targets = TD_NO);
    EXPECT_X(data, 1, 0, 1);
    td_data_release(data);
}

static Tandem__Example *image(int64_t channels, uint8_t value)
{
    void *png;
    size_t size;
    uint8_t pixels[4 * 3];
    memset(pixels, value, sizeof pixels);
    assert_int_equal(tdi_png_encode(&(tdi_image){2, 2, channels}, pixels, &png, &size, NULL), TD_OK);
    Tandem__Example *record = with(example(), "x", bytes(png, size));
    free(png);
    return record;
}

/* Grey and coloured images: what the model takes. */
static void test_channels_are_the_models(void **state)
{
    const folder *in = *state;
    FILE *file = begin(in, "i.tfrecord");
    put(file, image(1, 51));
    put(file, image(3, 102));
    fclose(file);
    td_shape shape, shapes[] = {TD_SHAPE(2, 2, 3), TD_SHAPE(2, 2, 1)};
    for (int i = 0; i < 2; i++) {
        td_data *data = td_open(folder_path(in, "i.tfrecord"), .features = "x=x", .scale = 1,
                                .input_shapes = &shapes[i], .inputs = 1);
        int64_t size = shapes[i].dim[2] * 4;
        float seen[24];
        td_context *context = td_context_create(NULL);
        assert_int_equal(td_data_x_shape(data, &shape), TD_OK);
        assert_int_equal(shape.dim[2], shapes[i].dim[2]);
        assert_int_equal(td_data_read(context, data, NULL, 2, seen, NULL), TD_OK);
        assert_true(seen[0] == 51 && seen[size - 1] == 51 && seen[size] == 102 && seen[2 * size - 1] == 102);
        td_context_free(context);
        td_data_release(data);
    }
}

/* ---- names of files ---- */

static void test_files_are_known_by_their_first_bytes(void **state)
{
    const folder *in = *state;
    static const char *const names[] = {"train-00000-of-00001", "a.TFRECORD", "a.tfrec", "records"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        td_data *data = td_open(PUT_LABELS(in, names[i], "1", "2"), XY);
        EXPECT_Y(data, 2, 1, 2);
        td_data_release(data);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_make, folder_drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_words_are_classes),         TEST(test_digits_are_numbers),
        TEST(test_all_labels_are_looked_at),  TEST(test_texts_that_are_no_labels),
        TEST(test_feature_lists_are_steps),   TEST(test_sequences_of_other_lengths),
        TEST(test_lists_that_cannot_be_read), TEST(test_an_odd_record_is_named_wherever_it_is),
        TEST(test_the_thousandth_record),     TEST(test_labels_are_not_needed_to_predict),
        TEST(test_channels_are_the_models),   TEST(test_files_are_known_by_their_first_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
