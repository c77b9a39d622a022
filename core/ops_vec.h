/* The operations of pn_ops over the vectors of a level, and their table PN_OPS_TABLE: included by each ops_<level>.c.
 *
 * The last vector of an array is loaded and stored in part, so that an element takes the same steps wherever it lies.
 * Sums give element i to lane i mod VL, and join lanes in a fixed order at the end.
 */
#include "ops_attend_vec.h"
#include "ops_impl.h"
#include "vec_math.h"

#include <math.h>

/* The first n elements, at most VL. */
VEC vf load_up_to(const float *p, size_t n) { return n >= VL ? v_load(p) : v_load_n(p, n); }
VEC void store_up_to(float *p, vf x, size_t n)
{
    if (n >= VL)
        v_store(p, x);
    else
        v_store_n(p, x, n);
}

/* ---- norms ------------------------------------------------------------------------------------------------------- */

static void rms_norm(const float *x, const float *scale, float eps, size_t n, float *y)
{
    vd low = d_zero(), high = d_zero();
    vf factor;
    for (size_t i = 0; i < n; i += VL) {
        vf v = load_up_to(x + i, n - i);
        low = d_fma(d_low(v), d_low(v), low);
        high = d_fma(d_high(v), d_high(v), high);
    }
    factor = v_set((float)(1.0 / sqrt(d_sum(d_add(low, high)) / (double)n + (double)eps)));
    for (size_t i = 0; i < n; i += VL) {
        vf v = v_mul(load_up_to(x + i, n - i), factor);
        if (scale)
            v = v_mul(v, load_up_to(scale + i, n - i));
        store_up_to(y + i, v, n - i);
    }
}

/* Sum of (x - mean)^2. */
static double squares_around(const float *x, double mean, size_t n)
{
    size_t whole = n - n % VL;
    vd low = d_zero(), high = d_zero(), m = d_set(mean);
    double sum;
    for (size_t i = 0; i < whole; i += VL) {
        vf v = v_load(x + i);
        vd a = d_sub(d_low(v), m), b = d_sub(d_high(v), m);
        low = d_fma(a, a, low);
        high = d_fma(b, b, high);
    }
    sum = d_sum(d_add(low, high));
    for (size_t i = whole; i < n; i++)
        sum += ((double)x[i] - mean) * ((double)x[i] - mean);
    return sum;
}

static void layer_norm(const float *x, const float *scale, const float *bias, float eps, size_t n, float *y)
{
    vd low = d_zero(), high = d_zero(), m, factor;
    double mean;
    for (size_t i = 0; i < n; i += VL) {
        vf v = load_up_to(x + i, n - i);
        low = d_add(low, d_low(v));
        high = d_add(high, d_high(v));
    }
    mean = d_sum(d_add(low, high)) / (double)n;
    m = d_set(mean);
    factor = d_set(1.0 / sqrt(squares_around(x, mean, n) / (double)n + (double)eps));
    for (size_t i = 0; i < n; i += VL) {
        vf v = load_up_to(x + i, n - i);
        v = v_of_doubles(d_mul(d_sub(d_low(v), m), factor), d_mul(d_sub(d_high(v), m), factor));
        if (scale)
            v = v_mul(v, load_up_to(scale + i, n - i));
        if (bias)
            v = v_add(v, load_up_to(bias + i, n - i));
        store_up_to(y + i, v, n - i);
    }
}

/* ---- elementwise ------------------------------------------------------------------------------------------------- */

#define EACH_VECTOR(y, n, value)                        \
    for (size_t i = 0; i < (n); i += VL)                \
        store_up_to((y) + i, (value), (n) - i)
#define AT(x) load_up_to((x) + i, n - i)

static void add(const float *a, const float *b, size_t n, float *y)
{
    EACH_VECTOR(y, n, v_add(AT(a), AT(b)));
}

static void mul(const float *a, const float *b, size_t n, float *y)
{
    EACH_VECTOR(y, n, v_mul(AT(a), AT(b)));
}

static void scale_by(const float *x, float factor, size_t n, float *y)
{
    EACH_VECTOR(y, n, v_mul(AT(x), v_set(factor)));
}

