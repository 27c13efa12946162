/* augment.c - td_augment: changes images at random in training, and moves targets with them.
 *
 * The draws of a sample depend on (seed, epoch, sample number) alone. So all its columns move alike, in whatever order
 * and by whatever thread they are gathered, and in the same way after a resume. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "data/convert.h"
#include "data/source.h"
#include "data/stage/image_colours.h"
#include "data/stage/image_geometry.h"

#define AUGMENT_STREAM                                                                                                 \
    UINT64_C(0x6175676d656e7400) /* "augment"; keeps these draws independent of others by the same seed */

/* What the stage does with a column: nothing, change an image, move a label map, move and not recolour an image. */
typedef enum column_role { ROLE_NONE, ROLE_IMAGE, ROLE_MAP, ROLE_TARGET_IMAGE } column_role;

typedef struct augment_source {
    tdi_source source;
    td_augment_args args; /* `fill` is resolved */
    column_role roles[TDI_MAX_COLUMNS];
    atomic_bool busy; /* a run is under way; the members below are the run's */
    bool training;
    uint64_t seed;
    int64_t epoch;
} augment_source;

/* ---- draws ---- */

typedef struct draw {
    tdi_move move;
    float contrast, brightness; /* 1 and 0 change nothing */
} draw;

/* A draw from [-1, 1). */
static double symmetric(uint32_t word)
{
    return 2 * (double)tdi_uniform(word) - 1;
}

/* A whole number of pixels from [-most, most]. */
static double whole_pixels(uint32_t word, int most)
{
    return (double)((uint64_t)word * (uint64_t)(2 * most + 1) >> 32) - most;
}

static draw draw_for(const augment_source *augment, int64_t row, int64_t height, int64_t width)
{
    const td_augment_args *args = &augment->args;
    uint64_t stream = AUGMENT_STREAM + (uint64_t)augment->epoch, block = 4 * (uint64_t)row;
    tdi_philox whole_moves = tdi_philox_block(augment->seed, stream, block);
    tdi_philox fractional_moves = tdi_philox_block(augment->seed, stream, block + 1);
    tdi_philox colours = tdi_philox_block(augment->seed, stream, block + 2);
    bool across = args->flip == TD_FLIP_HORIZONTAL || args->flip == TD_FLIP_BOTH;
    bool over = args->flip == TD_FLIP_VERTICAL || args->flip == TD_FLIP_BOTH;
    return (draw){.move = {.flip_x = across && whole_moves.word[0] >> 31,
                           .flip_y = over && whole_moves.word[1] >> 31,
                           .down = whole_pixels(whole_moves.word[2], args->crop) +
                                   symmetric(fractional_moves.word[0]) * (double)args->shift * (double)height,
                           .right = whole_pixels(whole_moves.word[3], args->crop) +
                                    symmetric(fractional_moves.word[1]) * (double)args->shift * (double)width,
                           .turn = symmetric(fractional_moves.word[2]) * (double)args->rotation * 2 * M_PI},
                  .contrast = 1 + (float)symmetric(colours.word[0]) * args->contrast,
                  .brightness = (float)symmetric(colours.word[1]) * args->brightness};
}

/* ---- one sample ---- */

typedef struct image_size {
    int64_t height, width, channels;
} image_size;

static image_size size_of(const td_shape *shape)
{
    return (image_size){shape->dim[0], shape->dim[1], shape->rank == 3 ? shape->dim[2] : 1};
}

static void change_colours(const augment_source *augment, const draw *drawn, float *values, image_size size)
{
    float most = augment->args.value_max;
    if (augment->args.contrast > 0)
        tdi_change_contrast(values, size.height * size.width, size.channels, drawn->contrast, most);
    if (augment->args.brightness > 0)
        tdi_change_brightness(values, size.height * size.width * size.channels, drawn->brightness * most, most);
}

static void scale_floats(float *values, int64_t elements, double scale)
{
    for (int64_t i = 0; scale != 1 && i < elements; i++)
        values[i] = (float)((double)values[i] * scale);
}

/* Memory for one sample: as it is stored, moved, and as floats where values are computed. */
typedef struct scratch {
    char *stored, *moved;
    float *floats;
    size_t bytes;
    int64_t elements;
    void *memory;
} scratch;

static td_status make_scratch(const tdi_column *column, scratch *made, tdi_error *error)
{
    made->elements = tdi_sample_elements(&column->shape);
    made->bytes = ((size_t)made->elements * td_dtype_size(column->dtype) + 63) & ~(size_t)63;
    made->memory = malloc(2 * made->bytes + (size_t)made->elements * sizeof(float));
    if (!made->memory)
        return tdi_no_memory(error);
    made->stored = made->memory;
    made->moved = made->stored + made->bytes;
    made->floats = (float *)(void *)(made->moved + made->bytes);
    return TD_OK;
}

