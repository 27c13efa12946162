/* csv.c - CSV files, plain or gzipped, one or several: numbers and categories, missing values, windows over time.
 *
 * A row is a sample. With a window of T rows a sample is any T consecutive rows of one file, and its target is the row
 * `horizon` rows behind the last of them.
 *
 * The files are parsed once, into a store of cells. When all cells are known, so are categories and means, and the
 * cells are rewritten block by block into a store of values per input or target. Both stores may be larger than memory.
 *
 * The recipe has the columns, the order of the categories, and the means that replace missing values. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "data/array_names.h"
#include "data/file_list.h"
#include "data/recipe.h"
#include "data/sample_reader.h"
#include "data/source.h"
#include "data/source/csv_columns.h"
#include "files/store.h"

enum { INPUT_BAD = 1, TARGET_BAD = 2, UNREADABLE = 7 }; /* bits of `marks` */
enum { NO_CATEGORY = -1 };

static const char *const missing_names[] = {"refuse", "mean", "zero", "previous", "drop"};

typedef struct csv_source {
    tdi_sample_reader reader;
    tdi_csv_headers headers; /* one per file */
    tdi_csv_columns columns;
    tdi_text note;
    td_missing missing;
    bool skip, targets;
    const char *weights; /* names of columns, borrowed while the source is opened; NULL: none */
    int64_t window, horizon;
    json_t *recipe;                     /* by which the data is read; NULL: none was given */
    tdi_store *cells;                   /* [rows, columns] floats */
    float *row;                         /* [columns] */
    tdi_vec(char) marks;                /* [rows] */
    tdi_vec(int) files;                 /* the first row of each file */
    tdi_store *values[TDI_MAX_COLUMNS]; /* [rows, width] floats of each group */
} csv_source;

