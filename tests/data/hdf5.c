/* HDF5 data: arrays whole, in chunks and compressed, of every dtype, read by rows; and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <hdf5.h>
#include <tandem/tandem.h>

#include "base/thread.h"
#include "data/folder.h"
#include "data/source.h"

enum { SAMPLES = 100, WIDTH = 6 };

static float numbers[SAMPLES * WIDTH];

/* ---- making files ---- */

typedef struct form {
    hid_t type;
    hsize_t chunk; /* rows; 0: whole */
    unsigned deflate;
    H5Z_filter_t filter; /* 0: none; another than deflate */
} form;

/* The numbers as [SAMPLES, 2, 3] of a type. */
static void write_array(hid_t file, const char *name, const form *f)
{
    hsize_t dims[] = {SAMPLES, 2, 3}, chunk[] = {f->chunk, 2, 3};
    hid_t space = H5Screate_simple(3, dims, NULL), list = H5Pcreate(H5P_DATASET_CREATE);
    if (f->chunk)
        assert_true(H5Pset_chunk(list, 3, chunk) >= 0);
    if (f->deflate)
        assert_true(H5Pset_shuffle(list) >= 0 && H5Pset_deflate(list, f->deflate) >= 0);
    if (f->filter)
        assert_true(H5Pset_filter(list, f->filter, H5Z_FLAG_OPTIONAL, 0, NULL) >= 0);
    hid_t array = H5Dcreate2(file, name, f->type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    assert_true(array >= 0);
    assert_true(H5Dwrite(array, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
    H5Dclose(array);
    H5Pclose(list);
    H5Sclose(space);
}

static hid_t create(const char *path)
{
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(file >= 0);
    return file;
}

static const char *with(const folder *in, const char *name, const char *arrays)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s%s", folder_path(in, name), arrays);
    return path;
}

static const char *put(const folder *in, const char *name, const form *f)
{
    hid_t file = create(folder_path(in, name));
    write_array(file, "x", f);
    write_array(file, "y", f);
    H5Fclose(file);
    return folder_path(in, name);
}

static void fine(const td_data *data)
{
    if (td_data_error(data))
        fail_msg("%s", td_data_error(data));
}

static void expect_error(td_data *data, const char *first, const char *second)
{
    const char *error = td_data_error(data);
    assert_non_null(error);
    if (!strstr(error, first) || !strstr(error, second))
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", error, first, second);
    td_data_release(data);
}

static void expect_rows(td_data *data, const int64_t *rows, int64_t count, float scale)
{
    float seen[SAMPLES * WIDTH];
    td_context *context = td_context_create(NULL);
    assert_int_equal(td_data_read(context, data, rows, count, seen, NULL), TD_OK);
    for (int64_t i = 0; i < count * WIDTH; i++)
        assert_true(seen[i] == numbers[(rows ? rows[i / WIDTH] : i / WIDTH) * WIDTH + i % WIDTH] * scale);
    td_context_free(context);
}

/* ---- tests ---- */

static void every_dtype_in_every_layout(void **state)
{
    const hid_t types[] = {H5T_STD_U8LE,  H5T_STD_U16BE, H5T_STD_I32LE,  H5T_STD_U32LE,
                           H5T_STD_I64BE, H5T_STD_U64LE, H5T_IEEE_F32BE, H5T_IEEE_F64LE};
    static const int64_t rows[] = {99, 3, 4, 5, 0, 0, 50, 49, 7};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (int layout = 0; layout < 3; layout++) {
            form f = {types[i], layout ? 7 : 0, layout == 2 ? 4 : 0, 0};
            td_data *data = td_open(put(*state, "a.h5", &f), .scale = 0.5f);
            fine(data);
            assert_int_equal(td_data_samples(data), SAMPLES);
            expect_rows(data, NULL, SAMPLES, 0.5f);
            expect_rows(data, rows, 9, 0.5f);
            td_shape shape;
            assert_int_equal(td_data_y_shape(data, &shape), TD_OK);
            assert_int_equal(shape.rank, 2);
            td_data_release(data);
        }
}

static void arrays_are_named(void **state)
{
    const folder *in = *state;
    form f = {H5T_STD_U8LE, 0, 0, 0};
    hid_t file = create(folder_path(in, "n.hdf5"));
    write_array(file, "x_train", &f);
    write_array(file, "x_test", &f);
    write_array(file, "other", &f);
    H5Fclose(file);
    const char *const good[] = {"", ":/x_train,/other", ":other"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        td_data *data = td_open(with(in, "n.hdf5", good[i]));
        fine(data);
        expect_rows(data, NULL, SAMPLES, 1);
        td_shape shape;
        assert_int_equal(td_data_y_shape(data, &shape), i == 1 ? TD_OK : TD_NOT_FOUND);
        td_data_release(data);
    }
    td_data *data = td_open(with(in, "n.hdf5", ""), .features = "x0=/other,x1=/x_test,y=/x_train");
    fine(data);
    td_data_release(data);
    expect_error(td_open(with(in, "n.hdf5", ":/x_train,/absent")), "has no array", "/absent");
    expect_error(td_open(with(in, "n.hdf5", ":a,b,c")), "has no array", "a");
    expect_error(td_open(with(in, "n.hdf5", ":other,other,other")), "more than two arrays", "features");
    expect_error(td_open(folder_path(in, "n.hdf5"), .features = "other"), "features: expected x=ARRAY", "other");
    expect_error(td_open(folder_path(in, "absent.h5")), "absent.h5", "cannot be opened");
}

/* ---- which arrays are used ---- */

static void write_arrays(const folder *in, const char *const *names)
{
    form f = {H5T_STD_U8LE, 0, 0, 0};
    hid_t groups = H5Pcreate(H5P_LINK_CREATE), file = create(folder_path(in, "u.h5"));
    assert_true(H5Pset_create_intermediate_group(groups, 1) >= 0);
    for (; *names; names++) {
        hid_t space = H5Screate_simple(2, (const hsize_t[]){3, 2}, NULL);
        hid_t array = H5Dcreate2(file, *names, f.type, space, groups, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(array >= 0);
        H5Dclose(array);
        H5Sclose(space);
    }
    H5Pclose(groups);
    H5Fclose(file);
}

#define WRITE_ARRAYS(in, ...) write_arrays(in, (const char *const[]){__VA_ARGS__, NULL})

static void expect_note(td_data *data, int inputs, int targets, const char *note)
{
    fine(data);
    assert_int_equal(data->source->n_x, inputs);
    assert_int_equal(data->source->n_y, targets);
    if (note ? !strstr(td_data_note(data), note) : *td_data_note(data))
        fail_msg("\"%s\" lacks \"%s\"", td_data_note(data), note ? note : "");
    td_data_release(data);
}

static void every_array_is_used_or_named(void **state)
{
    const folder *in = *state;
    const char *path = folder_path(in, "u.h5");
    WRITE_ARRAYS(in, "x", "y", "ids", "extra/deep/ids");
    expect_note(td_open(path), 1, 1, "u.h5: 2 of its arrays are not used: extra/deep/ids, ids (--features and");
    expect_note(td_open(path, .features = "x=/x,y=extra/deep/ids"), 1, 1, "2 of its arrays are not used: ids, y (");
    expect_note(td_open(with(in, "u.h5", ":/x,/ids")), 1, 1, "not used: extra/deep/ids, y (");
    expect_note(td_open(path, .targets = TD_NO), 1, 0, "2 of its arrays are not used: extra/deep/ids, ids (");
    expect_note(td_open(path, .targets = TD_NO, .features = "x0=x,x1=ids,y=/extra/deep/ids"), 2, 0, NULL);
    WRITE_ARRAYS(in, "x_train", "y_train", "x_test", "y_test", "x_val");
    expect_note(td_open(path), 1, 1, NULL);
    expect_note(td_open(path, .role = TD_TEST), 1, 1, NULL);
    expect_note(td_open(path, .features = "x=x_train"), 1, 0, "1 of its arrays is not used: y_train (");
    WRITE_ARRAYS(in, "x", "a/0", "a/1", "a/2", "a/3", "a/4", "a/5", "a/6", "a/7", "a/8", "a/9");
    expect_note(td_open(path), 1, 0,
                "10 of its arrays are not used: a/0, a/1, a/2, a/3, a/4, a/5, a/6, a/7, and 2 more (");
}

static void several_inputs_and_targets_are_numbered(void **state)
{
    const folder *in = *state;
    const char *path = folder_path(in, "u.h5");
    WRITE_ARRAYS(in, "x1", "x0", "y1", "y0", "y2");
    td_data *data = td_open(path);
    fine(data);
    assert_string_equal(data->source->columns[1].name, "x1");
    assert_string_equal(data->source->columns[4].name, "y2");
    expect_note(data, 2, 3, NULL);
    expect_note(td_open(path, .targets = TD_NO), 2, 0, NULL);
    WRITE_ARRAYS(in, "x0", "x2", "y_train");
    expect_note(td_open(path), 1, 1, "1 of its arrays is not used: x2 (");
    WRITE_ARRAYS(in, "x_val", "y_val", "x");
    expect_note(td_open(path, .role = TD_TEST), 1, 1, "1 of its arrays is not used: x (");
}

/* A second name of an array that is used, a group within itself, links to other names and a type are no other arrays.
 * Newer groups have few links in their header, many in a heap. */
static void arrays_are_listed_in_every_form_of_group(void **state)
{
    const folder *in = *state;
    form f = {H5T_STD_U8LE, 0, 0, 0};
    for (int newer = 0; newer < 2; newer++)
        for (int many = 0; many < 2; many++) {
            hid_t list = H5Pcreate(H5P_FILE_ACCESS);
            assert_true(
                H5Pset_libver_bounds(list, newer ? H5F_LIBVER_LATEST : H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST) >= 0);
            hid_t file = H5Fcreate(folder_path(in, "u.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, list);
            hid_t group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), type = H5Tcopy(H5T_STD_U8LE);
            write_array(file, "x", &f);
            assert_true(H5Lcreate_hard(file, "x", group, "same", H5P_DEFAULT, H5P_DEFAULT) >= 0);
            assert_true(H5Lcreate_hard(file, "g", group, "self", H5P_DEFAULT, H5P_DEFAULT) >= 0);
            assert_true(H5Lcreate_hard(file, "/", group, "root", H5P_DEFAULT, H5P_DEFAULT) >= 0);
            assert_true(H5Lcreate_soft("/x", group, "soft", H5P_DEFAULT, H5P_DEFAULT) >= 0);
            assert_true(H5Tcommit2(group, "type", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0);
            for (int i = 0; i < (many ? 1000 : 2); i++) {
                char name[16];
                snprintf(name, sizeof name, "n%03d", i);
                write_array(group, name, &f);
            }
            H5Tclose(type);
            H5Gclose(group);
            H5Fclose(file);
            H5Pclose(list);
            expect_note(td_open(folder_path(in, "u.h5")), 1, 0,
                        many ? "u.h5: 1000 of its arrays are not used: g/n000, g/n001, g/n002"
                             : "u.h5: 2 of its arrays are not used: g/n000, g/n001 (");
        }
}

static void without_inputs_the_arrays_are_listed(void **state)
{
    const folder *in = *state;
    const char *path = folder_path(in, "u.h5");
    WRITE_ARRAYS(in, "train/images", "train/labels", "picture");
    expect_error(td_open(path), "no array named x, x_train or x0; it holds: picture, train/images, train/labels. Say",
                 "--features x=NAME,y=NAME");
    expect_error(td_open(path, .role = TD_TEST), "x_test or x0", "u.h5:/NAME,/NAME");
    expect_error(td_open(path, .features = "x=picture,y=label"),
                 "has no array \"label\"; it holds: picture, train/images", "train/labels");
    expect_error(td_open(with(in, "u.h5", ":/picture"), .features = "x=picture"), "both behind the file", "leave one");
    expect_error(td_open(path, .features = "x=train"), "\"train\" is a group", "GROUP/NAME");
    write_arrays(in, (const char *const[]){NULL});
    expect_error(td_open(path), "it holds no arrays", "needs x");
}

static void what_cannot_be_read_is_refused(void **state)
{
    const folder *in = *state;
    form f = {H5T_STD_U8LE, 7, 0, 32000}; /* LZF, as h5py registers it */
    expect_error(td_open(put(in, "lzf.h5", &f)), "compressed by filter 32000", "gzip");
    folder_write(in, "text.h5", "not HDF5", 8);
    expect_error(td_open(folder_path(in, "text.h5")), "no HDF5 file", "text.h5");
    hid_t file = create(folder_path(in, "odd.h5"));
    hid_t text = H5Tcopy(H5T_C_S1), scalar = H5Screate(H5S_SCALAR);
    hsize_t none[] = {0, 3};
    hid_t empty = H5Screate_simple(2, none, NULL);
    H5Dclose(H5Dcreate2(file, "text", text, scalar, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Dclose(H5Dcreate2(file, "scalar", H5T_STD_U8LE, scalar, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Dclose(H5Dcreate2(file, "empty", H5T_STD_U8LE, empty, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    assert_true(H5Lcreate_external("lzf.h5", "/x", file, "elsewhere", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    H5Fclose(file);
    H5Sclose(scalar);
    H5Sclose(empty);
    H5Tclose(text);
    expect_error(td_open(with(in, "odd.h5", ":text")), "\"text\"", "neither integers nor floats");
    expect_error(td_open(with(in, "odd.h5", ":scalar")), "\"scalar\"", "no array of 1 to 6 axes");
    expect_error(td_open(with(in, "odd.h5", ":empty")), "\"empty\"", "holds no samples");
    expect_error(td_open(with(in, "odd.h5", ":elsewhere")), "\"elsewhere\"", "a link to another file");
}

/* Cut anywhere, a file is refused, or its rows are. */
static void a_file_cut_short(void **state)
{
    const folder *in = *state;
    static char bytes[1 << 20];
    form f = {H5T_STD_I32LE, 7, 4, 0};
    size_t size = folder_read(in, strrchr(put(in, "whole.h5", &f), '/') + 1, bytes, sizeof bytes);
    for (size_t kept = 0; kept < size; kept += 1 + size / 50) {
        folder_write(in, "cut.h5", bytes, kept);
        td_data *data = td_open(folder_path(in, "cut.h5"));
        float seen[SAMPLES * WIDTH];
        td_context *context = td_context_create(NULL);
        assert_true(td_data_error(data) || td_data_read(context, data, NULL, SAMPLES, seen, NULL) != TD_OK);
        td_context_free(context);
        td_data_release(data);
    }
}

typedef struct crowd {
    tdi_source *source;
    td_status status[4];
} crowd;

static void read_all(void *argument, int index)
{
    crowd *c = argument;
    tdi_error error = {0};
    float seen[WIDTH];
    for (int64_t i = 0; i < 10 * SAMPLES && c->status[index] == TD_OK; i++) {
        int64_t row = (i * 37 + index) % SAMPLES;
        c->status[index] = c->source->gather(c->source, 0, &row, 1, seen, TD_FLOAT32, &error);
        if (memcmp(seen, numbers + row * WIDTH, sizeof seen) != 0)
            c->status[index] = TD_INTERNAL;
    }
}

static void threads_take_turns(void **state)
{
    form f = {H5T_IEEE_F32LE, 7, 4, 0};
    td_data *data = td_open(put(*state, "t.h5", &f));
    fine(data);
    crowd c = {.source = data->source};
    tdi_team *team;
    assert_int_equal(tdi_team_create(4, &team, NULL), TD_OK);
    tdi_team_run(team, 4, read_all, &c);
    tdi_team_free(team);
    for (int i = 0; i < 4; i++)
        assert_int_equal(c.status[i], TD_OK);
    td_data_release(data);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_make, folder_drop)

int main(void)
{
    for (int i = 0; i < SAMPLES * WIDTH; i++)
        numbers[i] = (float)(i * 7 % 251);
    const struct CMUnitTest tests[] = {TEST(every_dtype_in_every_layout),
                                       TEST(arrays_are_named),
                                       TEST(every_array_is_used_or_named),
                                       TEST(several_inputs_and_targets_are_numbered),
                                       TEST(arrays_are_listed_in_every_form_of_group),
                                       TEST(without_inputs_the_arrays_are_listed),
                                       TEST(what_cannot_be_read_is_refused),
                                       TEST(a_file_cut_short),
                                       TEST(threads_take_turns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
