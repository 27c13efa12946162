/* stages.h - what is done to samples between where they come from and the model.
 *
 *     td_data *train = td_open("cifar10/train-*");
 *     train = td_cache(train);
 *     train = td_augment(train, .flip = TD_FLIP_HORIZONTAL, .crop = 4);
 *     td_fit(model, train, .epochs = 10);
 *
 * A stage adopts the data it is given and gives new data; poison passes through it. Where samples have to be decoded or
 * augmented, td_fit, td_evaluate and td_predict do so ahead of the devices, on threads of their own. Augmented data
 * serves one td_fit at a time: one more that begins meanwhile fails with a sentence. */
#ifndef TANDEM_STAGES_H
#define TANDEM_STAGES_H

#include <tandem/data.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct td_cache_args {
    td_location at;
    td_data *data; /* adopted */
    td_guard guard;
    const char *file; /* NULL: in memory */
} td_cache_args;

/* Keeps samples as they are first read and decoded, in memory or in a file, so that every later epoch finds them there.
 * A file becomes complete, under its name, once every sample has been read; when it exists it is used, and refused with
 * a sentence when the data it was made of has changed. Cache before samples are drawn anew (td_augment). A stream whose
 * length is not known is run through once, here, to count it: it must have an end. Poison, never NULL, when there is no
 * room for all samples. */
TD_API td_data *td_cache_(const td_cache_args *args);
#ifndef __cplusplus
#define td_cache(...) td_cache_(&(td_cache_args){.at = TD_HERE, .data = __VA_ARGS__})
#endif
TD_BY_NAME_(td_data *, td_cache, td_cache_args)

typedef struct td_resize_args {
    td_location at;
    td_data *data;         /* adopted */
    int64_t height, width; /* in pixels */
    td_guard guard;
} td_resize_args;

/* Images of another size: every input of the first one's height and width, [height, width] or [height, width,
 * channels], is interpolated (bilinear, as Keras's ops.image.resize, without antialiasing), and so is a target of
 * floats of that size; of a target of integers, a label map, the nearest pixel is taken. Bytes stay bytes, rounded; all
 * else becomes float32. td_open's .image_size does this where the images of a file have one size. Poison, never NULL,
 * when the first input is no image. */
TD_API td_data *td_resize_(const td_resize_args *args);
#ifndef __cplusplus
#define td_resize(...) td_resize_(&(td_resize_args){.at = TD_HERE, .data = __VA_ARGS__})
#endif
TD_BY_NAME_(td_data *, td_resize, td_resize_args)

typedef enum td_flip {
    TD_FLIP_NONE = 0,
    TD_FLIP_HORIZONTAL, /* left becomes right */
    TD_FLIP_VERTICAL,   /* up becomes down */
    TD_FLIP_BOTH        /* each by a draw of its own */
} td_flip;

/* What stands around an image, as Keras's fill_mode. */
typedef enum td_fill {
    TD_FILL_DEFAULT = 0, /* zeros when .crop alone moves images and no label map; else reflected */
    TD_FILL_ZEROS,       /* Keras: constant */
    TD_FILL_REFLECT,     /* d c b a | a b c d | d c b a */
    TD_FILL_NEAREST,     /* a a a a | a b c d | d d d d */
    TD_FILL_WRAP         /* a b c d | a b c d | a b c d */
} td_fill;

/* In the order in which they are done to an image. Fractions are from 0 to 1; 0: not at all. */
typedef struct td_augment_args {
    td_location at;
    td_data *data; /* adopted */
    td_guard guard;
    td_flip flip;     /* with probability 1/2 */
    int crop;         /* pixels put around; of that, a piece of the image's own size is cut out anywhere */
    float shift;      /* up to this fraction of the height and of the width, as Keras's RandomTranslation */
    float rotation;   /* up to this fraction of a full turn either way, as Keras's RandomRotation */
    float contrast;   /* distances from the mean times 1 - f to 1 + f, as Keras's RandomContrast */
    float brightness; /* up to this fraction of the range of values is added, as Keras's RandomBrightness */
    td_fill fill;
    float value_max; /* values are from 0 to this: bytes before they are scaled, all else after; 0: 255 for bytes, else
                        1 */
} td_augment_args;

/* Samples change at random in training: every input of rank 2 or more is an image, [height, width] or [height, width,
 * channels], and a target of the first image's height and width, a label map or another image, is moved as it is.
 * Shifts by parts of a pixel and rotations are interpolated (bilinear); class numbers are taken from the nearest pixel.
 * Draws are fixed by (seed, epoch, sample number). Validation, td_evaluate, td_predict and td_data_read see samples as
 * they are. Poison, never NULL, when an argument is wrong or no input is an image. */
