/* artefact_target.c: which device a program was made for, and whether this is it. */
#include "compile/cache/artefact.h"
#include "ir/fingerprint.h"

static uint64_t native_families(const struct target *t)
{
    uint64_t h = 0;

    for (int f = 0; f < FAMILY_count; f++)
        if (t->native[f])
            h = fingerprint_str(h, rlx_cstr(family_name((enum op_family)f)));
    return h;
}

void target_note_of(const struct target *t, struct target_note *out)
{
    *out = (struct target_note){
        .backend = rlx_cstr(t->backend),
        .description = rlx_cstr(t->description),
        .features = rlx_cstr(t->features),
        .native = native_families(t),
        .alignment = t->alignment,
        .max_buffer = t->max_buffer,
        .threads = t->threads,
    };
}

void target_note_put(const struct target_note *n, struct text *out)
{
    put_str(out, n->backend);
    put_str(out, n->description);
    put_str(out, n->features);
    put_u64(out, n->native);
    put_u64(out, n->alignment);
    put_u64(out, n->max_buffer);
    put_u32(out, (uint32_t)n->threads);
}

rlx_status target_note_get(struct reader r, struct target_note *out, struct diag *d)
{
    out->backend = get_str(&r);
    out->description = get_str(&r);
    out->features = get_str(&r);
    out->native = get_u64(&r);
    out->alignment = get_u64(&r);
    out->max_buffer = get_u64(&r);
    out->threads = (int32_t)get_u32(&r);
    return reader_end(&r, artefact_kind_name(SECTION_TARGET), 0, d);
}

bool target_same_kernels(const struct target_note *a, const struct target_note *b)
{
    return str_eq(a->backend, b->backend) && str_eq(a->description, b->description) &&
           str_eq(a->features, b->features) && a->native == b->native;
}

bool target_same_limits(const struct target_note *a, const struct target_note *b)
{
    return a->alignment == b->alignment && a->max_buffer == b->max_buffer &&
           a->threads == b->threads;
}
