/* output_path.c - the paths of results. A file is written beside its name and renamed, so its folder must be writable.
 */
#include "output_path.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool.h"

bool output_ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

const char *output_folder(const char *path, char folder[OUTPUT_SIZE])
{
    const char *slash = strrchr(path, '/');
    snprintf(folder, OUTPUT_SIZE, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    return slash ? slash + 1 : path;
}

/* True when a file can be made in the folder. Permissions do not tell: /proc claims to be writable. */
static bool takes_files(const char *folder)
{
    char trial[OUTPUT_SIZE + 32];
    snprintf(trial, sizeof trial, "%s/.tandem-XXXXXX", folder);
    int file = mkstemp(trial);
    if (file < 0)
        return false;
    close(file);
    unlink(trial);
    return true;
}

int output_check_folder(const char *option, const char *path)
{
    char folder[OUTPUT_SIZE];
    struct stat info;
    output_folder(path, folder);
    if (stat(folder, &info) != 0)
        return tool_fail("%s: cannot write %s: folder %s: %s; make it first, or name another", option, path, folder,
                         strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return tool_fail("%s: cannot write %s: %s is not a folder; name another", option, path, folder);
    if (!takes_files(folder))
        return tool_fail("%s: cannot write %s: folder %s: %s; name a file in a folder of yours", option, path, folder,
                         strerror(errno));
    return TOOL_DONE;
}

static int check_path(const char *path, const char *extension)
{
    struct stat info;
    bool exists = stat(path, &info) == 0;
    if (exists && S_ISDIR(info.st_mode))
        return tool_fail("--output: %s is a folder; expected the name of a file, try %s%sout%s", path, path,
                         output_ends_in(path, "/") ? "" : "/", extension);
    if (!output_ends_in(path, extension))
        return tool_refuse("--output: expected a name that ends in %s, got '%s'; try %s%s", extension, path, path,
                           extension);
    if (exists && !S_ISREG(info.st_mode))
        return tool_fail("--output: %s is not a regular file; name another", path);
    return output_check_folder("--output", path);
}

int output_path(const char *given, const char *model, const char *suffix, const char *extension, char path[OUTPUT_SIZE])
{
    int length;
    if (given) {
        length = snprintf(path, OUTPUT_SIZE, "%s", given);
    } else {
        const char *slash = strrchr(model, '/'), *stem = slash ? slash + 1 : model;
        bool named = output_ends_in(stem, ".keras") && strcmp(stem, ".keras") != 0;
        size_t stem_length = strlen(stem) - (named ? strlen(".keras") : 0);
        length = snprintf(path, OUTPUT_SIZE, "%.*s%s", (int)stem_length, stem, suffix);
    }
    if (length >= OUTPUT_SIZE)
        return tool_refuse("--output: expected a path of less than %d bytes, got %d", OUTPUT_SIZE, length);
    return check_path(path, extension);
}
