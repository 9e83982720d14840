/* byte_map.c: the 256 printable characters by which byte-level BPE spells bytes: printable bytes of
 * Latin-1 stand for themselves, the other 68, in order, are U+0100 and those after it. */
#include "text/tokenizer.h"

enum { OTHERS = 68, FIRST_OTHER = 0x100 };

static bool printable(uint32_t b)
{
    return (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || (b >= 0xae && b <= 0xff);
}

uint32_t tok_byte_char(uint8_t byte)
{
    if (printable(byte))
        return byte;
    if (byte <= 0x20)
        return FIRST_OTHER + byte;
    return FIRST_OTHER + (byte == 0xad ? OTHERS - 1 : 0x21u + byte - 0x7f);
}

int tok_char_byte(uint32_t c)
{
    if (c < FIRST_OTHER)
        return printable(c) ? (int)c : -1;
    c -= FIRST_OTHER;
    if (c <= 0x20)
        return (int)c;
    if (c < OTHERS - 1)
        return (int)(c - 0x21 + 0x7f);
    return c == OTHERS - 1 ? 0xad : -1;
}
