/* text.c - growing strings, how a text ends, the clock. */
#define _GNU_SOURCE
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static bool text_reserve(tdi_text *text, size_t more)
{
    size_t need = text->length + more + 1;
    if (need <= text->capacity)
        return true;
    size_t capacity = need < 256 ? 256 : 2 * need;
    char *chars = text->failed ? NULL : realloc(text->chars, capacity);
    if (!chars) {
        text->failed = true;
        return false;
    }
    text->chars = chars;
    text->capacity = capacity;
    return true;
}

void tdi_text_add(tdi_text *text, const char *addition)
{
    size_t length = strlen(addition);
    if (!text_reserve(text, length))
        return;
    memcpy(text->chars + text->length, addition, length + 1);
    text->length += length;
}

void tdi_text_format(tdi_text *text, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    if (length >= 0 && text_reserve(text, (size_t)length)) {
        vsnprintf(text->chars + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
    va_end(args);
}

void tdi_text_free(tdi_text *text)
{
    free(text->chars);
    *text = (tdi_text){0};
}

bool tdi_ends_in(const char *text, const char *end)
{
    size_t length = text ? strlen(text) : 0, end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

double tdi_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
