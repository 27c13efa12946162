/* resize.c - images brought to one size, and the targets that lie over them. */
#include <stdlib.h>
#include <tandem/stages.h>

#include "data/decoded_items.h"
#include "data/stage/image_resize.h"

/* What becomes of a column: images are interpolated, as bytes or as floats; a label map's numbers stay what they are.
 */
typedef enum column_part { PART_NONE, PART_IMAGE, PART_MAP } column_part;

typedef struct resize_source {
    tdi_items items;
    td_data *of;
    tdi_resize size; /* channels: each column's own */
    column_part parts[TDI_MAX_COLUMNS];
} resize_source;

/* ---- one sample ---- */

static void resize_sample(const resize_source *stage, int column, const void *from, void *to)
{
    const tdi_column *facts = &stage->items.source.columns[column];
    tdi_resize size = stage->size;
    size.channels = facts->shape.rank == 3 ? facts->shape.dim[2] : 1;
    if (stage->parts[column] == PART_MAP)
        tdi_resize_nearest(from, to, &size, td_dtype_size(facts->dtype));
    else if (facts->dtype == TD_UINT8)
        tdi_resize_bytes(from, to, &size);
    else
        tdi_resize_floats(from, to, &size);
}

static td_status resize_read(tdi_items *items, int column, int64_t row, void *to, tdi_error *error)
{
    const resize_source *stage = (const resize_source *)items;
    tdi_source *of = stage->of->source;
    td_dtype dtype = items->source.columns[column].dtype;
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
    tdi_source *of = stage->of->source;
    return stage->parts[column] == PART_NONE ? of->gather(of, column, rows, count, to, as, error)
                                             : tdi_items_gather(source, column, rows, count, to, as, error);
}

static td_status resize_begin(tdi_source *source, const tdi_source_pass *pass, tdi_error *error)
{
    return tdi_source_begin(((resize_source *)source)->of->source, pass, error);
}

static void resize_end(tdi_source *source)
{
    tdi_source_end(((resize_source *)source)->of->source);
}

static void resize_release(tdi_source *source)
{
    resize_source *stage = (resize_source *)source;
    td_data_release(stage->of);
    free(stage);
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

/* Integers that are a target's are class numbers. */
static column_part part_of(const tdi_source *source, int column)
{
    td_dtype dtype = source->columns[column].dtype;
    bool numbers = dtype == TD_FLOAT32 || dtype == TD_FLOAT64 || dtype == TD_BFLOAT16;
    return column < source->n_x || numbers ? PART_IMAGE : PART_MAP;
}

/* What is interpolated becomes a float, scaled, unless it is a byte. */
static void set_column(resize_source *stage, int at)
{
    tdi_column *column = &stage->items.source.columns[at];
    bool drawn = stage->of->source->drawn; /* such samples are given as float32 or int32 alone */
    stage->parts[at] = part_of(&stage->items.source, at);
    column->shape.dim[0] = stage->size.to.height;
    column->shape.dim[1] = stage->size.to.width;
    column->values = NULL;
    if (stage->parts[at] == PART_MAP)
        column->dtype = drawn ? TD_INT32 : column->dtype;
    else if (drawn || column->dtype != TD_UINT8)
        column->dtype = TD_FLOAT32;
    if (column->dtype == TD_FLOAT32)
        column->scale = 1;
}

static td_status fill(resize_source *stage, const td_resize_args *args, tdi_error *error)
{
    tdi_source *source = &stage->items.source;
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
    for (int i = 0; i < source->n_x + source->n_y; i++)
        if (is_of_size(&source->columns[i].shape, &stage->size.from))
            set_column(stage, i);
    return TD_OK;
}

static const tdi_source *resize_beneath(const tdi_source *source, int index)
{
    return index == 0 ? ((const resize_source *)source)->of->source : NULL;
}

static td_status make_resize(td_data *of, const void *args, tdi_source **source, tdi_error *error)
{
    resize_source *stage = calloc(1, sizeof *stage);
    if (!stage)
        return tdi_no_memory(error);
    stage->items.source = *of->source;
    stage->items.source.gather = resize_gather;
    stage->items.source.begin = of->source->begin ? resize_begin : NULL;
    stage->items.source.end = of->source->end ? resize_end : NULL;
    stage->items.source.count = tdi_count_beneath;
    stage->items.source.release = resize_release;
    stage->items.source.beneath = resize_beneath;
    stage->items.source.origin = NULL;
    stage->items.source.checksum = NULL;
    stage->items.read = resize_read;
    stage->of = of;
    td_status status = fill(stage, args, error);
    if (status == TD_OK)
        *source = &stage->items.source;
    else
        free(stage);
    return status;
}

td_data *td_resize_(const td_resize_args *args)
{
    return tdi_data_stage(args->data, &args->at, make_resize, args);
}
