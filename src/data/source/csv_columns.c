/* csv_columns.c - parses `features` and a header into columns, and cells into numbers. */
#include "data/source/csv_columns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "data/array_names.h"

#define MOST_CATEGORIES 4096

/* ---- names ---- */

static bool all_numbers(const tdi_csv *csv, const tdi_csv_record *record)
{
    double number;
    for (int i = 0; i < record->count; i++)
        if (!tdi_csv_number(csv, record->cells[i], &number))
            return false;
    return true;
}

td_status tdi_csv_header(const tdi_csv *csv, const tdi_csv_record *first, const char *path, tdi_csv_columns *columns,
                         bool *is_data, tdi_error *error)
{
    char number[16];
    *is_data = all_numbers(csv, first);
    columns->path = strdup(path);
    columns->names = calloc((size_t)first->count, sizeof *columns->names);
    if (!columns->path || !columns->names)
        return tdi_no_memory(error);
    for (; columns->n_names < first->count; columns->n_names++) {
        snprintf(number, sizeof number, "%d", columns->n_names);
        char *name = columns->names[columns->n_names] = strdup(*is_data ? number : first->cells[columns->n_names]);
        if (!name)
            return tdi_no_memory(error);
        while ((name = strchr(name, ',')))
            *name = ' ';
    }
    return TD_OK;
}

static int find_name(const tdi_csv_columns *columns, const char *name)
{
    for (int i = 0; i < columns->n_names; i++)
        if (strcmp(columns->names[i], name) == 0)
            return i;
    return -1;
}

static td_status no_such_column(const tdi_csv_columns *columns, const char *name, tdi_error *error)
{
    char list[400] = "";
    size_t used = 0;
    for (int i = 0; i < columns->n_names && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", columns->names[i]);
    return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: has no column \"%.64s\"; it has %s%s", columns->path, name, list,
                    used >= sizeof list ? "..." : "");
}

/* ---- features ---- */

/* Cuts ":one-hot" or ":codes" off the word and returns what it means. */
static tdi_cells cut_cells(char *word)
{
    char *colon = strrchr(word, ':');
    bool one_hot = colon && strcmp(colon, ":one-hot") == 0, codes = colon && strcmp(colon, ":codes") == 0;
    if (one_hot || codes)
        *colon = '\0';
    return one_hot ? TDI_CELLS_ONE_HOT : codes ? TDI_CELLS_CODES : TDI_CELLS_NUMBERS;
}

static td_status add_column(tdi_csv_columns *columns, const char *name, tdi_cells cells, tdi_error *error)
{
    tdi_csv_column column = {.name = strdup(name), .cells = cells, .group = columns->n_groups - 1};
    column.at = find_name(columns, name);
    if (!column.name || !tdi_push(&columns->list, column)) {
        free(column.name);
        return tdi_no_memory(error);
    }
    return column.at < 0 ? no_such_column(columns, name, error) : TD_OK;
}

/* Checks the name "x", or "x0", "x1", ... in order, inputs before targets, weights last, and appends the group. */
static td_status add_group(tdi_csv_columns *columns, const char *name, tdi_error *error)
{
    bool target = *name == 'y', weight = *name == 'w';
    int before = *name == 'x' ? 0 : target ? columns->n_x : columns->n_x + columns->n_y;
    int next = columns->n_groups - before, all = target ? columns->n_y : *name == 'x' ? columns->n_x : next;
    char numbered[16];
    snprintf(numbered, sizeof numbered, "%c%d", *name, next);
    bool plain = next == 0 && name[0] && !name[1];
    if (!(*name == 'x' || target || weight) || next != all || !(plain || strcmp(name, numbered) == 0))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "features: expected x (or x0, x1, ...) and then y (or y0, y1, ...), got \"%s\"", name);
    if (columns->n_groups == TDI_MAX_COLUMNS)
        return tdi_fail(error, TD_UNSUPPORTED, "features: more than %d inputs, targets and weights", TDI_MAX_COLUMNS);
    snprintf(columns->groups[columns->n_groups++].name, sizeof columns->groups[0].name, "%s", name);
    columns->n_x += *name == 'x';
    columns->n_y += target;
    return TD_OK;
}

