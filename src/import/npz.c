/* npz.c: NumPy's archives: a zip of npy files, which are named after their arrays
 * (ops-special.md 2.3).
 *
 * Of a deflated member only its npy header is inflated here; the array is made when it is asked
 * for. Both sizes are known and agree before that. */
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "import/inflate.h"
#include "import/npy.h"
#include "import/weight_file.h"
#include "import/zip.h"

/* Headers are a few hundred bytes. A longer one is not inflated: a few bytes could then be worth
 * much work. */
enum { MOST_FRONT = 4096 };

static rlx_status get_layout(const struct weights *w, const struct zip_member *m,
                             struct npy_layout *out, struct diag *d)
{
    uint8_t front[MOST_FRONT];
    size_t got = 0;

    if (!m->deflated)
        return npy_parse(m->at, (size_t)m->size, w->mem, out, d);
    size_t want = m->size < MOST_FRONT ? (size_t)m->size : MOST_FRONT;
    TRY(inflate_front(m->at, (size_t)m->packed, front, want, &got, w->mem, d));
    return npy_parse(front, got, w->mem, out, d);
}

static rlx_status add_member(struct weights *w, const struct zip_member *m, struct diag *d)
{
    struct npy_layout l = {.need = 0};
    struct weight t = {.name = m->name};

    if (!str_ends(m->name, STR(".npy")))
        return diag_fail(d, RLX_ERROR_FORMAT, "npz: member \"%.*s\" is not an .npy file",
                         STR_ARG(m->name));
    t.name.len -= 4;
    if (m->size > WEIGHTS_MAKE_MOST && m->deflated)
        return diag_fail(d, RLX_ERROR_LIMIT,
                         "npz: member \"%.*s\" would inflate to %" PRIu64 " bytes; %" PRIu64
                         " are the most",
                         STR_ARG(m->name), m->size, WEIGHTS_MAKE_MOST);
    TRY(get_layout(w, m, &l, d));
    if (l.need != m->size - l.data)
        return diag_fail(d, RLX_ERROR_FORMAT,
                         "npz: member \"%.*s\" has %" PRIu64 " bytes, its header needs %" PRIu64,
                         STR_ARG(m->name), m->size, l.data + l.need);
    TRY(weight_take_layout(&t, &l, d));
    t.at = m->deflated ? m->at : m->at + l.data;
    t.recipe = (struct weight_recipe){.check = true,
                                      .deflated = m->deflated,
                                      .packed = m->packed,
                                      .whole = m->size,
                                      .skip = l.data,
                                      .crc = m->crc,
                                      .swap = l.swap,
                                      .columns = l.columns};
    return weights_add(w, &t, d);
}

rlx_status npz_read(struct weights *w, const uint8_t *bytes, size_t size, struct diag *d)
{
    struct zip_member *member = NULL;
    size_t count = 0;

    TRY(zip_read(bytes, size, &w->arena, &member, &count, d));
    for (size_t i = 0; i < count; i++)
        TRY(add_member(w, &member[i], d));
    return RLX_OK;
}
