/* TFRecord files: images, numbers, gzip, and what is damaged. tests/data/golden.py made the files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/tandem.h>

#include "data/folder.h"
#include "files/tfrecord_file.h"

#define SAMPLES 4
#define PIXELS  (10 * 12 * 3)

static const char *golden(const char *name)
{
    static char path[1024];
    const char *here = __FILE__;
    snprintf(path, sizeof path, "%.*sgolden/%s", (int)(strrchr(here, '/') + 1 - here), here, name);
    return path;
}

static unsigned char *read_golden(const char *name, size_t *size)
{
    FILE *file = fopen(golden(name), "rb");
    assert_non_null(file);
    unsigned char *bytes = malloc(1 << 16);
    *size = fread(bytes, 1, 1 << 16, file);
    fclose(file);
    return bytes;
}

static void fine(const td_data *data)
{
    if (td_data_error(data))
        fail_msg("%s", td_data_error(data));
}

static void expect_words(const char *sentence, const char *const *words)
{
    assert_non_null(sentence);
    for (; *words; words++)
        if (!strstr(sentence, *words))
            fail_msg("\"%s\" lacks \"%s\"", sentence, *words);
}
#define EXPECT_WORDS(sentence, ...) expect_words(sentence, (const char *const[]){__VA_ARGS__, NULL})

static void test_the_checksum_is_crc32c(void **state)
{
    (void)state;
    uint32_t crc = 0xe3069283u; /* of "123456789": RFC 3720's CRC-32C */
    assert_int_equal(tdi_masked_crc("123456789", 9), (crc >> 15 | crc << 17) + 0xa282ead8u);
}

static void expect_images(td_data *data)
{
    size_t size;
    unsigned char *pixels = read_golden("pixels.bin", &size);
    float x[SAMPLES * PIXELS], y[SAMPLES];
    td_shape shape;
    td_context *context = td_context_create(NULL);
    fine(data);
    assert_int_equal(td_data_samples(data), SAMPLES);
    assert_int_equal(td_data_x_shape(data, &shape), TD_OK);
    assert_true(shape.rank == 3 && shape.dim[0] == 10 && shape.dim[1] == 12 && shape.dim[2] == 3);
    assert_int_equal(td_data_read(context, data, NULL, SAMPLES, x, y), TD_OK);
    for (int i = 0; i < SAMPLES; i++)
        assert_true(y[i] == (float)i);
    for (int i = 0; i < SAMPLES * PIXELS; i++)
        assert_true(x[i] == (float)pixels[i] / 255);
    free(pixels);
    td_data_release(data);
    td_context_free(context);
}

static void test_images_are_as_pillow_sees_them(void **state)
{
    (void)state;
    expect_images(td_open(golden("images.tfrecord")));
    expect_images(td_open(golden("images.tfrecord.gz")));
}

static void test_patterns_and_lists_name_several_files(void **state)
{
    const folder *in = *state;
    char path[2048];
    size_t size;
    unsigned char *bytes = read_golden("images.tfrecord", &size);
    folder_write(in, "a-00000-of-00002.tfrecord", bytes, size);
    folder_write(in, "a-00001-of-00002.tfrecord", bytes, size);
    snprintf(path, sizeof path, "%s/a-*.tfrecord,%s", in->path, golden("images.tfrecord.gz"));
    td_data *data = td_open(path);
    fine(data);
    assert_int_equal(td_data_samples(data), 3 * SAMPLES);
    td_data_release(data);
    free(bytes);
}

static void test_numbers(void **state)
{
    (void)state;
    float x[9], y[6];
    td_context *context = td_context_create(NULL);
    td_data *data = td_open(golden("numbers.tfrecord"), .features = "x=a,y=b");
    fine(data);
    assert_int_equal(td_data_read(context, data, NULL, 3, x, y), TD_OK);
    for (int i = 0; i < 3; i++) {
        assert_true(x[3 * i] == (float)i + 0.5f && x[3 * i + 1] == (float)-i && x[3 * i + 2] == 1e-3f);
        assert_true(y[2 * i] == (float)(-3 * i) && y[2 * i + 1] == 7);
    }
    td_data_release(data);
    td_context_free(context);
}

enum { RAW = 12, RAW_EXAMPLE = RAW + 13, RAW_RECORD = RAW_EXAMPLE + 16 };

