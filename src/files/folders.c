/* folders.c - folders, and where the user's cache is. */
#include "files/folders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool tdi_is_folder(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

void tdi_make_folders(char *path, mode_t mode)
{
    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        if (slash == path)
            continue;
        *slash = '\0';
        mkdir(path, mode);
        *slash = '/';
    }
    mkdir(path, mode);
}

bool tdi_user_cache(const char *name, char *path, size_t size)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const char *slash = *name ? "/" : "";
    int length = -1;
    if (cache && cache[0] == '/')
        length = snprintf(path, size, "%s/tandem%s%s", cache, slash, name);
    else if (home && home[0] == '/')
        length = snprintf(path, size, "%s/.cache/tandem%s%s", home, slash, name);
    return length >= 0 && (size_t)length < size;
}
