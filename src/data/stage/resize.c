/* resize.c - td_resize: brings images, and the targets that lie over them, to one size. */
#include <stdlib.h>
#include <tandem/stages.h>

#include "data/sample_reader.h"
#include "data/stage/image_resize.h"

/* What the stage does with a column: nothing, interpolate an image (as bytes or floats), or resize a label map by the
 * nearest pixel. */
typedef enum column_role { ROLE_NONE, ROLE_IMAGE, ROLE_MAP } column_role;

typedef struct resize_source {
    tdi_sample_reader reader;
    tdi_resize size; /* its channels are set for each column */
    column_role roles[TDI_MAX_COLUMNS];
} resize_source;

/* ---- one sample ---- */

static void resize_sample(const resize_source *stage, int column, const void *from, void *to)
{
    const tdi_column *facts = &stage->reader.source.columns[column];
    tdi_resize size = stage->size;
    size.channels = facts->shape.rank == 3 ? facts->shape.dim[2] : 1;
    if (stage->roles[column] == ROLE_MAP)
        tdi_resize_nearest(from, to, &size, td_dtype_size(facts->dtype));
    else if (facts->dtype == TD_UINT8)
        tdi_resize_bytes(from, to, &size);
    else
        tdi_resize_floats(from, to, &size);
}

static td_status resize_read(tdi_sample_reader *reader, int column, int64_t row, void *to, tdi_error *error)
{
    const resize_source *stage = (const resize_source *)reader;
    tdi_source *of = tdi_stage_below(&stage->reader.source);
    td_dtype dtype = reader->source.columns[column].dtype;
    void *sample = malloc((size_t)tdi_sample_elements(&of->columns[column].shape) * td_dtype_size(dtype) + 1);
    if (!sample)
        return tdi_no_memory(error);
    td_status status = of->gather(of, column, &row, 1, sample, dtype, error);
    if (status == TD_OK)
        resize_sample(stage, column, sample, to);
    free(sample);
    return status;
}

/* ---- the source ---- */

static td_status resize_gather(tdi_source *source, int column, const int64_t *rows, int64_t count, void *to,
                               td_dtype as, tdi_error *error)
{
    const resize_source *stage = (const resize_source *)source;
    tdi_source *of = tdi_stage_below(&stage->reader.source);
    return stage->roles[column] == ROLE_NONE ? of->gather(of, column, rows, count, to, as, error)
                                             : tdi_sample_reader_gather(source, column, rows, count, to, as, error);
}

/* ---- making it ---- */

static bool is_image(const td_shape *shape)
{
    return shape->rank == 2 || shape->rank == 3;
}

static bool is_of_size(const td_shape *shape, const td_image_size *size)
{
    return is_image(shape) && shape->dim[0] == size->height && shape->dim[1] == size->width;
}

/* A target's integers are class numbers. */
static column_role role_of(const tdi_source *source, int column)
{
    td_dtype dtype = source->columns[column].dtype;
    bool numbers = dtype == TD_FLOAT32 || dtype == TD_FLOAT64 || dtype == TD_BFLOAT16;
    return column < source->n_x || numbers ? ROLE_IMAGE : ROLE_MAP;
}

/* Interpolated values are scaled floats, unless they are bytes. */
static void set_column(resize_source *stage, int at)
{
    tdi_column *column = &stage->reader.source.columns[at];
    bool drawn = tdi_stage_below(&stage->reader.source)->drawn; /* drawn samples exist as float32 or int32 alone */
    stage->roles[at] = role_of(&stage->reader.source, at);
    column->shape.dim[0] = stage->size.to.height;
    column->shape.dim[1] = stage->size.to.width;
    column->values = NULL;
    if (stage->roles[at] == ROLE_MAP)
        column->dtype = drawn ? TD_INT32 : column->dtype;
    else if (drawn || column->dtype != TD_UINT8)
        column->dtype = TD_FLOAT32;
    if (column->dtype == TD_FLOAT32)
        column->scale = 1;
}

static td_status fill(resize_source *stage, const td_resize_args *args, tdi_error *error)
{
    tdi_source *source = &stage->reader.source;
    const td_shape image = source->columns[0].shape;
    if (args->guard)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_resize: an argument too many; (data, height, width) is all");
    stage->size.to = (td_image_size){args->height, args->width};
    TDI_TRY(tdi_resize_check(&stage->size.to, source->name, error));
    if (!is_image(&image))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s: %s has %d dimensions a sample; to be resized it must be an image: [height, width] or "
                        "[height, width, channels]",
                        source->name, source->columns[0].name, image.rank);
    stage->size.from = (td_image_size){image.dim[0], image.dim[1]};
    for (int i = 0; i < tdi_source_columns(source); i++)
        if (is_of_size(&source->columns[i].shape, &stage->size.from))
            set_column(stage, i);
    return TD_OK;
}

static td_status make_resize(td_data *of, const void *args, tdi_source **source, tdi_error *error)
{
    resize_source *stage = calloc(1, sizeof *stage);
    if (!stage)
        return tdi_no_memory(error);
    tdi_stage_init(&stage->reader.source, of);
    stage->reader.source.gather = resize_gather;
    stage->reader.source.release = tdi_stage_release;
    stage->reader.read = resize_read;
    td_status status = fill(stage, args, error);
    if (status == TD_OK)
        *source = &stage->reader.source;
    else
        free(stage);
    return status;
}

td_data *td_resize_(const td_resize_args *args)
{
    return tdi_data_stage(args->data, &args->at, make_resize, args);
}
