/* What the files of checkasm share: random numbers, guarded memory, inputs, and how a check reports. */
#ifndef CHECKASM_H
#define CHECKASM_H

#include <pantheon/pantheon.h>
#include <stdbool.h>

/* ---- reporting ------------------------------------------------------------------------------------------------------
 */

/* Begin the check NAME; ca_end prints `ok - NAME` or `not ok - NAME` and counts it. */
void ca_begin(const char *format, ...) PN_PRINTF(1, 2);
void ca_end(void);
/* The check failed: say with what parameters. The first few of a check are printed. Returns false. */
bool ca_fail(const char *format, ...) PN_PRINTF(1, 2);
/* What is being called, printed when it faults. */
void ca_doing(const char *format, ...) PN_PRINTF(1, 2);
bool ca_failed(void);

/* ---- random numbers
 * --------------------------------------------------------------------------------------------------- */

/* Numbers that depend on the seed and the texts alone, so that one check can be repeated without those before it. */
typedef struct ca_rng {
    uint64_t state;
} ca_rng;

ca_rng ca_rng_of(const char *what, uint64_t salt);
uint64_t ca_next(ca_rng *r);
size_t ca_below(ca_rng *r, size_t n);
float ca_unit(ca_rng *r);   /* -1 .. 1 */
float ca_normal(ca_rng *r); /* about normal, deviation 1 */

enum { CA_RANDOM, CA_NEAR_ZERO, CA_TINY, CA_NEAR_MAX, CA_OUTLIER, CA_ZERO, CA_INPUTS };
extern const char *const ca_inputs[CA_INPUTS];
void ca_fill(ca_rng *r, int input, float *x, size_t n);

/* ---- memory
 * ------------------------------------------------------------------------------------------------------------ */

/* A block that ends where a forbidden page begins (front: begins where one ends), so that a read past it faults. Its
 * other side has a margin of known bytes. */
typedef struct ca_block {
    uint8_t *data;
    size_t size;
    uint8_t *pages;
    size_t page_bytes;
} ca_block;

/* `align`: a power of two; the margin between the end and the forbidden page is below it. */
ca_block ca_alloc(size_t size, size_t align, bool front);
/* Frees it; false when a byte around it was written. */
bool ca_release(ca_block *b);

/* ---- the registry
 * -------------------------------------------------------------------------------------------------------- */

typedef struct ca_set {
    pn_runtime *runtime;
    const char *filter; /* only names that contain it; "" = all */
    uint64_t seed;
} ca_set;
extern ca_set ca;

/* The usable packing that kernels of this name get, or NULL. */
const pn_packing *ca_packing(const char *name);
/* Is the kernel in C of the same type and packing; NULL when there is none. */
const pn_kernel *ca_c_kernel(const pn_kernel *k);

/* The values that a packed column stands for, by the packing's name; NULL when this program has no test of it. */
typedef void (*ca_expand_fn)(const void *packed, size_t cols, double *x);
ca_expand_fn ca_expand(const char *packing);

/* Fill n elements (whole blocks) with weights: `raw` = random bytes that dequantize to numbers of moderate size. False
 * when the type cannot. */
bool ca_weights(ca_rng *r, const pn_quant *q, bool raw, uint8_t *row, size_t n);
size_t ca_row_bytes(const pn_quant *q, size_t cols);

/* The checks of one registered thing, and the timings. */
void ca_check_quant(const pn_quant *q);
void ca_check_packing(const pn_packing *p);
void ca_check_kernel(const pn_kernel *k);
void ca_bench_kernels(void);

#endif
