/* state_log.c - td_state_file: a log that grows as a run goes on, cut back to where it was when the run was saved. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/context.h"
#include "base/text.h"
#include "train/backup/state.h"
#include "train/callbacks/callbacks.h"

/* A file is known by what stands before the place. */
enum { KNOWN_BY = 4096 };

static bool checksum_before(int fd, int64_t place, int64_t *checksum)
{
    unsigned char bytes[KNOWN_BY];
    size_t size = place < KNOWN_BY ? (size_t)place : KNOWN_BY;
    ssize_t got = pread(fd, bytes, size, (off_t)(place - (int64_t)size));
    *checksum = (int64_t)crc32(crc32(0, NULL, 0), bytes, got == (ssize_t)size ? (uInt)size : 0);
    return got == (ssize_t)size;
}

/* "log.csv.1": a name that nothing has. */
static bool free_name(const char *path, char *name, size_t size)
{
    struct stat facts;
    for (int number = 1; number < 1000; number++)
        if (snprintf(name, size, "%s.%d", path, number) >= (int)size)
            return false;
        else if (lstat(name, &facts) != 0)
            return errno == ENOENT;
    return false;
}

/* Another file at `path` behind the same stream, which has written nothing. */
static bool begin_anew(const char *path, FILE *file)
{
    int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    bool begun = fd >= 0 && dup2(fd, fileno(file)) >= 0;
    if (fd >= 0)
        close(fd);
    return begun;
}

/* What another run, or a hand, has left under the log's name is kept, but not written behind. */
static void set_aside(const char *path, FILE *file, tdi_text *line)
{
    char name[4200];
    struct stat facts;
    if (fstat(fileno(file), &facts) == 0 && facts.st_size == 0)
        tdi_text_format(
            line, "%s is empty, but it was not when the backup was made: it begins at the step resumed from", path);
    else if (free_name(path, name, sizeof name) && rename(path, name) == 0 && begin_anew(path, file))
        tdi_text_format(line,
                        "%s is not as it was when the backup was made: it is kept as %s, and the new one begins at the "
                        "step resumed from",
                        path, name);
    else
        tdi_text_format(line,
                        "%s is not as it was when the backup was made, and cannot be put aside: %s; what follows is "
                        "written behind it",
                        path, strerror(errno));
}

static void cut(td_state *state, const char *name, const char *path, FILE *file, int64_t place, int64_t wanted)
{
    struct stat facts;
    int64_t seen = 0;
    int fd = fileno(file);
    tdi_text line = {0};
    bool known = place >= 0 && fstat(fd, &facts) == 0 && facts.st_size >= place && checksum_before(fd, place, &seen) &&
                 seen == wanted;
    if (known && ftruncate(fd, (off_t)place) != 0)
        tdi_text_format(&line, "%s is not cut back to the step resumed from: %s", path ? path : name, strerror(errno));
    else if (!known && path)
        set_aside(path, file, &line);
    else if (!known)
        tdi_text_format(&line,
                        "%s \"%.64s\" is not cut back to the step resumed from: it is not as it was when the backup "
                        "was made",
                        state->prefix.chars ? state->prefix.chars : "", name);
    fseek(file, 0, SEEK_END);
    if (line.length && !line.failed && state->training)
        tdi_log(state->training->model->context, TD_LOG_WARNING, "%s", line.chars);
    tdi_text_free(&line);
}

void td_state_file(td_state *state, const char *name, const char *path, FILE *file)
{
    int64_t place = 0, checksum = 0;
    if (!state->restoring && file) {
        fseek(file, 0, SEEK_END); /* "a+" begins at the start, and only writing moves it */
        place = (int64_t)ftell(file);
        checksum_before(fileno(file), place, &checksum);
    }
    tdi_text key = {0};
    tdi_text_format(&key, "%s checksum", name);
    td_state_count(state, name, &place);
    td_state_count(state, key.chars ? key.chars : name, &checksum);
    tdi_text_free(&key);
    if (state->restoring && !state->looking && file && state->error.status == TD_OK)
        cut(state, name, path, file, place, checksum);
}
