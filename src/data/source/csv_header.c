/* csv_header.c - reads the first two lines of each file and decides what the first one is. */
#define _GNU_SOURCE
#include "data/source/csv_header.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "files/csv_file.h"

/* What the first line is, by itself and the line below. */
typedef enum reading {
    NAMES,      /* a text stands above a number */
    TEXTS,      /* no cell is a number, and none below; or there is nothing below */
    ROW,        /* numbers that count nothing, or numbers beside texts that stand above texts */
    NUMBERS_0,  /* 0, 1, 2, ...: as pandas names columns that have no names */
    NUMBERS,    /* consecutive numbers from elsewhere on */
    CANNOT_TELL /* whole numbers beside texts that stand above texts; a single 0; nothing but missing values */
} reading;

enum { MOST_LINES = 64 }; /* that are read of each file */

typedef struct first_line {
    tdi_csv_header header;
    reading reading;
    bool has_numbers;     /* among its cells */
    bool above_fractions; /* the line below holds a number that is not whole */
    int usual_count;      /* the number of cells that most lines have */
} first_line;

bool tdi_csv_is_missing(const char *cell)
{
    static const char *const words[] = {"",        "NA",       "N/A",    "NaN",     "null", "#N/A", "#N/A N/A", "#NA",
                                        "-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN", "-NaN", "<NA>", "None"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp(cell, words[i]) == 0)
            return true;
    return false;
}

/* ---- one file ---- */

static bool is_number(tdi_csv *csv, const char *cell)
{
    double number;
    return tdi_csv_number(csv, cell, &number) || tdi_csv_is_infinite(cell);
}

static bool is_whole(const char *cell)
{
    return *cell && strspn(cell, "0123456789") == strlen(cell) && strlen(cell) < 10;
}

/* True when the cells, but for a first one that is empty, as of pandas's index, are consecutive numbers. */
static bool are_consecutive(char *const *cells, int count, int *first)
{
    int from = count && !*cells[0];
    if (from == count)
        return false;
    *first = atoi(cells[from]);
    for (int i = from; i < count; i++)
        if (!is_whole(cells[i]) || atoi(cells[i]) != *first + i - from || (cells[i][0] == '0' && cells[i][1]))
            return false;
    return true;
}

static reading read_numbers(char *const *cells, int count)
{
    int first, named = count - (count && !*cells[0]);
    if (!are_consecutive(cells, count, &first))
        return ROW;
    if (first == 0)
        return named > 1 ? NUMBERS_0 : CANNOT_TELL;
    return named > 2 ? NUMBERS : ROW;
}

static bool above_number(tdi_csv *csv, char *const *cells, int count, const tdi_csv_record *below)
{
    for (int i = 0; below && i < count && i < below->count; i++)
        if (!tdi_csv_is_missing(cells[i]) && !is_number(csv, cells[i]) && is_number(csv, below->cells[i]))
            return true;
    return false;
}

/* Of numbers beside texts that stand above texts. */
static reading read_mixed(tdi_csv *csv, char *const *cells, int count)
{
    for (int i = 0; i < count; i++)
        if (is_number(csv, cells[i]) && !is_whole(cells[i]))
            return ROW;
    return CANNOT_TELL;
}

/* `below` is the next line; NULL: there is none. */
static void read_line(tdi_csv *csv, first_line *line, const tdi_csv_record *below)
{
    int numbers = 0, texts = 0, count = line->header.count;
    char *const *cells = line->header.names;
    for (int i = 0; i < count; i++) {
        bool number = is_number(csv, cells[i]);
        numbers += number;
        texts += !number && !tdi_csv_is_missing(cells[i]);
    }
    for (int i = 0; below && i < below->count; i++)
        line->above_fractions |= is_number(csv, below->cells[i]) && !is_whole(below->cells[i]);
    line->has_numbers = numbers > 0;
    if (above_number(csv, cells, count, below))
        line->reading = NAMES;
    else if (!numbers)
        line->reading = texts ? TEXTS : CANNOT_TELL;
    else
        line->reading = texts ? read_mixed(csv, cells, count) : read_numbers(cells, count);
}

