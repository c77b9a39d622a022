/* checkasm: random numbers, inputs, guarded memory, and the packings' meaning. */
#include "checkasm.h"

#include <math.h>
#include <pantheon/kit/pack.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- random numbers
 * --------------------------------------------------------------------------------------------------- */

ca_rng ca_rng_of(const char *what, uint64_t salt)
{
    ca_rng r = {ca.seed * UINT64_C(0x9e3779b97f4a7c15) ^ salt};
    for (; *what; what++) r.state = (r.state ^ (uint8_t)*what) * UINT64_C(0x100000001b3);
    ca_next(&r);
    return r;
}

/* splitmix64 */
uint64_t ca_next(ca_rng *r)
{
    uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

size_t ca_below(ca_rng *r, size_t n)
{
    return (size_t)(ca_next(r) % n);
}

float ca_unit(ca_rng *r)
{
    return (float)((double)(ca_next(r) >> 11) * (2.0 / 9007199254740992.0) - 1.0);
}

float ca_normal(ca_rng *r)
{
    float s = 0;
    for (int i = 0; i < 6; i++) s += ca_unit(r);
    return s * 0.7071f;
}

const char *const ca_inputs[CA_INPUTS] = {"random", "near-zero", "tiny", "near-max", "outlier", "all-zero"};

/* near-max: every element at one end of what integers hold, most with one sign, so that integer sums reach their
 * bounds. */
void ca_fill(ca_rng *r, int input, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) switch (input) {
        case CA_NEAR_ZERO: x[i] = ca_unit(r) * 1e-20f; break;
        case CA_TINY: x[i] = ca_unit(r) * (ca_below(r, 2) ? 1e-30f : 1e-38f); break;
        case CA_NEAR_MAX: x[i] = ca_below(r, 16) ? 1e25f : -1e25f; break;
        case CA_ZERO: x[i] = 0; break;
        default: x[i] = ca_normal(r);
        }
    if (input == CA_OUTLIER) x[ca_below(r, n)] = 3e5f;
}

/* ---- memory
 * ------------------------------------------------------------------------------------------------------------ */

#define MARGIN 0xa7

ca_block ca_alloc(size_t size, size_t align, bool front)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (size + align + page - 1) / page * page;
    ca_block b = {NULL, size, NULL, room + 2 * page};
    b.pages = mmap(NULL, b.page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b.pages == MAP_FAILED || mprotect(b.pages, page, PROT_NONE) ||
        mprotect(b.pages + page + room, page, PROT_NONE)) {
        perror("checkasm: no memory");
        exit(2);
    }
    memset(b.pages + page, MARGIN, room);
    b.data = front ? b.pages + page : b.pages + page + (room - size) / align * align;
    return b;
}

bool ca_release(ca_block *b)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const uint8_t *end = b->pages + b->page_bytes - page;
    bool clean = true;
    for (const uint8_t *p = b->pages + page; p < end; p++)
        clean = clean && ((p >= b->data && p < b->data + b->size) || *p == MARGIN);
    munmap(b->pages, b->page_bytes);
    return clean;
}

/* ---- packings
 * ----------------------------------------------------------------------------------------------------------- */

static void expand_f32(const void *packed, size_t cols, double *x)
{
    const float *p = packed;
    for (size_t k = 0; k < cols; k++) x[k] = (double)p[k];
}

static void expand_i16(const void *packed, size_t cols, double *x)
{
    const pn_i16_layout l = pn_i16_layout_of(cols);
    const uint8_t *p = packed;
    const float *scale = (const float *)(const void *)(p + l.scale);
    const int16_t *q = (const int16_t *)(const void *)(p + l.q);
    for (size_t k = 0; k < cols; k++) x[k] = (double)scale[k / PN_I16_CHUNK] * q[pn_i16_place(k)];
}

static void expand_i8(const void *packed, size_t cols, double *x)
{
    const pn_i8_chunk *c = packed;
    for (size_t k = 0; k < cols; k++) x[k] = (double)c[k / 256].scale[k % 256 / 32] * c[k / 256].q[k % 256];
}

ca_expand_fn ca_expand(const char *packing)
{
    return !strcmp(packing, "f32")   ? expand_f32
           : !strcmp(packing, "i16") ? expand_i16
           : !strcmp(packing, "i8")  ? expand_i8
                                     : NULL;
}

/* ---- weights
 * ------------------------------------------------------------------------------------------------------------ */

size_t ca_row_bytes(const pn_quant *q, size_t cols)
{
    return q->row_bytes ? (size_t)q->row_bytes(cols) : cols / q->block_elems * q->block_bytes;
}

/* One block of random bytes whose values are neither infinite nor so large or small that others do not matter. */
static bool raw_block(ca_rng *r, const pn_quant *q, uint8_t *block, float *x)
{
    for (int attempt = 0; attempt < 20000; attempt++) {
        float largest = 0;
        bool finite = true;
        for (size_t i = 0; i < q->block_bytes; i++) block[i] = (uint8_t)ca_next(r);
        if (attempt > 1000) { /* wide integers: rarely of moderate size unless their high bytes are all alike */
            const size_t from = ca_below(r, q->block_bytes);
            memset(block + from, ca_below(r, 2) ? 0 : 0xff, q->block_bytes - from);
        }
        q->dequantize(block, x, q->block_elems);
        for (size_t i = 0; i < q->block_elems; i++) {
            finite = finite && isfinite(x[i]);
            largest = fmaxf(largest, fabsf(x[i]));
        }
        if (finite && largest < 1e4f && (largest > 1e-4f || !ca_below(r, 50))) return true;
    }
    return false;
}

bool ca_weights(ca_rng *r, const pn_quant *q, bool raw, uint8_t *row, size_t n)
{
    float *x = malloc((n + q->block_elems) * sizeof *x);
    bool good = true;
    if (!raw && q->quantize) {
        for (size_t i = 0; i < n; i++) x[i] = ca_normal(r);
        good = q->quantize(x, NULL, row, n, NULL) == PN_OK;
    } else {
        for (size_t i = 0; i < n && good; i += q->block_elems)
            good = raw_block(r, q, row + i / q->block_elems * q->block_bytes, x);
    }
    free(x);
    return good;
}
