/* images.h - the source of a folder of images, which images.c opens. */
#ifndef TDI_DATA_SOURCE_IMAGES_H
#define TDI_DATA_SOURCE_IMAGES_H

#include "data/recipe.h"
#include "data/sample_reader.h"
#include "data/source/image_files.h"
#include "data/source/image_list.h"

#define TDI_MAX_PATH 4096

typedef struct tdi_images {
    tdi_sample_reader reader;
    tdi_paths images, labels; /* labels: for segmentation */
    tdi_image_form form, label_form;
    int64_t *classes; /* [samples], for classification */
    tdi_left_out left;
} tdi_images;

/* image_classes.c: sets the images of a folder with one folder a class, their classes, and the recipe. */
td_status tdi_images_add_classes(tdi_images *source, const td_open_args *args, const char *path, tdi_error *error);

/* image_pairs.c: sets the images of a folder and their label maps, those of their names in another, and the recipe. */
td_status tdi_images_add_pairs(tdi_images *source, const td_open_args *args, const char *images, const char *labels,
                               tdi_error *error);

/* Adds the column of the images that were listed from `path`, and resolves their form. */
td_status tdi_images_add_x(tdi_images *source, const td_open_args *args, const char *path, tdi_error *error);
/* Adds the column of targets. */
void tdi_images_add_y(tdi_images *source, td_dtype dtype, const td_shape *shape);

/* The recipe's names of classes, a list of strings that the caller releases; NULL: it has none. */
json_t *tdi_images_known_classes(const td_open_args *args);
/* The recipe of such names, which the caller frees; NULL: no memory. */
char *tdi_images_recipe(json_t *classes);

#endif
