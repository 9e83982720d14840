/* json_schema.c: fuzzes JSON schemas. */
#include "grammars.h"
#include "targets.h"

void fuzz_json_schema(const uint8_t *data, size_t size)
{
    grammar_fuzz(rlx_grammar_from_schema, data, size);
}