static bool csv_claims(const char *path)
{
    static const char *const endings[] = {".csv", ".tsv", ".tab", ".csv.gz", ".tsv.gz", ".tab.gz"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (tdi_names_file(path, endings[i]))
            return true;
    return false;
}

/* ---- a file's rows ---- */

static void leave_out(csv_source *source, const char *reason)
{
    tdi_source *base = &source->reader.source;
    if (base->skipped++ == 0)
        snprintf(base->skip_reason, sizeof base->skip_reason, "%s", reason);
}

/* Checks that `missing` has a value to replace a missing cell of the column by. */
static td_status check_missing(const csv_source *source, const tdi_csv_column *column, tdi_error *error)
{
    bool category = column->cells != TDI_CELLS_NUMBERS;
    if (source->missing == TD_MISSING_REFUSE)
        return tdi_fail(error, TD_BAD_FILE,
                        "column \"%s\" is missing; say what to do then: --missing mean, zero, previous or drop",
                        column->name);
    if (category && (source->missing == TD_MISSING_MEAN ||
                     (source->missing == TD_MISSING_ZERO && column->cells == TDI_CELLS_CODES)))
        return tdi_fail(error, TD_BAD_FILE,
                        "column \"%s\" is missing, and categories have no %s; choose --missing previous or drop",
                        column->name, missing_names[source->missing]);
    return TD_OK;
}

/* A line may end in a separator. */
static td_status check_count(const tdi_csv_header *header, const tdi_csv_record *record, tdi_error *error)
{
    bool trailing = record->count == header->count + 1 && !*record->cells[header->count];
    if (record->count == header->count || trailing)
        return TD_OK;
    if (header->is_there)
        return tdi_fail(error, TD_BAD_FILE, "%d cells, but the first line has %d", record->count, header->count);
    return tdi_fail(error, TD_BAD_FILE, "%d cells, where %d were expected, as most lines have", record->count,
                    header->count);
}

static td_status read_cells(csv_source *source, tdi_csv *csv, const tdi_csv_header *header,
                            const tdi_csv_record *record, float *row, tdi_error *error)
{
    tdi_csv_columns *columns = &source->columns;
    TDI_TRY(check_count(header, record, error));
    for (int i = 0; i < columns->list.count; i++) {
        tdi_csv_column *column = &columns->list.at[i];
        TDI_TRY(tdi_csv_cell(csv, column, record->cells[column->at], &row[i], error));
        if (isnan(row[i]))
            TDI_TRY(check_missing(source, column, error));
    }
    return TD_OK;
}

/* Parses a record into source->row, all zeros when it cannot be read. `record` is NULL when the file has no record
 * there that can be told from its neighbours. */
static td_status read_row(csv_source *source, tdi_csv *csv, const tdi_csv_header *header, const tdi_csv_record *record,
                          tdi_error *error)
{
    tdi_error local = {0};
    if (record && read_cells(source, csv, header, record, source->row, &local) == TD_OK)
        return TD_OK;
    if (record)
        tdi_error_prefix(&local, "%s: line %" PRId64 " at offset %" PRId64, header->path, record->line, record->offset);
    if (record && (local.status != TD_BAD_FILE || !source->skip))
        return tdi_fail(error, local.status, "%s", local.message);
    memset(source->row, 0, (size_t)source->columns.list.count * sizeof *source->row);
    source->marks.at[source->marks.count - 1] = UNREADABLE;
    if (record)
        leave_out(source, local.message);
    return TD_OK;
}

/* Appends a row. One that cannot be read is marked, so that no window spans it. */
static td_status add_row(csv_source *source, tdi_csv *csv, const tdi_csv_header *header, const tdi_csv_record *record,
                         tdi_error *error)
{
    if (!tdi_push(&source->marks, 0))
        return tdi_no_memory(error);
    TDI_TRY(read_row(source, csv, header, record, error));
    return tdi_store_put(source->cells, source->row, (size_t)source->columns.list.count * sizeof *source->row, error);
}

/* Reads the rows behind the header, if there is one: the first line that can be parsed. */
static td_status read_rows(csv_source *source, tdi_csv *csv, const tdi_csv_header *header, tdi_error *error)
{
    tdi_csv_record record;
    bool is_header = header->is_there;
    tdi_error local = {0};
    for (bool end = false;;) {
        td_status status = tdi_csv_next(csv, &record, &end, &local);
        if (status == TD_BAD_FILE && source->skip) {
            leave_out(source, local.message);
            local = (tdi_error){0};
            TDI_TRY(add_row(source, csv, header, NULL, error));
            continue;
        }
        if (status != TD_OK)
            return tdi_fail(error, status, "%s", local.message);
        if (end)
            return TD_OK;
        if (!is_header)
            TDI_TRY(add_row(source, csv, header, &record, error));
        is_header = false;
    }
}

static td_status read_file(csv_source *source, const tdi_csv_header *header, tdi_error *error)
{
    tdi_csv *csv;
    TDI_TRY(tdi_csv_place(&source->columns, header, error));
    if (!tdi_push(&source->files, source->marks.count))
        return tdi_no_memory(error);
    TDI_TRY(tdi_csv_open(header->path, &csv, error));
    td_status status = read_rows(source, csv, header, error);
    tdi_csv_close(csv);
    return status;
}

/* ---- headers ---- */

static td_status restore(csv_source *source, tdi_error *error)
{
    const json_t *found = json_object_get(source->recipe, "columns");
    for (int i = 0; i < source->columns.list.count; i++) {
        tdi_csv_column *column = &source->columns.list.at[i];
        TDI_TRY(tdi_csv_column_restore(column, json_object_get(found, column->name), error));
    }
    return TD_OK;
}

static td_status same_header(const tdi_csv_header *first, const tdi_csv_header *other, tdi_error *error)
{
    for (int i = 0; i < first->count || i < other->count; i++) {
        const char *a = i < first->count ? first->names[i] : "", *b = i < other->count ? other->names[i] : "";
        if (strcmp(a, b) != 0)
            return tdi_fail(error, TD_BAD_FILE,
                            "%s: column %d is \"%.64s\", but \"%.64s\" in %s: all files must have the same columns, or "
                            "features must name those of x and of y",
                            other->path, i + 1, b, a, first->path);
    }
    return TD_OK;
}

/* Allocates source->row and the store of cells. */
static td_status begin_cells(csv_source *source, tdi_error *error)
{
    source->row = calloc((size_t)source->columns.list.count, sizeof *source->row);
    if (!source->row)
        return tdi_no_memory(error);
    return tdi_store_create(source->reader.source.name, 0, &source->cells, error);
}

/* The number of columns that the model's input takes; 0: not known, or there are several inputs. */
static int64_t wanted_columns(const csv_source *source, const td_open_args *args)
{
    const td_shape *shape = args->input_shapes;
    if (args->inputs != 1)
        return 0;
    return source->window ? shape->rank ? shape->dim[shape->rank - 1] : 0 : tdi_sample_elements(shape);
}

/* Chooses the columns by the first names that a file has. Without x among the features, all files must have these. */
static td_status choose_columns(csv_source *source, const td_open_args *args, const char *features, tdi_error *error)
{
    const tdi_csv_headers *headers = &source->headers;
    int first = 0;
    while (first < headers->count - 1 && !headers->at[first].is_there)
        first++;
    source->columns.header = &headers->at[headers->at[first].is_there ? first : 0];
    for (int i = 0; i < headers->count && !(features && *features == 'x'); i++)
        TDI_TRY(same_header(source->columns.header, &headers->at[i], error));
    tdi_csv_choice choice = {features, source->weights, source->targets, wanted_columns(source, args)};
    TDI_TRY(tdi_csv_choose(&source->columns, &choice, &source->note, error));
    TDI_TRY(begin_cells(source, error));
    return restore(source, error);
}

/* For a model that does not take what the columns make. */
static void advise(csv_source *source)
{
    const tdi_csv_header *header = source->columns.header;
    char *advice = source->reader.source.advice;
    size_t size = sizeof source->reader.source.advice,
           used = (size_t)snprintf(advice, size, "; choose from its columns, ");
    for (int i = 0; i < header->count && used < size / 3; i++)
        used += (size_t)snprintf(advice + used, size - used, "%.64s%s", header->names[i],
                                 i + 1 < header->count ? ", " : "");
    snprintf(advice + used, size - used, "%sby features (--features x=%.32s,...,y=%.32s)",
             used >= size / 3 ? "..., " : ", ", header->names[0], header->names[header->count - 1]);
}

static td_status read_headers(csv_source *source, const td_open_args *args, const char *features, tdi_error *error)
{
    tdi_paths paths = {0};
    td_status status = tdi_list_files(args->path, &paths, error);
    char *named = features ? tdi_features_and_weights(features, source->weights) : NULL;
    tdi_csv_header_args header = {&paths, named ? named : source->weights, args->header, source->skip};
    if (status == TD_OK)
        status = tdi_csv_headers_find(&header, &source->headers, &source->note, error);
    for (int i = 0; i < paths.count; i++)
        tdi_source_stamp(&source->reader.source, paths.at[i]);
    tdi_paths_free(&paths);
    free(named);
    return status;
}

static td_status read_files(csv_source *source, const td_open_args *args, const char *features, tdi_error *error)
{
    TDI_TRY(read_headers(source, args, features, error));
    TDI_TRY(choose_columns(source, args, features, error));
    advise(source);
    for (int i = 0; i < source->headers.count; i++)
        TDI_TRY(read_file(source, &source->headers.at[i], error));
    if (!source->marks.count)
        return tdi_fail(error, TD_BAD_FILE, "%s holds no rows of data%s%s", args->path, source->note.chars ? "; " : "",
                        source->note.chars ? source->note.chars : "");
    return tdi_store_end(source->cells, error);
}

/* ---- missing values ---- */

/* The value that replaces a missing cell at the start of a file; NaN: none does, and the row is left out. */
static float stand_in(const csv_source *source, const tdi_csv_column *column)
{
    if (source->missing == TD_MISSING_MEAN)
        return (float)column->mean;
    if (source->missing == TD_MISSING_ZERO)
        return column->cells == TDI_CELLS_ONE_HOT ? (float)NO_CATEGORY : 0;
    return NAN;
}

/* What the rewriting of cells keeps of a column from row to row. */
typedef struct fill_state {
    float *codes;    /* [old code] the new code; NULL: codes stay */
    float stands_in; /* replaces a missing cell */
    int file;        /* the next file to begin */
} fill_state;

/* Rewrites the column's cells in rows [first, first + rows), which `cells` holds. */
static void fill_column(csv_source *source, int at, fill_state *state, float *cells, int64_t first, int64_t rows)
{
    const tdi_csv_column *column = &source->columns.list.at[at];
    int width = source->columns.list.count, mark = column->group < source->columns.n_x ? INPUT_BAD : TARGET_BAD;
    bool previous = source->missing == TD_MISSING_PREVIOUS;
    for (int64_t row = first; row < first + rows; row++) {
        float *cell = cells + (row - first) * width + at;
        char *marks = &source->marks.at[row];
        while (state->file < source->files.count &&
               source->files.at[state->file] == row) { /* a file may have no rows */
            state->stands_in = stand_in(source, column);
            state->file++;
        }
        if (!isnan(*cell) && state->codes)
            *cell = state->codes[(size_t)*cell];
        if (isnan(*cell))
            *cell = state->stands_in;
        else if (previous && *marks != UNREADABLE)
            state->stands_in = *cell;
        if (isnan(*cell))
            *marks = (char)(*marks | mark);
    }
}

/* ---- inputs and targets ---- */

static int64_t width_of(const tdi_csv_column *column)
{
    return column->cells == TDI_CELLS_ONE_HOT ? column->categories.count : 1;
}

static void spread_column(const csv_source *source, int at, const float *cells, int64_t rows, float *to, int64_t width)
{
    const tdi_csv_column *column = &source->columns.list.at[at];
    for (int64_t row = 0; row < rows; row++, to += width) {
        float cell = cells[row * source->columns.list.count + at];
        if (column->cells != TDI_CELLS_ONE_HOT)
            *to = cell;
        else if (cell >= 0 && cell < (float)column->categories.count)
            to[(int64_t)cell] = 1;
    }
}

/* Appends a block's rows to the values of a group. */
static td_status put_group(csv_source *source, int g, const float *cells, int64_t rows, float *scratch,
                           tdi_error *error)
{
    const tdi_csv_columns *columns = &source->columns;
    int64_t width = columns->groups[g].width, before = 0;
    size_t size = (size_t)(rows * width) * sizeof *scratch;
    memset(scratch, 0, size);
    for (int i = 0; i < columns->list.count; i++) {
        if (columns->list.at[i].group != g)
            continue;
        spread_column(source, i, cells, rows, scratch + before, width);
        before += width_of(&columns->list.at[i]);
    }
    return tdi_store_put(source->values[g], scratch, size, error);
}

/* Rewrites and appends rows [first, first + rows). Codes are sorted by now, so that equal rows have equal content with
 * a recipe and without. */
static td_status put_block(csv_source *source, fill_state *states, float *cells, int64_t first, int64_t rows,
                           float *scratch, tdi_error *error)
{
    int width = source->columns.list.count;
    int64_t row_bytes = width * (int64_t)sizeof *cells;
    TDI_TRY(tdi_store_read(source->cells, first * row_bytes, cells, rows * row_bytes, error));
    for (int i = 0; i < width; i++)
        fill_column(source, i, &states[i], cells, first, rows);
    tdi_source_content(&source->reader.source, cells, (size_t)(rows * row_bytes));
    for (int g = 0; g < source->columns.n_groups; g++)
        TDI_TRY(put_group(source, g, cells, rows, scratch, error));
    return TD_OK;
}

/* Rewrites all rows, in blocks of about a megabyte of the widest group. */
static td_status put_blocks(csv_source *source, fill_state *states, tdi_error *error)
{
    const tdi_csv_columns *columns = &source->columns;
    int64_t widest = columns->list.count, all = source->marks.count;
    for (int g = 0; g < columns->n_groups; g++)
        widest = columns->groups[g].width > widest ? columns->groups[g].width : widest;
    int64_t most = 1 + (1 << 18) / widest, rows;
    float *cells = malloc((size_t)(most * columns->list.count) * sizeof *cells);
    float *scratch = malloc((size_t)(most * widest) * sizeof *scratch);
    td_status status = cells && scratch ? TD_OK : tdi_no_memory(error);
    for (int64_t first = 0; first < all && status == TD_OK; first += rows) {
        rows = all - first < most ? all - first : most;
        status = put_block(source, states, cells, first, rows, scratch, error);
    }
    free(cells);
    free(scratch);
    return status;
}

static void describe_group(csv_source *source, int g, float scale)
{
    const tdi_csv_group *group = &source->columns.groups[g];
    tdi_source *base = &source->reader.source;
    tdi_column *column = &base->columns[g];
    bool input = g < source->columns.n_x;
    snprintf(column->name, sizeof column->name, "%s", group->name);
    column->dtype = TD_FLOAT32;
    column->scale = input && scale != 0 ? scale : 1;
    if (input && source->window)
        column->shape = TD_SHAPE(source->window, group->width);
    else if (input || group->width > 1)
        column->shape = TD_SHAPE(group->width);
    *(input ? &base->n_x : g < source->columns.n_x + source->columns.n_y ? &base->n_y : &base->n_w) += 1;
}

static td_status resolve_columns(csv_source *source, fill_state *states, tdi_error *error)
{
    tdi_csv_columns *columns = &source->columns;
    for (int i = 0; i < columns->list.count; i++) {
        tdi_csv_column *column = &columns->list.at[i];
        if (column->cells == TDI_CELLS_NUMBERS && !column->known && !column->count)
            return tdi_fail(error, TD_BAD_FILE, "%s: column \"%s\" holds no number at all", source->reader.source.name,
                            column->name);
        TDI_TRY(tdi_csv_sort(column, &states[i].codes, error));
        columns->groups[column->group].width += width_of(column);
    }
    return TD_OK;
}

static td_status fill_groups(csv_source *source, fill_state *states, float scale, tdi_error *error)
{
    TDI_TRY(resolve_columns(source, states, error));
    for (int g = 0; g < source->columns.n_groups; g++) {
        describe_group(source, g, scale);
        TDI_TRY(tdi_store_create(source->reader.source.name, 0, &source->values[g], error));
    }
    TDI_TRY(put_blocks(source, states, error));
    for (int g = 0; g < source->columns.n_groups; g++)
        TDI_TRY(tdi_store_end(source->values[g], error));
    return TD_OK;
}

static td_status make_groups(csv_source *source, float scale, tdi_error *error)
{
    int columns = source->columns.list.count;
    fill_state *states = calloc((size_t)columns, sizeof *states);
    td_status status = states ? fill_groups(source, states, scale, error) : tdi_no_memory(error);
    for (int i = 0; i < columns && states; i++)
        free(states[i].codes);
    free(states);
    tdi_store_free(source->cells);
    source->cells = NULL;
    return status;
}

/* ---- samples ---- */

/* The target's row for a window that ends at `row`; `row` when there are no targets. */
static int64_t target_row(const csv_source *source, int64_t row)
{
    return source->targets ? row + source->horizon : row;
}

/* Lists the rows of one file at which a sample begins whose rows are all good. */
static int64_t find_samples(const csv_source *source, int64_t first, int64_t end, int64_t *to, int64_t *dropped)
{
    int64_t length = source->window ? source->window : 1, run = 0, found = 0;
    for (int64_t row = first; row < end && target_row(source, row) < end; row++) {
        run = source->marks.at[row] & INPUT_BAD ? 0 : run + 1;
        bool good = run >= length && !(source->targets && (source->marks.at[target_row(source, row)] & TARGET_BAD));
        if (good)
            to[found++] = row - length + 1;
        else
            *dropped += row - first >= length - 1;
    }
    return found;
}

static td_status make_samples(csv_source *source, tdi_error *error)
{
    tdi_source *base = &source->reader.source;
    int64_t dropped = 0;
    source->reader.kept = malloc((size_t)source->marks.count * sizeof *source->reader.kept);
    if (!source->reader.kept)
        return tdi_no_memory(error);
    for (int i = 0; i < source->files.count; i++) {
        int64_t end = i + 1 < source->files.count ? source->files.at[i + 1] : source->marks.count;
        base->samples += find_samples(source, source->files.at[i], end, source->reader.kept + base->samples, &dropped);
    }
    if (!base->samples)
        return tdi_fail(error, TD_BAD_FILE, "%s: its %d rows make no sample%s", base->name, source->marks.count,
                        dropped          ? ": each holds a missing value, or a line that cannot be read"
                        : source->window ? ": the window and the horizon are longer than the file"
                                         : "");
    if (dropped && !base->skipped)
        snprintf(base->skip_reason, sizeof base->skip_reason, "a value is missing (%s)",
                 missing_names[source->missing]);
    base->skipped = dropped;
    return TD_OK;
}

static td_status csv_read(tdi_sample_reader *reader, int column, int64_t row, void *to, tdi_error *error)
{
    const csv_source *source = (const csv_source *)reader;
    const tdi_csv_group *group = &source->columns.groups[column];
    bool input = column < source->columns.n_x;
    int64_t rows = input && source->window ? source->window : 1;
    int64_t last = source->window ? row + source->window - 1 : row, first = input ? row : target_row(source, last);
    int64_t row_bytes = group->width * (int64_t)sizeof(float);
    return tdi_store_read(source->values[column], first * row_bytes, to, rows * row_bytes, error);
}

/* ---- the recipe ---- */

static const char *const cells_suffix[] = {"", ":codes", ":one-hot"};

/* The inputs and targets. Weights are named anew each time, as data to predict from has none. */
static char *features_text(const tdi_csv_columns *columns)
{
    tdi_text text = {0};
    for (int i = 0; i < columns->list.count; i++) {
        const tdi_csv_column *column = &columns->list.at[i];
        if (column->group >= columns->n_x + columns->n_y)
            continue;
        bool first = i == 0 || columns->list.at[i - 1].group != column->group;
        tdi_text_format(&text, "%s%s%s%s%s", i ? "," : "", first ? columns->groups[column->group].name : "",
                        first ? "=" : "", column->name, cells_suffix[column->cells]);
    }
    if (text.failed)
        tdi_text_free(&text);
    return text.chars;
}

/* The categories of the first target when it is a single column of codes, else NULL. */
static json_t *class_names(const tdi_csv_columns *columns, const json_t *found)
{
    json_t *names = NULL;
    int of_target = 0;
    for (int i = 0; i < columns->list.count; i++)
        if (columns->list.at[i].group == columns->n_x) {
            names = json_object_get(json_object_get(found, columns->list.at[i].name), "categories");
            of_target++;
        }
    return of_target == 1 ? names : NULL;
}

static td_status write_recipe(csv_source *source, tdi_error *error)
{
    char *features = features_text(&source->columns);
    json_t *found = json_object();
    for (int i = 0; i < source->columns.list.count; i++) {
        const tdi_csv_column *column = &source->columns.list.at[i];
        json_object_set_new(found, column->name, tdi_csv_column_json(column));
    }
    json_t *recipe = json_pack("{s:s, s:s, s:I, s:I, s:s, s:o}", "format", "csv", "features", features ? features : "",
                               "window", (json_int_t)source->window, "horizon", (json_int_t)source->horizon, "missing",
                               missing_names[source->missing], "columns", found);
    if (recipe)                                                                   /* else `found` may be NULL too */
        json_object_set(recipe, "classes", class_names(&source->columns, found)); /* ignores NULL */
    char *text = recipe ? json_dumps(recipe, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(recipe);
    source->reader.source.recipe = text;
    if (text)
        tdi_source_stamp_words(&source->reader.source, text);
    bool room = features != NULL;
    free(features);
    if (!room)
        return tdi_no_memory(error);
    return text ? TD_OK
                : tdi_fail(error, TD_BAD_FILE, "%s: a column's name or a category is not UTF-8 text",
                           source->reader.source.name);
}

static td_missing missing_of(const json_t *recipe)
{
    const char *name = json_string_value(json_object_get(recipe, "missing"));
    for (int i = 0; name && i < (int)(sizeof missing_names / sizeof *missing_names); i++)
        if (strcmp(name, missing_names[i]) == 0)
            return (td_missing)i;
    return TD_MISSING_REFUSE;
}

/* Takes from the recipe what the arguments leave open. */
static td_status resolve(csv_source *source, const td_open_args *args, tdi_error *error)
{
    const json_t *recipe = source->recipe;
    source->skip = args->skip_errors == TD_YES;
    source->targets = args->targets != TD_NO;
    source->weights = tdi_named_weights(args);
    source->missing = args->missing ? args->missing : missing_of(recipe);
    source->window = args->window ? args->window : json_integer_value(json_object_get(recipe, "window"));
    source->horizon = args->horizon ? args->horizon : json_integer_value(json_object_get(recipe, "horizon"));
    if (source->missing < 0 || source->missing > TD_MISSING_DROP)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_open: there is no way number %d to treat missing values",
                        (int)source->missing);
    if (source->window < 0 || source->horizon < 0 || source->window > INT32_MAX || source->horizon > INT32_MAX)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "td_open: a window of %" PRId64 " rows and a horizon of %" PRId64
                        ": neither may be negative or above 2^31",
                        source->window, source->horizon);
    if (source->horizon && !source->window)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "a horizon of %" PRId64 " rows, but no window: give the window's length too", source->horizon);
    if (source->window && !source->horizon)
        source->horizon = 1;
    return TD_OK;
}

