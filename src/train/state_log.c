/* state_log.c - td_state_file: a log that grows as a run goes on, cut back to where it was when the run was saved. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "train/callbacks.h"
#include "train/state.h"

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

static void cut(td_state *state, const char *name, FILE *file, int64_t place, int64_t wanted)
{
    char line[256];
    struct stat facts;
    int64_t seen = 0;
    const char *reason = NULL;
    int fd = fileno(file);
    bool known = place >= 0 && fstat(fd, &facts) == 0 && facts.st_size >= place && checksum_before(fd, place, &seen) &&
                 seen == wanted;
    if (!known)
        reason = "it is not the file that it was when the backup was made";
    else if (ftruncate(fd, (off_t)place) != 0)
        reason = strerror(errno);
    fseek(file, 0, SEEK_END);
    snprintf(line, sizeof line, "%s \"%.64s\" is not cut back to the step resumed from: %s",
             state->prefix.chars ? state->prefix.chars : "", name, reason ? reason : "");
    if (reason && state->training)
        td_training_say(state->training, line);
}

void td_state_file(td_state *state, const char *name, FILE *file)
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
        cut(state, name, file, place, checksum);
}
