/* text.h - a string that grows; how a text ends; the clock. */
#ifndef TDI_BASE_TEXT_H
#define TDI_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Zero-initialise. When memory runs out `failed` is set and later additions do nothing. */
typedef struct tdi_text {
    char *chars; /* NUL-terminated; NULL while empty */
    size_t length, capacity;
    bool failed;
} tdi_text;

void tdi_text_add(tdi_text *text, const char *addition);
__attribute__((format(printf, 2, 3))) void tdi_text_format(tdi_text *text, const char *format, ...);
void tdi_text_free(tdi_text *text);

/* NULL ends in nothing. */
bool tdi_ends_in(const char *text, const char *end);

/* Seconds on a clock that only goes forward. */
double tdi_seconds(void);

#endif