static void activation(uint32_t kind, const float *x, size_t n, float *y)
{
    switch (kind) {
    case PN_ACT_SILU: EACH_VECTOR(y, n, v_silu(AT(x))); break;
    case PN_ACT_GELU_TANH: EACH_VECTOR(y, n, v_gelu_tanh(AT(x))); break;
    case PN_ACT_GELU_ERF: EACH_VECTOR(y, n, v_gelu_erf(AT(x))); break;
    case PN_ACT_RELU: EACH_VECTOR(y, n, v_relu(AT(x))); break;
    default: EACH_VECTOR(y, n, v_set(NAN)); break;
    }
}

static void glu(uint32_t kind, const float *gate, const float *up, size_t n, float *y)
{
    switch (kind) {
    case PN_ACT_SILU: EACH_VECTOR(y, n, v_mul(v_silu(AT(gate)), AT(up))); break;
    case PN_ACT_GELU_TANH: EACH_VECTOR(y, n, v_mul(v_gelu_tanh(AT(gate)), AT(up))); break;
    case PN_ACT_GELU_ERF: EACH_VECTOR(y, n, v_mul(v_gelu_erf(AT(gate)), AT(up))); break;
    case PN_ACT_RELU: EACH_VECTOR(y, n, v_mul(v_relu(AT(gate)), AT(up))); break;
    default: EACH_VECTOR(y, n, v_set(NAN)); break;
    }
}

/* Both pairings take the same steps for a pair: a c - (b s) and b c + (a s), the outer product not rounded. */
static void rope(float *x, size_t n_heads, size_t head_size, size_t n_dims, uint32_t pairing, const float *cosine,
                 const float *sine)
{
    size_t half = n_dims / 2;
    for (size_t h = 0; h < n_heads; h++, x += head_size) {
        if (pairing == PN_ROPE_HALVES) {
            for (size_t i = 0; i < half; i += VL) {
                size_t n = half - i;
                vf a = load_up_to(x + i, n), b = load_up_to(x + half + i, n);
                vf c = load_up_to(cosine + i, n), s = load_up_to(sine + i, n);
                store_up_to(x + i, v_fms(a, c, v_mul(b, s)), n);
                store_up_to(x + half + i, v_fma(b, c, v_mul(a, s)), n);
            }
        } else {
            for (size_t i = 0; i < half; i += VL / 2) {
                size_t n = half - i < VL / 2 ? half - i : VL / 2;
                vf p = load_up_to(x + 2 * i, 2 * n), c = v_load_twice(cosine + i, n), s = v_load_twice(sine + i, n);
                store_up_to(x + 2 * i, v_fmaddsub(p, c, v_mul(v_swap_pairs(p), s)), 2 * n);
            }
        }
    }
}

/* ---- keys, halves, sums ------------------------------------------------------------------------------------------ */

static void store_key_f16(const float *x, size_t n, size_t j, uint16_t *k)
{
    uint16_t halves[VL];
    for (size_t i = 0; i < n; i += VL) {
        size_t m = n - i < VL ? n - i : VL;
        v_store_half(halves, load_up_to(x + i, m));
        for (size_t e = 0; e < m; e++)
            k[(i + e) * PN_KV_BLOCK + j] = halves[e];
    }
}

static void f16_from_f32(const float *x, size_t n, uint16_t *y)
{
    size_t i = 0;
    for (; i + VL <= n; i += VL)
        v_store_half(y + i, v_load(x + i));
    if (i < n)
        v_store_half_n(y + i, v_load_n(x + i, n - i), n - i);
}

/* Floats over at most DOT_CHUNK elements, doubles over the chunks: as fast as floats, and as exact for a long sum. */
#define DOT_CHUNK 256

