/* npy_file.c - NumPy's array files.
 *
 * A file is "\x93NUMPY", two version bytes, the header's length (2 bytes little-endian; 4 from version 2 on), the
 * header and the elements. The header is a Python dictionary padded with blanks, such as
 * {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }; the parser knows nothing else of Python. */
#include "files/npy_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/atomic_file.h"

#define MAGIC      "\x93NUMPY"
#define MAGIC_SIZE 6
#define MAX_HEADER (64 * 1024)
#define MAX_DIGITS 18

/* ---- the header's text ---- */

typedef struct cursor {
    const char *at, *end;
} cursor;

static void skip_blanks(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t'))
        c->at++;
}

static bool take(cursor *c, char wanted)
{
    skip_blanks(c);
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

static bool take_word(cursor *c, const char *word)
{
    size_t length = strlen(word);
    skip_blanks(c);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0)
        return false;
    c->at += length;
    return true;
}

/* Parses a quoted string of less than `size` characters, without escapes. */
static bool take_string(cursor *c, char *text, size_t size)
{
    char quote;
    size_t length = 0;
    if (take(c, '\''))
        quote = '\'';
    else if (take(c, '"'))
        quote = '"';
    else
        return false;
    while (c->at < c->end && *c->at != quote && *c->at != '\\' && length + 1 < size)
        text[length++] = *c->at++;
    text[length] = '\0';
    return take(c, quote);
}

static bool take_number(cursor *c, int64_t *number)
{
    int digits = 0;
    *number = 0;
    skip_blanks(c);
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        if (++digits > MAX_DIGITS)
            return false;
        *number = 10 * *number + (*c->at - '0');
    }
    if (digits && c->at < c->end && *c->at == 'L') /* written by Python 2 */
        c->at++;
    return digits > 0;
}

/* Parses (), (3,) or (3, 4). *rank may exceed TD_MAX_RANK; only the first extents are kept then. */
static bool take_shape(cursor *c, td_shape *shape, int *rank)
{
    *rank = 0;
    if (!take(c, '('))
        return false;
    while (!take(c, ')')) {
        int64_t extent;
        if (!take_number(c, &extent))
            return false;
        if (*rank < TD_MAX_RANK)
            shape->dim[*rank] = extent;
        ++*rank;
        if (!take(c, ',') && (c->at == c->end || *c->at != ')'))
            return false;
    }
    return true;
}

typedef struct header {
    char descr[32];
    bool has_descr, has_order, has_shape, fortran;
    td_shape shape;
    int rank;
} header;

static bool take_value(cursor *c, const char *key, header *h)
{
    if (strcmp(key, "descr") == 0)
        return h->has_descr = take_string(c, h->descr, sizeof h->descr);
    if (strcmp(key, "shape") == 0)
        return h->has_shape = take_shape(c, &h->shape, &h->rank);
    if (strcmp(key, "fortran_order") != 0)
        return false;
    h->fortran = take_word(c, "True");
    return h->has_order = h->fortran || take_word(c, "False");
}

static bool parse_dictionary(cursor *c, header *h)
{
    char key[32];
    if (!take(c, '{'))
        return false;
    while (!take(c, '}')) {
        if (!take_string(c, key, sizeof key) || !take(c, ':') || !take_value(c, key, h))
            return false;
        if (!take(c, ',') && (c->at == c->end || *c->at != '}'))
            return false;
    }
    skip_blanks(c);
    return c->at == c->end && h->has_descr && h->has_order && h->has_shape;
}

/* ---- reading ---- */

/* Parses "<f4": byte order, kind, size; a bool is "|b1". */
static bool read_type(const char *descr, tdi_numbers *numbers)
{
    static const char kinds[] = {[TDI_NUMBERS_UNSIGNED] = 'u', [TDI_NUMBERS_SIGNED] = 'i', [TDI_NUMBERS_FLOAT] = 'f'};
    if (strcmp(descr, "|b1") == 0)
        return tdi_numbers_of(TDI_NUMBERS_UNSIGNED, 1, false, numbers);
    if (strlen(descr) != 3 || !strchr("<>|", descr[0]) || descr[2] < '1' || descr[2] > '8')
        return false;
    for (size_t kind = 0; kind < sizeof kinds; kind++)
        if (descr[1] == kinds[kind])
            return tdi_numbers_of((tdi_number_kind)kind, (unsigned)(descr[2] - '0'), descr[0] == '>', numbers);
    return false;
}