static void finish_moved(const tdi_column *column, const scratch *sample, float *to)
{
    tdi_convert_floats(column->dtype, sample->moved, to, sample->elements, tdi_exact_scale(tdi_stored_scale(column)));
}

/* Pixels whose values do not change are moved in their stored type. */
static void augment_floats(const augment_source *augment, int column, const draw *drawn, const scratch *sample,
                           float *to)
{
    const tdi_column *facts = &augment->source.columns[column];
    image_size size = size_of(&facts->shape);
    size_t pixel = (size_t)size.channels * td_dtype_size(facts->dtype);
    td_fill fill = augment->args.fill;
    bool is_whole = tdi_move_is_whole(&drawn->move);
    if (is_whole || augment->roles[column] == ROLE_MAP)
        tdi_move_nearest(sample->stored, sample->moved, size.height, size.width, pixel, &drawn->move, fill);
    bool coloured =
        augment->roles[column] == ROLE_IMAGE && (augment->args.contrast > 0 || augment->args.brightness > 0);
    if (augment->roles[column] == ROLE_MAP || (is_whole && !coloured)) {
        finish_moved(facts, sample, to);
        return;
    }
    if (is_whole) {
        tdi_convert_floats(facts->dtype, sample->moved, to, sample->elements, 1);
    } else {
        tdi_convert_floats(facts->dtype, sample->stored, sample->floats, sample->elements, 1);
        tdi_move_bilinear(sample->floats, to, size.height, size.width, size.channels, &drawn->move, fill);
    }
    if (coloured)
        change_colours(augment, drawn, to, size);
    scale_floats(to, sample->elements, tdi_exact_scale(tdi_stored_scale(facts)));
}

static td_status augment_classes(const augment_source *augment, int column, int64_t row, const draw *drawn,
                                 const scratch *sample, int32_t *to, tdi_error *error)
{
    const tdi_column *facts = &augment->source.columns[column];
    image_size size = size_of(&facts->shape);
    tdi_move_nearest(sample->stored, sample->moved, size.height, size.width,
                     (size_t)size.channels * td_dtype_size(facts->dtype), &drawn->move, augment->args.fill);
    if (tdi_convert_classes(facts->dtype, sample->moved, to, sample->elements) < 0)
        return TD_OK;
    const tdi_source *origin = tdi_source_origin(&augment->source, &row);
    return tdi_fail(error, TD_BAD_FILE, "%s: %s of sample %" PRId64 " holds what is not a class number", origin->name,
                    facts->name, row);
}

/* ---- the source ---- */

static td_status gather_augmented(augment_source *augment, int column, const int64_t *rows, int64_t count, char *to,
                                  td_dtype as, const scratch *sample, tdi_error *error)
{
    tdi_source *of = tdi_stage_below(&augment->source);
    const td_shape *image = &augment->source.columns[0].shape;
    size_t stride = (size_t)sample->elements * td_dtype_size(as);
    for (int64_t i = 0; i < count; i++, to += stride) {
        draw drawn = draw_for(augment, rows[i], image->dim[0], image->dim[1]);
        TDI_TRY(of->gather(of, column, &rows[i], 1, sample->stored, of->columns[column].dtype, error));
        if (as == TD_INT32)
            TDI_TRY(augment_classes(augment, column, rows[i], &drawn, sample, (int32_t *)(void *)to, error));
        else
            augment_floats(augment, column, &drawn, sample, (float *)(void *)to);
    }
    return TD_OK;
}

static td_status augment_gather(tdi_source *source, int column, const int64_t *rows, int64_t count, void *to,
                                td_dtype as, tdi_error *error)
{
    augment_source *augment = (augment_source *)source;
    tdi_source *of = tdi_stage_below(&augment->source);
    if (!augment->training || augment->roles[column] == ROLE_NONE)
        return of->gather(of, column, rows, count, to, as, error);
    scratch sample = {0};
    if (as != TD_INT32 && as != TD_FLOAT32)
        return tdi_fail(error, TD_INTERNAL, "%s: augmented samples cannot be read as %s", source->name,
                        td_dtype_name(as));
    TDI_TRY(make_scratch(&source->columns[column], &sample, error));
    td_status status = gather_augmented(augment, column, rows, count, to, as, &sample, error);
    free(sample.memory);
    return status;
}

static td_status augment_begin(tdi_source *source, const tdi_source_run *run, tdi_error *error)
{
    augment_source *augment = (augment_source *)source;
    if (atomic_exchange(&augment->busy, true))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s: augmented data serves one td_fit at a time: open and augment it again for another",
                        source->name);
    td_status status = tdi_source_begin(tdi_stage_below(&augment->source), run, error);
    augment->training = run->training && status == TD_OK;
    augment->seed = run->seed;
    augment->epoch = run->epoch;
    if (status != TD_OK)
        atomic_store(&augment->busy, false);
    return status;
}

