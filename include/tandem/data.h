/* data.h - samples to train on and to predict from.
 *
 * A td_data is made without a context; a failure is kept inside and reported by the call that uses the data.
 * td_fit, td_evaluate and td_predict adopt the data they are given and release it when they return; to use one twice,
 * pass td_data_retain(data). */
#ifndef TANDEM_DATA_H
#define TANDEM_DATA_H

#include <tandem/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct td_data td_data;

/* Which part of a data set is meant where a path holds both (an IDX directory, an .npz with x_train and x_test). */
typedef enum td_role { TD_TRAIN = 0, TD_TEST } td_role;

/* One array of a sample: an input or a target. */
typedef struct td_column {
    td_shape shape; /* of one sample; rank 0: a number */
    td_dtype dtype; /* TD_FLOAT32 */
    float scale;    /* values are multiplied by this; 0: 1 */
} td_column;

/* A list of them: TD_COLUMNS({.shape = TD_SHAPE(8)}, {.shape = TD_SHAPE(1), .dtype = TD_INT32}). */
#define TD_COLUMNS(...) TD_LIST_(td_column, __VA_ARGS__, {.shape = {.rank = -1}})

/* In pixels. */
typedef struct td_image_size {
    int64_t height, width;
} td_image_size;

/* What stands in for a missing value: one that a CSV leaves empty, or that pandas reads as such: NA, N/A,
 * NaN, null, None, ... */
typedef enum td_missing {
    TD_MISSING_REFUSE = 0, /* nothing: such data is refused */
    TD_MISSING_MEAN,       /* the column's mean over the data that was trained on */
    TD_MISSING_ZERO,
    TD_MISSING_PREVIOUS, /* the value before it in the file; samples before the first are left out */
    TD_MISSING_DROP      /* samples that hold one are left out */
} td_missing;

typedef struct td_open_args {
    td_location at;
    const char *path;
    td_guard guard;
    td_role role;
    float scale; /* x is multiplied by this; 0: 1/255 for images of bytes (IDX, image files), 1 for all else */
    td_image_size image_size; /* bring all images to this size, as td_resize; 0: all must have one size */
    /* Which feature of a TFRecord is what, NULL: "x=image/encoded,y=image/class/label"; which columns of a CSV, as
     * "x=TEMP,PRES,wind:one-hot,y=pm2.5" (":codes": the category's number), NULL: y is the last, x all others; which
     * arrays of an .npz or HDF5 file, as "x0=a,x1=b,y=c", NULL: those in the path, or x and y. */
    const char *features;
    td_choice skip_errors; /* yes: samples that cannot be read are left out and counted (td_data_skipped); no */
    td_missing missing;    /* CSV */
    td_choice header;      /* CSV: yes: the first line holds the columns' names; no: it is a sample; else what it is is
                            * told by features, by the line below it, and by the other files */
    int64_t window;        /* CSV: x is [window, columns], as many rows in turn, each run of them a sample; 0: one row.
                            * Text: characters; 0: 100 */
    int64_t horizon;       /* CSV, with a window: how many rows behind its last y is taken from; 0: 1 */
    td_choice targets;     /* no: y and sample_weight are not needed, and a CSV's windows go to its end. A folder of
                            * images: no: all images in it and in folders below, without classes; yes */
    /* Which arrays weigh the losses: of an .npz, HDF5 or TFRecord file or the columns of a CSV, by their names; of
     * "x.npy,y.npy" another .npy file. One for all outputs, or one for each in turn, with commas. NULL: sample_weight
     * (or with x_train and x_test sample_weight_train and sample_weight_test, or sample_weight0, sample_weight1, ...)
     * where an .npz or HDF5 file has it; "none": no array. */
    const char *sample_weight;
    /* [inputs] of one sample, what each of the model's inputs takes (td_input_shape). Images are decoded to the
     * channels of the first, whatever their files have: 1 of grey, 3 of colours, 4 of colours and opacity; where
     * image_size is 0 all must have its size. Where a TFRecord's records differ, those that fit are right; a CSV's
     * unnamed first column is left out where it is one too many. NULL: three channels when one of the images has
     * colours, else one, and the first one's size; what most records hold is right. */
    const td_shape *input_shapes;
    int inputs;
    const char *recipe; /* td_model_recipe: what the arguments above leave open is as in the data that the model was
                         * trained on, its categories and means too; NULL: none */
} td_open_args;

/* Opens `path`: a folder of JPEG, PNG, BMP, GIF or WebP images (one folder a class, numbered in the order of their
 * names, with the images in it and in folders below it, as in Keras's image_dataset_from_directory; or "images,labels",
 * two folders of which the second holds a PNG of class numbers for each image, whose names a file classes.txt beside
 * that folder may give, one a line; or a folder with train and test or val in it), one image file (to predict),
 * TFRecord files of tf.train.Examples
 * (`file.tfrecord`, gzipped or not, several by a pattern or commas), an IDX directory (gzipped or not), CSV files
 * (`file.csv`, gzipped or not, several by a pattern or commas), HDF5 arrays (`file.h5:/x,/y`, read as they are needed;
 * `file.h5`: by their names, as in an .npz), `file.npz` (arrays x and y, or x_train, y_train, x_test, y_test; several
 * inputs or targets as x0, x1, ... and y0, y1, ...), UTF-8 text (`file.txt`: x is .window characters in turn, 100 when
 * 0, as their numbers in the text's alphabet, and y each one's next), or `x.npy,y.npy`. `y` may be missing (to
 * predict). The first extent of every array is the samples. Arrays hold integers of 8 to 64 bits, floats of 16 to 64,
 * or bools, in either order of bytes. Those of IDX, .npy and .npz files and the cells of a CSV are read into memory
 * when they take at most half of what is left of it; else by rows as they are needed, from the file, or, when it is
 * compressed or a CSV, from a temporary file in $TMPDIR (or /var/tmp), with the same results. Such a file must not
 * change meanwhile. A field that the format does not read is refused. Poison, never NULL, on failure. The caller
 * releases it with td_data_release unless a call adopts it. */
