/* larger.c - arrays and CSV four times larger than the memory that is allowed: trained on, evaluated and predicted from
 * as when they fit, bit for bit. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <tandem/tandem.h>
#include <unistd.h>
#include <zip.h>

#include "data/folder.h"
#include "data/source.h"
#include "files/npy_file.h"
#include "support/sanitized.h"

enum { ALLOWED = 32 << 20, WIDTH = 1023, ROWS = 33000, COLUMNS = 64 };
_Static_assert((int64_t)WIDTH * 4 * ROWS > 4 * (int64_t)ALLOWED, "four times larger");

/* ---- data ---- */

static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 24;
}

static FILE *create(const folder *in, const char *name)
{
    FILE *file = fopen(folder_path(in, name), "wb");
    assert_non_null(file);
    return file;
}

/* [ROWS, width] numbers of one to 4 bytes: a byte, "<i2", or a float. */
static void write_npy(const folder *in, const char *name, const char *type, int width)
{
    char header[128];
    uint32_t seed = (uint32_t)width;
    FILE *file = create(in, name);
    int size = type[2] - '0', used = snprintf(header, sizeof header,
                                              "\x93NUMPY\x01%c\x76%c{'descr': '%s', 'fortran_order': False, "
                                              "'shape': (%d, %d), }",
                                              0, 0, type, ROWS, width);
    memset(header + used, ' ', sizeof header - (size_t)used);
    header[sizeof header - 1] = '\n';
    fwrite(header, 1, sizeof header, file);
    for (int64_t i = 0; i < (int64_t)ROWS * width; i++) {
        uint32_t number = next(&seed);
        float real = (float)number * 0.01f;
        uint16_t whole = (uint16_t)number;
        fwrite(size == 4 ? (void *)&real : (void *)&whole, (size_t)size, 1, file);
    }
    assert_int_equal(fclose(file), 0);
}

static void write_npz(const folder *in, const char *name, int32_t method)
{
    static const char *const arrays[] = {"x.npy", "y.npy"};
    zip_t *zip = zip_open(folder_path(in, name), ZIP_CREATE | ZIP_TRUNCATE, NULL);
    assert_non_null(zip);
    for (int i = 0; i < 2; i++) {
        zip_source_t *source = zip_source_file(zip, folder_path(in, arrays[i]), 0, -1);
        zip_int64_t at = zip_file_add(zip, arrays[i], source, 0);
        assert_true(at >= 0);
        assert_int_equal(zip_set_file_compression(zip, (zip_uint64_t)at, method, 1), 0);
    }
    assert_int_equal(zip_close(zip), 0);
}

static void write_csv(const folder *in, const char *name)
{
    uint32_t seed = 1;
    FILE *file = create(in, name);
    for (int64_t written = 0; written < 4 * (int64_t)ALLOWED;) {
        for (int i = 0; i < COLUMNS; i++)
            written += fprintf(file, "0.%04u%c", next(&seed) * 39, i + 1 < COLUMNS ? ',' : '\n');
    }
    assert_int_equal(fclose(file), 0);
}

/* ---- runs ---- */

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

static struct rlimit allow(rlim_t bytes)
{
    struct rlimit old, allowed;
    getrlimit(RLIMIT_DATA, &old);
    allowed = old;
    allowed.rlim_cur = (rlim_t)status_of("VmData:") * 1024 + bytes;
    assert_int_equal(setrlimit(RLIMIT_DATA, &allowed), 0);
    return old;
}

typedef struct outcome {
    float weights[WIDTH + 1];
    double loss;
    char *predictions; /* a file's bytes */
    size_t size;
} outcome;

static void succeed(td_status status, td_context *context)
{
    if (status != TD_OK)
        fail_msg("%s", td_error(context));
}

static void use(td_context *context, td_model *model, const td_open_args *from, const char *predictions, double *loss)
{
    td_logs logs;
    td_data *data = td_open_(from);
    if (td_data_error(data))
        fail_msg("%s", td_data_error(data));
    succeed(td_fit(model, td_data_retain(data), .batch_size = 64, .seed = 3), context);
    succeed(td_evaluate(model, td_data_retain(data), &logs, .batch_size = 64), context);
    succeed(td_predict(model, data, .path = predictions, .batch_size = 64), context);
    *loss = logs.entry[0].value;
}

static outcome run(const folder *in, const td_open_args *from, int64_t width, bool limited)
{
    outcome made = {0};
    const char *predictions = folder_path(in, "p.npy");
    td_context *context = td_context_create(NULL);
    td_tensor *x = td_input(context, TD_SHAPE(width));
    td_model *model = td_model_create(x, td_dense(x, 1), .seed = 1);
    td_compile(model, .optimizer = td_sgd(.learning_rate = 1e-5f), .loss = TD_MEAN_SQUARED_ERROR);
    if (limited) {
        struct rlimit old = allow(ALLOWED);
        use(context, model, from, predictions, &made.loss);
        setrlimit(RLIMIT_DATA, &old);
    } else {
        use(context, model, from, predictions, &made.loss);
    }
    for (int i = 0; i < 2; i++)
        succeed(td_get_weight(model, i, made.weights + i * width, i ? 1 : (size_t)width), context);
    struct stat facts;
    assert_int_equal(stat(predictions, &facts), 0);
    made.size = (size_t)facts.st_size;
    made.predictions = malloc(made.size + 1);
    assert_int_equal(folder_read(in, "p.npy", made.predictions, made.size + 1), made.size);
    td_context_free(context);
    return made;
}

