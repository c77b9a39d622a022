/* Limits of one core: CHAINS independent chains, as many as the kernels have. Included after a vector layer by
 * limits_*.c. */
#include "limits.h"
#include <time.h>

#define ROUNDS 2000000

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The compiler may not see through it. */
#define HIDE(x) __asm__ volatile("" : "+v"(x))

static double limit_i16(void)
{
    double best = 0;
    for (int run = 0; run < 5; run++) {
        pn_vi a[CHAINS], x = pn_v_set32(3), y = pn_v_set32(5);
        double begin = seconds(), speed;
        PN_UNROLL
        for (int i = 0; i < CHAINS; i++) {
            a[i] = pn_v_zero();
            HIDE(a[i]);
        }
        for (int k = 0; k < ROUNDS; k++) {
            PN_UNROLL
            for (int i = 0; i < CHAINS; i++) {
                HIDE(x);
                a[i] = pn_v_dot16(a[i], x, y);
            }
        }
        PN_UNROLL
        for (int i = 0; i < CHAINS; i++) HIDE(a[i]);
        speed = 2.0 * PN_LANES * CHAINS * ROUNDS / (seconds() - begin) * 1e-9;
        best = speed > best ? speed : best;
    }
    return best;
}

static double limit_f32(void)
{
    double best = 0;
    for (int run = 0; run < 5; run++) {
        pn_vf a[CHAINS], x = pn_v_set_f(0.5f), y = pn_v_set_f(0.25f);
        double begin = seconds(), speed;
        PN_UNROLL
        for (int i = 0; i < CHAINS; i++) {
            a[i] = pn_v_zero_f();
            HIDE(a[i]);
        }
        for (int k = 0; k < ROUNDS; k++) {
            PN_UNROLL
            for (int i = 0; i < CHAINS; i++) {
                HIDE(x);
                a[i] = pn_v_fma(x, y, a[i]);
            }
        }
        PN_UNROLL
        for (int i = 0; i < CHAINS; i++) HIDE(a[i]);
        speed = 1.0 * PN_LANES * CHAINS * ROUNDS / (seconds() - begin) * 1e-9;
        best = speed > best ? speed : best;
    }
    return best;
}
