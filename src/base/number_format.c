/* number_format.c - Python's format mini-language for numbers: a specification is read, the number's digits are made,
 * grouped, and padded. As CPython 3.11's Python/formatter_unicode.c; type n groups nothing, as in the C locale. */
#include "base/number_format.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

enum {
    WIDEST = 4095, /* longer than a path can be */
    ROOM = 2 * WIDEST + 1024
};

typedef struct specification {
    char fill[TDI_UTF8_SIZE];
    char align; /* < > ^, or = between the sign and the digits */
    char sign;  /* + - or a space; NUL: none, which is - */
    bool positive_zero, alternate;
    int width, precision; /* -1: none */
    char grouping;        /* , or _; NUL: none */
    char type;            /* NUL: none */
} specification;

/* A number on its way: sign, prefix, digits before the point, and what is behind them. */
typedef struct number {
    bool negative;
    const char *prefix;
    char text[ROOM]; /* digits and rest */
    int digits;      /* at the begin of text */
    int width;       /* of text, in characters */
} number;

/* ---- the specification ---- */

static bool is_one_of(char c, const char *set)
{
    return c && strchr(set, c);
}

static const char *read_align(const char *at, specification *s, bool *filled, bool *aligned)
{
    uint32_t character;
    int first = tdi_utf8_decode(at, strlen(at), &character);
    *filled = first > 0 && is_one_of(at[first], "<>=^");
    *aligned = *filled || is_one_of(*at, "<>=^");
    if (*filled)
        memcpy(s->fill, at, (size_t)first + 1);
    if (*filled)
        s->fill[first] = '\0';
    at += *filled ? first : 0;
    s->align = *aligned ? *at++ : '>';
    return at;
}

static const char *read_flags(const char *at, specification *s)
{
    bool filled, aligned;
    at = read_align(at, s, &filled, &aligned);
    if (is_one_of(*at, "+- "))
        s->sign = *at++;
    s->positive_zero = *at == 'z';
    at += s->positive_zero;
    s->alternate = *at == '#';
    at += s->alternate;
    if (*at != '0' || filled)
        return at;
    strcpy(s->fill, "0");
    if (!aligned)
        s->align = '=';
    return at + 1;
}

/* -1 where there is none; more than WIDEST is WIDEST + 1. */
static const char *read_count(const char *at, int *count)
{
    *count = isdigit((unsigned char)*at) ? 0 : -1;
    for (; isdigit((unsigned char)*at); at++)
        *count = *count > WIDEST ? *count : 10 * *count + (*at - '0');
    *count = *count > WIDEST ? WIDEST + 1 : *count;
    return at;
}

static const char *check(const specification *s)
{
    if (s->width > WIDEST || s->precision > WIDEST)
        return "it is wider than a name can be";
    if (s->grouping == ',' && s->type && !strchr("defgEG%F", s->type))
        return "a comma goes with the types d, e, f, g, E, F, G and % alone";
    if (s->grouping == '_' && s->type && !strchr("defgEG%FboxX", s->type))
        return "an underscore goes with the types b, d, o, x, X, e, f, g, E, F, G and % alone";
    return NULL;
}

static const char *read_specification(const char *at, specification *s)
{
    *s = (specification){.fill = " ", .precision = -1};
    at = read_count(read_flags(at, s), &s->width);
    if (is_one_of(*at, ",_"))
        s->grouping = *at++;
    if (is_one_of(*at, ",_"))
        return "one comma or one underscore can group digits";
    bool has_point = *at == '.';
    if (has_point)
        at = read_count(at + 1, &s->precision);
    if (has_point && s->precision < 0)
        return "a number of digits was expected behind the point";
    if (*at)
        s->type = *at++;
    return *at ? "it is not [[fill]align][sign][z][#][0][width][,|_][.precision][type]" : check(s);
}

/* ---- padding ---- */

static void add_fill(tdi_text *text, const char *fill, int count)
{
    while (count-- > 0)
        tdi_text_add(text, fill);
}

/* Zeros in front for `least` characters, a separator before each `group` digits (0: none); where in `room` it begins.
 */
