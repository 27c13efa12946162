/* image_files.h - JPEG and PNG files as columns: listed, looked at, decoded and brought to one size. */
#ifndef TDI_DATA_SOURCE_IMAGE_FILES_H
#define TDI_DATA_SOURCE_IMAGE_FILES_H

#include "data/file_list.h"
#include "data/source.h"
#include "files/image.h"

/* Appends the image files of a folder (.jpg, .jpeg, .png, in any case), by name. TD_NOT_FOUND when there is no such
 * folder. */
td_status tdi_list_images(const char *folder, tdi_paths *paths, tdi_error *error);
/* Appends the folders in a folder, by name; hidden ones are left out. */
td_status tdi_list_folders(const char *folder, tdi_paths *paths, tdi_error *error);

/* What a column's images are brought to. */
typedef struct tdi_image_form {
    tdi_image_kind kind;
    tdi_image image; /* size and channels */
    bool resize;     /* else every file must have the size */
    bool nearest;    /* class numbers: resized to the nearest pixel, not interpolated */
} tdi_image_form;

/* The form that a first file shows, unless `height` is given. */
td_status tdi_image_form_of(const char *path, tdi_image_kind kind, const td_image_size *size, tdi_image_form *form,
                            tdi_error *error);

/* Decodes an image in memory to [height, width, channels] bytes of the form: colours are interpolated (bilinear, as
 * tf.image.resize, rounded to bytes), class numbers taken from the nearest pixel. The sentence has no name in front. */
td_status tdi_image_form_decode(const void *bytes, size_t size, const tdi_image_form *form, uint8_t *to,
                                tdi_error *error);

/* The same with a file. */
td_status tdi_image_read(const char *path, const tdi_image_form *form, uint8_t *to, tdi_error *error);

#endif
