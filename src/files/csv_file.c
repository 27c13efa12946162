/* csv_file.c - CSV by libcsv, which is fed line by line so that messages can name the line. */
#define _GNU_SOURCE
#include "files/csv_file.h"

#include <csv.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <zlib.h>

#include "base/decimal.h"
#include "base/vec.h"
#include "files/open_regular.h"

enum { CHUNK = 1 << 16, MOST = 1 << 20 }; /* bytes per read; largest bytes of a record */

struct tdi_csv {
    char *path;
    gzFile file;
    bool has_point, has_comma; /* the decimal marks of the numbers so far */
    struct csv_parser parser;
    bool has_parser;
    char chunk[CHUNK];
    size_t begin, end; /* the chunk's bytes that are not parsed yet */
    int64_t line, record_line;
    int64_t offset, record_offset; /* in the unpacked file: of byte `begin`, and of the record */
    bool at_end, after_cr;
    size_t fed;            /* bytes of the record so far */
    bool complete, failed; /* the parser has reached the record's end; out of memory */
    tdi_vec(char) text;    /* the cells, each ended by a NUL */
    tdi_vec(int) starts;   /* of the cells in `text` */
    tdi_vec(char *) cells;
};

/* ---- numbers ---- */

enum { LONGEST_NUMBER = 400 };

/* Copies a cell with a point for its only comma. False when it has none, or several. */
static bool with_point(const char *cell, char point[LONGEST_NUMBER])
{
    const char *comma = strchr(cell, ',');
    size_t length = strlen(cell);
    if (!comma || strchr(comma + 1, ',') || strchr(cell, '.') || length >= LONGEST_NUMBER)
        return false;
    memcpy(point, cell, length + 1);
    point[comma - cell] = '.';
    return true;
}

bool tdi_csv_number(tdi_csv *csv, const char *cell, double *number)
{
    char point[LONGEST_NUMBER];
    bool comma = csv_get_delim(&csv->parser) == ';' && with_point(cell, point);
    if (!tdi_parse_decimal(comma ? point : cell, number))
        return false;
    csv->has_comma |= comma;
    csv->has_point |= strchr(cell, '.') != NULL;
    return true;
}

bool tdi_csv_mixes_marks(const tdi_csv *csv)
{
    return csv->has_point && csv->has_comma;
}

bool tdi_csv_has_decimal_comma(const char *cell)
{
    double number;
    char point[LONGEST_NUMBER];
    return with_point(cell, point) && tdi_parse_decimal(point, &number);
}

bool tdi_csv_is_infinite(const char *cell)
{
    double number;
    char mantissa[LONGEST_NUMBER];
    const char *word = cell + strspn(cell, "+-");
    size_t length = strspn(cell, "+-.0123456789");
    if (strcasecmp(word, "inf") == 0 || strcasecmp(word, "infinity") == 0)
        return true;
    if (length >= LONGEST_NUMBER || tdi_parse_decimal(cell, &number))
        return false;
    memcpy(mantissa, cell, length);
    mantissa[length] = '\0';
    const char *rest = cell + length;
    bool exponent = (*rest == 'e' || *rest == 'E') && rest[1] && !rest[1 + strspn(rest + 1, "+0123456789")];
    return (exponent || !*rest) && tdi_parse_decimal(mantissa, &number);
}

/* ---- the parser's calls ---- */

static void add_char(tdi_csv *csv, char c)
{
    if (!tdi_push(&csv->text, c))
        csv->failed = true;
}

static void take_cell(void *cell, size_t length, void *data)
{
    tdi_csv *csv = data;
    const char *chars = cell;
    if (!tdi_push(&csv->starts, csv->text.count))
        csv->failed = true;
    for (size_t i = 0; i < length; i++)
        add_char(csv, chars[i] ? chars[i] : '?'); /* a NUL would hide the rest of the cell */
    add_char(csv, '\0');
}

static void take_end(int terminator, void *data)
{
    (void)terminator;
    ((tdi_csv *)data)->complete = true;
}

/* ---- opening ---- */

static td_status start_parser(tdi_csv *csv, unsigned char separator, tdi_error *error)
{
    if (csv->has_parser)
        csv_free(&csv->parser);
    csv->has_parser = csv_init(&csv->parser, CSV_STRICT | CSV_STRICT_FINI) == 0;
    if (!csv->has_parser)
        return tdi_no_memory(error);
    csv_set_delim(&csv->parser, separator);
    csv->fed = 0;
    csv->complete = false;
    csv->text.count = csv->starts.count = 0;
    return TD_OK;
}

