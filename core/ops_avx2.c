/* The table of operations at the AVX2+FMA level. */
#include "vec_avx2.h"

#define PN_OPS_TABLE pn_ops_avx2
#define PN_OPS_LEVEL "avx2"
#define PN_OPS_FEATURES PN_LEVEL_AVX2

#include "ops_vec.h"
