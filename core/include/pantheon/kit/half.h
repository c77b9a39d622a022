/* IEEE half precision in plain C: the same bits as the processor's own conversions (round to nearest even, subnormals
 * kept, NaN made quiet with its payload kept). */
#ifndef PANTHEON_KIT_HALF_H
#define PANTHEON_KIT_HALF_H

#include <pantheon/kit/types.h>

#ifdef __cplusplus
extern "C" {
#endif

PN_UNUSED static inline float pn_half_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = h & 0x7fffu, bits;
    float f;
    if (rest >= 0x7c00u) { /* infinity, NaN */
        bits = 0x7f800000u | (rest & 0x3ffu) << 13 | (rest > 0x7c00u ? 0x400000u : 0u);
    } else if (rest >= 0x400u) {
        bits = (rest << 13) + (112u << 23);
    } else { /* zero, subnormal: an integer times 2^-24, exact */
        f = (float)rest * (1.0f / 16777216.0f);
        memcpy(&bits, &f, sizeof bits);
    }
    bits |= sign;
    memcpy(&f, &bits, sizeof f);
    return f;
}

PN_UNUSED static inline uint16_t pn_float_to_half(float f)
{
    uint32_t bits, rest, half;
    memcpy(&bits, &f, sizeof bits);
    rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u) {
        half = 0x7e00u | (rest >> 13 & 0x3ffu);
    } else if (rest >= 0x477ff000u) { /* rounds to 65536 or more */
        half = 0x7c00u;
    } else if (rest >= 0x38800000u) { /* normal: the carry of the rounding runs into the exponent as it should */
        half = (rest - (112u << 23) + 0xfffu + (rest >> 13 & 1u)) >> 13;
    } else if (rest > 0x33000000u) { /* subnormal */
        uint32_t mantissa = (rest & 0x7fffffu) | 0x800000u, shift = 126u - (rest >> 23);
        uint32_t left = mantissa & ((1u << shift) - 1u), middle = 1u << (shift - 1u);
        half = mantissa >> shift;
        half += left > middle || (left == middle && (half & 1u));
    } else {
        half = 0;
    }
    return (uint16_t)(half | (bits >> 16 & 0x8000u));
}

#ifdef __cplusplus
}
#endif
#endif
