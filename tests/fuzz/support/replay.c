/* replay.c - runs a fuzz target on every file of a folder: its seeds, with any compiler. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* An exact copy, so that a sanitizer sees a read beyond its end. */
static int replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        return 1;
    size_t size = (size_t)ftell(file);
    uint8_t *bytes = malloc(size ? size : 1);
    rewind(file);
    int failed = !bytes || fread(bytes, 1, size, file) != size;
    fclose(file);
    if (!failed)
        LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
    return failed;
}

int main(int argc, char **argv)
{
    int count = 0, failed = 0;
    DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
    if (!folder) {
        fprintf(stderr, "usage: replay FOLDER\n");
        return 2;
    }
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
        if (entry->d_name[0] != '.') {
            failed += replay(path);
            count++;
        }
    }
    closedir(folder);
    printf("%d inputs\n", count);
    return failed || count == 0;
}