static td_status read_words(tdi_csv_columns *columns, char *words, bool targets, tdi_error *error)
{
    bool left_out = false;
    for (char *word; (word = strsep(&words, ","));) {
        char *name = find_name(columns, word) < 0 ? strchr(word, '=') : NULL;
        if (name) {
            *name++ = '\0';
            left_out = *word == 'y' && !targets;
            if (!left_out)
                TDI_TRY(add_group(columns, word, error));
        } else if (!columns->n_groups && !left_out) {
            return tdi_fail(error, TD_INVALID_ARGUMENT,
                            "features: expected NAME=COLUMN,COLUMN,..., got \"%s\"; as in x=TEMP,PRES,y=pm2.5", word);
        }
        tdi_cells cells = cut_cells(name ? name : word);
        if (!left_out)
            TDI_TRY(add_column(columns, name ? name : word, cells, error));
    }
    return TD_OK;
}

static bool is_named(const char *words, const char *name)
{
    size_t length = strlen(name);
    for (const char *word = strchr(words, '='); word; word = strpbrk(word + 1, ",="))
        if (strncmp(word + 1, name, length) == 0 && strchr(",:", word[1 + length]))
            return true;
    return false;
}

static td_status add_the_others(tdi_csv_columns *columns, const char *words, tdi_error *error)
{
    TDI_TRY(add_group(columns, "x", error));
    for (int i = 0; i < columns->n_names; i++)
        if (!is_named(words, columns->names[i]))
            TDI_TRY(add_column(columns, columns->names[i], TDI_CELLS_NUMBERS, error));
    return TD_OK;
}

static bool is_listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    return false;
}

/* The last column that is not a weight. */
static const char *last_name(const tdi_csv_columns *columns, const char *weights)
{
    int last = columns->n_names - 1;
    while (last > 0 && is_listed(weights, columns->names[last]))
        last--;
    return columns->names[last];
}

/* The columns by roles, as in "y=pm2.5,w=trust"; the caller frees it. NULL: there is no memory. */
static char *words_of(const tdi_csv_columns *columns, const char *features, const char *weights)
{
    tdi_text last = {0};
    tdi_text_format(&last, "y=%s", last_name(columns, weights));
    char *words = tdi_features_and_weights(&(td_open_args){.features = features, .sample_weight = weights}, last.chars);
    tdi_text_free(&last);
    return words;
}

td_status tdi_csv_choose(tdi_csv_columns *columns, const char *features, const char *weights, bool targets,
                         tdi_error *error)
{
    char *words = words_of(columns, features, weights);
    if (!words)
        return tdi_no_memory(error);
    td_status status = *words == 'y' ? add_the_others(columns, words, error) : TD_OK;
    if (status == TD_OK)
        status = read_words(columns, words, targets, error);
    free(words);
    if (status == TD_OK && (!columns->n_x || !columns->list.count || columns->list.at[0].group))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "features: none is x; as in x=TEMP,PRES,y=pm2.5");
    return status;
}

/* ---- cells ---- */

static bool is_missing(const char *cell)
{
    static const char *const words[] = {"", "NA", "N/A", "NaN", "null"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp(cell, words[i]) == 0)
            return true;
    return false;
}

