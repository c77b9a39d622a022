/* Rotary parameters from a model file's roles, for architecture plugins. */
#ifndef PANTHEON_KIT_ROPE_H
#define PANTHEON_KIT_ROPE_H

#include <pantheon/kit/model.h>

#ifdef __cplusplus
extern "C" {
#endif

PN_UNUSED static inline pn_status pn_rope_scaling_from_file(const pn_host *host, pn_file *file, pn_rope_params *p,
                                                            pn_error *err)
{
    pn_str kind;
    pn_status st;
    uint32_t context = 0;
    if ((st = pn_role_str_or(host, file, PN_ROLE_ROPE_SCALING, "none", &kind, err))) return st;
    if (pn_str_is(kind, "linear")) p->scaling = PN_ROPE_LINEAR;
    else if (pn_str_is(kind, "yarn")) p->scaling = PN_ROPE_YARN;
    else if (pn_str_is(kind, "longrope")) p->scaling = PN_ROPE_LONGROPE;
    else if (!pn_str_is(kind, "none"))
        return pn_fail(err, PN_E_UNSUPPORTED,
                       "rotary scaling '%.*s' is not known; known are none, linear, yarn and longrope",
                       (int)(kind.size < 64 ? kind.size : 64), kind.data);
    if ((st = pn_role_f32_or(host, file, PN_ROLE_ROPE_FACTOR, 1.0f, 1e-3, 1e6, &p->factor, err)) ||
        (st = pn_role_f32_or(host, file, PN_ROLE_ROPE_ATTN_FACTOR, 1.0f, 1e-3, 1e3, &p->attn_factor, err)) ||
        (st = pn_role_f32_or(host, file, PN_ROLE_ROPE_BETA_FAST, 32.0f, 1e-3, 1e6, &p->beta_fast, err)) ||
        (st = pn_role_f32_or(host, file, PN_ROLE_ROPE_BETA_SLOW, 1.0f, 1e-3, 1e6, &p->beta_slow, err)) ||
        (st = pn_role_f32_or(host, file, PN_ROLE_ROPE_EXT_FACTOR, 1.0f, 0, 1, &p->ext_factor, err)) ||
        (st = pn_role_u32_or(host, file, PN_ROLE_CONTEXT_LENGTH, 0, 1, INT32_MAX, &context, err)))
        return st;
    /* A file that names no original length stretches the one it was trained for. */
    return pn_role_u32_or(host, file, PN_ROLE_ROPE_ORIG_CONTEXT, context, 1, INT32_MAX, &p->original_context, err);
}

/* Fill *p for heads of head_size elements: rotated elements, base, pairing, scaling, each checked. Errors name the
 * file's key. `pairing_of_arch`: what files of the architecture use when this one's format cannot tell (a renamed
 * architecture). */
PN_UNUSED static inline pn_status pn_rope_from_file(const pn_host *host, pn_file *file, uint32_t head_size,
                                                    const char *pairing_of_arch, pn_rope_params *p, pn_error *err)
{
    pn_str pairing;
    pn_status st;
    memset(p, 0, sizeof *p);
    p->struct_size = sizeof *p;
    p->head_size = head_size;
    if ((st = pn_role_u32_or(host, file, PN_ROLE_ROPE_DIMS, head_size, 1, head_size, &p->n_dims, err)) ||
        (st = pn_role_f32_or(host, file, PN_ROLE_ROPE_BASE, 10000.0f, 1.0, 1e12, &p->base, err)) ||
        (st = pn_role_str_or(host, file, PN_ROLE_ROPE_PAIRING, pairing_of_arch, &pairing, err)))
        return st;
    if (p->n_dims % 2)
        return pn_fail(err, PN_E_FORMAT, "%u rotated elements per head (%s) are odd; an even number is wanted",
                       (unsigned)p->n_dims, PN_ROLE_ROPE_DIMS);
    if (pn_str_is(pairing, "interleaved"))
        p->pairing = PN_ROPE_INTERLEAVED;
    else if (pn_str_is(pairing, "halves"))
        p->pairing = PN_ROPE_HALVES;
    else
        return pn_fail(err, PN_E_UNSUPPORTED, "rotary pairing '%.*s' is neither interleaved nor halves",
                       (int)(pairing.size < 64 ? pairing.size : 64), pairing.data);
    return pn_rope_scaling_from_file(host, file, p, err);
}

#ifdef __cplusplus
}
#endif
#endif