/* ---- opening ---- */

static void csv_release(tdi_source *base)
{
    csv_source *source = (csv_source *)base;
    for (int g = 0; g < TDI_MAX_COLUMNS; g++)
        tdi_store_free(source->values[g]);
    tdi_csv_columns_release(&source->columns);
    tdi_csv_headers_release(&source->headers);
    tdi_text_free(&source->note);
    tdi_store_free(source->cells);
    free(source->row);
    tdi_vec_free(&source->marks);
    tdi_vec_free(&source->files);
    json_decref(source->recipe);
    free(source->reader.source.recipe);
    free(source->reader.kept);
    free(source);
}

static td_status fill(csv_source *source, const td_open_args *args, tdi_error *error)
{
    const char *features = args->features;
    source->recipe = tdi_recipe_of(args->recipe, "csv");
    TDI_TRY(resolve(source, args, error));
    if (!features)
        features = json_string_value(json_object_get(source->recipe, "features"));
    TDI_TRY(read_files(source, args, features, error));
    TDI_TRY(make_groups(source, args->scale, error));
    TDI_TRY(make_samples(source, error));
    if (source->note.chars)
        snprintf(source->reader.source.note, sizeof source->reader.source.note, "%s", source->note.chars);
    return write_recipe(source, error);
}

static td_status csv_open(const td_open_args *args, tdi_source **opened, tdi_error *error)
{
    csv_source *source = tdi_sample_reader_create(sizeof *source, args->path, csv_release, error);
    if (!source)
        return TD_NO_MEMORY;
    source->reader.read = csv_read;
    td_status status = fill(source, args, error);
    return tdi_source_finish(&source->reader.source, status, opened);
}

const tdi_source_format tdi_source_csv = {"files.csv, .tsv or .csv.gz",
                                          TDI_OPEN_SCALE | TDI_OPEN_FEATURES | TDI_OPEN_MISSING | TDI_OPEN_WINDOW |
                                              TDI_OPEN_HORIZON | TDI_OPEN_HEADER | TDI_OPEN_SAMPLE_WEIGHT,
                                          csv_claims, csv_open, ""};
