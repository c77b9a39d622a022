/* Multiply-adds in tile registers: whole tiles of 16 by 16 by 64. Those of 16 bits take two products, of high and of
 * low bytes. Floats are left to AVX-512. */
#include <pantheon/kit/tile_amx.h>

#include "measure.h"

/* Tiles 0 to 2 are factors, 3 to 6 four sums, so that no product waits for another. */
static void configure(void)
{
    pn_amx_config c = {.palette = 1};
    for (size_t i = 0; i < 7; i++) {
        c.rows[i] = 16;
        c.row_bytes[i] = 64;
    }
    pn_amx_load_config(&c);
}

#define PRODUCTS(op)                                                                                                   \
    op " %%tmm2, %%tmm0, %%tmm3\n\t" op " %%tmm2, %%tmm1, %%tmm4\n\t" op " %%tmm2, %%tmm0, %%tmm5\n\t" op              \
       " %%tmm2, %%tmm1, %%tmm6\n\t"

static double loop_i8(uint32_t rounds)
{
    rounds /= 8; /* each takes as long as several of a vector loop */
    configure();
    for (uint32_t r = 0; r < rounds; r++) __asm__ volatile(PRODUCTS("tdpbssd") : :);
    _tile_release();
    return 4.0 * 16 * 16 * 64 * rounds;
}

static double loop_i16(uint32_t rounds)
{
    rounds /= 16;
    configure();
    for (uint32_t r = 0; r < rounds; r++) __asm__ volatile(PRODUCTS("tdpbssd") PRODUCTS("tdpbusd") : :);
    _tile_release();
    return 4.0 * 16 * 16 * 64 * rounds;
}

const pn_measure_loops pn_measure_amx = {PN_LEVEL_AMX, {loop_i8, loop_i16, NULL}};