/* zlib's message without its prefix "<fd:3>: ". */
static const char *words_of(const char *reason)
{
    const char *words = strstr(reason, ">: ");
    return words ? words + 3 : reason;
}

/* Reads more bytes. Where a gzipped file is damaged, the bytes unpacked before that are returned first. */
static td_status read_chunk(tdi_csv *csv, tdi_error *error)
{
    int code = Z_OK;
    int got = gzread(csv->file, csv->chunk, CHUNK);
    const char *reason = gzerror(csv->file, &code);
    csv->begin = 0;
    csv->end = got > 0 ? (size_t)got : 0;
    csv->at_end = got <= 0;
    if (got > 0 || (got == 0 && (code == Z_OK || code == Z_STREAM_END)))
        return TD_OK;
    if (csv->has_parser)
        TDI_TRY(start_parser(csv, csv_get_delim(&csv->parser), error));
    return tdi_fail(error, code == Z_ERRNO ? TD_IO : TD_BAD_FILE,
                    "%s: line %" PRId64 " at offset %" PRId64 ": cannot be read from here on: %s", csv->path, csv->line,
                    csv->offset, code == Z_ERRNO ? strerror(errno) : words_of(reason));
}

/* Number of separators in a line, outside quotes. */
static size_t count_in(const char *line, size_t length, char separator)
{
    size_t count = 0;
    bool quoted = false;
    for (size_t i = 0; i < length && (quoted || (line[i] != '\n' && line[i] != '\r')); i++) {
        quoted ^= line[i] == '"';
        count += !quoted && line[i] == separator;
    }
    return count;
}

/* True when semicolons stand between cells that are all numbers or empty, some of them with a decimal comma. */
static bool separates_decimal_commas(const char *line, size_t length)
{
    char cell[LONGEST_NUMBER];
    double number;
    bool semicolons = false, commas = false;
    for (size_t at = 0, end = 0; at <= length && end < length; at = end + 1) {
        for (end = at; end < length && !strchr(";\r\n", line[end]);)
            end++;
        if (end - at >= sizeof cell)
            return false;
        memcpy(cell, line + at, end - at);
        cell[end - at] = '\0';
        bool comma = tdi_csv_has_decimal_comma(cell);
        if (!comma && *cell && !tdi_parse_decimal(cell, &number))
            return false;
        commas |= comma;
        semicolons |= end < length && line[end] == ';';
        if (end < length && line[end] != ';')
            break;
    }
    return semicolons && commas;
}

static unsigned char find_separator(const char *line, size_t length)
{
    static const char candidates[] = ",;\t|";
    size_t most = 0;
    unsigned char found = ',';
    for (const char *c = candidates; *c; c++) {
        size_t count = count_in(line, length, *c);
        if (count > most) {
            most = count;
            found = (unsigned char)*c;
        }
    }
    return separates_decimal_commas(line, length) ? ';' : found;
}

/* Refuses what is not UTF-8 by its first bytes. */
static td_status check_encoding(const tdi_csv *csv, tdi_error *error)
{
    const char *at = csv->chunk;
    bool mark = csv->end >= 2 && (memcmp(at, "\xff\xfe", 2) == 0 || memcmp(at, "\xfe\xff", 2) == 0);
    if (mark || memchr(at, 0, csv->end < 256 ? csv->end : 256))
        return tdi_fail(error, TD_BAD_FILE, "%s: %s: save it as UTF-8, as by iconv -f UTF-16 -t UTF-8", csv->path,
                        mark ? "it is UTF-16 text, by its first two bytes" : "it holds NUL bytes, as UTF-16 text does");
    return TD_OK;
}

static td_status begin(tdi_csv *csv, tdi_error *error)
{
    csv->line = 1;
    TDI_TRY(read_chunk(csv, error));
    TDI_TRY(check_encoding(csv, error));
    if (csv->end >= 3 && memcmp(csv->chunk, "\xef\xbb\xbf", 3) == 0) /* spreadsheets write a byte order mark */
        csv->begin = 3;
    csv->offset = (int64_t)csv->begin;
    const char *line = csv->chunk + csv->begin;
    size_t left = csv->end - csv->begin;
    while (left && (*line == '\n' || *line == '\r')) { /* empty lines say nothing */
        line++;
        left--;
    }
    return start_parser(csv, find_separator(line, left), error);
}