/* A record whose feature "x" holds bytes, by hand. */
static void put_raw(unsigned char *to, const unsigned char pixels[RAW])
{
    const unsigned char head[] = {0x0A, RAW + 11, 0x0A, RAW + 9, 0x0A, 1, 'x', 0x12, RAW + 4, 0x0A, RAW + 2, 0x0A, RAW};
    const uint64_t size = RAW_EXAMPLE;
    uint32_t crc = tdi_masked_crc(&size, sizeof size);
    memcpy(to, &size, 8);
    memcpy(to + 8, &crc, 4);
    memcpy(to + 12, head, sizeof head);
    memcpy(to + 12 + sizeof head, pixels, RAW);
    crc = tdi_masked_crc(to + 12, RAW_EXAMPLE);
    memcpy(to + 12 + RAW_EXAMPLE, &crc, 4);
}

/* Raw pixels that happen to begin as a JPEG file does. */
static void test_bytes_stay_bytes(void **state)
{
    const folder *in = *state;
    const unsigned char pixels[2][RAW] = {{1, 2, 3}, {0xFF, 0xD8, 0xFF}};
    unsigned char file[2 * RAW_RECORD];
    float x[2 * RAW];
    put_raw(file, pixels[0]);
    put_raw(file + RAW_RECORD, pixels[1]);
    folder_write(in, "raw.tfrecord", file, sizeof file);
    td_context *context = td_context_create(NULL);
    td_data *data = td_open(folder_path(in, "raw.tfrecord"), .features = "x=x");
    fine(data);
    if (td_data_read(context, data, NULL, 2, x, NULL) != TD_OK)
        fail_msg("%s", td_error(context));
    for (int i = 0; i < 2 * RAW; i++)
        assert_true(x[i] == (float)pixels[i / RAW][i % RAW]);
    td_data_release(data);
    td_context_free(context);
}

/* ---- names of classes ---- */

static void expect_names(td_data *data, int count, const char *const *names)
{
    char seen[16];
    fine(data);
    assert_int_equal(td_recipe_class(td_data_recipe(data), 0, NULL, 0), count);
    for (int i = 0; i < count; i++) {
        td_recipe_class(td_data_recipe(data), i, seen, sizeof seen);
        assert_string_equal(seen, names[i]);
    }
    td_data_release(data);
}

static void test_texts_beside_labels_name_the_classes(void **state)
{
    (void)state;
    static const char *const names[] = {"cat", "dog", "2", "cow"};
    expect_names(td_open(golden("named.tfrecord")), 4, names);
    expect_names(td_open(golden("named.tfrecord"), .features = "x=image/encoded"), 0, NULL);
    expect_names(td_open(golden("named.tfrecord"), .features = "x=image/class/label,y=image/encoded"), 0, NULL);
    expect_names(td_open(golden("captions.tfrecord")), 0, NULL);
    expect_names(td_open(golden("images.tfrecord")), 0, NULL);
}

/* What the model was trained on says how a part that lacks a class calls it; other data has names of its own. */
static void test_names_are_the_models(void **state)
{
    (void)state;
    static const char *const names[] = {"cat", "dog", "2", "cow"}, *const more[] = {"cat", "dog", "owl", "cow", "elk"};
    static const char known[] =
        "{\"format\": \"tfrecord\", \"classes\": [\"cat\", \"dog\", \"owl\", \"cow\", \"elk\"]}";
    static const char other[] = "{\"format\": \"tfrecord\", \"classes\": [\"car\", \"bus\"]}";
    expect_names(td_open(golden("named.tfrecord"), .recipe = known), 5, more);
    expect_names(td_open(golden("named.tfrecord"), .recipe = other), 4, names);
    expect_names(td_open(golden("named.tfrecord"), .recipe = "{\"format\": \"tfrecord\", \"classes\": 7}"), 4, names);
    expect_names(td_open(golden("named.tfrecord"), .recipe = "{\"format\": \"images\", \"classes\": [\"a\"]}"), 4,
                 names);
}

static void expect_refused(const char *features, const char *word, const char *another)
{
    td_data *data = td_open(golden("images.tfrecord"), .features = features);
    EXPECT_WORDS(td_data_error(data), word, another);
    td_data_release(data);
}

static void test_features_that_do_not_fit(void **state)
{
    (void)state;
    expect_refused("x=picture", "no feature \"picture\"", "image/encoded");
    expect_refused("x", "NAME=FEATURE", "x");
    expect_refused("y=image/class/label", "none is x", "image/encoded");
    expect_refused("z=image/encoded", "\"z\"", "expected x");
    expect_refused("x=", "NAME=FEATURE", "x=");
}

/* ---- damage ---- */

/* Where the second record begins. */
static size_t second_record(const unsigned char *bytes)
{
    return 16 + (bytes[0] | (size_t)bytes[1] << 8);
}

