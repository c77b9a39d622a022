/* The core's numeric operations in C: the reference that every other level is compared with, and the choice of a level.
 *
 * Written to be exact rather than fast: sums and transcendental functions in double.
 */
#include "ops_impl.h"

#include <math.h>

#define SQRT_2_OVER_PI 0.79788456080286535588
#define SQRT_HALF 0.70710678118654752440

/* ---- norms and elementwise --------------------------------------------------------------------------------------- */

static void rms_norm(const float *x, const float *scale, float eps, size_t n, float *y)
{
    double sum = 0;
    float factor;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    factor = (float)(1.0 / sqrt(sum / (double)n + (double)eps));
    for (size_t i = 0; i < n; i++)
        y[i] = scale ? x[i] * factor * scale[i] : x[i] * factor;
}

static void layer_norm(const float *x, const float *scale, const float *bias, float eps, size_t n, float *y)
{
    double sum = 0, squares = 0, mean, factor;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i];
    mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) {
        double d = (double)x[i] - mean;
        squares += d * d;
    }
    factor = 1.0 / sqrt(squares / (double)n + (double)eps);
    for (size_t i = 0; i < n; i++) {
        float v = (float)(((double)x[i] - mean) * factor);
        if (scale)
            v *= scale[i];
        y[i] = bias ? v + bias[i] : v;
    }
}

static void add(const float *a, const float *b, size_t n, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
}

static void mul(const float *a, const float *b, size_t n, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = a[i] * b[i];
}

static void scale_by(const float *x, float factor, size_t n, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * factor;
}

/* Written without a difference of nearly equal numbers, so that the tails that tend to 0 stay exact. */
static float act(uint32_t kind, float x)
{
    double d = (double)x;
    switch (kind) {
    case PN_ACT_SILU: return (float)(d / (1.0 + exp(-d)));
    case PN_ACT_GELU_TANH: return (float)(d / (1.0 + exp(-2.0 * SQRT_2_OVER_PI * (d + 0.044715 * d * d * d))));
    case PN_ACT_GELU_ERF: return (float)(0.5 * d * erfc(-d * SQRT_HALF));
    case PN_ACT_RELU: return x < 0 ? 0 : x;
    default: return NAN;
    }
}

static void activation(uint32_t kind, const float *x, size_t n, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = act(kind, x[i]);
}

static void glu(uint32_t kind, const float *gate, const float *up, size_t n, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = act(kind, gate[i]) * up[i];
}

static void rope(float *x, size_t n_heads, size_t head_size, size_t n_dims, uint32_t pairing, const float *cosine,
                 const float *sine)
{
    size_t half = n_dims / 2;
    size_t step = pairing == PN_ROPE_HALVES ? 1 : 2, apart = pairing == PN_ROPE_HALVES ? half : 1;
    for (size_t h = 0; h < n_heads; h++, x += head_size)
        for (size_t i = 0; i < half; i++) {
            float *p = x + i * step;
            float a = p[0], b = p[apart];
            p[0] = a * cosine[i] - b * sine[i];
            p[apart] = a * sine[i] + b * cosine[i];
        }
}

/* ---- keys, halves, sums ------------------------------------------------------------------------------------------ */

void pn_store_key_f32_c(const float *x, size_t n, size_t j, float *k)
{
    for (size_t i = 0; i < n; i++)
        k[i * PN_KV_BLOCK + j] = x[i];
}

static void store_key_f16(const float *x, size_t n, size_t j, uint16_t *k)
{
    for (size_t i = 0; i < n; i++)
        k[i * PN_KV_BLOCK + j] = pn_half_of_float(x[i]);
}

static void f16_from_f32(const float *x, size_t n, uint16_t *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = pn_half_of_float(x[i]);
}

static void f32_from_f16(const uint16_t *x, size_t n, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = pn_float_of_half(x[i]);
}

static float dot(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return (float)sum;
}

/* ---- packings ---------------------------------------------------------------------------------------------------- */

void pn_pack_f32_c(const float *x, size_t cols, void *out)
{
    size_t padded = (cols + 15) & ~(size_t)15;
    memcpy(out, x, cols * sizeof *x);
    memset((float *)out + cols, 0, (padded - cols) * sizeof *x);
}

/* q and its sums for one chunk of n <= 256 elements; returns the scale. All levels do these very steps, each rounded
 * once: inverse = 32767 / largest, x * inverse, to the nearest integer (even on ties). */
static float pack_chunk(const float *x, size_t n, float *sum32, float *sum16, pn_pack_to to)
{
    size_t padded = (n + 31) & ~(size_t)31;
    uint32_t largest = 0;
    float amax, inverse = 0, scale = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, x + i, 4);
        u &= 0x7fffffff;
        largest = u > largest ? u : largest;
    }
    memcpy(&amax, &largest, 4);
    if (largest >= 0x7f800000) {
        scale = NAN;
    } else if (amax >= PN_I16_TINY) {
        scale = amax / 32767.0f;
        inverse = 32767.0f / amax;
    }
    if (inverse == 0) {
        memset(to.q, 0, padded * sizeof *to.q);
        memset(to.high, 0, padded);
        memset(to.low, 0, padded);
        memset(sum32, 0, padded / 32 * sizeof *sum32);
        memset(sum16, 0, padded / 16 * sizeof *sum16);
        return scale;
    }
    for (size_t i = 0; i < padded; i += 16) {
        int32_t sum = 0;
        for (size_t k = i; k < i + 16; k++) {
            int32_t v = k < n ? (int32_t)lrintf(x[k] * inverse) : 0;
            to.q[pn_i16_place(k)] = (int16_t)v;
            to.high[k] = (int8_t)(v >> 8);
            to.low[k] = (uint8_t)(v & 255);
            sum += v;
        }
        sum16[i / 16] = (float)sum;
        if (i & 16)
            sum32[i / 32] = sum16[i / 16 - 1] + (float)sum;
    }
    return scale;
}