TD_API td_data *td_open_(const td_open_args *args);
#ifndef __cplusplus
#define td_open(...) td_open_(&(td_open_args){.at = TD_HERE, .path = __VA_ARGS__})
#endif
TD_BY_NAME_(td_data *, td_open, td_open_args)

/* MNIST, "train" or "test": `$TANDEM_DATA/mnist`, else the user's cache ($XDG_CACHE_HOME or ~/.cache, /tandem/mnist).
 * x: [28, 28] floats, value / 255; y: the digit. Never downloads. */
TD_API td_data *td_mnist(const char *part);

typedef struct td_arrays_args {
    td_location at;
    int64_t samples;
    const void *x; /* [samples, x_shape...], row-major; borrowed until the data is released */
    td_shape x_shape;
    td_guard guard;
    td_dtype x_dtype; /* TD_FLOAT32 */
    const void *y;    /* [samples, y_shape...]; NULL: none */
    td_shape y_shape; /* rank 0: one number a sample */
    td_dtype y_dtype; /* TD_FLOAT32 */
    float scale;      /* x is multiplied by this; 0: 1 */
    /* Weights of the losses, as Keras's sample_weight: [samples], or [samples, sample_weight_shape...] with a weight
     * for each position of the output, [time] of an output [time, classes]; NULL: none. */
    const float *sample_weight;
    td_shape sample_weight_shape; /* rank 0: one number a sample */
} td_arrays_args;

/* Arrays in memory, read in place. */
TD_API td_data *td_arrays_(const td_arrays_args *args);
#ifndef __cplusplus
#define td_arrays(...) td_arrays_(&(td_arrays_args){.at = TD_HERE, .samples = __VA_ARGS__})
#endif
TD_BY_NAME_(td_data *, td_arrays, td_arrays_args)

/* Samples in the data; -1 for poison, and where it is not known (a stream). */
TD_API int64_t td_data_samples(const td_data *data);
/* Samples left out because they could not be read, with .skip_errors; `*reason`, which may be NULL, receives what was
 * wrong with the first of them, borrowed until the data is released. */
TD_API int64_t td_data_skipped(const td_data *data, const char **reason);
/* What opening the data found that its user should know: which files of a folder, arrays of a file or columns of a CSV
 * are not used, for instance, and which array weighs the losses without having been named; "" for nothing. Borrowed
 * until the data is released. */
TD_API const char *td_data_note(const td_data *data);
/* How the data was read, for `.recipe`: JSON, borrowed until the data is released; NULL for formats that need none.
 * td_fit keeps it with the model, td_save in the model's file. */
TD_API const char *td_data_recipe(const td_data *data);
/* The characters that a text's recipe numbers 0, 1, ..., in Unicode: at most `most` of them are written. Returns how
 * many there are, 0 when it is no text's. */
TD_API int td_recipe_characters(const char *recipe, uint32_t *characters, int most);
/* The name of class `number` by the recipe of data that names its classes: folders of images, label maps with a
 * classes.txt beside them, a CSV whose y is one column of categories, TFRecords whose image/class/text says what
 * image/class/label is. `name`, which may be NULL when `size` is 0, receives at most size - 1 bytes of UTF-8, "" when
 * there is no such class. Returns how many classes have names; 0: none. */
TD_API int td_recipe_class(const char *recipe, int number, char *name, size_t size);
/* The shape of one sample's first input, or first target; TD_NOT_FOUND and rank 0 when there is none. */
TD_API td_status td_data_x_shape(const td_data *data, td_shape *shape);
TD_API td_status td_data_y_shape(const td_data *data, td_shape *shape);

/* Reads samples for a loop of one's own: `x` receives [count, x_shape...] and `y` [count, y_shape...], row-major
 * floats, x scaled, class numbers as floats; either may be NULL. `rows` are sample numbers in any order, NULL: the
 * first `count`. On failure, and for poison, the sentence is in `context`, and x and y are undefined. */
TD_API td_status td_data_read(td_context *context, td_data *data, const int64_t *rows, int64_t count, float *x,
                              float *y);

/* Why the data is poison; NULL when it is fine. Borrowed until the data is released. */
TD_API const char *td_data_error(const td_data *data);
/* Another owner: each releases it once. Several threads may use, retain and release the same data. */
TD_API td_data *td_data_retain(td_data *data);
TD_API void td_data_release(td_data *data); /* NULL is accepted */

/* Writes floats, row-major, as a NumPy file of `shape`: beside `path`, fsynced, then renamed; on failure a file already
 * at `path` is untouched. */
TD_API td_status td_save_npy(td_context *context, const char *path, const float *values, const td_shape *shape);

typedef struct td_named_array {
    const char *name; /* "y0" */
    const float *values;
    td_shape shape;
} td_named_array;

/* The same for several arrays, as an .npz file. */
TD_API td_status td_save_npz(td_context *context, const char *path, int count, const td_named_array *arrays);

#ifdef __cplusplus
}
#endif
#endif
