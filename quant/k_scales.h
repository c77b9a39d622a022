/* The scales and minima of q4_k and q5_k: eight of each, 6 bits wide, in 12 bytes.
 *
 *   byte      bits 0..5         bits 6 7
 *   0 .. 3    scale 0 .. 3      upper two bits of scale 4 .. 7
 *   4 .. 7    minimum 0 .. 3    upper two bits of minimum 4 .. 7
 *   8 .. 11   bits 0..3: lower four of scale 4 .. 7, bits 4..7: lower four of minimum 4 .. 7
 */
#ifndef PN_QUANT_K_SCALES_H
#define PN_QUANT_K_SCALES_H

#include <pantheon/kit/block.h>

PN_UNUSED static inline void pn_k_scales_get(const uint8_t s[12], uint8_t scale[8], uint8_t minimum[8])
{
    for (size_t i = 0; i < 4; i++) {
        scale[i] = s[i] & 63;
        minimum[i] = s[i + 4] & 63;
        scale[i + 4] = (uint8_t)((s[i + 8] & 15) | s[i] >> 6 << 4);
        minimum[i + 4] = (uint8_t)(s[i + 8] >> 4 | s[i + 4] >> 6 << 4);
    }
}

PN_UNUSED static inline void pn_k_scales_put(const int scale[8], const int minimum[8], uint8_t s[12])
{
    for (size_t i = 0; i < 4; i++) {
        s[i] = (uint8_t)(scale[i] | scale[i + 4] >> 4 << 6);
        s[i + 4] = (uint8_t)(minimum[i] | minimum[i + 4] >> 4 << 6);
        s[i + 8] = (uint8_t)((scale[i + 4] & 15) | (minimum[i + 4] & 15) << 4);
    }
}

#endif
