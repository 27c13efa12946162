/* csv_columns.c - parses `features` into columns, and cells into numbers. */
#include "data/source/csv_columns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/decimal.h"
#include "data/array_names.h"

#define MOST_CATEGORIES 4096

/* ---- names ---- */

static int find_name(const tdi_csv_header *header, const char *name)
{
    for (int i = 0; i < header->count; i++)
        if (strcmp(header->names[i], name) == 0)
            return i;
    return -1;
}

/* Lists the names for which `at` is set, or all when it is NULL. */
static void list_names(const tdi_csv_header *header, const bool *at, char *list, size_t size)
{
    size_t used = 0;
    *list = '\0';
    for (int i = 0; i < header->count && used < size; i++)
        if (!at || at[i])
            used += (size_t)snprintf(list + used, size - used, "%s%s", used ? ", " : "", header->names[i]);
    if (used >= size)
        memcpy(list + size - 4, "...", 4);
}

static td_status no_such_column(const tdi_csv_header *header, const char *name, tdi_error *error)
{
    char list[400];
    list_names(header, NULL, list, sizeof list);
    return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: has no column \"%.64s\"; it has %s%s", header->path, name, list,
                    header->is_there ? "" : ", numbered as its first line is a sample");
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
    column.at = find_name(columns->header, name);
    column.target = column.group >= columns->n_x;
    if (!column.name || !tdi_push(&columns->list, column)) {
        free(column.name);
        return tdi_no_memory(error);
    }
    return column.at < 0 ? no_such_column(columns->header, name, error) : TD_OK;
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
        char *name = find_name(columns->header, word) < 0 ? strchr(word, '=') : NULL;
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

/* True when one of the words is the name, with "x=" before it or not, and with or without ":codes" behind it. */
static bool is_named(const char *words, const char *name)
{
    size_t length = strlen(name);
    for (const char *word = words; word; word = strchr(word, ',') ? strchr(word, ',') + 1 : NULL) {
        size_t size = strcspn(word, ","), head = strcspn(word, "=") + 1;
        const char *bare = head <= size ? word + head : word;
        bool plain = strncmp(word, name, length) == 0 && strchr(",:", word[length]);
        if ((word != words && plain) || (strncmp(bare, name, length) == 0 && strchr(",:", bare[length])))
            return true;
    }
    return false;
}

static bool is_unnamed(const tdi_csv_header *header)
{
    return header->is_there && strcmp(header->names[0], "Unnamed: 0") == 0;
}

/* Adds the columns that the words do not name. */
static td_status add_the_others(tdi_csv_columns *columns, const char *words, int64_t wanted, tdi_error *error)
{
    const tdi_csv_header *header = columns->header;
    int64_t others = 0;
    for (int i = 0; i < header->count; i++)
        others += !is_named(words, header->names[i]);
    bool one_more = wanted && is_unnamed(header) && others == wanted + 1 && !is_named(words, header->names[0]);
    TDI_TRY(add_group(columns, "x", error));
    for (int i = one_more; i < header->count; i++)
        if (!is_named(words, header->names[i]))
            TDI_TRY(add_column(columns, header->names[i], TDI_CELLS_NUMBERS, error));
    return TD_OK;
}

/* Names the columns that no feature is made of. */
static td_status say_unused(const tdi_csv_columns *columns, const char *words, tdi_text *note, tdi_error *error)
{
    const tdi_csv_header *header = columns->header;
    char list[300];
    int count = header->count;
    bool *unused = malloc((size_t)header->count * sizeof *unused);
    if (!unused)
        return tdi_no_memory(error);
    for (int i = 0; i < header->count; i++)
        unused[i] = !is_named(words, header->names[i]);
    for (int i = 0; i < columns->list.count; i++)
        unused[columns->list.at[i].at] = false;
    for (int i = 0; i < header->count; i++)
        count -= !unused[i];
    list_names(header, unused, list, sizeof list);
    free(unused);
    if (count)
        tdi_text_format(note, "%s%s: %d of its %d columns %s not used: %s", note->length ? "; " : "", header->path,
                        count, header->count, count > 1 ? "are" : "is", list);
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
static const char *last_name(const tdi_csv_header *header, const char *weights)
{
    int last = header->count - 1;
    while (last > 0 && is_listed(weights, header->names[last]))
        last--;
    return header->names[last];
}

/* What stands for features that are not given. To predict, a file with as many columns as the model takes, beside an
 * index, has no y. */
static char *default_words(const tdi_csv_columns *columns, const tdi_csv_choice *choice)
{
    tdi_text words = {0};
    int count = columns->header->count;
    bool all =
        !choice->targets && (choice->wanted == count || (choice->wanted == count - 1 && is_unnamed(columns->header)));
    tdi_text_format(&words, all ? "y" : "y=%s", last_name(columns->header, choice->weights));
    return words.chars;
}

/* The columns by roles, as in "y=pm2.5,w=trust"; the caller frees it. NULL: there is no memory. */
static char *words_of(const tdi_csv_columns *columns, const tdi_csv_choice *choice)
{
    char *others = choice->features ? NULL : default_words(columns, choice);
    const char *features = choice->features ? choice->features : others;
    char *words = features ? tdi_features_and_weights(features, choice->weights) : NULL;
    free(others);
    return words;
}

static td_status choose(tdi_csv_columns *columns, const tdi_csv_choice *choice, char *words, tdi_error *error)
{
    if (!choice->features && columns->header->count == 1 && strcmp(words, "y") != 0)
        return tdi_fail(
            error, TD_BAD_FILE,
            "%s has one column, \"%.64s\", where one of y and others of x were expected; cells are separated "
            "by commas, semicolons, tabs or bars",
            columns->header->path, columns->header->names[0]);
    if (*words == 'y')
        TDI_TRY(add_the_others(columns, words, choice->wanted, error));
    if (strcmp(words, "y") != 0)
        TDI_TRY(read_words(columns, words, choice->targets, error));
    if (!columns->n_x || !columns->list.count || columns->list.at[0].group)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "features: none is x; as in x=TEMP,PRES,y=pm2.5");
    return TD_OK;
}

