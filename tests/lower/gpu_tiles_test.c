/* gpu_tiles_test.c: how products are cut up for a GPU: whatever the sizes, scratch that was planned
 * for the largest is enough, and every element is somebody's. */
#include "lower/gpu/gemm/lower_tiles.h"
#include "test.h"

static const uint64_t sizes[] = {1, 2, 7, 8, 9, 31, 33, 64, 127, 256, 300, 1000, 4096, 28672};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static uint64_t room_of(const struct gpu_product *p)
{
    struct gpu_work work = {.scratch_operand = 0};
    struct gpu_call c = {.status = RLX_OK, .work = &work};

    return gpu_split_room(&c, p).bytes;
}

/* Every product of three of the sizes. */
static bool next_product(struct gpu_product *p, size_t i)
{
    if (i >= (size_t)SIZES * SIZES * SIZES)
        return false;
    *p = (struct gpu_product){.items = 3,
                              .m = sizes[i % SIZES],
                              .n = sizes[i / SIZES % SIZES],
                              .k = sizes[i / SIZES / SIZES],
                              .split_sums = UINT64_C(1) << 21};
    return true;
}

TEST(gpu_tiles, parts_fit_their_room_and_cover_the_depth)
{
    struct gpu_product p;

    for (size_t i = 0; next_product(&p, i); i++) {
        struct gpu_tiling tiling = gpu_best_tiling(&p, true);
        struct gpu_split s = tiling.split;
        uint64_t bytes = s.parts * p.items * p.m * p.n * sizeof(float);
        bool fine = s.parts * s.part >= p.k && (s.parts - 1) * s.part < p.k &&
                    (s.parts == 1 || (s.part % 16 == 0 && bytes <= room_of(&p)));
        if (!fine) {
            fail(t, "[%llu,%llu] x [.,%llu]: %llu parts of %llu", (unsigned long long)p.m,
                 (unsigned long long)p.k, (unsigned long long)p.n, (unsigned long long)s.parts,
                 (unsigned long long)s.part);
            return;
        }
    }
    expect(t, SIZES > 1);
}

TEST(gpu_tiles, room_never_grows_as_sizes_shrink)
{
    struct gpu_product p;

    for (size_t i = 0; next_product(&p, i); i++) {
        struct gpu_product less[] = {p, p, p, p};
        less[0].items--;
        less[1].m--;
        less[2].n--;
        less[3].k--;
        for (int k = 0; k < 4; k++)
            if (room_of(&less[k]) > room_of(&p)) {
                fail(t, "[%llu,%llu] x [.,%llu] needs more when it is made smaller",
                     (unsigned long long)p.m, (unsigned long long)p.k, (unsigned long long)p.n);
                return;
            }
    }
    expect(t, SIZES > 1);
}

TEST(gpu_tiles, teams_take_every_line)
{
    for (size_t i = 0; i < SIZES; i++)
        for (size_t j = 0; j < SIZES; j++) {
            struct gpu_teams s = gpu_teams_of(sizes[i], sizes[j], 2, 512,
                                              (struct gpu_teams){.lines = 4, .teams = 8});
            if (s.at_once * s.lines > 8 || s.groups * s.teams * s.lines < 2 * sizes[j] ||
                (s.at_once < sizes[i] && s.at_once != 8)) {
                fail(t, "%llu lines meet %llu: %llu at once", (unsigned long long)sizes[i],
                     (unsigned long long)sizes[j], (unsigned long long)s.at_once);
                return;
            }
        }
    expect(t, SIZES > 1);
}
