/* The type f32: registration, conversion, and the kernel in C. */
#include <pantheon/kit/register.h>
#include <pantheon/kit/tile_c.h>
#include "f32.h"

static void f32_dequantize(const void *row, float *out, size_t n)
{
    memcpy(out, row, n * sizeof *out);
}

static pn_status f32_quantize(const float *x, const float *importance, void *row, size_t n, pn_error *err)
{
    (void)importance;
    (void)err;
    memcpy(row, x, n * sizeof *x);
    return PN_OK;
}

static void f32_byteswap(void *row, size_t n)
{
    uint8_t *p = row;
    for (size_t i = 0; i < n; i++) pn_swap32(p + 4 * i);
}

static float f32_dot(const void *row, const float *x, size_t n)
{
    const uint8_t *p = row;
    float sum = 0;
    for (size_t i = 0; i < n; i++) sum += pn_get_float(p + 4 * i) * x[i];
    return sum;
}

static void f32_axpy(float a, const void *row, float *y, size_t n)
{
    const uint8_t *p = row;
    for (size_t i = 0; i < n; i++) y[i] += a * pn_get_float(p + 4 * i);
}

static size_t f32_scratch_c(size_t cols, size_t columns)
{
    (void)cols;
    (void)columns;
    return pn_c_f32_scratch();
}

static pn_status f32_matmul_c(const pn_matmul_args *args)
{
    return pn_c_f32_matmul(args, PN_F32_BYTES, f32_dequantize);
}

static const pn_quant f32_type = {.struct_size = sizeof(pn_quant),
                                  .flags = PN_QUANT_FLOAT,
                                  .name = "f32",
                                  .summary = "32-bit floating point",
                                  .block_elems = 1,
                                  .block_bytes = PN_F32_BYTES,
                                  .dequantize = f32_dequantize,
                                  .quantize = f32_quantize,
                                  .byteswap = f32_byteswap,
                                  .dot = f32_dot,
                                  .axpy = f32_axpy};

static const pn_kernel f32_kernels[] = {
    PN_KERNEL(f32, f32, c, PN_SCORE_C, 0, 1, f32_scratch_c, f32_matmul_c),
#ifdef PN_HAVE_X86
    PN_KERNEL(f32, f32, avx2, PN_SCORE_AVX2, PN_LEVEL_AVX2, 4, NULL, pn_f32_matmul_avx2),
    PN_KERNEL(f32, f32, avx512, PN_SCORE_AVX512, PN_LEVEL_AVX512, 4, NULL, pn_f32_matmul_avx512),
#endif
};

static pn_status f32_init(const pn_host *host, pn_error *err)
{
    return pn_register_type(host, &f32_type, f32_kernels, sizeof f32_kernels / sizeof *f32_kernels, err);
}

PN_PLUGIN("org.pantheon.f32", "0.1.0", "MIT", "the number type f32", 0, f32_init)