td_status tdi_csv_choose(tdi_csv_columns *columns, const tdi_csv_choice *choice, tdi_text *note, tdi_error *error)
{
    char *words = words_of(columns, choice);
    char *named = words ? strdup(words) : NULL;
    td_status status = named ? choose(columns, choice, words, error) : tdi_no_memory(error);
    if (status == TD_OK)
        status = say_unused(columns, named, note, error);
    free(words);
    free(named);
    return status;
}

td_status tdi_csv_place(tdi_csv_columns *columns, const tdi_csv_header *header, tdi_error *error)
{
    for (int i = 0; i < columns->list.count; i++) {
        tdi_csv_column *column = &columns->list.at[i];
        column->at = find_name(header, column->name);
        if (column->at < 0)
            return no_such_column(header, column->name, error);
    }
    return TD_OK;
}

/* ---- cells ---- */

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

/* As words for what a cell is, and what to do. */
static td_status not_a_number(const tdi_csv_column *column, const char *cell, tdi_error *error)
{
    double number;
    if (tdi_csv_is_infinite(cell) || tdi_parse_decimal(cell, &number))
        return tdi_fail(error, TD_BAD_FILE, "column \"%s\" is \"%.64s\", which is not finite: no float holds it",
                        column->name, cell);
    if (tdi_csv_has_decimal_comma(cell))
        return tdi_fail(error, TD_BAD_FILE,
                        "column \"%s\" is \"%.64s\", with a comma: write 1.5 for 1,5; a comma is read as the decimal "
                        "mark only where semicolons stand between the cells",
                        column->name, cell);
    if (column->target)
        return tdi_fail(error, TD_BAD_FILE,
                        "column \"%s\" is \"%.64s\", which is not a number; if these are the names of classes, give "
                        "features y=%.64s:codes (--features)",
                        column->name, cell, column->name);
    return tdi_fail(error, TD_BAD_FILE,
                    "column \"%s\" is \"%.64s\", which is not a number; for categories name it %.64s:one-hot or "
                    "%.64s:codes in features (--features)",
                    column->name, cell, column->name, column->name);
}

/* pandas writes booleans as words. */
static bool is_boolean(const char *cell, double *number)
{
    *number = strcasecmp(cell, "true") == 0;
    return *number == 1 || strcasecmp(cell, "false") == 0;
}

td_status tdi_csv_cell(tdi_csv *csv, tdi_csv_column *column, const char *cell, float *value, tdi_error *error)
{
    double number;
    *value = NAN;
    if (tdi_csv_is_missing(cell))
        return TD_OK;
    if (column->cells != TDI_CELLS_NUMBERS)
        return code_of(column, cell, value, error);
    if (!is_boolean(cell, &number) && (!tdi_csv_number(csv, cell, &number) || !isfinite((float)number)))
        return not_a_number(column, cell, error);
    if (tdi_csv_mixes_marks(csv))
        return tdi_fail(error, TD_UNSUPPORTED,
                        "column \"%s\" is \"%.64s\": the file has numbers with a decimal point and with a decimal "
                        "comma; write all with a point",
                        column->name, cell);
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

static int by_number(const void *a, const void *b)
{
    double first = 0, second = 0;
    tdi_parse_decimal(**(char **const *)a, &first);
    tdi_parse_decimal(**(char **const *)b, &second);
    return first < second ? -1 : first > second ? 1 : by_name(a, b);
}

static bool are_numbers(const tdi_csv_column *column)
{
    double number;
    for (int i = 0; i < column->categories.count; i++)
        if (!tdi_parse_decimal(column->categories.at[i], &number))
            return false;
    return true;
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
        qsort(order, n, sizeof *order, are_numbers(column) ? by_number : by_name);
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
    for (int i = 0; i < columns->list.count; i++) {
        tdi_csv_column *column = &columns->list.at[i];
        for (int j = 0; j < column->categories.count; j++)
            free(column->categories.at[j]);
        tdi_vec_free(&column->categories);
        free(column->name);
    }
    tdi_vec_free(&columns->list);
}
