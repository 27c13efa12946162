/* file_list.c - lists of files from words with commas and patterns. */
#include "data/file_list.h"

#include <glob.h>
#include <string.h>
#include <strings.h>

static td_status add_pattern(const char *pattern, tdi_paths *paths, tdi_error *error)
{
    glob_t found;
    int code = glob(pattern, 0, NULL, &found);
    if (code == GLOB_NOMATCH)
        return tdi_fail(error, TD_NOT_FOUND, "%s: no such file", pattern);
    if (code != 0)
        return code == GLOB_NOSPACE ? tdi_no_memory(error)
                                    : tdi_fail(error, TD_IO, "%s: the folder cannot be read", pattern);
    td_status status = TD_OK;
    for (size_t i = 0; i < found.gl_pathc && status == TD_OK; i++) {
        char *path = strdup(found.gl_pathv[i]);
        if (!path || !tdi_push(paths, path)) {
            free(path);
            status = tdi_no_memory(error);
        }
    }
    globfree(&found);
    return status;
}

td_status tdi_list_files(const char *patterns, tdi_paths *paths, tdi_error *error)
{
    char *list = strdup(patterns), *rest = list;
    if (!list)
        return tdi_no_memory(error);
    td_status status = TD_OK;
    for (char *pattern; status == TD_OK && (pattern = strsep(&rest, ","));)
        status = add_pattern(pattern, paths, error);
    free(list);
    return status;
}

bool tdi_names_file(const char *patterns, const char *ending)
{
    size_t length = strcspn(patterns, ","), tail = strlen(ending);
    return length > tail && strncasecmp(patterns + length - tail, ending, tail) == 0;
}

void tdi_paths_free(tdi_paths *paths)
{
    for (int i = 0; i < paths->count; i++)
        free(paths->at[i]);
    tdi_vec_free(paths);
}
