/* text_labels.c - collects, numbers and finds labels that are texts. The names are kept sorted. */
#include "data/source/text_labels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/utf8.h"

enum { MOST_LABELS = 4096 };

bool tdi_is_text(const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if ((bytes[i] < 0x20 && !(bytes[i] >= '\t' && bytes[i] <= '\r')) || bytes[i] == 0x7f)
            return false;
    return true;
}

static bool is_utf8(const uint8_t *bytes, size_t size)
{
    uint32_t character;
    size_t at = 0;
    for (int taken; at < size && (taken = tdi_utf8_decode((const char *)bytes + at, size - at, &character)) > 0;)
        at += (size_t)taken;
    return at == size;
}

static int compare(const char *name, const uint8_t *bytes, size_t size)
{
    size_t length = strlen(name);
    int order = memcmp(name, bytes, length < size ? length : size);
    return order ? order : (length > size) - (length < size);
}

/* The place of the label among the sorted names, or where it belongs. */
static int place_of(const tdi_text_labels *labels, const uint8_t *bytes, size_t size, bool *found)
{
    int low = 0, high = labels->names.count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (compare(labels->names.at[middle], bytes, size) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *found = low < labels->names.count && compare(labels->names.at[low], bytes, size) == 0;
    return low;
}

static td_status insert(tdi_text_labels *labels, int place, const char *text, size_t size, tdi_error *error)
{
    char *name = strndup(text, size);
    if (!name || !tdi_push(&labels->names, name)) {
        free(name);
        return tdi_no_memory(error);
    }
    char **at = labels->names.at + place;
    memmove(at + 1, at, (size_t)(labels->names.count - 1 - place) * sizeof *at);
    *at = name;
    return TD_OK;
}

td_status tdi_text_labels_add(tdi_text_labels *labels, const uint8_t *bytes, size_t size, tdi_error *error)
{
    bool found;
    int place = place_of(labels, bytes, size, &found);
    if (found)
        return TD_OK;
    if (!is_utf8(bytes, size))
        return tdi_fail(error, TD_BAD_FILE, "the label is no UTF-8 text");
    if (labels->names.count == MOST_LABELS)
        return tdi_fail(error, TD_UNSUPPORTED, "there are more than %d different labels: too many for classes",
                        MOST_LABELS);
    return insert(labels, place, (const char *)bytes, size, error);
}

void tdi_text_labels_end(tdi_text_labels *labels)
{
    double number;
    labels->numbers = labels->names.count > 0;
    for (int i = 0; i < labels->names.count && labels->numbers; i++)
        labels->numbers = tdi_parse_decimal(labels->names.at[i], &number);
}

/* ---- finding ---- */

static td_status unknown(const tdi_text_labels *labels, const uint8_t *bytes, size_t size, tdi_error *error)
{
    char list[300] = "";
    size_t used = 0;
    int shown = size < 64 ? (int)size : 64;
    if (labels->numbers)
        return tdi_fail(error, TD_BAD_FILE,
                        "the label \"%.*s\" is no number, as those are that the model was trained with", shown,
                        (const char *)bytes);
    for (int i = 0; i < labels->names.count && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", labels->names.at[i]);
    return tdi_fail(error, TD_BAD_FILE, "the label \"%.*s\" is none of those that the model knows: %s%s", shown,
                    (const char *)bytes, list, used >= sizeof list ? "..." : "");
}

td_status tdi_text_labels_find(const tdi_text_labels *labels, const uint8_t *bytes, size_t size, double *value,
                               tdi_error *error)
{
    char number[64];
    bool found;
    *value = place_of(labels, bytes, size, &found);
    snprintf(number, sizeof number, "%.*s", size < sizeof number ? (int)size : 0, (const char *)bytes);
    if ((found && !labels->numbers) || (labels->numbers && strlen(number) == size && tdi_parse_decimal(number, value)))
        return TD_OK;
    return unknown(labels, bytes, size, error);
}

/* ---- recipes ---- */

json_t *tdi_text_labels_json(const tdi_text_labels *labels)
{
    if (labels->numbers)
        return json_string("numbers");
    json_t *names = json_array();
    for (int i = 0; i < labels->names.count; i++)
        json_array_append_new(names, json_string(labels->names.at[i]));
    return names;
}

bool tdi_text_labels_restore(tdi_text_labels *labels, const json_t *json)
{
    const char *word = json_string_value(json);
    labels->numbers = word && strcmp(word, "numbers") == 0;
    for (size_t i = 0; i < json_array_size(json); i++) {
        const char *name = json_string_value(json_array_get(json, i));
        bool sorted = name && (i == 0 || strcmp(labels->names.at[i - 1], name) < 0);
        if (!sorted || insert(labels, (int)i, name, strlen(name), NULL) != TD_OK)
            return false;
    }
    return labels->numbers || labels->names.count > 0;
}

void tdi_text_labels_release(tdi_text_labels *labels)
{
    for (int i = 0; i < labels->names.count; i++)
        free(labels->names.at[i]);
    tdi_vec_free(&labels->names);
}