static td_status open_file(tdi_csv *csv, tdi_error *error)
{
    int fd;
    if (!csv->path)
        return tdi_no_memory(error);
    TDI_TRY(tdi_regular_open(csv->path, &fd, NULL, error));
    csv->file = gzdopen(fd, "rb");
    if (csv->file)
        return begin(csv, error);
    close(fd);
    return tdi_no_memory(error);
}

td_status tdi_csv_open(const char *path, tdi_csv **opened, tdi_error *error)
{
    tdi_csv *csv = calloc(1, sizeof *csv);
    if (!csv)
        return tdi_no_memory(error);
    csv->path = strdup(path);
    td_status status = open_file(csv, error);
    if (status == TD_OK)
        *opened = csv;
    else
        tdi_csv_close(csv);
    return status;
}

void tdi_csv_close(tdi_csv *csv)
{
    if (!csv)
        return;
    if (csv->file)
        gzclose(csv->file);
    if (csv->has_parser)
        csv_free(&csv->parser);
    tdi_vec_free(&csv->text);
    tdi_vec_free(&csv->starts);
    tdi_vec_free(&csv->cells);
    free(csv->path);
    free(csv);
}

/* ---- records ---- */

/* Moves to the next line's first byte, behind "\n", "\r" or "\r\n". */
static void count_line(tdi_csv *csv, char last)
{
    bool ended = (last == '\n' && !csv->after_cr) || last == '\r';
    csv->line += ended;
    csv->after_cr = last == '\r';
}

static td_status broken(tdi_csv *csv, const char *what, tdi_error *error)
{
    TDI_TRY(start_parser(csv, csv_get_delim(&csv->parser), error));
    return tdi_fail(error, TD_BAD_FILE, "%s: line %" PRId64 " at offset %" PRId64 ": %s", csv->path, csv->record_line,
                    csv->record_offset, what);
}

static bool is_blank(const char *from, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!strchr(" \t\r\n", from[i]) || !from[i])
            return false;
    return true;
}

/* Feeds the parser the rest of the line, or of the chunk. */
static td_status feed(tdi_csv *csv, tdi_error *error)
{
    const char *from = csv->chunk + csv->begin;
    size_t left = csv->end - csv->begin, length = 0;
    while (length < left && from[length] != '\n' && from[length] != '\r')
        length++;
    length += length < left;
    if (!csv->starts.count && !csv->fed) {
        csv->record_line = csv->line;
        csv->record_offset = csv->offset;
    }
    csv->begin += length;
    csv->offset += (int64_t)length;
    size_t parsed = csv_parse(&csv->parser, from, length, take_cell, take_end, csv);
    csv->fed += length;
    if (!csv->complete && !csv->starts.count && csv->fed == length && is_blank(from, length))
        csv->fed = 0;
    count_line(csv, from[length - 1]);
    if (csv->failed || csv_error(&csv->parser) == CSV_ENOMEM)
        return tdi_no_memory(error);
    if (parsed != length)
        return broken(csv, "a quote stands inside a cell that is not quoted, or is not doubled", error);
    return csv->fed > MOST
               ? broken(csv,
                        "a record of more than 1 MiB: a quote is opened and not closed, or there are too many columns",
                        error)
               : TD_OK;
}

static td_status finish(tdi_csv *csv, tdi_error *error)
{
    if (csv_fini(&csv->parser, take_cell, take_end, csv) != 0)
        return broken(csv, "a quote is opened and not closed", error);
    return csv->failed ? tdi_no_memory(error) : TD_OK;
}

static td_status hand_over(tdi_csv *csv, tdi_csv_record *record, tdi_error *error)
{
    csv->cells.count = 0;
    for (int i = 0; i < csv->starts.count; i++)
        if (!tdi_push(&csv->cells, csv->text.at + csv->starts.at[i]))
            return tdi_no_memory(error);
    *record = (tdi_csv_record){csv->cells.count, csv->cells.at, csv->record_line, csv->record_offset};
    return TD_OK;
}

td_status tdi_csv_next(tdi_csv *csv, tdi_csv_record *record, bool *end, tdi_error *error)
{
    csv->complete = false;
    csv->fed = 0;
    csv->text.count = csv->starts.count = 0;
    while (!csv->complete && !csv->at_end) {
        if (csv->begin < csv->end)
            TDI_TRY(feed(csv, error));
        else
            TDI_TRY(read_chunk(csv, error));
    }
    if (!csv->complete)
        TDI_TRY(finish(csv, error));
    *end = !csv->complete;
    return csv->complete ? hand_over(csv, record, error) : TD_OK;
}
