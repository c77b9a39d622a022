/* The type f16: registration, conversion, and the kernel in C. */
#include <pantheon/kit/register.h>
#include <pantheon/kit/tile_c.h>
#include "f16.h"

static void f16_dequantize(const void *row, float *out, size_t n)
{
    const uint8_t *p = row;
    for (size_t i = 0; i < n; i++) out[i] = pn_get_half(p + 2 * i);
}

static pn_status f16_quantize(const float *x, const float *importance, void *row, size_t n, pn_error *err)
{
    uint8_t *p = row;
    (void)importance; /* the nearest half is the best whatever the weight */
    (void)err;
    for (size_t i = 0; i < n; i++) pn_put_half(p + 2 * i, x[i]);
    return PN_OK;
}

static void f16_byteswap(void *row, size_t n)
{
    uint8_t *p = row;
    for (size_t i = 0; i < n; i++) pn_swap16(p + 2 * i);
}

static float f16_dot(const void *row, const float *x, size_t n)
{
    const uint8_t *p = row;
    float sum = 0;
    for (size_t i = 0; i < n; i++) sum += pn_get_half(p + 2 * i) * x[i];
    return sum;
}

static void f16_axpy(float a, const void *row, float *y, size_t n)
{
    const uint8_t *p = row;
    for (size_t i = 0; i < n; i++) y[i] += a * pn_get_half(p + 2 * i);
}

static size_t f16_scratch_c(size_t cols, size_t columns)
{
    (void)cols;
    (void)columns;
    return pn_c_f32_scratch();
}

static pn_status f16_matmul_c(const pn_matmul_args *args)
{
    return pn_c_f32_matmul(args, PN_F16_BYTES, f16_dequantize);
}

static const pn_quant f16_type = {.struct_size = sizeof(pn_quant),
                                  .flags = PN_QUANT_FLOAT,
                                  .name = "f16",
                                  .summary = "16-bit floating point (IEEE half)",
                                  .block_elems = 1,
                                  .block_bytes = PN_F16_BYTES,
                                  .dequantize = f16_dequantize,
                                  .quantize = f16_quantize,
                                  .byteswap = f16_byteswap,
                                  .dot = f16_dot,
                                  .axpy = f16_axpy};

static const pn_kernel f16_kernels[] = {
    PN_KERNEL(f16, f32, c, PN_SCORE_C, 0, 1, f16_scratch_c, f16_matmul_c),
#ifdef PN_HAVE_X86
    PN_KERNEL(f16, f32, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 4, NULL, pn_f16_matmul_avx2),
    PN_KERNEL(f16, f32, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 4, NULL, pn_f16_matmul_avx512),
#endif
};

static pn_status f16_init(const pn_host *host, pn_error *err)
{
    return pn_register_type(host, &f16_type, f16_kernels, sizeof f16_kernels / sizeof *f16_kernels, err);
}

PN_PLUGIN("org.pantheon.f16", "0.1.0", "MIT", "the number type f16", 0, f16_init)