static td_data *damaged(const folder *in, const unsigned char *bytes, size_t size, td_choice skip)
{
    char path[2048];
    folder_write(in, "damaged.tfrecord", bytes, size);
    snprintf(path, sizeof path, "%s/damaged.tfrecord", in->path);
    return td_open(path, .skip_errors = skip);
}

static void test_a_broken_chain_is_refused(void **state)
{
    const folder *in = *state;
    size_t size;
    unsigned char *bytes = read_golden("images.tfrecord", &size);
    td_data *data = damaged(in, bytes, size - 5, TD_NO);
    EXPECT_WORDS(td_data_error(data), "damaged.tfrecord: record 3 at offset", "cut short");
    td_data_release(data);
    bytes[second_record(bytes)] ^= 1;
    data = damaged(in, bytes, size, TD_NO);
    EXPECT_WORDS(td_data_error(data), "record 1 at offset", "length does not match");
    td_data_release(data);
    data = damaged(in, bytes, size, TD_YES);
    fine(data);
    const char *reason;
    assert_int_equal(td_data_samples(data), 1);
    assert_int_equal(td_data_skipped(data, &reason), 1);
    EXPECT_WORDS(reason, "record 1", "rest of the file");
    td_data_release(data);
    free(bytes);
}

static void expect_unpacking_fails(const folder *in, const unsigned char *bytes, size_t size, const char *why)
{
    folder_write(in, "damaged.tfrecord.gz", bytes, size);
    td_data *data = td_open(folder_path(in, "damaged.tfrecord.gz"));
    EXPECT_WORDS(td_data_error(data), "the gzipped file cannot be unpacked from here on", why);
    td_data_release(data);
}

static void test_a_damaged_gzip_is_called_so(void **state)
{
    size_t size;
    unsigned char *bytes = read_golden("images.tfrecord.gz", &size);
    expect_unpacking_fails(*state, bytes, size / 2, "unexpected end of file");
    expect_unpacking_fails(*state, bytes, size - 2, "unexpected end of file");
    bytes[size - 6] ^= 1;
    expect_unpacking_fails(*state, bytes, size, "incorrect data check");
    bytes[size - 6] ^= 1;
    bytes[size - 3] ^= 1;
    expect_unpacking_fails(*state, bytes, size, "incorrect length check");
    free(bytes);
}

static void test_a_damaged_record_is_named_or_skipped(void **state)
{
    const folder *in = *state;
    static float x[SAMPLES * PIXELS];
    size_t size;
    unsigned char *bytes = read_golden("images.tfrecord", &size);
    bytes[second_record(bytes) + 60] ^= 4;
    td_context *context = td_context_create(NULL);
    td_data *data = damaged(in, bytes, size, TD_NO);
    EXPECT_WORDS(td_data_error(data), "record 1 at offset", "checksum");
    td_data_release(data);
    data = damaged(in, bytes, size, TD_YES);
    fine(data);
    const char *reason;
    float y[3];
    assert_int_equal(td_data_skipped(data, &reason), 1);
    assert_int_equal(td_data_samples(data), 3);
    EXPECT_WORDS(reason, "record 1", "checksum");
    assert_int_equal(td_data_read(context, data, NULL, 3, x, y), TD_OK);
    assert_true(y[0] == 0 && y[1] == 2 && y[2] == 3);
    td_data_release(data);
    td_context_free(context);
    free(bytes);
}

static void test_a_file_without_records(void **state)
{
    td_data *data = damaged(*state, (const unsigned char *)"", 0, TD_NO);
    EXPECT_WORDS(td_data_error(data), "no records");
    td_data_release(data);
    data = td_open("nowhere/*.tfrecord");
    EXPECT_WORDS(td_data_error(data), "nowhere/*.tfrecord", "no such file");
    td_data_release(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_checksum_is_crc32c),
        cmocka_unit_test(test_images_are_as_pillow_sees_them),
        cmocka_unit_test_setup_teardown(test_patterns_and_lists_name_several_files, folder_make, folder_drop),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_texts_beside_labels_name_the_classes),
        cmocka_unit_test(test_names_are_the_models),
        cmocka_unit_test(test_features_that_do_not_fit),
        cmocka_unit_test_setup_teardown(test_bytes_stay_bytes, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(test_a_broken_chain_is_refused, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(test_a_damaged_gzip_is_called_so, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(test_a_damaged_record_is_named_or_skipped, folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(test_a_file_without_records, folder_make, folder_drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
