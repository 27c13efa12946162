/* utf8.c - one character at a time. */
#include "base/utf8.h"

#include <stdbool.h>

/* The bytes that follow a first byte; -1: it cannot be one. */
static int following(unsigned char first)
{
    return first < 0x80 ? 0 : first < 0xc2 ? -1 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : first < 0xf5 ? 3 : -1;
}

int tdi_utf8_decode(const char *text, size_t left, uint32_t *character)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    const unsigned char *at = (const unsigned char *)text;
    int more = following(*at);
    if (more < 0 || (size_t)more >= left)
        return 0;
    *character = more ? *at & (0x3fu >> more) : *at;
    for (int i = 1; i <= more; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        *character = *character << 6 | (at[i] & 0x3f);
    }
    bool surrogate = *character >= 0xd800 && *character < 0xe000;
    return *character >= least[more] && *character < TDI_CHARACTERS && !surrogate ? more + 1 : 0;
}

void tdi_utf8_encode(uint32_t character, char bytes[TDI_UTF8_SIZE])
{
    int more = character < 0x80 ? 0 : character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
    *bytes++ = (char)(more ? (0xf00u >> (more + 1) & 0xff) | character >> 6 * more : character);
    while (more--)
        *bytes++ = (char)(0x80 | (character >> 6 * more & 0x3f));
    *bytes = '\0';
}
