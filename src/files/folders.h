/* folders.h - folders, and where the user's cache is. */
#ifndef TDI_FILES_FOLDERS_H
#define TDI_FILES_FOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

bool tdi_is_folder(const char *path);
/* An open file that no name leads to any more: what is written there is lost. */
bool tdi_is_removed(FILE *file);

/* mkdir -p: 0, or the errno of why there is no such folder. `path` is changed on the way and restored. */
int tdi_make_folders(char *path, mode_t mode);

/* The user's cache by the XDG rules, "tandem/`name`" in it; "" for the folder itself. A relative $XDG_CACHE_HOME or
 * $HOME counts as unset. False when there is no such place, or it does not fit. */
bool tdi_user_cache(const char *name, char *path, size_t size);

#endif