static td_status parse_type(const char *descr, const char *what, tdi_numbers *numbers, tdi_error *error)
{
    if (read_type(descr, numbers))
        return TD_OK;
    return tdi_fail(
        error, TD_UNSUPPORTED,
        "%s: elements of NumPy type '%s' cannot be read; convert them to floats of 16 to 64 bits, integers of 8 to 64 "
        "or bool (array.astype)",
        what, descr);
}

/* Finds the header's text. */
static td_status find_header(const unsigned char *bytes, size_t size, const char *what, cursor *text, tdi_error *error)
{
    if (size < MAGIC_SIZE + 4 || memcmp(bytes, MAGIC, MAGIC_SIZE) != 0)
        return tdi_fail(error, TD_BAD_FILE, "%s is not a .npy array: it does not begin as one", what);
    unsigned version = bytes[MAGIC_SIZE];
    if (version < 1 || version > 3)
        return tdi_fail(error, TD_UNSUPPORTED, "%s is a .npy array of version %u; 1 to 3 are known", what, version);
    size_t begin = version == 1 ? 10 : 12;
    size_t length = bytes[8] | (size_t)bytes[9] << 8;
    if (version > 1 && size >= begin)
        length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (size < begin || length > MAX_HEADER || length > size - begin)
        return tdi_fail(error, TD_BAD_FILE, "%s is truncated or damaged: its header of %zu bytes does not fit", what,
                        length);
    *text = (cursor){(const char *)bytes + begin, (const char *)bytes + begin + length};
    return TD_OK;
}

/* Counts the elements and checks that `room` bytes hold them. */
static td_status count_elements(const header *h, size_t room, const char *what, tdi_npy *npy, tdi_error *error)
{
    int64_t limit = (int64_t)(room / npy->numbers.size), elements = 1;
    bool empty = false, fits = true;
    for (int i = 0; i < h->rank; i++)
        empty = empty || h->shape.dim[i] == 0;
    for (int i = 0; i < h->rank && !empty && fits; i++) {
        fits = h->shape.dim[i] <= limit / elements;
        elements *= fits ? h->shape.dim[i] : 1;
    }
    if (!fits || (!empty && elements > limit))
        return tdi_fail(error, TD_BAD_FILE,
                        "%s is truncated: its shape needs more than the %zu bytes that follow the header", what, room);
    npy->elements = empty ? 0 : elements;
    return TD_OK;
}

/* Parses the first `size` bytes of a file of `whole` bytes; they contain at least the header. */
static td_status parse(const void *bytes, size_t size, size_t whole, const char *what, tdi_npy *npy, tdi_error *error)
{
    cursor text = {0};
    header h = {0};
    *npy = (tdi_npy){0};
    TDI_TRY(find_header(bytes, size, what, &text, error));
    if (!parse_dictionary(&text, &h))
        return tdi_fail(error, TD_BAD_FILE, "%s is damaged, or an array of records: its header cannot be understood",
                        what);
    TDI_TRY(parse_type(h.descr, what, &npy->numbers, error));
    if (h.rank > TD_MAX_RANK)
        return tdi_fail(error, TD_UNSUPPORTED, "%s has %d axes; at most %d are possible", what, h.rank, TD_MAX_RANK);
    npy->offset = (size_t)(text.end - (const char *)bytes);
    TDI_TRY(count_elements(&h, whole - npy->offset, what, npy, error));
    npy->shape = h.shape;
    npy->shape.rank = h.rank;
    npy->fortran = h.fortran;
    return TD_OK;
}

td_status tdi_npy_parse(const void *bytes, size_t size, const char *what, tdi_npy *npy, tdi_error *error)
{
    return parse(bytes, size, size, what, npy, error);
}

td_status tdi_npy_look(const tdi_store *store, tdi_npy *npy, tdi_error *error)
{
    enum { MOST = 12 + MAX_HEADER };
    int64_t size = tdi_store_size(store), head = size < MOST ? size : MOST;
    char *bytes = malloc(MOST);
    td_status status = bytes ? tdi_store_read(store, 0, bytes, head, error) : tdi_no_memory(error);
    if (status == TD_OK)
        status = parse(bytes, (size_t)head, (size_t)size, tdi_store_name(store), npy, error);
    free(bytes);
    return status;
}

/* ---- .npz ---- */

/* The name of an array's entry; NULL when there is none. */
static const char *npz_entry(const tdi_zip *zip, const char *array, char name[128])
{
    if (snprintf(name, 128, "%s.npy", array) < 128 && tdi_zip_has(zip, name))
        return name;
    return tdi_zip_has(zip, array) ? array : NULL;
}

