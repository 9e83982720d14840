/* unicode.h: what tokenizers ask about characters. */
#ifndef TEXT_UNICODE_H
#define TEXT_UNICODE_H

#include "base/str.h"

enum unicode_category { /* in the order of the generated table */
                        CAT_Lu,
                        CAT_Ll,
                        CAT_Lt,
                        CAT_Lm,
                        CAT_Lo,
                        CAT_Mn,
                        CAT_Mc,
                        CAT_Me,
                        CAT_Nd,
                        CAT_Nl,
                        CAT_No,
                        CAT_Pc,
                        CAT_Pd,
                        CAT_Ps,
                        CAT_Pe,
                        CAT_Pi,
                        CAT_Pf,
                        CAT_Po,
                        CAT_Sm,
                        CAT_Sc,
                        CAT_Sk,
                        CAT_So,
                        CAT_Zs,
                        CAT_Zl,
                        CAT_Zp,
                        CAT_Cc,
                        CAT_Cf,
                        CAT_Cs,
                        CAT_Co,
                        CAT_Cn,
};
#define CAT_BIT(c) (UINT32_C(1) << CAT_##c)
#define CATS_L (CAT_BIT(Lu) | CAT_BIT(Ll) | CAT_BIT(Lt) | CAT_BIT(Lm) | CAT_BIT(Lo))
#define CATS_M (CAT_BIT(Mn) | CAT_BIT(Mc) | CAT_BIT(Me))
#define CATS_N (CAT_BIT(Nd) | CAT_BIT(Nl) | CAT_BIT(No))
#define CATS_P                                                                           \
    (CAT_BIT(Pc) | CAT_BIT(Pd) | CAT_BIT(Ps) | CAT_BIT(Pe) | CAT_BIT(Pi) | CAT_BIT(Pf) | \
     CAT_BIT(Po))
#define CATS_S (CAT_BIT(Sm) | CAT_BIT(Sc) | CAT_BIT(Sk) | CAT_BIT(So))

#define UNICODE_REPLACEMENT 0xfffdu /* what stands for a byte that is not UTF-8 */

uint32_t unicode_category_bit(uint32_t c); /* 1 << its category; of Cn beyond the last character */
bool unicode_is_space(uint32_t c);         /* White_Space */
bool unicode_is_han(uint32_t c);           /* the script */
uint32_t unicode_lower(uint32_t c);        /* where that is one character; else c */
/* Its canonical decomposition, without reordering; returns how many. */
enum { UNICODE_MOST_PARTS = 4 };
size_t unicode_decompose(uint32_t c, uint32_t out[UNICODE_MOST_PARTS]);

/* The character at the front and its bytes: a byte that begins no UTF-8 counts alone, as
 * UNICODE_REPLACEMENT. len > 0. */
uint32_t utf8_next(const char *at, size_t len, size_t *bytes);
size_t utf8_put(uint32_t c, char out[4]); /* returns its bytes */

#endif
