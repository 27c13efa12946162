/* image_files.h - image files as a column's samples: what all of them become, and reading one. */
#ifndef TDI_DATA_SOURCE_IMAGE_FILES_H
#define TDI_DATA_SOURCE_IMAGE_FILES_H

#include "data/file_list.h"
#include "data/source.h"
#include "files/image_codec.h"

/* The form of all of a column's images. */
typedef struct tdi_image_form {
    tdi_image_kind kind;
    tdi_image image;     /* size and channels; what is 0 is open, until tdi_image_form_resolve */
    int64_t elements;    /* of a model's input that is flat: height * width * channels; 0: it is not flat */
    bool resize;         /* images are resized; else every file must have the size */
    bool nearest;        /* they hold class numbers, which are resized by the nearest pixel and not interpolated */
    const char *size_of; /* for messages, whose size it is: "the model takes"; NULL: the first image's */
} tdi_image_form;

/* What the arguments say of the inputs' form: the model's first input, and image_size before it. */
tdi_image_form tdi_image_form_wanted(const td_open_args *args);

/* Resolves what is open: the size is that of the first image that can be read (for a flat input, that fits), and there
 * are 3 channels when one of the images has colours. Without `skip` the first file must have the size already. */
td_status tdi_image_form_resolve(const tdi_paths *files, bool skip, tdi_image_form *form, tdi_error *error);

/* Decodes an image in memory to bytes [height, width, channels] of the form. Colours are resized by bilinear
 * interpolation as tf.image.resize does, rounded to bytes; class numbers by the nearest pixel. The sentence of a
 * failure names no file. */
td_status tdi_image_form_decode(const void *bytes, size_t size, const tdi_image_form *form, uint8_t *to,
                                tdi_error *error);

/* The same for a file, which the sentence names. */
td_status tdi_image_read(const char *path, const tdi_image_form *form, uint8_t *to, tdi_error *error);

#endif
