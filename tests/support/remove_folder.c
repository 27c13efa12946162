#define _GNU_SOURCE
#include "support/remove_folder.h"

#include <ftw.h>
#include <stdio.h>

static int remove_one(const char *path, const struct stat *facts, int type, struct FTW *at)
{
    (void)facts, (void)type, (void)at;
    return remove(path);
}

int remove_folder(const char *path)
{
    return nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