static td_status unknown_category(const tdi_csv_column *column, const char *cell, tdi_error *error)
{
    char list[300] = "";
    size_t used = 0;
    for (int i = 0; i < column->categories.count && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", column->categories.at[i]);
    return tdi_fail(error, TD_BAD_FILE, "column \"%s\" is \"%.64s\", none of the categories that the model knows: %s%s",
                    column->name, cell, list, used >= sizeof list ? "..." : "");
}

static td_status code_of(tdi_csv_column *column, const char *cell, float *value, tdi_error *error)
{
    for (int i = 0; i < column->categories.count; i++)
        if (strcmp(column->categories.at[i], cell) == 0) {
            *value = (float)i;
            return TD_OK;
        }
    if (column->known)
        return unknown_category(column, cell, error);
    if (column->categories.count == MOST_CATEGORIES)
        return tdi_fail(error, TD_UNSUPPORTED, "column \"%s\" has more than %d categories", column->name,
                        MOST_CATEGORIES);
    *value = (float)column->categories.count;
    char *category = strdup(cell);
    if (category && tdi_push(&column->categories, category))
        return TD_OK;
    free(category);
    return tdi_no_memory(error);
}

td_status tdi_csv_cell(const tdi_csv *csv, tdi_csv_column *column, const char *cell, float *value, tdi_error *error)
{
    double number;
    *value = NAN;
    if (is_missing(cell))
        return TD_OK;
    if (column->cells != TDI_CELLS_NUMBERS)
        return code_of(column, cell, value, error);
    if (!tdi_csv_number(csv, cell, &number) || !isfinite((float)number))
        return tdi_fail(error, TD_BAD_FILE,
                        "column \"%s\" is \"%.64s\", which is not a number; for categories name it %.64s:one-hot or "
                        "%.64s:codes in features",
                        column->name, cell, column->name, column->name);
    *value = (float)number;
    if (!column->known)
        column->mean += (number - column->mean) / (double)++column->count;
    return TD_OK;
}

/* ---- categories in order ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(**(char **const *)a, **(char **const *)b);
}

td_status tdi_csv_sort(tdi_csv_column *column, float **codes, tdi_error *error)
{
    size_t n = (size_t)column->categories.count;
    *codes = NULL;
    if (column->known || !n)
        return TD_OK;
    char ***order = malloc(n * sizeof *order), **sorted = malloc(n * sizeof *sorted);
    *codes = malloc(n * sizeof **codes);
    bool room = order && sorted && *codes;
    for (size_t i = 0; room && i < n; i++)
        order[i] = &column->categories.at[i];
    if (room)
        qsort(order, n, sizeof *order, by_name);
    for (size_t i = 0; room && i < n; i++) {
        sorted[i] = *order[i];
        (*codes)[order[i] - column->categories.at] = (float)i;
    }
    if (room)
        memcpy(column->categories.at, sorted, n * sizeof *sorted);
    free(order);
    free(sorted);
    return room ? TD_OK : tdi_no_memory(error);
}

/* ---- recipes ---- */

json_t *tdi_csv_column_json(const tdi_csv_column *column)
{
    if (column->cells == TDI_CELLS_NUMBERS)
        return json_pack("{s:f}", "mean", column->mean);
    json_t *categories = json_array();
    for (int i = 0; i < column->categories.count; i++)
        json_array_append_new(categories, json_string_nocheck(column->categories.at[i]));
    return json_pack("{s:o}", "categories", categories);
}

td_status tdi_csv_column_restore(tdi_csv_column *column, const json_t *json, tdi_error *error)
{
    const json_t *categories = json_object_get(json, "categories"), *mean = json_object_get(json, "mean");
    if (!json)
        return TD_OK;
    if (column->cells == TDI_CELLS_NUMBERS ? !json_is_number(mean) : !json_is_array(categories))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "features: the model was trained with \"%s\" as %s; give the same features", column->name,
                        column->cells == TDI_CELLS_NUMBERS ? "categories" : "numbers");
    column->known = true;
    column->mean = json_number_value(mean);
    for (size_t i = 0; i < json_array_size(categories); i++) {
        const char *name = json_string_value(json_array_get(categories, i));
        char *category = strdup(name ? name : "");
        if (!category || !tdi_push(&column->categories, category)) {
            free(category);
            return tdi_no_memory(error);
        }
    }
    return TD_OK;
}

void tdi_csv_columns_release(tdi_csv_columns *columns)
{
    for (int i = 0; i < columns->n_names; i++)
        free(columns->names[i]);
    for (int i = 0; i < columns->list.count; i++) {
        tdi_csv_column *column = &columns->list.at[i];
        for (int j = 0; j < column->categories.count; j++)
            free(column->categories.at[j]);
        tdi_vec_free(&column->categories);
        free(column->name);
    }
    tdi_vec_free(&columns->list);
    free(columns->names);
    free(columns->path);
}