static td_status copy_cells(const tdi_csv_record *record, tdi_csv_header *header, tdi_error *error)
{
    header->names = calloc((size_t)record->count + 1, sizeof *header->names);
    for (; header->names && header->count < record->count; header->count++)
        if (!(header->names[header->count] = strdup(record->cells[header->count])))
            return tdi_no_memory(error);
    return header->names ? TD_OK : tdi_no_memory(error);
}

/* Reads a record that is one. With `skip` damaged ones are passed over, as they are when rows are read. */
static td_status next_good(tdi_csv *csv, bool skip, tdi_csv_record *record, bool *end, tdi_error *error)
{
    tdi_error failed = {0};
    td_status status;
    while ((status = tdi_csv_next(csv, record, end, &failed)) == TD_BAD_FILE && skip)
        failed = (tdi_error){0};
    return status == TD_OK ? TD_OK : tdi_fail(error, status, "%s", failed.message);
}

/* The number of cells that most lines have, and of several numbers the first: `counts` has those of the first two. */
static int usual_count(tdi_csv *csv, int counts[MOST_LINES])
{
    int lines = 2, usual = 0, most = 0;
    tdi_csv_record record;
    for (bool end = false; lines < MOST_LINES && next_good(csv, true, &record, &end, NULL) == TD_OK && !end; lines++)
        counts[lines] = record.count;
    for (int i = 0; i < lines; i++) {
        int same = 0;
        for (int j = 0; j < lines; j++)
            same += counts[j] == counts[i];
        if (same > most) {
            most = same;
            usual = counts[i];
        }
    }
    return usual;
}

static td_status read_lines(tdi_csv *csv, bool skip, first_line *line, tdi_error *error)
{
    tdi_csv_record record;
    bool end;
    TDI_TRY(next_good(csv, skip, &record, &end, error));
    if (end)
        return tdi_fail(error, TD_BAD_FILE, "%s is empty: it should begin with a line of column names",
                        line->header.path);
    TDI_TRY(copy_cells(&record, &line->header, error));
    bool below = next_good(csv, skip, &record, &end, NULL) == TD_OK && !end; /* damage is said when rows are read */
    read_line(csv, line, below ? &record : NULL);
    int counts[MOST_LINES] = {line->header.count, below ? record.count : 0};
    line->usual_count = below ? usual_count(csv, counts) : line->header.count;
    return TD_OK;
}

static td_status read_file(const char *path, bool skip, first_line *line, tdi_error *error)
{
    tdi_csv *csv;
    line->header.path = strdup(path);
    if (!line->header.path)
        return tdi_no_memory(error);
    TDI_TRY(tdi_csv_open(path, &csv, error));
    td_status status = read_lines(csv, skip, line, error);
    tdi_csv_close(csv);
    return status;
}

/* ---- against the features ---- */

typedef enum named_by { NEITHER, BY_NAME, BY_POSITION } named_by;

static bool has_cell(const tdi_csv_header *header, const char *name)
{
    for (int i = 0; i < header->count; i++)
        if (strcmp(header->names[i], name) == 0)
            return true;
    return false;
}

/* A column's name as features have it, "y=wind:codes", without what stands around it. */
static char *bare_name(const tdi_csv_header *header, char *word)
{
    if (has_cell(header, word))
        return word;
    char *equals = strchr(word, '='), *name = equals ? equals + 1 : word, *colon = strrchr(name, ':');
    if (colon && !has_cell(header, name) && (strcmp(colon, ":codes") == 0 || strcmp(colon, ":one-hot") == 0))
        *colon = '\0';
    return name;
}

/* Whether all columns that features name are in the line, or can only be numbers of columns. Columns of y may be
 * missing where only inputs are wanted, so one name is enough. */