bool tdi_npz_has(const tdi_zip *zip, const char *array)
{
    char name[128];
    return npz_entry(zip, array, name) != NULL;
}

td_status tdi_npz_open(tdi_zip *zip, const char *array, tdi_npy *npy, tdi_store **store, tdi_error *error)
{
    char name[128];
    const char *entry = npz_entry(zip, array, name);
    TDI_TRY(tdi_zip_store(zip, entry ? entry : array, store, error));
    td_status status = tdi_npy_look(*store, npy, error);
    if (status != TD_OK) {
        tdi_store_free(*store);
        *store = NULL;
    }
    return status;
}

/* ---- writing ---- */

static const struct {
    const char *descr; /* the type as NumPy writes it on a little-endian machine */
    td_dtype dtype;
} types[] = {{"<f4", TD_FLOAT32}, {"<f8", TD_FLOAT64}, {"<i4", TD_INT32}, {"<i8", TD_INT64}, {"|u1", TD_UINT8}};

/* The dictionary is padded so that the elements begin at a multiple of 64 bytes. */
size_t tdi_npy_header(td_dtype dtype, const td_shape *shape, size_t least, char out[TDI_NPY_HEADER])
{
    char text[224];
    int used = 0;
    for (size_t i = 0; i < sizeof types / sizeof *types && used == 0; i++)
        if (types[i].dtype == dtype)
            used = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (", types[i].descr);
    for (int i = 0; i < shape->rank; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%lld,%s", (long long)shape->dim[i],
                         i + 1 < shape->rank ? " " : "");
    used += snprintf(text + used, sizeof text - (size_t)used, "), }");
    size_t needed = ((size_t)used + 10 + 1 + 63) / 64 * 64, total = needed > least ? needed : least;
    size_t length = total - 10;
    memset(out, ' ', total);
    memcpy(out, MAGIC "\x01\x00", MAGIC_SIZE + 2);
    out[8] = (char)(length & 255);
    out[9] = (char)(length >> 8);
    memcpy(out + 10, text, (size_t)used);
    out[total - 1] = '\n';
    return total;
}

/* Sets *size to the bytes of the elements. */
static td_status measure(td_dtype dtype, const td_shape *shape, const void *elements, size_t *size, tdi_error *error)
{
    *size = td_dtype_size(dtype);
    if (!shape || shape->rank < 0 || shape->rank > TD_MAX_RANK)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "an array of %d axes cannot be written: 0 to %d are possible",
                        shape ? shape->rank : 0, TD_MAX_RANK);
    for (int i = 0; i < shape->rank; i++)
        if (shape->dim[i] < 0 || __builtin_mul_overflow(*size, (size_t)shape->dim[i], size) || *size > PTRDIFF_MAX)
            return tdi_fail(error, TD_INVALID_ARGUMENT,
                            "an array cannot be written whose extent %d is %lld: it is negative, or the array larger "
                            "than any memory",
                            i, (long long)shape->dim[i]);
    if (!elements && *size)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "an array cannot be written whose values are NULL");
    return TD_OK;
}

td_status tdi_npy_image(td_dtype dtype, const td_shape *shape, const void *elements, void **bytes, size_t *size,
                        tdi_error *error)
{
    char head[TDI_NPY_HEADER];
    size_t body;
    *bytes = NULL;
    TDI_TRY(measure(dtype, shape, elements, &body, error));
    size_t head_size = tdi_npy_header(dtype, shape, 0, head);
    *bytes = malloc(head_size + body);
    if (!*bytes)
        return tdi_no_memory(error);
    memcpy(*bytes, head, head_size);
    if (body)
        memcpy((char *)*bytes + head_size, elements, body);
    *size = head_size + body;
    return TD_OK;
}

td_status tdi_npy_write(const char *path, td_dtype dtype, const td_shape *shape, const void *elements, tdi_error *error)
{
    char head[TDI_NPY_HEADER];
    tdi_atomic *file;
    size_t body;
    TDI_TRY(measure(dtype, shape, elements, &body, error));
    size_t head_size = tdi_npy_header(dtype, shape, 0, head);
    TDI_TRY(tdi_atomic_create(path, &file, error));
    td_status status = tdi_atomic_write(file, head, head_size, error);
    if (status == TD_OK)
        status = tdi_atomic_write(file, elements, body, error);
    return tdi_atomic_end(file, status, error);
}
