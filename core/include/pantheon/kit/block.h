/* Blocks of quantized weights as bytes: nothing in a model file is assumed aligned, so block structs are made of bytes
 * and wider fields go through these. The values lie in the host's byte order (pn_quant.byteswap makes it so). */
#ifndef PANTHEON_KIT_BLOCK_H
#define PANTHEON_KIT_BLOCK_H

#include <pantheon/kit/half.h>

#ifdef __cplusplus
extern "C" {
#endif

PN_UNUSED static inline uint16_t pn_get16(const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

PN_UNUSED static inline uint32_t pn_get32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

PN_UNUSED static inline float pn_get_float(const uint8_t *p)
{
    float v;
    memcpy(&v, p, sizeof v);
    return v;
}

PN_UNUSED static inline float pn_get_half(const uint8_t *p)
{
    return pn_half_to_float(pn_get16(p));
}

PN_UNUSED static inline void pn_put_half(uint8_t *p, float f)
{
    uint16_t v = pn_float_to_half(f);
    memcpy(p, &v, sizeof v);
}

PN_UNUSED static inline void pn_swap16(uint8_t *p)
{
    uint8_t t = p[0];
    p[0] = p[1];
    p[1] = t;
}

PN_UNUSED static inline void pn_swap32(uint8_t *p)
{
    uint8_t t = p[0], u = p[1];
    p[0] = p[3];
    p[1] = p[2];
    p[2] = u;
    p[3] = t;
}

PN_UNUSED static inline int pn_fits_half(float f)
{
    return f < 65520.0f && f > -65520.0f;
}

/* 1 / d, or 0 where that is no number. */
PN_UNUSED static inline float pn_inverse(float d)
{
    float inverse = d == 0.0f ? 0.0f : 1.0f / d;
    return inverse - inverse == 0.0f ? inverse : 0.0f;
}

/* Smallest and largest of x[0..n-1]. Quantizers must not see NaN or infinity: an integer made of one is undefined. */
PN_UNUSED static inline pn_status pn_range_of(const float *x, size_t n, float *low, float *high, pn_error *err)
{
    float lo = x[0], hi = x[0];
    for (size_t i = 0; i < n; i++) {
        if (!(x[i] - x[i] == 0.0f))
            return pn_fail(err, PN_E_RANGE,
                           "cannot quantize %g (element %zu of a block): only finite numbers have a code", (double)x[i],
                           i);
        lo = x[i] < lo ? x[i] : lo;
        hi = x[i] > hi ? x[i] : hi;
    }
    *low = lo;
    *high = hi;
    return PN_OK;
}

#ifdef __cplusplus
}
#endif
#endif
