/* image_list.h - which files of a folder are images, and what else is there. */
#ifndef TDI_DATA_SOURCE_IMAGE_LIST_H
#define TDI_DATA_SOURCE_IMAGE_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "data/file_list.h"

/* The endings of names, in any case: Keras's list, and WebP's. */
#define TDI_IMAGE_ENDINGS ".bmp, .gif, .jpeg, .jpg, .png or .webp"

/* Why entries of folders are left out. */
typedef enum tdi_leave {
    TDI_LEAVE_OTHER_FILE, /* the name does not end as an image's */
    TDI_LEAVE_HIDDEN,     /* the name begins with a dot */
    TDI_LEAVE_BESIDE,     /* a file beside the class folders, or what lies beside a split */
    TDI_LEAVE_LINK,       /* a symbolic link to a folder below a class folder, which Keras does not follow either */
    TDI_LEAVE_FOLDER,     /* a folder where images are wanted without those below */
    TDI_LEAVE_COUNT
} tdi_leave;

typedef struct tdi_left_out {
    int64_t count[TDI_LEAVE_COUNT];
    char first[TDI_LEAVE_COUNT][256]; /* the path of the first by name */
} tdi_left_out;

/* True for a name that ends as an image's. */
bool tdi_is_image_name(const char *name);

/* Appends the images of a folder, and with `deep` of all folders below: folder by folder in the order of their paths,
 * in each by name, as Keras's image_dataset_from_directory does without shuffling. `left` may be NULL. TD_NOT_FOUND
 * when there is no such folder. */
td_status tdi_list_images(const char *folder, bool deep, tdi_paths *paths, tdi_left_out *left, tdi_error *error);
/* Appends the folders in a folder, and symbolic links to some, by name. */
td_status tdi_list_folders(const char *folder, tdi_paths *paths, tdi_left_out *left, tdi_error *error);

/* Counts an entry. */
void tdi_leave_out(tdi_left_out *left, tdi_leave why, const char *path);
/* Writes one sentence about all that was left out of `folder`; "" when nothing was. */
void tdi_left_out_sentence(const tdi_left_out *left, const char *folder, char *sentence, size_t size);

#endif
