/* spirv.c: see spirv.h. */
#include "kernel/spirv.h"

#include <string.h>

static bool room_for(struct spirv *s, struct spirv_words *w, size_t more)
{
    if (s->status != RLX_OK)
        return false;
    if (w->len + more <= w->room)
        return true;
    size_t room = (w->room ? w->room * 2 : 256) + more;
    uint32_t *made = arena_array(s->arena, uint32_t, room);
    if (!made) {
        s->status = diag_no_memory(s->diag, room * sizeof *made);
        return false;
    }
    if (w->len)
        memcpy(made, w->at, w->len * sizeof *made);
    w->at = made;
    w->room = room;
    return true;
}

void spirv_add_text(struct spirv *s, enum spirv_section to, enum spirv_op op, const uint32_t *word,
                    size_t count, rlx_str text, const uint32_t *more, size_t more_count)
{
    struct spirv_words *w = &s->section[to];
    size_t text_words = text.ptr ? text.len / 4 + 1 : 0, all = 1 + count + text_words + more_count;

    if (!room_for(s, w, all))
        return;
    if (all > UINT16_MAX) {
        s->status = diag_fail(s->diag, RLX_ERROR_LIMIT, "an instruction of %zu words", all);
        return;
    }
    w->at[w->len++] = (uint32_t)all << 16 | (uint32_t)op;
    if (count)
        memcpy(w->at + w->len, word, count * sizeof *word);
    w->len += count;
    if (text_words) { /* padded with zeros */
        w->at[w->len + text_words - 1] = 0;
        memcpy(w->at + w->len, text.ptr, text.len);
        w->len += text_words;
    }
    if (more_count)
        memcpy(w->at + w->len, more, more_count * sizeof *more);
    w->len += more_count;
}

void spirv_add(struct spirv *s, enum spirv_section to, enum spirv_op op, const uint32_t *word,
               size_t count)
{
    spirv_add_text(s, to, op, word, count, (rlx_str){NULL, 0}, NULL, 0);
}

spirv_id spirv_make(struct spirv *s, enum spirv_op op, spirv_id type, const uint32_t *word,
                    size_t count)
{
    spirv_id id = spirv_new(s);
    uint32_t head[2] = {type, id};

    spirv_add_text(s, SPIRV_CODE, op, head, 2, (rlx_str){NULL, 0}, word, count);
    return id;
}

/* ---- what exists once ---- */

static struct spirv_known *find(struct spirv *s, uint32_t op, const uint32_t part[4])
{
    for (size_t i = 0; i < s->knowns; i++)
        if (s->known[i].op == op && memcmp(s->known[i].part, part, 4 * sizeof *part) == 0)
            return &s->known[i];
    return NULL;
}

void spirv_remember(struct spirv *s, uint32_t op, const uint32_t part[4], spirv_id id)
{
    if (s->status != RLX_OK)
        return;
    if (s->knowns == s->known_room) {
        size_t room = s->known_room ? s->known_room * 2 : 64;
        struct spirv_known *made = arena_array(s->arena, struct spirv_known, room);
        if (!made) {
            s->status = diag_no_memory(s->diag, room * sizeof *made);
            return;
        }
        if (s->knowns)
            memcpy(made, s->known, s->knowns * sizeof *made);
        s->known = made;
        s->known_room = room;
    }
    struct spirv_known *k = &s->known[s->knowns++];
    *k = (struct spirv_known){.op = op, .id = id};
    memcpy(k->part, part, sizeof k->part);
}

void spirv_capability(struct spirv *s, enum spirv_capability c, const char *extension)
{
    const uint32_t part[4] = {(uint32_t)c};

    if (find(s, OP_CAPABILITY, part))
        return;
    spirv_remember(s, OP_CAPABILITY, part, 1);
    SPIRV(s, SPIRV_CAPABILITIES, OP_CAPABILITY, (uint32_t)c);
    if (extension)
        spirv_add_text(s, SPIRV_EXTENSIONS, OP_EXTENSION, NULL, 0, rlx_cstr(extension), NULL, 0);
}