static named_by find_named(const tdi_csv_header *header, const char *features)
{
    char *words = features ? strdup(features) : NULL, *rest = words;
    int names = 0, positions = 0, all = 0;
    for (char *word; rest && (word = strsep(&rest, ","));) {
        const char *name = bare_name(header, word);
        bool position = is_whole(name) && atoi(name) < header->count;
        bool cell = has_cell(header, name);
        names += cell && !position;
        positions += position && !cell;
        all++;
    }
    free(words);
    return names && !positions ? BY_NAME : positions && !names ? BY_POSITION : NEITHER;
}

/* ---- all files ---- */

static void say_guess(const first_line *line, const char *taken, const char *otherwise, tdi_text *note)
{
    const tdi_csv_header *header = &line->header;
    if (note->length)
        return;
    tdi_text_format(note, "%s: its first line, ", header->path);
    for (int i = 0; i < header->count && i < 3; i++)
        tdi_text_format(note, "%s%.32s", i ? "," : "", header->names[i]);
    tdi_text_format(note, "%s, is taken for %s; if it is %s", header->count > 3 ? ",..." : "", taken, otherwise);
}

static void say_names(const first_line *line, tdi_text *note)
{
    say_guess(line, "the columns' names", "a sample, give header no (--header no)", note);
}

static td_status cannot_tell(const first_line *line, tdi_error *error)
{
    tdi_text start = {0};
    for (int i = 0; i < line->header.count && i < 3; i++)
        tdi_text_format(&start, "%s%.32s", i ? "," : "", line->header.names[i]);
    td_status status =
        tdi_fail(error, TD_INVALID_ARGUMENT,
                 "%s: its first line, %s%s, may hold the columns' names or a sample: say which by header (--header "
                 "yes or no)",
                 line->header.path, start.chars ? start.chars : "", line->header.count > 3 ? ",..." : "");
    tdi_text_free(&start);
    return status;
}

/* By the line itself. `named` says that another file begins with names. */
static void guess(first_line *line, bool named, tdi_text *note)
{
    bool *is_there = &line->header.is_there;
    bool counts = line->reading == NUMBERS_0 || (line->reading == NUMBERS && line->above_fractions);
    *is_there = line->reading == NAMES || line->reading == TEXTS || (counts && !named);
    if (*is_there && line->has_numbers)
        say_names(line, note);
    else if (!named && line->reading == NUMBERS)
        say_guess(line, "a sample", "the columns' names, give header yes (--header yes)", note);
}

static td_status decide(const tdi_csv_header_args *args, first_line *line, bool named, tdi_text *note, tdi_error *error)
{
    named_by by = find_named(&line->header, args->features);
    if (args->header)
        line->header.is_there = args->header == TD_YES;
    else if (by == BY_NAME || (by == BY_POSITION && line->reading != NAMES))
        line->header.is_there = by == BY_NAME;
    else if (line->reading == CANNOT_TELL)
        return cannot_tell(line, error);
    else
        guess(line, named, note);
    return TD_OK;
}

/* As pandas does: a second "a" is "a.1". */
static td_status make_unique(tdi_csv_header *header, int at, tdi_error *error)
{
    char *name = header->names[at], *numbered;
    for (int i = 0, copies = 0; i < at; i++) {
        if (strcmp(header->names[i], header->names[at]) != 0)
            continue;
        if (asprintf(&numbered, "%s.%d", name, ++copies) < 0)
            return tdi_no_memory(error);
        if (header->names[at] != name)
            free(header->names[at]);
        header->names[at] = numbered;
        i = -1;
    }
    if (header->names[at] != name)
        free(name);
    return TD_OK;
}

static td_status set_name(tdi_csv_header *header, int at, tdi_error *error)
{
    char *name = header->names[at], unnamed[32];
    snprintf(unnamed, sizeof unnamed, header->is_there ? "Unnamed: %d" : "%d", at);
    if (!header->is_there || !*name) {
        free(name);
        header->names[at] = name = strdup(unnamed);
    }
    for (char *comma = name; comma && (comma = strchr(comma, ','));)
        *comma = ' ';
    return name ? make_unique(header, at, error) : tdi_no_memory(error);
}