static float dot(const float *a, const float *b, size_t n)
{
    vd low = d_zero(), high = d_zero();
    for (size_t begin = 0; begin < n; begin += DOT_CHUNK) {
        size_t end = n - begin < DOT_CHUNK ? n : begin + DOT_CHUNK, i = begin;
        vf s0 = v_zero(), s1 = v_zero(), s2 = v_zero(), s3 = v_zero();
        for (; i + 4 * VL <= end; i += 4 * VL) {
            s0 = v_fma(v_load(a + i), v_load(b + i), s0);
            s1 = v_fma(v_load(a + i + VL), v_load(b + i + VL), s1);
            s2 = v_fma(v_load(a + i + 2 * VL), v_load(b + i + 2 * VL), s2);
            s3 = v_fma(v_load(a + i + 3 * VL), v_load(b + i + 3 * VL), s3);
        }
        for (; i < end; i += VL)
            s0 = v_fma(load_up_to(a + i, end - i), load_up_to(b + i, end - i), s0);
        s0 = v_add(v_add(s0, s1), v_add(s2, s3));
        low = d_add(low, d_low(s0));
        high = d_add(high, d_high(s0));
    }
    return (float)d_sum(d_add(low, high));
}

/* ---- packing ----------------------------------------------------------------------------------------------------- */

/* The steps of pack_chunk in ops.c, 16 elements at a time. */
static float pack_chunk(const float *x, size_t n, float *sum32, float *sum16, pn_pack_to to)
{
    vbits largest = b_zero();
    float amax, inverse = 0, scale = 0, last[16] = { 0 };
    uint32_t bits;
    for (size_t i = 0; i < n; i += VL)
        largest = b_largest(largest, load_up_to(x + i, n - i));
    bits = b_first(largest);
    memcpy(&amax, &bits, 4);
    if (bits >= 0x7f800000) {
        scale = NAN;
    } else if (amax >= PN_I16_TINY) {
        scale = amax / 32767.0f;
        inverse = 32767.0f / amax;
    }
    for (size_t i = 0; i < ((n + 31) & ~(size_t)31); i += 16) {
        const float *from = x + i;
        int32_t sum = 0;
        if (inverse == 0 || i >= n) {
            memset(to.q + i, 0, 16 * sizeof *to.q);
            memset(to.high + i, 0, 16);
            memset(to.low + i, 0, 16);
        } else {
            if (n - i < 16)
                from = memcpy(last, from, (n - i) * sizeof *from);
            sum = v_quantize16(from, inverse, to.q + i, to.high + i, to.low + i);
        }
        sum16[i / 16] = (float)sum;
        if (i & 16)
            sum32[i / 32] = sum16[i / 16 - 1] + (float)sum;
    }
    return scale;
}

static void pack_i16(const float *x, size_t cols, void *out)
{
    pn_pack_i16_with(pack_chunk, x, cols, out);
}

/* The steps of pack_unit in ops.c. */
static float pack_unit(const float *x, int8_t *q, int32_t sum[2])
{
    vbits largest = b_zero();
    float amax;
    uint32_t bits;
    for (size_t i = 0; i < 32; i += VL)
        largest = b_largest(largest, v_load(x + i));
    bits = b_first(largest);
    memcpy(&amax, &bits, 4);
    if (bits >= 0x7f800000 || amax < PN_I8_TINY) {
        memset(q, 0, 32);
        sum[0] = sum[1] = 0;
        return bits >= 0x7f800000 ? NAN : 0;
    }
    sum[0] = v_quantize8(x, 127.0f / amax, q);
    sum[1] = v_quantize8(x + 16, 127.0f / amax, q + 16);
    return amax / 127.0f;
}

static void pack_i8(const float *x, size_t cols, void *out)
{
    pn_pack_i8_with(pack_unit, x, cols, out);
}

const pn_ops PN_OPS_TABLE = {
    .level = PN_OPS_LEVEL,
    .cpu_features = PN_OPS_FEATURES,
    .rms_norm = rms_norm,
    .layer_norm = layer_norm,
    .add = add,
    .mul = mul,
    .scale = scale_by,
    .activation = activation,
    .glu = glu,
    .rope = rope,
    .attend_f32 = attend_f32,
    .attend_f16 = attend_f16,
    .store_key_f32 = pn_store_key_f32_c,
    .store_key_f16 = store_key_f16,
    .f16_from_f32 = f16_from_f32,
    .f32_from_f16 = f32_from_f16,
    .dot = dot,
    .pack_f32 = pn_pack_f32_c,
    .pack_i16 = pack_i16,
    .pack_i8 = pack_i8,
};
