/* prepare_test.c: which sizes are looked at before a program with bounds runs. */
#include "../test.h"
#include "run/prepare.h"

/* All small ones; of larger ones, in every tile, some of each kind. */
TEST(prepare, sizes)
{
    bool seen[2048] = {false};

    for (int64_t v = 0; v < 2048;) {
        int64_t next = prepare_next(v);
        seen[v] = true;
        require(t, next > v);
        v = next;
    }
    for (int64_t v = 0; v <= 512; v++)
        expect(t, seen[v]);
    for (int64_t tile = 512; tile < 2048; tile += 64) {
        size_t count = 0;
        for (int64_t i = 0; i < 64; i++)
            count += seen[tile + i];
        expect_eq_u64(t, count, 8);
        for (int64_t power = 1; power <= 32; power *= 2)
            expect(t, seen[tile + power]);
        expect(t, seen[tile] && seen[tile + 63]);
    }
}
