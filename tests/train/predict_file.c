/* Predictions written to a file as they are made: the numbers of td_predict into memory, without holding them; a full
 * disk leaves the old file and nothing else. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <tandem/tandem.h>

#include "files/npy_file.h"
#include "files/scratch.h"
#include "support/devices.h"

enum { ROWS = 301, IN = 3, FIRST = 4, SECOND = 2 };

static float x[ROWS * IN];

static td_model *two_outputs(td_context *context, const char *devices)
{
    td_tensor *input = td_input(context, TD_SHAPE(IN));
    td_tensor *outputs[] = {td_reshape(td_dense(input, FIRST), TD_SHAPE(2, 2)), td_dense(input, SECOND), NULL};
    td_model *model = td_model_create(input, NULL, .outputs = outputs, .seed = 5);
    assert_int_equal(td_compile(model, .strategy = td_mirrored(devices)), TD_OK);
    return model;
}

static td_data *data(void)
{
    return td_arrays(ROWS, x, TD_SHAPE(IN));
}

static void assert_array(const char *path, const char *name, const float *wanted, size_t count, int rank)
{
    tdi_zip *zip;
    tdi_npy npy;
    tdi_store *store;
    tdi_error error = {0};
    assert_int_equal(tdi_zip_open(path, &zip, &error), TD_OK);
    assert_int_equal(tdi_npz_open(zip, name, &npy, &store, &error), TD_OK);
    assert_int_equal(npy.shape.rank, rank);
    assert_int_equal(npy.shape.dim[0], ROWS);
    assert_int_equal(npy.elements, count);
    assert_memory_equal((char *)tdi_store_bytes(store) + npy.offset, wanted, count * sizeof *wanted);
    tdi_store_free(store);
    tdi_zip_close(zip);
}

static void several_outputs_go_to_one_npz(void **state)
{
    (void)state;
    const char *const devices[] = {test_devices(0), test_devices(2)};
    for (int d = 0; d < 2; d++) {
        td_context *context = td_context_create(NULL);
        td_model *model = two_outputs(context, devices[d]);
        float first[ROWS * FIRST], second[ROWS * SECOND], *outputs[] = {first, second};
        const char *path = scratch_path("two.npz");
        assert_int_equal(td_predict(model, data(), .outputs = outputs, .batch_size = 32), TD_OK);
        assert_int_equal(td_predict(model, data(), .path = path, .batch_size = 32), TD_OK);
        assert_array(path, "y0", first, ROWS * FIRST, 3);
        assert_array(path, "y1", second, ROWS * SECOND, 2);
        assert_int_equal(scratch_count(), 1);
        assert_int_equal(td_predict(model, data(), .path = scratch_path("two.npy")), TD_INVALID_ARGUMENT);
        assert_non_null(strstr(td_error(context), "name an .npz file"));
        assert_int_equal(scratch_count(), 1);
        td_context_free(context);
    }
}

static long resident_kilobytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* 120 MB of predictions in far less memory. */
static void the_predictions_are_not_held(void **state)
{
    (void)state;
    enum { WIDE = 100000 };
    td_context *context = td_context_create(NULL);
    td_tensor *input = td_input(context, TD_SHAPE(IN));
    td_model *model = td_model_create(input, td_dense(input, WIDE), .seed = 5);
    assert_int_equal(td_compile(model, .strategy = td_mirrored(test_devices(1))), TD_OK);
    const char *path = scratch_path("wide.npy");
    float *some = malloc(8 * WIDE * sizeof *some);
    assert_int_equal(td_predict(model, td_arrays(8, x, TD_SHAPE(IN)), some, 8 * WIDE, .batch_size = 8), TD_OK);
    long before = resident_kilobytes();
    assert_int_equal(td_predict(model, data(), .path = path, .batch_size = 8), TD_OK);
    assert_true(resident_kilobytes() - before < 30000);
    FILE *file = fopen(path, "rb");
    float *read = malloc(8 * WIDE * sizeof *read);
    assert_int_equal(fseek(file, 128, SEEK_SET), 0);
    assert_int_equal(fread(read, sizeof *read, 8 * WIDE, file), 8 * WIDE);
    assert_memory_equal(read, some, 8 * WIDE * sizeof *read);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    assert_int_equal(ftell(file), 128 + (long)ROWS * WIDE * 4);
    fclose(file);
    free(read);
    free(some);
    td_context_free(context);
}

static void a_full_disk_leaves_the_old_file(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = two_outputs(context, test_devices(2));
    const char *path = scratch_path("kept.npz");
    scratch_write("kept.npz", "old", 3);
    int files = scratch_count();
    struct rlimit before, small = {2000, 2000};
    getrlimit(RLIMIT_FSIZE, &before);
    small.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    td_status status = td_predict(model, data(), .path = path, .batch_size = 8);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(status, TD_IO);
    assert_non_null(strstr(td_error(context), "kept.npz"));
    size_t size;
    char *bytes = scratch_read("kept.npz", &size);
    assert_int_equal(size, 3);
    assert_int_equal(scratch_count(), files);
    free(bytes);
    td_context_free(context);
}

int main(void)
{
    for (int i = 0; i < ROWS * IN; i++)
        x[i] = (float)((i * 37) % 101) / 50 - 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(several_outputs_go_to_one_npz),
                                       cmocka_unit_test(the_predictions_are_not_held),
                                       cmocka_unit_test(a_full_disk_leaves_the_old_file)};
    return cmocka_run_group_tests(tests, scratch_create, scratch_remove);
}