/* Makes the cells of a row, which may be one that will be refused, as many as the other rows have. */
static td_status resize(tdi_csv_header *header, int count, tdi_error *error)
{
    while (header->count > count)
        free(header->names[--header->count]);
    char **names = realloc(header->names, ((size_t)count + 1) * sizeof *names);
    if (!names)
        return tdi_no_memory(error);
    header->names = names;
    while (header->count < count)
        names[header->count++] = NULL;
    return TD_OK;
}

/* Names the columns. A header that ends in a separator has no name behind it. */
static td_status set_names(first_line *line, tdi_error *error)
{
    tdi_csv_header *header = &line->header;
    if (header->is_there && header->count > 1 && !*header->names[header->count - 1])
        free(header->names[--header->count]);
    if (!header->is_there)
        TDI_TRY(resize(header, line->usual_count, error));
    for (int i = 0; i < header->count; i++)
        TDI_TRY(set_name(header, i, error));
    return TD_OK;
}

/* Rows without names of their own have those of another file with as many columns. */
static td_status borrow_names(const tdi_csv_headers *headers, tdi_csv_header *header, tdi_error *error)
{
    const tdi_csv_header *other = NULL;
    for (int i = 0; i < headers->count && !other; i++)
        other = headers->at[i].is_there ? &headers->at[i] : NULL;
    if (header->is_there || !other || other->count != header->count)
        return TD_OK;
    for (int i = 0; i < header->count; i++) {
        char *name = strdup(other->names[i]);
        if (!name)
            return tdi_no_memory(error);
        free(header->names[i]);
        header->names[i] = name;
    }
    return TD_OK;
}

typedef tdi_vec(first_line) first_lines;

static td_status read_files(const tdi_csv_header_args *args, first_lines *lines, tdi_error *error)
{
    for (int i = 0; i < args->paths->count; i++) {
        if (!tdi_push(lines, (first_line){0}))
            return tdi_no_memory(error);
        TDI_TRY(read_file(args->paths->at[i], args->skip, &lines->at[i], error));
    }
    return TD_OK;
}

static td_status decide_all(const tdi_csv_header_args *args, first_lines *lines, tdi_csv_headers *headers,
                            tdi_text *note, tdi_error *error)
{
    bool named = false;
    for (int i = 0; i < lines->count; i++)
        named |= lines->at[i].reading == NAMES || lines->at[i].reading == TEXTS;
    for (int i = 0; i < lines->count; i++)
        TDI_TRY(decide(args, &lines->at[i], named, note, error));
    for (int i = 0; i < lines->count; i++) {
        TDI_TRY(set_names(&lines->at[i], error));
        if (!tdi_push(headers, lines->at[i].header))
            return tdi_no_memory(error);
        lines->at[i].header = (tdi_csv_header){0};
    }
    for (int i = 0; i < headers->count; i++)
        TDI_TRY(borrow_names(headers, &headers->at[i], error));
    return TD_OK;
}

static void release(tdi_csv_header *header)
{
    for (int i = 0; i < header->count; i++)
        free(header->names[i]);
    free(header->names);
    free(header->path);
}

td_status tdi_csv_headers_find(const tdi_csv_header_args *args, tdi_csv_headers *headers, tdi_text *note,
                               tdi_error *error)
{
    first_lines lines = {0};
    td_status status = read_files(args, &lines, error);
    if (status == TD_OK)
        status = decide_all(args, &lines, headers, note, error);
    for (int i = 0; i < lines.count; i++)
        release(&lines.at[i].header);
    tdi_vec_free(&lines);
    return status;
}

void tdi_csv_headers_release(tdi_csv_headers *headers)
{
    for (int i = 0; i < headers->count; i++)
        release(&headers->at[i]);
    tdi_vec_free(headers);
}
