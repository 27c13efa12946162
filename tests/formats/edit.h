/* edit.h - the golden files, and changed copies of them. */
#ifndef TESTS_FORMATS_EDIT_H
#define TESTS_FORMATS_EDIT_H

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/scratch.h"
#include "files/zip.h"

/* A golden file's path; of a path, that. */
static const char *golden(const char *name)
{
    static char path[1024];
    if (name[0] == '/')
        return name;
    int folder = (int)(strrchr(__FILE__, '/') - __FILE__);
    snprintf(path, sizeof path, "%.*s/golden/%s", folder, __FILE__, name);
    return path;
}

/* Everything in a .keras file. */
typedef struct edit_parts {
    json_t *config;
    void *weights;
    size_t weights_size;
} edit_parts;

static edit_parts edit_open(const char *name)
{
    edit_parts parts = {0};
    tdi_zip *zip;
    void *bytes;
    size_t size;
    if (tdi_zip_open(golden(name), &zip, NULL) != TD_OK ||
        tdi_zip_read(zip, "config.json", SIZE_MAX, &bytes, &size, NULL) != TD_OK ||
        tdi_zip_read(zip, "model.weights.h5", SIZE_MAX, &parts.weights, &parts.weights_size, NULL) != TD_OK)
        abort();
    parts.config = json_loadb(bytes, size, 0, NULL);
    free(bytes);
    tdi_zip_close(zip);
    return parts;
}

static void edit_release(edit_parts *parts)
{
    json_decref(parts->config);
    free(parts->weights);
}

/* Writes a .keras file of any bytes; NULL leaves an entry out. */
static const char *edit_save(const char *name, const char *config, const void *weights, size_t weights_size)
{
    tdi_zip_entry entries[3] = {{.name = "metadata.json", .bytes = "{}", .size = 2}};
    int count = 1;
    if (config)
        entries[count++] = (tdi_zip_entry){.name = "config.json", .bytes = config, .size = strlen(config)};
    if (weights)
        entries[count++] = (tdi_zip_entry){.name = "model.weights.h5", .bytes = weights, .size = weights_size};
    if (tdi_zip_write(scratch_path(name), count, entries, NULL) != TD_OK)
        abort();
    return scratch_path(name);
}

/* Goes to "config.layers.2.config.units", all but the last step, which is left in `last`. */
static json_t *edit_find(json_t *at, const char *path, char last[64])
{
    for (;;) {
        size_t length = strcspn(path, ".");
        snprintf(last, 64, "%.*s", (int)length, path);
        if (!path[length])
            return at;
        at = json_is_array(at) ? json_array_get(at, (size_t)atoi(last)) : json_object_get(at, last);
        if (!at)
            abort();
        path += length + 1;
    }
}

/* Puts JSON text at the path; NULL removes what is there. */
static void edit_put(json_t *root, const char *path, const char *text)
{
    char last[64];
    json_t *at = edit_find(root, path, last), *value = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
    if (text && !value)
        abort();
    int failed = json_is_array(at) ? (value ? json_array_set_new(at, (size_t)atoi(last), value)
                                            : json_array_remove(at, (size_t)atoi(last)))
                                   : (value ? json_object_set_new(at, last, value) : json_object_del(at, last));
    if (failed)
        abort();
}

/* A copy of a golden file with one change; its path. */
__attribute__((unused)) static const char *edit_copy(const char *name, const char *path, const char *text)
{
    edit_parts parts = edit_open(name);
    edit_put(parts.config, path, text);
    char *config = json_dumps(parts.config, 0);
    const char *saved = edit_save("edited.keras", config, parts.weights, parts.weights_size);
    free(config);
    edit_release(&parts);
    return saved;
}

#endif