static void same_as_in_memory(const folder *in, const td_open_args *from, int64_t width)
{
    outcome whole = run(in, from, width, false), by_rows = run(in, from, width, true);
    assert_memory_equal(by_rows.weights, whole.weights, sizeof whole.weights);
    assert_true(by_rows.loss == whole.loss);
    assert_int_equal(by_rows.size, whole.size);
    assert_memory_equal(by_rows.predictions, whole.predictions, whole.size);
    free(whole.predictions);
    free(by_rows.predictions);
}

/* In memory when nothing is limited, and not when it is. */
static void expect_held(const char *path, bool limited)
{
    struct rlimit old = allow(limited ? ALLOWED : RLIM_INFINITY / 2);
    td_data *data = td_open(path);
    bool in_memory = !td_data_error(data) && data->source->columns[0].values;
    td_data_release(data);
    setrlimit(RLIMIT_DATA, &old);
    assert_int_equal(in_memory, !limited);
}

static void npy_larger_than_memory(void **state)
{
    const folder *in = *state;
    char pair[1200];
    if (SANITIZED) /* memory is theirs */
        skip();
    write_npy(in, "x.npy", "<f4", WIDTH);
    write_npy(in, "y.npy", "<f4", 1);
    snprintf(pair, sizeof pair, "%s,%s", folder_path(in, "x.npy"), folder_path(in, "y.npy"));
    expect_held(pair, false);
    expect_held(pair, true);
    same_as_in_memory(in, &(td_open_args){.path = pair}, WIDTH);
}

/* x.npy column by column: another file of the same rows. */
static void turn_columns(const folder *in)
{
    static float column[ROWS];
    char header[128];
    FILE *from = fopen(folder_path(in, "x.npy"), "rb"), *to = create(in, "f.npy");
    float *rows = malloc((size_t)ROWS * WIDTH * sizeof *rows);
    assert_non_null(rows);
    assert_int_equal(fread(header, 1, sizeof header, from), sizeof header);
    assert_int_equal(fread(rows, sizeof *rows, (size_t)ROWS * WIDTH, from), (size_t)ROWS * WIDTH);
    memcpy(strstr(header + 10, "False"), "True ", 5);
    fwrite(header, 1, sizeof header, to);
    for (int c = 0; c < WIDTH; c++) {
        for (int i = 0; i < ROWS; i++)
            column[i] = rows[(int64_t)i * WIDTH + c];
        fwrite(column, sizeof *column, ROWS, to);
    }
    free(rows);
    fclose(from);
    assert_int_equal(fclose(to), 0);
}

static void columns_larger_than_memory(void **state)
{
    const folder *in = *state;
    char pair[1200];
    if (SANITIZED)
        skip();
    turn_columns(in);
    snprintf(pair, sizeof pair, "%s,%s", folder_path(in, "f.npy"), folder_path(in, "y.npy"));
    expect_held(pair, true);
    same_as_in_memory(in, &(td_open_args){.path = pair}, WIDTH);
    unlink(folder_path(in, "f.npy"));
}

static void npz_larger_than_memory(void **state)
{
    const folder *in = *state;
    char path[600];
    if (SANITIZED)
        skip();
    write_npz(in, "a.npz", ZIP_CM_STORE);
    snprintf(path, sizeof path, "%s", folder_path(in, "a.npz"));
    expect_held(path, true);
    same_as_in_memory(in, &(td_open_args){.path = path}, WIDTH);
    unlink(path);
    write_npz(in, "a.npz", ZIP_CM_DEFLATE);
    expect_held(path, true);
    same_as_in_memory(in, &(td_open_args){.path = path}, WIDTH);
    unlink(path);
}

static void csv_larger_than_memory(void **state)
{
    const folder *in = *state;
    char path[600];
    if (SANITIZED)
        skip();
    write_csv(in, "a.csv");
    snprintf(path, sizeof path, "%s", folder_path(in, "a.csv"));
    same_as_in_memory(in, &(td_open_args){.path = path}, COLUMNS - 1);
}

/* What is held whole, and cannot be, says so. */
static void a_text_larger_than_memory_is_named(void **state)
{
    const folder *in = *state;
    if (SANITIZED)
        skip();
    fclose(create(in, "a.txt"));
    assert_int_equal(truncate(folder_path(in, "a.txt"), 4 * (off_t)ALLOWED), 0);
    struct rlimit old = allow(ALLOWED);
    td_data *data = td_open(folder_path(in, "a.txt"));
    setrlimit(RLIMIT_DATA, &old);
    const char *error = td_data_error(data), *const words[] = {"a.txt: out of memory", " of 134217728 bytes",
                                                               "shorter"};
    assert_non_null(error);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strstr(error, words[i]))
            fail_msg("\"%s\" lacks \"%s\"", error, words[i]);
    td_data_release(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(npy_larger_than_memory),
        cmocka_unit_test(columns_larger_than_memory),
        cmocka_unit_test(npz_larger_than_memory),
        cmocka_unit_test(csv_larger_than_memory),
        cmocka_unit_test(a_text_larger_than_memory_is_named),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_drop);
}
