/* printable.c - what a terminal shows of a text.
 *
 * Columns are wcwidth's by the locale C.UTF-8, which glibc and musl always have: what a program's own locale says does
 * not matter. */
#define _GNU_SOURCE
#include "base/printable.h"

#include <locale.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <wchar.h>

#include "base/utf8.h"

static locale_t utf8;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_locale(void)
{
    utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

/* Control characters, and those that turn the direction of what follows them. */
static bool is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069);
}

static char *clean(char *text, bool lines)
{
    char *to = text;
    size_t left = strlen(text);
    for (const char *at = text; left > 0;) {
        uint32_t c = 0;
        int size = tdi_utf8_decode(at, left, &c);
        bool obeyed = size == 0 || (is_control(c) && !(lines && c == '\n'));
        if (obeyed)
            *to++ = '?';
        else
            to = (char *)memmove(to, at, (size_t)size) + size;
        at += size ? size : 1;
        left -= (size_t)(size ? size : 1);
    }
    *to = '\0';
    return text;
}

char *td_printable(char *text)
{
    return clean(text, false);
}

char *tdi_printable_lines(char *text)
{
    return clean(text, true);
}

static int width_of(uint32_t c)
{
    pthread_once(&once, open_locale);
    if (!utf8)
        return 1;
    locale_t before = uselocale(utf8);
    int width = wcwidth((wchar_t)c);
    uselocale(before);
    return width < 0 ? 1 : width;
}

/* The columns of the text's first characters that take at most `most`, and the bytes of these. */
static int fit(const char *text, int most, size_t *bytes)
{
    int columns = 0;
    size_t left = strlen(text), at = 0;
    while (at < left) {
        uint32_t c = '?';
        int size = tdi_utf8_decode(text + at, left - at, &c), width = width_of(size ? c : '?');
        if (columns + width > most)
            break;
        columns += width;
        at += (size_t)(size ? size : 1);
    }
    *bytes = at;
    return columns;
}

int td_columns(const char *text)
{
    size_t bytes;
    return fit(text, 1 << 30, &bytes);
}

char *td_pad(const char *text, int columns, char *padded, size_t size)
{
    size_t bytes;
    if (size == 0)
        return padded;
    size_t length = strnlen(text, size - 1);
    memcpy(padded, text, length);
    padded[length] = '\0';
    td_printable(padded);
    int used = fit(padded, columns, &bytes);
    while (used++ < columns && bytes + 1 < size)
        padded[bytes++] = ' ';
    padded[bytes] = '\0';
    return padded;
}
