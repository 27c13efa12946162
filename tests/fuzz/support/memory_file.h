/* memory_file.h - bytes as a file that has a path. */
#ifndef TEST_FUZZ_MEMORY_FILE_H
#define TEST_FUZZ_MEMORY_FILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MEMORY_PATH = 64 };

/* Fills in its path; the caller closes it. */
static inline int memory_file(const uint8_t *bytes, size_t size, char path[MEMORY_PATH])
{
    int fd = memfd_create("bytes", MFD_CLOEXEC);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
        abort();
    snprintf(path, MEMORY_PATH, "/proc/self/fd/%d", fd);
    return fd;
}

#endif