static const char *group_digits(const char *digits, int count, int least, int group, char separator,
                                char room[2 * ROOM])
{
    char *at = room + 2 * ROOM - 1, *end = at;
    *at = '\0';
    do {
        int length = count > least ? count : least;
        length = length < 1 ? 1 : group && length > group ? group : length;
        if (at != end)
            *--at = separator;
        for (int i = 0; i < length; i++)
            *--at = count > 0 ? digits[--count] : '0';
        least -= length + 1;
    } while (count > 0 || least + 1 > 0);
    return at;
}

static void put(const specification *s, const number *n, tdi_text *text)
{
    char room[2 * ROOM], sign[2] = {n->negative ? '-' : is_one_of(s->sign, "+ ") ? s->sign : '\0', '\0'};
    int others = (int)strlen(sign) + (int)strlen(n->prefix) + n->width - n->digits;
    bool zeros = s->align == '=' && strcmp(s->fill, "0") == 0;
    int group = !s->grouping ? 0 : is_one_of(s->type, "boxX") ? 4 : 3;
    const char *grouped =
        n->digits ? group_digits(n->text, n->digits, zeros ? s->width - others : 0, group, s->grouping, room) : "";
    int padding = s->width - others - (int)strlen(grouped);
    int before = s->align == '>' ? padding : s->align == '^' && padding > 0 ? padding / 2 : 0;
    add_fill(text, s->fill, before);
    tdi_text_add(text, sign);
    tdi_text_add(text, n->prefix);
    add_fill(text, s->fill, s->align == '=' ? padding : 0);
    tdi_text_add(text, grouped);
    tdi_text_add(text, n->text + n->digits);
    add_fill(text, s->fill, s->align == '<' ? padding : s->align == '^' ? padding - before : 0);
}

/* ---- floats ---- */

/* What stands between digits is a point, in any locale. */
static void point(char *text)
{
    char *to = text;
    for (const char *from = text; *from;) {
        bool known = isalnum((unsigned char)*from) || is_one_of(*from, "+-");
        *to++ = known ? *from : '.';
        from++;
        while (!known && *from && !isalnum((unsigned char)*from))
            from++;
    }
    *to = '\0';
}

/* As few digits as read back as the same number. */
static int shortest_digits(double value)
{
    char text[64];
    int digits = 1;
    for (; digits < 17; digits++) {
        snprintf(text, sizeof text, "%.*e", digits - 1, value);
        if (strtod(text, NULL) == value)
            break;
    }
    return digits;
}

/* `count` significant digits, and a NUL; returns how many of them stand before the point. */
static int significant_digits(double value, int count, char *digits)
{
    char text[WIDEST + 64];
    snprintf(text, sizeof text, "%.*e", count - 1, value);
    const char *exponent = strchr(text, 'e');
    digits[0] = text[0];
    memcpy(digits + 1, exponent - (count - 1), (size_t)count - 1);
    digits[count] = '\0';
    return atoi(exponent + 1) + 1;
}

typedef struct general {
    int digits, largest; /* significant ones; the most before the point without an exponent */
    bool zeros;          /* at the end are kept */
    bool point;          /* is kept where nothing stands behind it */
    bool fraction;       /* a whole number ends in .0 */
} general;

/* "%g" and repr: d.dde+XX, or without an exponent where that is not too long. */
static void write_general(double value, const general *how, char *to)
{
    char digits[WIDEST + 2];
    int before = significant_digits(value, how->digits, digits), count = how->digits;
    while (!how->zeros && count > 1 && digits[count - 1] == '0')
        digits[--count] = '\0';
    int whole = count < before ? count : before;
    if (before <= -4 || before > how->largest) {
        sprintf(to, "%c%s%se%+03d", digits[0], count > 1 || how->point ? "." : "", digits + 1, before - 1);
    } else if (before <= 0) {
        sprintf(to, "0.%.*s%s", -before, "000", digits);
    } else {
        memcpy(to, digits, (size_t)whole);
        memset(to + whole, '0', (size_t)(before - whole));
        sprintf(to + before, "%s%s%s", count > before || how->point || how->fraction ? "." : "", digits + whole,
                how->fraction && count <= before ? "0" : "");
    }
}

