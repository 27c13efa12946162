/* output_conflicts.c - finds options that name the same file. */
#include "output_conflicts.h"

#include <fnmatch.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "output_path.h"

struct file {
    const char *option, *path; /* path NULL: not given */
};

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* True when two paths, of files that do not exist yet, have the same folder and name. */
static bool will_be_one(const char *a, const char *b)
{
    struct stat of_a, of_b;
    char folder_a[OUTPUT_SIZE], folder_b[OUTPUT_SIZE];
    return strcmp(output_folder(a, folder_a), output_folder(b, folder_b)) == 0 && stat(folder_a, &of_a) == 0 &&
           stat(folder_b, &of_b) == 0 && is_same(&of_a, &of_b);
}

static bool is_one_file(const char *a, const char *b)
{
    struct stat of_a, of_b;
    bool is_a = stat(a, &of_a) == 0, is_b = stat(b, &of_b) == 0;
    if (is_a && is_b)
        return is_same(&of_a, &of_b) && S_ISREG(of_a.st_mode);
    return !is_a && !is_b && will_be_one(a, b);
}

static int check(const struct file *written, const struct file *other)
{
    if (!written->path || !other->path || !is_one_file(written->path, other->path))
        return TOOL_DONE;
    return tool_refuse("%s and %s name one file, %s; give them two", written->option, other->option, written->path);
}

/* True for names that can be data in or beside a folder of images or IDX files. */
static bool may_be_data(const char *path)
{
    static const char *const ends[] = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".gz", "ubyte", "classes.txt"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t length = strlen(path), end = strlen(ends[i]);
        if (length >= end && strcasecmp(path + length - end, ends[i]) == 0)
            return true;
    }
    return false;
}

/* Refuses to write an existing file that belongs to a folder of data: in it, in a folder within, or its classes.txt. */
static int check_folder(const struct file *written, const char *option, const char *data)
{
    struct stat folder, above;
    char path[PATH_MAX], names[PATH_MAX + 16];
    if (stat(data, &folder) != 0 || !S_ISDIR(folder.st_mode) || !may_be_data(written->path) ||
        !realpath(written->path, path) || !realpath(data, names))
        return TOOL_DONE;
    strcpy(strrchr(names, '/'), "/classes.txt");
    bool inside = strcmp(path, names) == 0;
    for (char *slash; !inside && (slash = strrchr(path, '/')) && slash > path;) {
        *slash = '\0';
        inside = stat(path, &above) == 0 && is_same(&above, &folder);
    }
    return inside ? tool_refuse("%s: %s is a file of the data of %s, %s; give it another name", written->option,
                                written->path, option, data)
                  : TOOL_DONE;
}

/* Refuses to write one of the files that a data path names: "file.h5:/x,/y", 'a*.csv', x.npy,y.npy. */
static int check_data(const struct file *written, const char *option, const char *data)
{
    char list[OUTPUT_SIZE], *rest = list;
    int status = TOOL_DONE;
    if (!data || !written->path || (size_t)snprintf(list, sizeof list, "%s", data) >= sizeof list)
        return TOOL_DONE;
    char *inside = strstr(list, ":/");
    if (inside)
        *inside = '\0';
    for (char *word; status == TOOL_DONE && (word = strsep(&rest, ","));) {
        glob_t found = {0};
        if (glob(word, GLOB_NOCHECK, NULL, &found) == 0)
            for (size_t i = 0; i < found.gl_pathc && status == TOOL_DONE; i++) {
                status = check(written, &(struct file){option, found.gl_pathv[i]});
                if (status == TOOL_DONE)
                    status = check_folder(written, option, found.gl_pathv[i]);
            }
        globfree(&found);
    }
    return status;
}

static int check_all_data(const struct options *options, const struct file *written)
{
    const struct file sources[] = {
        {"--validation", options->validation}, {"--data", options->data}, {"--text", options->text}};
    int status = TOOL_DONE;
    for (int i = 0; i < options->n_train && status == TOOL_DONE; i++)
        status = check_data(written, "--train", options->train[i]);
    for (size_t i = 0; i < sizeof sources / sizeof *sources && status == TOOL_DONE; i++)
        status = check_data(written, sources[i].option, sources[i].path);
    return status;
}

/* True when a name of the pattern "ckpt/{epoch:02d}.keras" may be `path`. */
static bool may_name(const char *checkpoint, const char *path)
{
    char pattern[2 * OUTPUT_SIZE], folder[OUTPUT_SIZE], other[OUTPUT_SIZE];
    size_t at = 0;
    struct stat of_folder, of_other;
    const char *name = output_folder(checkpoint, folder), *read = output_folder(path, other);
    for (bool named = false; *name && at + 3 < sizeof pattern; name++) {
        if (!named && strchr("*?[\\", *name))
            pattern[at++] = '\\';
        if (!named)
            pattern[at++] = *name == '{' ? '*' : *name;
        named = *name == '{' || (named && *name != '}');
    }
    pattern[at] = '\0';
    return stat(folder, &of_folder) == 0 && stat(other, &of_other) == 0 && is_same(&of_folder, &of_other) &&
           fnmatch(pattern, read, 0) == 0;
}

static int check_checkpoint(const struct options *options, const struct file *read)
{
    const char *checkpoint = options->checkpoint;
    if (!checkpoint || !read->path || !strchr(checkpoint, '{') || !may_name(checkpoint, read->path))
        return TOOL_DONE;
    return tool_refuse("--checkpoint: %s may become the name of %s, %s, which is read; give it another", checkpoint,
                       read->option, read->path);
}

/* The result, and a checkpoint, may replace the model that was read, because files are written whole. */
int output_conflicts_check(const struct options *options, const char *output)
{
    const struct file model = {"MODEL", options->argument}, weights = {"--weights", options->weights};
    const struct file written[] = {{"--output", output},        {"--checkpoint", options->checkpoint},
                                   {"--log", options->log},     {"--csv-log", options->csv_log},
                                   {"--trace", options->trace}, {"--confusion-file", options->confusion_file}};
    int status = check_checkpoint(options, &model);
    if (status == TOOL_DONE)
        status = check_checkpoint(options, &weights);
    for (int i = 0; i < (int)(sizeof written / sizeof *written) && status == TOOL_DONE; i++) {
        for (int before = 0; before < i && status == TOOL_DONE; before++)
            status = check(&written[i], &written[before]);
        if (status == TOOL_DONE && i >= 2)
            status = check(&written[i], &model);
        if (status == TOOL_DONE && i >= 2)
            status = check(&written[i], &weights);
        if (status == TOOL_DONE)
            status = check_all_data(options, &written[i]);
    }
    return status;
}
