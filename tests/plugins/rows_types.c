/* Types of which only an unpacker in C is written, with blocks of each size, scales for 16 and 32, with minima and
 * without: kernels in C, and vector kernels by kit/tile_rows.h when compiled for an instruction set. */
#ifdef __AVX512BW__
#include <pantheon/kit/simd_avx512.h>
#include <pantheon/kit/tile_rows.h>
#define LEVEL PN_LEVEL_AVX512
#elif defined __AVX2__
#include <pantheon/kit/simd_avx2.h>
#include <pantheon/kit/tile_rows.h>
#define LEVEL PN_LEVEL_AVX2
#endif
#include <pantheon/kit/block.h>
#include <pantheon/kit/register.h>
#include <pantheon/kit/tile_c.h>

/* A block: half d, half m, a byte a code. Codes from -254 to 254; scale g of the block is d * (g + 1), minimum g is
 * m * (g - 3). */
static inline void unpack_any(const uint8_t *block, size_t elems, size_t group, int minimum, pn_codes *out)
{
    const float d = pn_get_half(block), m = pn_get_half(block + 2);
    for (size_t g = 0; g < elems / group; g++) {
        out->d[g] = d * (float)(g + 1);
        if (minimum) out->m[g] = m * ((float)g - 3.0f);
    }
    for (size_t i = 0; i < elems; i++) {
        const int code = (int8_t)block[4 + i];
        out->code[i] = (int16_t)(code < -127 ? -254 : 2 * code);
    }
}

#ifdef LEVEL
#define VECTORS(n)                                                                                                     \
    static size_t scratch_v_##n(size_t cols, size_t columns)                                                           \
    {                                                                                                                  \
        (void)cols;                                                                                                    \
        return pn_tile_rows_scratch_bytes(columns);                                                                    \
    }                                                                                                                  \
    static pn_status matmul_v_##n(const pn_matmul_args *a)                                                             \
    {                                                                                                                  \
        return pn_tile_rows_matmul(a, &block_##n);                                                                     \
    }
#define VECTOR_KERNEL(n) PN_KERNEL(test.rows##n, i16, vectors, 1, LEVEL, 16, scratch_v_##n, matmul_v_##n),
#else
#define VECTORS(n)
#define VECTOR_KERNEL(n)
#endif

/* Type test.rowsN: blocks of N elements. */
#define TYPE(n, fine, minimum)                                                                                         \
    static void unpack_##n(const uint8_t *block, pn_codes *out)                                                        \
    {                                                                                                                  \
        unpack_any(block, n, fine ? 16 : 32, minimum, out);                                                            \
    }                                                                                                                  \
    static const pn_block_type block_##n = {4 + n, n, fine, minimum, unpack_##n};                                      \
    static void dequantize_##n(const void *row, float *out, size_t count)                                              \
    {                                                                                                                  \
        pn_c_dequantize(&block_##n, row, out, count);                                                                  \
    }                                                                                                                  \
    static size_t scratch_##n(size_t cols, size_t columns)                                                             \
    {                                                                                                                  \
        (void)cols;                                                                                                    \
        return pn_c_i16_scratch(columns);                                                                              \
    }                                                                                                                  \
    static pn_status matmul_##n(const pn_matmul_args *a)                                                               \
    {                                                                                                                  \
        return pn_c_i16_matmul(a, &block_##n);                                                                         \
    }                                                                                                                  \
    VECTORS(n)                                                                                                         \
    static const pn_quant type_##n = {.struct_size = sizeof(pn_quant),                                                 \
                                      .name = "test.rows" #n,                                                          \
                                      .summary = "a test's",                                                           \
                                      .block_elems = n,                                                                \
                                      .block_bytes = 4 + n,                                                            \
                                      .dequantize = dequantize_##n};                                                   \
    static const pn_kernel kernels_##n[] = {                                                                           \
        PN_KERNEL(test.rows##n, i16, c, 0, 0, 1, scratch_##n, matmul_##n), VECTOR_KERNEL(n)};

TYPE(32, 0, 1)
TYPE(64, 1, 0)
TYPE(128, 1, 1)
TYPE(256, 0, 1)

static pn_status init(const pn_host *host, pn_error *err)
{
    pn_status status = pn_register_type(host, &type_32, kernels_32, sizeof kernels_32 / sizeof *kernels_32, err);
    if (status == PN_OK)
        status = pn_register_type(host, &type_64, kernels_64, sizeof kernels_64 / sizeof *kernels_64, err);
    if (status == PN_OK)
        status = pn_register_type(host, &type_128, kernels_128, sizeof kernels_128 / sizeof *kernels_128, err);
    if (status == PN_OK)
        status = pn_register_type(host, &type_256, kernels_256, sizeof kernels_256 / sizeof *kernels_256, err);
    return status;
}

PN_PLUGIN("test.rows_types", "1.0.0", "MIT", "types with an unpacker in C alone", 0, init)
