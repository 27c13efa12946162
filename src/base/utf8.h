/* utf8.h - characters as bytes: UTF-8 (RFC 3629). */
#ifndef TDI_BASE_UTF8_H
#define TDI_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

enum {
    TDI_CHARACTERS = 0x110000, /* all characters are below */
    TDI_UTF8_SIZE = 5          /* bytes of one, the NUL included */
};

/* The character at `at`, of which `left` bytes are there, and how many it takes: 0 when it is none. */
int tdi_utf8_decode(const char *at, size_t left, uint32_t *character);
/* Writes one, and a NUL behind it. */
void tdi_utf8_encode(uint32_t character, char bytes[TDI_UTF8_SIZE]);

#endif