void pn_pack_i16_with(pn_pack_chunk *chunk, const float *x, size_t cols, void *out)
{
    pn_i16_layout l = pn_i16_layout_of(cols);
    char *base = out;
    float *scale = (float *)(base + l.scale), *sum32 = (float *)(base + l.sum32), *sum16 = (float *)(base + l.sum16);
    const size_t plane = l.low - l.high, padded = l.n32 * 32;
    memset(base + l.high + padded, 0, plane - padded);
    memset(base + l.low + padded, 0, plane - padded);
    memset(scale + l.n256, 0, l.sum32 - l.scale - l.n256 * sizeof *scale);
    memset(sum32 + l.n32, 0, l.sum16 - l.sum32 - l.n32 * sizeof *sum32);
    memset(sum16 + 2 * l.n32, 0, l.q - l.sum16 - 2 * l.n32 * sizeof *sum16);
    for (size_t c = 0; c < l.n256; c++) {
        size_t i = c * PN_I16_CHUNK, n = cols - i < PN_I16_CHUNK ? cols - i : PN_I16_CHUNK;
        const pn_pack_to to = {(int16_t *)(base + l.q) + i, (int8_t *)(base + l.high) + i,
                               (uint8_t *)(base + l.low) + i};
        scale[c] = chunk(x + i, n, sum32 + i / 32, sum16 + i / 16, to);
    }
}

static void pack_i16(const float *x, size_t cols, void *out)
{
    pn_pack_i16_with(pack_chunk, x, cols, out);
}

/* All levels do these very steps, each rounded once, as in pack_chunk. */
static float pack_unit(const float *x, int8_t *q, int32_t sum[2])
{
    uint32_t largest = 0;
    float amax, inverse;
    for (size_t i = 0; i < 32; i++) {
        uint32_t u;
        memcpy(&u, x + i, 4);
        u &= 0x7fffffff;
        largest = u > largest ? u : largest;
    }
    memcpy(&amax, &largest, 4);
    sum[0] = sum[1] = 0;
    if (largest >= 0x7f800000 || amax < PN_I8_TINY) {
        memset(q, 0, 32);
        return largest >= 0x7f800000 ? NAN : 0;
    }
    inverse = 127.0f / amax;
    for (size_t i = 0; i < 32; i++) {
        q[i] = (int8_t)lrintf(x[i] * inverse);
        sum[i / 16] += q[i];
    }
    return amax / 127.0f;
}

void pn_pack_i8_with(pn_pack_unit *unit, const float *x, size_t cols, void *out)
{
    pn_i8_chunk *chunk = out;
    size_t used = (cols + 255) / 256 * sizeof *chunk;
    for (size_t k = 0; k < (cols + 255) / 256 * 256; k += 32) {
        pn_i8_chunk *c = chunk + k / 256;
        size_t i = k / 32 % 8;
        float last[32] = { 0 }, scale = 0;
        int32_t sum[2] = { 0, 0 };
        const float *from = x + k;
        if (k >= cols) {
            memset(c->q + 32 * i, 0, 32);
        } else {
            if (cols - k < 32)
                from = memcpy(last, from, (cols - k) * sizeof *from);
            scale = unit(from, c->q + 32 * i, sum);
        }
        c->scale[i] = scale;
        c->isum16[2 * i] = sum[0];
        c->isum16[2 * i + 1] = sum[1];
        c->isum32[i] = sum[0] + sum[1];
        c->sum16[2 * i] = scale * (float)sum[0];
        c->sum16[2 * i + 1] = scale * (float)sum[1];
        c->sum32[i] = scale * (float)(sum[0] + sum[1]);
    }
    memset((char *)out + used, 0, pn_i8_bytes(cols) - used);
}

static void pack_i8(const float *x, size_t cols, void *out)
{
    pn_pack_i8_with(pack_unit, x, cols, out);
}

/* ---- levels ------------------------------------------------------------------------------------------------------ */

const pn_ops pn_ops_c = {
    .level = "c",
    .rms_norm = rms_norm,
    .layer_norm = layer_norm,
    .add = add,
    .mul = mul,
    .scale = scale_by,
    .activation = activation,
    .glu = glu,
    .rope = rope,
    .attend_f32 = pn_attend_f32_c,
    .attend_f16 = pn_attend_f16_c,
    .store_key_f32 = pn_store_key_f32_c,
    .store_key_f16 = store_key_f16,
    .f16_from_f32 = f16_from_f32,
    .f32_from_f16 = f32_from_f16,
    .dot = dot,
    .pack_f32 = pn_pack_f32_c,
    .pack_i16 = pack_i16,
    .pack_i8 = pack_i8,
};

/* From the lowest to the highest. */
static const pn_ops *const levels[] = {
    &pn_ops_c,
#ifdef PN_HAVE_X86
    &pn_ops_avx2,
    &pn_ops_avx512,
#endif
};
#define N_LEVELS (sizeof levels / sizeof levels[0])

const pn_ops *pn_ops_at(size_t index)
{
    return index < N_LEVELS ? levels[index] : NULL;
}

const pn_ops *pn_ops_for(uint64_t features)
{
    size_t i = N_LEVELS - 1;
    while (i > 0 && (levels[i]->cpu_features & ~features) != 0)
        i--;
    return levels[i];
}
