/* apart.c - one file under two options, of which the second would destroy what the first reads or writes. */
#include "apart.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "output.h"

struct file {
    const char *option, *path; /* NULL: not given */
};

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Of files that are not there yet: of one name in one folder. */
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

/* "file.h5:/x,/y", 'a*.csv', x.npy,y.npy: what of it are files. */
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
            for (size_t i = 0; i < found.gl_pathc && status == TOOL_DONE; i++)
                status = check(written, &(struct file){option, found.gl_pathv[i]});
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

/* The result, and a checkpoint, may take the place of the model that was read: it is written whole. */
int apart_check(const struct options *options, const char *output)
{
    const struct file model = {"MODEL", options->argument}, weights = {"--weights", options->weights};
    const struct file written[] = {{"--output", output},        {"--checkpoint", options->checkpoint},
                                   {"--log", options->log},     {"--csv-log", options->csv_log},
                                   {"--trace", options->trace}, {"--confusion-file", options->confusion_file}};
    int status = TOOL_DONE;
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
