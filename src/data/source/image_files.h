/* image_files.h - JPEG and PNG files as a column's samples: lists, inspects, decodes and resizes them. */
#ifndef TDI_DATA_SOURCE_IMAGE_FILES_H
#define TDI_DATA_SOURCE_IMAGE_FILES_H

#include "data/file_list.h"
#include "data/source.h"
#include "files/image_codec.h"

/* Appends the image files of a folder (.jpg, .jpeg, .png, in any case), by name. TD_NOT_FOUND when there is no such
 * folder. */
td_status tdi_list_images(const char *folder, tdi_paths *paths, tdi_error *error);
/* Appends the folders in a folder, by name; hidden ones are left out. */
td_status tdi_list_folders(const char *folder, tdi_paths *paths, tdi_error *error);

/* The form of all of a column's images. */
typedef struct tdi_image_form {
    tdi_image_kind kind;
    tdi_image image; /* size and channels */
    bool resize;     /* images are resized; else every file must have the size */
    bool nearest;    /* they hold class numbers, which are resized by the nearest pixel and not interpolated */
} tdi_image_form;

/* Sets the form from the column's first file; a given `size` overrides the file's. */
td_status tdi_image_form_of(const char *path, tdi_image_kind kind, const td_image_size *size, tdi_image_form *form,
                            tdi_error *error);

/* Decodes an image in memory to bytes [height, width, channels] of the form. Colours are resized by bilinear
 * interpolation as tf.image.resize does, rounded to bytes; class numbers by the nearest pixel. The sentence of a
 * failure names no file. */
td_status tdi_image_form_decode(const void *bytes, size_t size, const tdi_image_form *form, uint8_t *to,
                                tdi_error *error);

/* The same for a file, which the sentence names. */
td_status tdi_image_read(const char *path, const tdi_image_form *form, uint8_t *to, tdi_error *error);

#endif
