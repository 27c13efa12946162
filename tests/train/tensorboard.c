/* The TensorBoard callback: what it writes is made of whole, checksummed records; a disk that is full, or a folder that
 * cannot be, does not end the training and is said; to look does not change the weights.
 * conformance/tensorboard_logs.py has real TensorBoard read it. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <tandem/tandem.h>

#include "files/tfrecord_file.h"
#include "support/devices.h"
#include "support/remove_folder.h"
#include "support/small.h"

enum { ROWS = 64 };

static float x[ROWS * SMALL_SAMPLE], y[ROWS];
static char folder[] = "/tmp/tandem-board-XXXXXX";
static int files, records;

static int count_file(const char *path, const struct stat *facts, int type, struct FTW *at)
{
    (void)facts, (void)at;
    tdi_records *file;
    tdi_error error = {0};
    if (type != FTW_F)
        return 0;
    assert_int_equal(tdi_records_open(path, false, &file, &error), TD_OK);
    for (int64_t i = 0; i < tdi_records_count(file); i++) {
        void *bytes = malloc((size_t)tdi_records_size(file, i) + 1);
        assert_int_equal(tdi_records_read(file, i, bytes, &error), TD_OK);
        free(bytes);
    }
    files++;
    records += (int)tdi_records_count(file);
    tdi_records_close(file);
    return 0;
}

static int make_folder(void **state)
{
    (void)state;
    small_data(ROWS, x, y);
    return mkdtemp(folder) ? 0 : -1;
}

static int drop_folder(void **state)
{
    (void)state;
    return remove_folder(folder);
}

static void log_line(void *user, td_log_level level, const char *line)
{
    FILE **progress = user;
    (void)level;
    fprintf(*progress, "%s\n", line);
}

/* Trains for two epochs; the weights, and all that was said. */
static float *train(td_callback *callback, int64_t *count, char **said)
{
    size_t size;
    FILE *progress = open_memstream(said, &size);
    td_context *context = td_context_create(&(td_context_options){.log = log_line, .log_user = &progress});
    td_model *model = small_model(context, SMALL_MIXED, td_adam(), td_mirrored(test_devices(2)));
    td_data *data = td_arrays(ROWS, x, TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS), .y = y);
    assert_int_equal(td_fit(model, data, .epochs = 2, .batch_size = 16, .seed = 3, .progress = progress,
                            .callbacks = callback ? TD_CALLBACKS(callback) : NULL),
                     TD_OK);
    fclose(progress);
    float *weights = small_weights(model, count);
    td_context_free(context);
    return weights;
}

static void to_look_changes_nothing(void **state)
{
    (void)state;
    char path[64], *said[2];
    int64_t count;
    snprintf(path, sizeof path, "%s/a/b", folder);
    float *without = train(NULL, &count, &said[0]);
    float *with = train(td_tensorboard(path, .histogram_freq = 1, .write_images = TD_YES, .update_freq = 3,
                                       .write_steps_per_second = TD_YES),
                        &count, &said[1]);
    assert_memory_equal(with, without, (size_t)count * sizeof *with);
    assert_null(strstr(said[1], "TensorBoard"));
    assert_int_equal(nftw(path, count_file, 8, FTW_PHYS), 0);
    assert_int_equal(files, 2);
    assert_true(records > 40);
    free(with);
    free(without);
    free(said[0]);
    free(said[1]);
}

static void a_folder_that_cannot_be_is_said(void **state)
{
    (void)state;
    char *said;
    int64_t count;
    free(train(td_tensorboard("/dev/null/logs", .histogram_freq = 1), &count, &said));
    assert_non_null(strstr(said, "TensorBoard: cannot write \"/dev/null/logs/"));
    assert_non_null(strstr(said, "the training goes on without it"));
    assert_null(strstr(strstr(said, "TensorBoard") + 1, "TensorBoard"));
    free(said);
}

static void a_full_disk_is_said(void **state)
{
    (void)state;
    char path[64], *said;
    int64_t count;
    struct rlimit before, small = {4000, 0};
    snprintf(path, sizeof path, "%s/full", folder);
    getrlimit(RLIMIT_FSIZE, &before);
    small.rlim_max = before.rlim_max;
    setrlimit(RLIMIT_FSIZE, &small);
    free(train(td_tensorboard(path, .histogram_freq = 1), &count, &said));
    setrlimit(RLIMIT_FSIZE, &before);
    assert_non_null(strstr(said, "the training goes on without it"));
    free(said);
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = small_model(context, SMALL_MLP, td_adam(), td_mirrored(test_devices(0)));
    td_data *data = td_arrays(ROWS, x, TD_SHAPE(SMALL_HEIGHT, SMALL_WIDTH, SMALL_CHANNELS), .y = y);
    assert_int_equal(td_fit(model, data, .callbacks = TD_CALLBACKS(td_tensorboard(folder, .update_freq = -1))),
                     TD_INVALID_ARGUMENT);
    assert_non_null(strstr(td_error(context), "update_freq"));
    td_context_free(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(to_look_changes_nothing), cmocka_unit_test(a_folder_that_cannot_be_is_said),
        cmocka_unit_test(a_full_disk_is_said), cmocka_unit_test(wrong_arguments_are_refused)};
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
