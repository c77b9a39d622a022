/* The type bf16: registration, conversion, and the kernel in C. */
#include <pantheon/kit/register.h>
#include <pantheon/kit/tile_c.h>
#include "bf16.h"

static float get_bf16(const uint8_t *p)
{
    const uint32_t bits = (uint32_t)pn_get16(p) << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* To nearest, ties to even: the carry of the rounding runs into the exponent as it should. A NaN stays one. */
static void put_bf16(uint8_t *p, float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    const int nan = (bits & 0x7fffffffu) > 0x7f800000u;
    const uint16_t v = (uint16_t)(nan ? bits >> 16 | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
    memcpy(p, &v, sizeof v);
}

static void bf16_dequantize(const void *row, float *out, size_t n)
{
    const uint8_t *p = row;
    for (size_t i = 0; i < n; i++) out[i] = get_bf16(p + 2 * i);
}

static pn_status bf16_quantize(const float *x, const float *importance, void *row, size_t n, pn_error *err)
{
    uint8_t *p = row;
    (void)importance; /* the nearest bf16 is the best whatever the weight */
    (void)err;
    for (size_t i = 0; i < n; i++) put_bf16(p + 2 * i, x[i]);
    return PN_OK;
}

static void bf16_byteswap(void *row, size_t n)
{
    uint8_t *p = row;
    for (size_t i = 0; i < n; i++) pn_swap16(p + 2 * i);
}

static float bf16_dot(const void *row, const float *x, size_t n)
{
    const uint8_t *p = row;
    float sum = 0;
    for (size_t i = 0; i < n; i++) sum += get_bf16(p + 2 * i) * x[i];
    return sum;
}

static void bf16_axpy(float a, const void *row, float *y, size_t n)
{
    const uint8_t *p = row;
    for (size_t i = 0; i < n; i++) y[i] += a * get_bf16(p + 2 * i);
}

static size_t bf16_scratch_c(size_t cols, size_t columns)
{
    (void)cols;
    (void)columns;
    return pn_c_f32_scratch();
}

static pn_status bf16_matmul_c(const pn_matmul_args *args)
{
    return pn_c_f32_matmul(args, PN_BF16_BYTES, bf16_dequantize);
}

static const pn_quant bf16_type = {.struct_size = sizeof(pn_quant),
                                   .flags = PN_QUANT_FLOAT,
                                   .name = "bf16",
                                   .summary = "16-bit floating point (upper half of an IEEE single)",
                                   .block_elems = 1,
                                   .block_bytes = PN_BF16_BYTES,
                                   .dequantize = bf16_dequantize,
                                   .quantize = bf16_quantize,
                                   .byteswap = bf16_byteswap,
                                   .dot = bf16_dot,
                                   .axpy = bf16_axpy};

static const pn_kernel bf16_kernels[] = {
    PN_KERNEL(bf16, f32, c, PN_SCORE_C, 0, 1, bf16_scratch_c, bf16_matmul_c),
#ifdef PN_HAVE_X86
    PN_KERNEL(bf16, f32, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 4, NULL, pn_bf16_matmul_avx2),
    PN_KERNEL(bf16, f32, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 4, NULL, pn_bf16_matmul_avx512),
#endif
};

static pn_status bf16_init(const pn_host *host, pn_error *err)
{
    return pn_register_type(host, &bf16_type, bf16_kernels, sizeof bf16_kernels / sizeof *bf16_kernels, err);
}

PN_PLUGIN("org.pantheon.bf16", "0.1.0", "MIT", "the number type bf16", 0, bf16_init)