static void augment_end(tdi_source *source)
{
    augment_source *augment = (augment_source *)source;
    tdi_source_end(tdi_stage_below(&augment->source));
    augment->training = false;
    atomic_store(&augment->busy, false);
}

/* ---- making it ---- */

static td_status check_fraction(const char *name, float value, tdi_error *error)
{
    if (value >= 0 && value <= 1)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "td_augment: %s is %g; a fraction from 0 to 1 was expected", name,
                    (double)value);
}

static td_status check_args(const td_augment_args *args, tdi_error *error)
{
    if (args->guard)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "td_augment takes one argument by position (data): name the rest, as .crop = 4");
    if ((unsigned)args->flip > TD_FLIP_BOTH || (unsigned)args->fill > TD_FILL_WRAP)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_augment: flip is %d and fill %d, of which one does not exist",
                        (int)args->flip, (int)args->fill);
    if (args->crop < 0 || args->crop > 1 << 16)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_augment: crop is %d; pixels from 0 to 65536 were expected",
                        args->crop);
    if (!(args->value_max >= 0) || !isfinite(args->value_max))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_augment: value_max is %g; a number above 0 was expected",
                        (double)args->value_max);
    TDI_TRY(check_fraction("shift", args->shift, error));
    TDI_TRY(check_fraction("rotation", args->rotation, error));
    TDI_TRY(check_fraction("contrast", args->contrast, error));
    return check_fraction("brightness", args->brightness, error);
}

static bool is_image(const td_shape *shape)
{
    return shape->rank == 2 || shape->rank == 3;
}

static bool is_of_size(const td_shape *shape, const td_shape *image)
{
    return is_image(shape) && shape->dim[0] == image->dim[0] && shape->dim[1] == image->dim[1];
}

static bool holds_numbers(td_dtype dtype)
{
    return dtype == TD_FLOAT32 || dtype == TD_FLOAT64 || dtype == TD_BFLOAT16;
}

/* Decides what is done with each column. Draws are made for the first input's size, so only columns of the same height
 * and width move. */
static td_status find_roles(augment_source *augment, bool *map, tdi_error *error)
{
    tdi_source *source = &augment->source;
    const td_shape *image = &source->columns[0].shape;
    if (!is_image(image))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s: %s has %d dimensions a sample; to be augmented it must be an image: [height, width] or "
                        "[height, width, channels]",
                        source->name, source->columns[0].name, image->rank);
    if (augment->args.crop >= image->dim[0] || augment->args.crop >= image->dim[1])
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s: crop is %d pixels, but images are %lld x %lld: fewer were expected, try 4", source->name,
                        augment->args.crop, (long long)image->dim[0], (long long)image->dim[1]);
    for (int i = 0; i < tdi_source_columns(source); i++) {
        tdi_column *column = &source->columns[i];
        if (!is_of_size(&column->shape, image))
            continue;
        bool is_map = i >= source->n_x && !holds_numbers(column->dtype);
        augment->roles[i] = i < source->n_x ? ROLE_IMAGE : is_map ? ROLE_MAP : ROLE_TARGET_IMAGE;
        *map |= is_map;
        column->values = NULL;
    }
    return TD_OK;
}

static void resolve(augment_source *augment, bool map)
{
    td_augment_args *args = &augment->args;
    bool crop_alone = args->crop > 0 && args->shift == 0 && args->rotation == 0 && !map;
    if (args->fill == TD_FILL_DEFAULT)
        args->fill = crop_alone ? TD_FILL_ZEROS : TD_FILL_REFLECT;
    if (args->value_max == 0)
        args->value_max = augment->source.columns[0].dtype == TD_UINT8 ? 255 : 1;
}

static td_status fill(augment_source *augment, tdi_error *error)
{
    bool map = false;
    TDI_TRY(check_args(&augment->args, error));
    TDI_TRY(find_roles(augment, &map, error));
    resolve(augment, map);
    return TD_OK;
}

static td_status make_augment(td_data *of, const void *args, tdi_source **source, tdi_error *error)
{
    augment_source *augment = calloc(1, sizeof *augment);
    if (!augment)
        return tdi_no_memory(error);
    tdi_stage_init(&augment->source, of);
    augment->source.gather = augment_gather;
    augment->source.begin = augment_begin;
    augment->source.end = augment_end;
    augment->source.release = tdi_stage_release;
    augment->source.drawn = true;
    augment->args = *(const td_augment_args *)args;
    td_status status = fill(augment, error);
    if (status == TD_OK)
        *source = &augment->source;
    else
        free(augment);
    return status;
}

td_data *td_augment_(const td_augment_args *args)
{
    return tdi_data_stage(args->data, &args->at, make_augment, args);
}