TD_API td_data *td_augment_(const td_augment_args *args);
#ifndef __cplusplus
#define td_augment(...) td_augment_(&(td_augment_args){.at = TD_HERE, .data = __VA_ARGS__})
#endif
TD_BY_NAME_(td_data *, td_augment, td_augment_args)

/* A sample that td_map's function is given. */
typedef struct td_map_sample {
    int64_t number; /* in the data that is mapped, from 0 */
    uint64_t key; /* of draws: mixed of (seed, epoch, number) in td_fit's training of a .random map, else of the number
                   * alone. A generator that begins with it gives the same on any thread, and again after a resume */
    int training; /* 1: td_fit trains on it, through a .random map */
    const float *const *x; /* its inputs, as td_data_read gives them: packed floats, scaled */
    const float *const *y; /* its targets, class numbers as floats; NULL without .y, or when the data has none */
    void *const *to_x;     /* to be written: each input, packed, in its dtype */
    void *const *to_y;     /* and each target; NULL when y is */
} td_map_sample;

typedef struct td_map_args {
    td_location at;
    td_data *data; /* adopted */
    td_guard guard;
    td_status (*function)(void *user, const td_map_sample *sample);
    void *user;
    void (*release)(void *user); /* when the data is released; NULL: nothing is to do */
    const td_column
        *x; /* TD_COLUMNS(...): the inputs that are made, copied; NULL: floats of the shapes that there are */
    const td_column *y; /* the targets; NULL: they stay as they are, and the function does not see them */
    td_choice random;   /* yes: in training it is another sample each epoch, drawn by its key; no */
} td_map_args;

/* Samples made of others by a function, one by one, of other shapes and types where .x or .y says so: features, a
 * format of one's own, an augmentation that td_augment has not. Unlike td_augment's, its samples are made in every
 * pass, validation, td_evaluate and td_predict too: a function that augments looks at .training. Called ahead of the
 * devices, from several threads at once, for every sample once a pass; what it makes must follow from the sample and
 * its key alone. td_cache before it keeps what it is given; behind it what it made, unless that is .random: then
 * td_cache is refused. A status other than TD_OK ends the call that uses the data with it, and a sentence that names
 * the sample. Data without targets stays so. Random maps serve one pass at a time. Poison, never NULL, when an argument
 * is wrong. */
TD_API td_data *td_map_(const td_map_args *args);
#ifndef __cplusplus
#define td_map(...) td_map_(&(td_map_args){.at = TD_HERE, .data = __VA_ARGS__})
#endif
TD_BY_NAME_(td_data *, td_map, td_map_args)

/* ---- other rows of the same samples ---- */

typedef struct td_repeat_args {
    td_location at;
    td_data *data; /* adopted */
    int64_t times; /* 1 or more */
    td_guard guard;
} td_repeat_args;

/* The samples `times` times over: an epoch has so many. Repeat first and augment then, and each time is drawn anew. */
TD_API td_data *td_repeat_(const td_repeat_args *args);
#ifndef __cplusplus
#define td_repeat(...) td_repeat_(&(td_repeat_args){.at = TD_HERE, .data = __VA_ARGS__})
#endif
TD_BY_NAME_(td_data *, td_repeat, td_repeat_args)

typedef struct td_shard_args {
    td_location at;
    td_data *data;    /* adopted */
    int index, count; /* index from 0 */
    td_guard guard;
} td_shard_args;

/* One worker's share: every count-th sample from sample `index` on. The shares have every sample once; none is padded,
 * none left out, so that their sizes differ by one at most. The replicas of one td_fit need no shards: they share each
 * batch. */
TD_API td_data *td_shard_(const td_shard_args *args);
#ifndef __cplusplus
#define td_shard(...) td_shard_(&(td_shard_args){.at = TD_HERE, .data = __VA_ARGS__})
#endif
TD_BY_NAME_(td_data *, td_shard, td_shard_args)

#define TD_DATA_LIST(...) TD_LIST_(td_data *, __VA_ARGS__, NULL)

typedef struct td_interleave_args {
    td_location at;
    td_data *const *list; /* TD_DATA_LIST(...); the list is copied, its data adopted */
    td_guard guard;
    int64_t block; /* 1: samples of each in turn */
} td_interleave_args;

/* Several data as one: `block` samples of the first, of the second, ..., and again; who has no more is passed by. All
 * must have samples of the same shapes and types. */
TD_API td_data *td_interleave_(const td_interleave_args *args);
#ifndef __cplusplus
#define td_interleave(...) td_interleave_(&(td_interleave_args){.at = TD_HERE, .list = __VA_ARGS__})
#endif
TD_BY_NAME_(td_data *, td_interleave, td_interleave_args)

#ifdef __cplusplus
}
#endif
#endif
