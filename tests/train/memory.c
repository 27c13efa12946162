/* Memory stays flat: over a data set four times larger than the memory that is allowed for it, and over a thousand
 * epochs of a small model. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <tandem/tandem.h>
#include <unistd.h>

#include "data/folder.h"
#include "files/tfrecord_file.h"
#include "support/devices.h"
#include "support/sanitized.h"
#include "support/small.h"

/* ---- more data than memory ---- */

enum { ELEMENTS = 64 * 1024, SAMPLES = 1024, ALLOWED = 64 << 20 };
_Static_assert((int64_t)ELEMENTS * 4 * SAMPLES == 4 * (int64_t)ALLOWED, "four times larger");

static size_t put_varint(unsigned char *at, size_t value)
{
    size_t size = 0;
    for (; value > 127; value >>= 7)
        at[size++] = (unsigned char)(value & 127) | 128;
    at[size++] = (unsigned char)value;
    return size;
}

/* A field of a message: its number, the size of its content. */
static size_t put_head(unsigned char *at, int number, size_t size)
{
    at[0] = (unsigned char)(number << 3 | 2);
    return 1 + put_varint(at + 1, size);
}

static size_t head_size(size_t size)
{
    unsigned char unused[16];
    return put_head(unused, 1, size);
}

/* Example{features{feature{"x": float_list{value: [ELEMENTS]}}}}, protobuf's wire format. */
static size_t make_example(unsigned char *at, float first)
{
    size_t values = ELEMENTS * sizeof(float), list = head_size(values) + values, feature = head_size(list) + list;
    size_t entry = 3 + head_size(feature) + feature, features = head_size(entry) + entry;
    unsigned char *end = at;
    end += put_head(end, 1, features);
    end += put_head(end, 1, entry);
    end += put_head(end, 1, 1);
    *end++ = 'x';
    end += put_head(end, 2, feature);
    end += put_head(end, 2, list);
    end += put_head(end, 1, values);
    for (int i = 0; i < ELEMENTS; i++, end += sizeof(float)) {
        float value = first + (float)(i % 100) * 0.001f;
        memcpy(end, &value, sizeof value);
    }
    return (size_t)(end - at);
}

static void write_record(FILE *file, const unsigned char *data, size_t size)
{
    uint64_t length = size;
    uint32_t length_sum = tdi_masked_crc(&length, sizeof length), sum = tdi_masked_crc(data, size);
    assert_int_equal(fwrite(&length, sizeof length, 1, file), 1);
    assert_int_equal(fwrite(&length_sum, sizeof length_sum, 1, file), 1);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fwrite(&sum, sizeof sum, 1, file), 1);
}

static void write_samples(const folder *in)
{
    unsigned char *example = malloc(ELEMENTS * sizeof(float) + 256);
    FILE *file = fopen(folder_path(in, "large.tfrecord"), "wb");
    assert_non_null(file);
    for (int i = 0; i < SAMPLES; i++)
        write_record(file, example, make_example(example, (float)(i % 7)));
    assert_int_equal(fclose(file), 0);
    free(example);
}

/* The kilobytes of a line of /proc/self/status. */
static long status_of(const char *name)
{
    char line[256];
    long value = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            value = strtol(line + strlen(name), NULL, 10);
    if (file)
        fclose(file);
    return value;
}

static td_model *mean_of_pixels(td_context *context)
{
    td_tensor *x = td_input(context, TD_SHAPE(256, 256, 1));
    return td_model_create(x, td_dense(td_global_average_pooling2d(x), 1), .seed = 1);
}

/* What is written and read may take ALLOWED bytes beyond what the program has at the start: the kernel says so, and
 * counts. */
static void test_data_larger_than_memory(void **state)
{
    if (SANITIZED) /* memory is theirs */
        skip();
    const folder *in = *state;
    td_context *context = td_context_create(NULL);
    td_model *model = mean_of_pixels(context);
    td_compile(model, .optimizer = td_sgd(), .loss = TD_MEAN_SQUARED_ERROR, .strategy = td_mirrored(test_devices(0)));
    write_samples(in);
    struct rlimit old, allowed;
    getrlimit(RLIMIT_DATA, &old);
    allowed = old;
    allowed.rlim_cur = (rlim_t)status_of("VmData:") * 1024 + ALLOWED;
    assert_int_equal(setrlimit(RLIMIT_DATA, &allowed), 0);
    long before = status_of("VmRSS:");
    td_data *data = td_open(folder_path(in, "large.tfrecord"), .features = "x=x");
    float *predicted = malloc(SAMPLES * sizeof *predicted);
    td_status status = td_predict(model, data, predicted, SAMPLES, .batch_size = 16);
    long most = status_of("VmHWM:") - before;
    setrlimit(RLIMIT_DATA, &old);
    if (status != TD_OK)
        fail_msg("%s", td_error(context));
    assert_true(predicted[7] == predicted[0] && predicted[1] != predicted[0]);
    assert_in_range(most, 1, ALLOWED / 1024);
    free(predicted);
    td_context_free(context);
}

/* ---- a thousand epochs ---- */

enum { FEW = 40, EPOCHS = 1000, WARM = 100 };

static float x[FEW * SMALL_SAMPLE], y[FEW];
static size_t in_use[2];
static long resident[2];

static td_status note_memory(void *user, td_training *training, td_epoch *epoch)
{
    (void)user;
    (void)training;
    int at = epoch->epoch == WARM ? 0 : epoch->epoch == EPOCHS - 1 ? 1 : -1;
    if (at >= 0) {
        in_use[at] = mallinfo2().uordblks;
        resident[at] = status_of("VmRSS:");
    }
    return TD_OK;
}

static void test_a_thousand_epochs(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_CNN, td_adam(), (td_strategy){0});
    td_shape shape = TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS);
    td_data *data =
        td_augment(td_cache(td_arrays(FEW, x, shape, .y = y)), .flip = TD_FLIP_HORIZONTAL, .rotation = 0.1f);
    td_callback_functions functions = {.epoch_end = note_memory};
    td_fit(model, data, .batch_size = 16, .epochs = EPOCHS, .validation_split = 8,
           .callbacks = TD_CALLBACKS(td_callback_create(&functions, NULL)));
    assert_string_equal(td_error(context), "");
    if (!SANITIZED) {
        assert_in_range(in_use[1], 1, in_use[0] + 4096);
        assert_in_range(resident[1], 1, resident[0] + 1024);
    }
    td_context_free(context);
}

int main(void)
{
    small_data(FEW, x, y);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_larger_than_memory),
        cmocka_unit_test(test_a_thousand_epochs),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_drop);
}
