/* scratch.h - a folder for a test's files. */
#ifndef TESTS_FILES_SCRATCH_H
#define TESTS_FILES_SCRATCH_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char scratch_folder[] = "/tmp/tandem-test-XXXXXX";

static int scratch_create(void **state)
{
    (void)state;
    return mkdtemp(scratch_folder) ? 0 : -1;
}

static const char *scratch_path(const char *name)
{
    static char path[4][512];
    static int next;
    char *at = path[next++ % 4];
    snprintf(at, sizeof path[0], "%s/%s", scratch_folder, name);
    return at;
}

/* Files in the folder. */
__attribute__((unused)) static int scratch_count(void)
{
    int count = 0;
    DIR *folder = opendir(scratch_folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        count += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
    closedir(folder);
    return count;
}

static int scratch_remove(void **state)
{
    (void)state;
    DIR *folder = opendir(scratch_folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        unlink(scratch_path(entry->d_name));
    closedir(folder);
    return rmdir(scratch_folder);
}

__attribute__((unused)) static void scratch_write(const char *name, const void *bytes, size_t size)
{
    FILE *file = fopen(scratch_path(name), "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
        abort();
}

/* The whole file; the caller frees it. */
__attribute__((unused)) static char *scratch_read(const char *name, size_t *size)
{
    FILE *file = fopen(scratch_path(name), "rb");
    char *bytes = malloc(1 << 22);
    if (!file || !bytes)
        abort();
    *size = fread(bytes, 1, 1 << 22, file);
    fclose(file);
    return bytes;
}

#endif
