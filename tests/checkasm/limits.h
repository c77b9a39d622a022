/* What one core can do: billions of multiply-adds a second, by independent chains in registers. */
#ifndef CHECKASM_LIMITS_H
#define CHECKASM_LIMITS_H

double pn_limit_i16_avx2(void);
double pn_limit_f32_avx2(void);
double pn_limit_i16_avx512(void);
double pn_limit_f32_avx512(void);

#endif