spirv_id spirv_type(struct spirv *s, enum spirv_op op, uint32_t a, uint32_t b, uint32_t c)
{
    static const uint8_t words[] = {
        [OP_TYPE_VOID] = 0,          [OP_TYPE_BOOL] = 0,   [OP_TYPE_INT] = 2,
        [OP_TYPE_FLOAT] = 1,         [OP_TYPE_VECTOR] = 2, [OP_TYPE_ARRAY] = 2,
        [OP_TYPE_RUNTIME_ARRAY] = 1, [OP_TYPE_STRUCT] = 1, [OP_TYPE_POINTER] = 2,
        [OP_TYPE_FUNCTION] = 1};
    const uint32_t part[4] = {a, b, c};
    const struct spirv_known *k = find(s, op, part);

    if (k)
        return k->id;
    spirv_id id = spirv_new(s);
    const uint32_t word[3] = {id, a, b};
    spirv_add(s, SPIRV_GLOBALS, op, word, 1 + (size_t)words[op]);
    spirv_remember(s, op, part, id);
    return id;
}

spirv_id spirv_int(struct spirv *s, uint32_t bits, bool is_signed)
{
    return spirv_type(s, OP_TYPE_INT, bits, is_signed, 0);
}

spirv_id spirv_float(struct spirv *s, uint32_t bits)
{
    return spirv_type(s, OP_TYPE_FLOAT, bits, 0, 0);
}

spirv_id spirv_vector(struct spirv *s, spirv_id element, uint32_t lanes)
{
    return lanes == 1 ? element : spirv_type(s, OP_TYPE_VECTOR, element, lanes, 0);
}

spirv_id spirv_pointer(struct spirv *s, enum spirv_storage storage, spirv_id to)
{
    return spirv_type(s, OP_TYPE_POINTER, (uint32_t)storage, to, 0);
}

spirv_id spirv_bool(struct spirv *s)
{
    return spirv_type(s, OP_TYPE_BOOL, 0, 0, 0);
}

spirv_id spirv_constant(struct spirv *s, spirv_id type, uint64_t bits, bool wide)
{
    const uint32_t part[4] = {type, (uint32_t)bits, (uint32_t)(bits >> 32)};
    bool truth = type == spirv_bool(s);
    enum spirv_op op = !truth ? OP_CONSTANT : bits ? OP_CONSTANT_TRUE : OP_CONSTANT_FALSE;
    const struct spirv_known *k = find(s, op, part);

    if (k)
        return k->id;
    spirv_id id = spirv_new(s);
    const uint32_t word[4] = {type, id, part[1], part[2]};
    spirv_add(s, SPIRV_GLOBALS, op, word, truth ? 2 : wide ? 4 : 3);
    spirv_remember(s, op, part, id);
    return id;
}

spirv_id spirv_word(struct spirv *s, uint32_t v)
{
    return spirv_constant(s, spirv_int(s, 32, false), v, false);
}

/* ---- the whole ---- */

rlx_status spirv_finish(struct spirv *s, uint32_t version, uint32_t **words, size_t *count)
{
    const uint32_t header[5] = {0x07230203, version, 0, s->next, 0};
    size_t all = 5, at = 5;

    if (s->status != RLX_OK)
        return s->status;
    for (int i = 0; i < SPIRV_SECTIONS; i++)
        all += s->section[i].len;
    *words = arena_array(s->arena, uint32_t, all);
    if (!*words)
        return diag_no_memory(s->diag, all * sizeof **words);
    memcpy(*words, header, sizeof header);
    for (int i = 0; i < SPIRV_SECTIONS; i++) {
        if (s->section[i].len)
            memcpy(*words + at, s->section[i].at, s->section[i].len * sizeof **words);
        at += s->section[i].len;
    }
    *count = all;
    return RLX_OK;
}
