/* Scales in vectors, for the types with superblocks; included after a vector layer. */
#ifndef PN_QUANT_K_SCALES_SIMD_H
#define PN_QUANT_K_SCALES_SIMD_H

#include <pantheon/kit/tile_i8.h>
#include <pantheon/kit/unpack.h>

/* d[i] = factor * (byte i of each lane), unsigned. */
PN_INLINE void pn_k_bytes(pn_vi x, pn_vf factor, pn_vf d[4])
{
    const pn_vi byte = pn_v_set32(255);
    d[0] = pn_v_mul(factor, pn_v_float(pn_v_and(x, byte)));
    d[1] = pn_v_mul(factor, pn_v_float(pn_v_and(pn_v_srl32(x, 8), byte)));
    d[2] = pn_v_mul(factor, pn_v_float(pn_v_and(pn_v_srl32(x, 16), byte)));
    d[3] = pn_v_mul(factor, pn_v_float(pn_v_srl32(x, 24)));
}

/* The same of signed bytes. */
PN_INLINE void pn_k_signed_bytes(pn_vi x, pn_vf factor, pn_vf d[4])
{
    d[0] = pn_v_mul(factor, pn_v_float(pn_v_sra32(pn_v_sll32(x, 24), 24)));
    d[1] = pn_v_mul(factor, pn_v_float(pn_v_sra32(pn_v_sll32(x, 16), 24)));
    d[2] = pn_v_mul(factor, pn_v_float(pn_v_sra32(pn_v_sll32(x, 8), 24)));
    d[3] = pn_v_mul(factor, pn_v_float(pn_v_sra32(x, 24)));
}

PN_INLINE pn_vf pn_k_negative(pn_vf a)
{
    return pn_v_mul(a, pn_v_set_f(-1.0f));
}

/* Head of a q4_k or q5_k block: the halfs d and dmin, then the 12 bytes of k_scales.h. */
PN_INLINE void pn_k_head(pn_rows rows, size_t offset, pn_vf *d, pn_vf *m)
{
    const pn_vi six = pn_v_set32(0x3f3f3f3f), four = pn_v_set32(0x0f0f0f0f), upper = pn_v_set32(0x30303030);
    pn_vf factor, minimum;
    pn_vi w[4];
    pn_v_words(rows, offset, w);
    pn_v_half_both(w[0], &factor, &minimum);
    minimum = pn_k_negative(minimum);
    pn_k_bytes(pn_v_and(w[1], six), factor, d);
    pn_k_bytes(pn_v_or(pn_v_and(w[3], four), pn_v_and(pn_v_srl32(w[1], 2), upper)), factor, d + 4);
    pn_k_bytes(pn_v_and(w[2], six), minimum, m);
    pn_k_bytes(pn_v_or(pn_v_and(pn_v_srl32(w[3], 4), four), pn_v_and(pn_v_srl32(w[2], 2), upper)), minimum, m + 4);
}

#endif