static void write_finite(const specification *s, double value, char *to)
{
    int precision = s->precision < 0 ? 6 : s->precision, digits = precision ? precision : 1;
    bool fixed = is_one_of(s->type, "fF%");
    if (!s->type && s->precision < 0)
        write_general(value, &(general){shortest_digits(value), 16, false, s->alternate, true}, to);
    else if (!s->type)
        write_general(value, &(general){digits, digits - 1, s->alternate, s->alternate, true}, to);
    else if (is_one_of(s->type, "gGn"))
        write_general(value, &(general){digits, digits, s->alternate, s->alternate, false}, to);
    else if (s->alternate)
        snprintf(to, ROOM, fixed ? "%#.*f" : "%#.*e", precision, value);
    else
        snprintf(to, ROOM, fixed ? "%.*f" : "%.*e", precision, value);
    point(to);
}

static void write_float(const specification *s, double value, number *n)
{
    double magnitude = fabs(s->type == '%' ? value * 100 : value);
    n->negative = !isnan(value) && signbit(value);
    if (isfinite(magnitude))
        write_finite(s, magnitude, n->text);
    else
        strcpy(n->text, isnan(magnitude) ? "nan" : "inf");
    if (s->positive_zero && isfinite(magnitude) && strcspn(n->text, "123456789") >= strcspn(n->text, "eE"))
        n->negative = false;
    for (char *c = n->text; *c && is_one_of(s->type, "EFG"); c++)
        *c = (char)toupper((unsigned char)*c);
    n->digits = (int)strspn(n->text, "0123456789");
    if (s->type == '%')
        strcat(n->text, "%");
    n->width = (int)strlen(n->text);
}

static const char *put_float(double value, const specification *s, tdi_text *text)
{
    number n = {.prefix = ""};
    if (s->type && !strchr("efgEFGn%", s->type))
        return "a type of e, f, g, n, E, F, G or %, or none, was expected";
    write_float(s, value, &n);
    put(s, &n, text);
    return NULL;
}

const char *tdi_format_float(double value, const char *text, tdi_text *to)
{
    specification s;
    const char *wrong = read_specification(text, &s);
    return wrong ? wrong : put_float(value, &s, to);
}

/* ---- ints ---- */

static void write_digits(uint64_t value, unsigned base, bool upper, number *n)
{
    char digits[65], *at = digits + 64;
    *at = '\0';
    do
        *--at = (upper ? "0123456789ABCDEF" : "0123456789abcdef")[value % base];
    while (value /= base);
    strcpy(n->text, at);
    n->digits = n->width = (int)strlen(at);
}

static const char *write_character(const specification *s, int64_t value, number *n)
{
    if (s->sign || s->alternate)
        return "type c takes no sign and no #";
    if (value < 1 || value >= TDI_CHARACTERS || (value >= 0xD800 && value < 0xE000))
        return "there is no character of that number";
    tdi_utf8_encode((uint32_t)value, n->text);
    n->width = 1;
    return NULL;
}

static const char *write_int(const specification *s, int64_t value, number *n)
{
    static const struct {
        char type;
        unsigned base;
        const char *prefix;
    } bases[] = {{'b', 2, "0b"}, {'o', 8, "0o"}, {'x', 16, "0x"}, {'X', 16, "0X"}, {'d', 10, ""}};
    int i = 0;
    if (s->type == 'c')
        return write_character(s, value, n);
    while (bases[i].type != 'd' && bases[i].type != s->type)
        i++;
    n->negative = value < 0;
    n->prefix = s->alternate ? bases[i].prefix : "";
    write_digits(value < 0 ? -(uint64_t)value : (uint64_t)value, bases[i].base, s->type == 'X', n);
    return NULL;
}

static const char *put_int(int64_t value, const specification *s, tdi_text *text)
{
    number n = {.prefix = ""};
    if (is_one_of(s->type, "efgEFG%"))
        return put_float((double)value, s, text);
    if (s->type && !strchr("bcdnoxX", s->type))
        return "a type of b, c, d, e, f, g, n, o, x, E, F, G, X or %, or none, was expected";
    if (s->precision >= 0 || s->positive_zero)
        return "a whole number has no digits behind a point, and no negative zero";
    const char *wrong = write_int(s, value, &n);
    if (!wrong)
        put(s, &n, text);
    return wrong;
}

const char *tdi_format_int(int64_t value, const char *text, tdi_text *to)
{
    specification s;
    const char *wrong = read_specification(text, &s);
    return wrong ? wrong : put_int(value, &s, to);
}
