/* folders.h - folders, and the place of the user's cache. */
#ifndef TDI_FILES_FOLDERS_H
#define TDI_FILES_FOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

bool tdi_is_folder(const char *path);
/* True when no name leads to the open file any more, so that what is written to it is lost. */
bool tdi_is_removed(FILE *file);

/* Makes a folder and those above it, as mkdir -p. Returns 0, or the errno of the failure. `path` is changed meanwhile
 * and restored. */
int tdi_make_folders(char *path, mode_t mode);

/* Sets `path` to "tandem/`name`" in the user's cache by the XDG rules; an empty name gives the folder itself. A
 * relative $XDG_CACHE_HOME or $HOME counts as unset. False when there is no such place, or it does not fit into `size`.
 */
bool tdi_user_cache(const char *name, char *path, size_t size);

#endif
