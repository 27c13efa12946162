/* data_handle.c - td_data, the handle of data that users hold: its constructors, td_data_read, and its owners. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/stages.h>

#include "base/context.h"
#include "data/source.h"
#include "data/stage/image_resize.h"
#include "files/folders.h"

/* Returned by constructors when there is no memory even for the handle. It has no count of owners. */
static const td_data data_no_memory = {.error = {TD_NO_MEMORY, "out of memory"}};

static td_data *data_create(void)
{
    td_data *data = calloc(1, sizeof *data);
    if (!data)
        return (td_data *)&data_no_memory;
    atomic_init(&data->references, 1);
    return data;
}

static td_status open_checked(const td_open_args *args, tdi_source **source, tdi_error *error)
{
    if (args->guard)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "td_open takes one argument by position (path): name the rest, as .role = TD_TEST");
    if (!args->path)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_open: path is NULL");
    if (args->role != TD_TRAIN && args->role != TD_TEST)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_open: role is %d, neither TD_TRAIN nor TD_TEST",
                        (int)args->role);
    if (!isfinite(args->scale))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_open: scale is not a finite number");
    if (args->image_size.height || args->image_size.width)
        TDI_TRY(tdi_resize_check(&args->image_size, args->path, error));
    return tdi_source_open(args, source, error);
}

static void prefix_location(tdi_error *error, td_location at)
{
    if (at.file)
        tdi_error_prefix(error, "%s:%d", at.file, at.line);
}

/* True when the format has not brought the images to the wanted size itself, as it does when it decodes them. */
static bool to_be_resized(const td_data *data, const td_image_size *wanted)
{
    const td_shape *shape = data->source ? &data->source->columns[0].shape : NULL;
    return shape && (wanted->height || wanted->width) &&
           !(shape->rank >= 2 && shape->dim[0] == wanted->height && shape->dim[1] == wanted->width);
}

td_data *td_open_(const td_open_args *args)
{
    td_data *data = data_create();
    if (data != &data_no_memory && open_checked(args, &data->source, &data->error) != TD_OK)
        prefix_location(&data->error, args->at);
    if (!to_be_resized(data, &args->image_size))
        return data;
    return td_resize_(&(td_resize_args){
        .at = args->at, .data = data, .height = args->image_size.height, .width = args->image_size.width});
}

td_data *td_generator_(const td_generator_args *args)
{
    td_data *data = data_create();
    if (data == &data_no_memory && args->release)
        args->release(args->user);
    if (data != &data_no_memory && tdi_source_generator(args, &data->source, &data->error) != TD_OK)
        prefix_location(&data->error, args->at);
    return data;
}

td_data *td_arrays_(const td_arrays_args *args)
{
    td_data *data = data_create();
    if (data != &data_no_memory && tdi_source_arrays(args, &data->source, &data->error) != TD_OK)
        prefix_location(&data->error, args->at);
    return data;
}

td_data *tdi_data_stage(td_data *of, const td_location *at, tdi_stage_make *make, const void *args)
{
    if (of && !of->source)
        return of;
    td_data *data = data_create();
    if (data == &data_no_memory) {
        td_data_release(of);
        return data;
    }
    td_status status = of ? make(of, args, &data->source, &data->error)
                          : tdi_fail(&data->error, TD_INVALID_ARGUMENT, "a stage was given no data");
    if (status == TD_OK)
        return data;
    prefix_location(&data->error, *at);
    td_data_release(of);
    return data;
}

static td_status mnist_path(char *path, size_t size, tdi_error *error)
{
    const char *data = getenv("TANDEM_DATA");
    if (data && data[0]) {
        snprintf(path, size, "%s/mnist", data);
        if (tdi_is_folder(path))
            return TD_OK;
    }
    if (!tdi_user_cache("mnist", path, size))
        snprintf(path, size, "~/.cache/tandem/mnist");
    else if (tdi_is_folder(path))
        return TD_OK;
    return tdi_fail(
        error, TD_NOT_FOUND,
        "td_mnist: there is no %s, nor does $TANDEM_DATA name a folder that holds mnist/: run scripts/demo, which "
        "fetches it, or put train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, t10k-images-idx3-ubyte.gz "
        "and t10k-labels-idx1-ubyte.gz there",
        path);
}

