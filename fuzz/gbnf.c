/* gbnf.c: fuzzes grammars in GBNF. */
#include "grammars.h"
#include "targets.h"

static rlx_status read(rlx_context *ctx, rlx_str text, rlx_grammar **out, rlx_error *err)
{
    return rlx_grammar_parse(ctx, text, (rlx_str){NULL, 0}, out, err);
}

void fuzz_gbnf(const uint8_t *data, size_t size)
{
    grammar_fuzz(read, data, size);
}
