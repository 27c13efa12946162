/* folders.c - folders, and the place of the user's cache. */
#include "files/folders.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool tdi_is_folder(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

bool tdi_is_removed(FILE *file)
{
    struct stat facts;
    return fstat(fileno(file), &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_nlink == 0;
}

/* Keeps the first failure, of which those of the folders below follow. */
static void make_folder(const char *path, mode_t mode, int *reason)
{
    if (mkdir(path, mode) != 0 && errno != EEXIST && !*reason)
        *reason = errno;
}

int tdi_make_folders(char *path, mode_t mode)
{
    int reason = 0;
    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        if (slash == path)
            continue;
        *slash = '\0';
        make_folder(path, mode, &reason);
        *slash = '/';
    }
    make_folder(path, mode, &reason);
    return tdi_is_folder(path) ? 0 : reason ? reason : ENOTDIR;
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
