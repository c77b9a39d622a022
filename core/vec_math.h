/* Functions of a vector, each within a few units of the last place, for any level: include after a vec_<level>.h.
 *
 * Polynomials are least-maximum fits made for this file; the errors given are relative. NaN in, NaN out.
 */
#ifndef PN_VEC_MATH_H
#define PN_VEC_MATH_H

/* e^x = 2^n e^r with |r| <= ln 2 / 2; below -104 it is 0, above 88.8 infinite, between them good down to subnormals. */
VEC vf v_exp(vf x)
{
    vf n, r, q;
    x = v_max(v_set(-120), v_min(v_set(100), x));
    n = v_round(v_mul(x, v_set(1.44269502f)));
    r = v_fnma(n, v_set(0.693147182f), x);
    r = v_fnma(n, v_set(-1.90465421e-9f), r);
    q = v_fma(v_set(0.00139261759f), r, v_set(0.00836317334f));
    q = v_fma(q, r, v_set(0.0416665561f));
    q = v_fma(q, r, v_set(0.166665778f));
    q = v_fma(q, r, v_set(0.5f));
    q = v_fma(v_mul(r, r), q, r);
    return v_scale2(v_add(v_set(1), q), n);
}

VEC vf v_tanh(vf x)
{
    vf a = v_abs(x), z = v_mul(x, x), near, far;
    near = v_fma(v_set(-0.00609671418f), z, v_set(0.0209971797f));
    near = v_fma(near, z, v_set(-0.0538509078f));
    near = v_fma(near, z, v_set(0.133327693f));
    near = v_fma(near, z, v_set(-0.333333284f));
    near = v_fma(v_mul(x, z), near, x);
    far = v_add(v_exp(v_add(a, a)), v_set(1));
    far = v_sub(v_set(1), v_div(v_set(2), far));
    return v_choose(v_less(a, v_set(0.625f)), near, v_sign_of(far, x));
}

/* x / (1 + e^-u) for a u of x's sign, given e = e^-|u|: no difference of nearly equal numbers on either side. */
VEC vf v_gate(vf x, vf e)
{
    return v_div(v_choose(v_negative(x), v_mul(x, e), x), v_add(v_set(1), e));
}

VEC vf v_silu(vf x)
{
    return v_gate(x, v_exp(v_sub(v_zero(), v_abs(x))));
}

/* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) = x / (1 + e^-u), u = a (c0 + c1 a^2): every step with what its
 * rounding lost (Knuth's sum, products by fma), as the tail e^-u multiplies u's error by u. */
VEC vf v_gelu_tanh(vf x)
{
    vf c0 = v_set(1.59576917f), c0_low = v_set(-4.53406805e-8f);
    vf c1 = v_set(0.0713548139f), c1_low = v_set(2.39883247e-9f);
    vf a = v_min(v_set(30), v_abs(x)), a2 = v_mul(a, a), a2_low = v_fms(a, a, a2);
    vf p = v_mul(c1, a2), p_low = v_fms(c1, a2, p);
    vf w = v_add(p, c0), c0_part = v_sub(w, p), w_low = v_add(v_sub(p, v_sub(w, c0_part)), v_sub(c0, c0_part));
    vf u = v_mul(a, w), u_low = v_fms(a, w, u), e;
    p_low = v_add(p_low, v_fma(c1, a2_low, v_fma(c1_low, a2, c0_low)));
    u_low = v_fma(a, v_add(w_low, p_low), u_low);
    e = v_exp(v_sub(v_zero(), u));
    return v_gate(x, v_fnma(e, u_low, e));
}

/* x Phi(x), Phi the normal distribution: Phi(-a) = e^(-a^2/2) P(1 / (1 + 0.3 a)), P within 3e-8. */
VEC vf v_gelu_erf(vf x)
{
    vf a = v_min(v_set(20), v_abs(x)), s = v_mul(a, a), s_low = v_fms(a, a, s);
    vf t = v_div(v_set(1), v_fma(v_set(0.3f), a, v_set(1))), p, e;
    p = v_fma(v_set(-0.0181098413f), t, v_set(0.0978072062f));
    p = v_fma(p, t, v_set(-0.190933481f));
    p = v_fma(p, t, v_set(0.137111589f));
    p = v_fma(p, t, v_set(-0.0284376238f));
    p = v_fma(p, t, v_set(0.0646336004f));
    p = v_fma(p, t, v_set(0.0914480239f));
    p = v_fma(p, t, v_set(0.106663562f));
    p = v_fma(p, t, v_set(0.120188251f));
    p = v_fma(p, t, v_set(0.119626142f));
    p = v_fma(p, t, v_set(2.56884346e-6f));
    e = v_exp(v_mul(v_set(-0.5f), s));
    e = v_fnma(e, v_mul(v_set(0.5f), s_low), e);
    p = v_mul(p, e);
    return v_mul(x, v_choose(v_negative(x), p, v_sub(v_set(1), p)));
}

/* NaN stays, as 0 is only taken where x < 0. */
VEC vf v_relu(vf x)
{
    return v_max(v_zero(), x);
}

#endif