static td_status mnist_open(const char *split, tdi_source **source, tdi_error *error)
{
    char path[4096];
    bool train = split && strcmp(split, "train") == 0;
    if (!train && (!split || strcmp(split, "test") != 0))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_mnist: the part is \"%s\", neither \"train\" nor \"test\"",
                        split ? split : "NULL");
    TDI_TRY(mnist_path(path, sizeof path, error));
    return tdi_source_open(&(td_open_args){.path = path, .role = train ? TD_TRAIN : TD_TEST}, source, error);
}

td_data *td_mnist(const char *split)
{
    td_data *data = data_create();
    if (data != &data_no_memory)
        mnist_open(split, &data->source, &data->error);
    return data;
}

int64_t td_data_samples(const td_data *data)
{
    return data && data->source ? data->source->samples : -1;
}

int64_t td_data_skipped(const td_data *data, const char **reason)
{
    bool fine = data && data->source;
    if (reason)
        *reason = fine ? data->source->skip_reason : "";
    return fine ? data->source->skipped : 0;
}

const char *td_data_note(const td_data *data)
{
    return data && data->source ? data->source->note : "";
}

const char *td_data_recipe(const td_data *data)
{
    return data && data->source ? data->source->recipe : NULL;
}

const char *td_data_error(const td_data *data)
{
    if (!data)
        return "there is no data: NULL was given";
    return data->source ? NULL : data->error.message;
}

/* The shape of the first input, or of the first target. */
static td_status column_shape(const td_data *data, bool y, td_shape *shape)
{
    const tdi_source *source = data ? data->source : NULL;
    bool present = source && (y ? source->n_y : source->n_x);
    if (shape)
        *shape = present ? source->columns[y ? source->n_x : 0].shape : (td_shape){0};
    return present ? TD_OK : TD_NOT_FOUND;
}

td_status td_data_x_shape(const td_data *data, td_shape *shape)
{
    return column_shape(data, false, shape);
}

td_status td_data_y_shape(const td_data *data, td_shape *shape)
{
    return column_shape(data, true, shape);
}

static td_status check_read(const td_data *data, const int64_t *rows, int64_t count, const float *y, tdi_error *error)
{
    const tdi_source *source = data ? data->source : NULL;
    if (!data)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_data_read: no data was given");
    if (!source)
        return tdi_fail(error, data->error.status, "%s", data->error.message);
    if (y && !source->n_y)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_data_read: %s holds no y", source->name);
    if (count < 0 || (!rows && count > source->samples))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_data_read: count is %" PRId64 "; %s holds %" PRId64 " samples",
                        count, source->name, source->samples);
    for (int64_t i = 0; rows && i < count; i++)
        if (rows[i] < 0 || rows[i] >= source->samples)
            return tdi_fail(error, TD_INVALID_ARGUMENT,
                            "td_data_read: rows[%" PRId64 "] is %" PRId64 "; %s holds %" PRId64 " samples", i, rows[i],
                            source->name, source->samples);
    return TD_OK;
}

static td_status read_rows(tdi_source *source, const int64_t *rows, int64_t count, float *x, float *y, tdi_error *error)
{
    if (x)
        TDI_TRY(source->gather(source, 0, rows, count, x, TD_FLOAT32, error));
    return y ? source->gather(source, source->n_x, rows, count, y, TD_FLOAT32, error) : TD_OK;
}

td_status td_data_read(td_context *context, td_data *data, const int64_t *rows, int64_t count, float *x, float *y)
{
    if (!context)
        return TD_INVALID_ARGUMENT;
    tdi_error *error = &context->error;
    TDI_TRY(check_read(data, rows, count, y, error));
    if (rows || count == 0)
        return read_rows(data->source, rows, count, x, y, error);
    int64_t *order = malloc((size_t)count * sizeof *order);
    if (!order)
        return tdi_no_memory(error);
    tdi_epoch_order(order, count, false, 0, 0);
    td_status status = read_rows(data->source, order, count, x, y, error);
    free(order);
    return status;
}

td_data *td_data_retain(td_data *data)
{
    if (data && data != &data_no_memory)
        atomic_fetch_add_explicit(&data->references, 1, memory_order_relaxed);
    return data;
}

void td_data_release(td_data *data)
{
    if (!data || data == &data_no_memory || atomic_fetch_sub_explicit(&data->references, 1, memory_order_acq_rel) != 1)
        return;
    if (data->source)
        data->source->release(data->source);
    free(data);
}
