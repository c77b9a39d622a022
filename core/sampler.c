/* The sampler: from logits to a token.
 *
 * The same seed, options and logits give the same tokens on every machine: the random numbers are made here
 * (xoshiro256** by Blackman and Vigna, arXiv:1805.01407, seeded by splitmix64), so is e^x (additions and
 * multiplications of doubles alone, no library function, no fused operations), and every sum runs in a fixed order. */
#include <float.h>
#include <math.h>
#include <sys/random.h>
#include <time.h>

#include "alloc.h"
#include "config.h"

typedef struct candidate {
    float logit;
    int32_t id;
} candidate;

struct pn_sampler {
    pn_sampler_options o;
    int32_t n_vocab;
    int32_t *bias_ids;
    float *bias_values;
    float *logits;              /* [n_vocab]: with bias and penalty */
    candidate *candidates;      /* [n_vocab] */
    int32_t *recent;            /* ring of [o.repeat_last]; NULL when there is no penalty */
    int32_t n_recent, next_recent;
    uint32_t *stamps;           /* [n_vocab]: the call in which the token was last penalized */
    uint32_t stamp;
    uint64_t rng[4];
};

/* ---- random numbers ---------------------------------------------------------------------------------------------- */

static uint64_t rotate(uint64_t x, int k)
{
    return x << k | x >> (64 - k);
}

static void rng_seed(uint64_t rng[4], uint64_t seed)
{
    int i;
    for (i = 0; i < 4; i++) {
        uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        rng[i] = z ^ z >> 31;
    }
}

static uint64_t rng_next(uint64_t s[4])
{
    uint64_t result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

/* 0 <= u < 1, all 53 bits. */
static double rng_unit(uint64_t s[4])
{
    return (double)(rng_next(s) >> 11) * 0x1p-53;
}

/* Below 2^63, so that it can be given back as [sampling] seed. */
static uint64_t system_seed(void)
{
    uint64_t seed;
    struct timespec now;
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed) {
        clock_gettime(CLOCK_REALTIME, &now);
        seed = (uint64_t)now.tv_sec * 1000000007 ^ (uint64_t)now.tv_nsec;
    }
    return seed >> 1;
}

/* ---- e^x --------------------------------------------------------------------------------------------------------- */

/* e^x for x <= 0, to a few units in the last place: x = k ln 2 + r, |r| <= ln 2 / 2, Taylor series in r, times 2^k. */
static double exp_fixed(double x)
{
    static const double inverse[] = { 1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0,
                                      1.0 / 362880.0,     1.0 / 40320.0,     1.0 / 5040.0,     1.0 / 720.0,
                                      1.0 / 120.0,        1.0 / 24.0,        1.0 / 6.0,        0.5,
                                      1.0,                1.0 };
    double r, sum = 0;
    int k;
    size_t i;
    union {
        uint64_t bits;
        double value;
    } power;
    if (!(x > -708))
        return 0;
    k = -(int)(0.5 - x * 1.4426950408889634);
    r = x - k * 0x1.62e42fefap-1;       /* ln 2 in two parts; the product with the first is exact */
    r -= k * 0x1.cf79abc9e3b39p-40;
    for (i = 0; i < sizeof inverse / sizeof *inverse; i++)
        sum = sum * r + inverse[i];
    power.bits = (uint64_t)(1023 + k) << 52;
    return sum * power.value;
}

/* ---- making one -------------------------------------------------------------------------------------------------- */

static pn_status check(const pn_sampler_options *o, int32_t n_vocab, pn_error *err)
{
    size_t i;
    if (n_vocab < 1)
        return pn_fail(err, PN_E_ARGUMENT, "a sampler needs a vocabulary, not one of %d tokens", (int)n_vocab);
    if (!(o->temperature >= 0 && o->temperature <= FLT_MAX))
        return pn_fail(err, PN_E_RANGE, "temperature is %g; it must be 0 or more", (double)o->temperature);
    if (o->top_k < 0)
        return pn_fail(err, PN_E_RANGE, "top_k is %d; it must be 0 (off) or more", (int)o->top_k);
    if (!(o->top_p >= 0 && o->top_p <= 1))
        return pn_fail(err, PN_E_RANGE, "top_p is %g; it must be from 0 to 1", (double)o->top_p);
    if (!(o->min_p >= 0 && o->min_p <= 1))
        return pn_fail(err, PN_E_RANGE, "min_p is %g; it must be from 0 to 1", (double)o->min_p);
    if (!(o->repeat_penalty >= 0 && o->repeat_penalty <= FLT_MAX))
        return pn_fail(err, PN_E_RANGE, "repeat_penalty is %g; it must be 0 (off) or more", (double)o->repeat_penalty);
    if (o->repeat_last < 0)
        return pn_fail(err, PN_E_RANGE, "repeat_last is %d; it must be 0 (meaning 64) or more", (int)o->repeat_last);
    for (i = 0; i < o->n_bias; i++)
        if (o->bias_ids[i] < 0 || o->bias_ids[i] >= n_vocab || isnan(o->bias_values[i]))
            return pn_fail(err, PN_E_RANGE, "a bias of %g for token %d: the vocabulary has 0 .. %d",
                           (double)o->bias_values[i], (int)o->bias_ids[i], (int)n_vocab - 1);
    return PN_OK;
}

static int penalizes(const pn_sampler_options *o)
{
    return o->repeat_penalty > 0 && o->repeat_penalty != 1;
}

static pn_status take_memory(pn_sampler *s, pn_error *err)
{
    size_t n = (size_t)s->n_vocab, n_bias = s->o.n_bias;
    s->logits = pn_calloc(n, sizeof *s->logits);
    s->candidates = pn_calloc(n, sizeof *s->candidates);
    s->bias_ids = pn_calloc(n_bias, sizeof *s->bias_ids);
    s->bias_values = pn_calloc(n_bias, sizeof *s->bias_values);
    if (penalizes(&s->o)) {
        s->recent = pn_calloc((size_t)s->o.repeat_last, sizeof *s->recent);
        s->stamps = pn_calloc(n, sizeof *s->stamps);
    }
    if (!s->logits || !s->candidates || !s->bias_ids || !s->bias_values ||
        (penalizes(&s->o) && (!s->recent || !s->stamps)))
        return pn_fail(err, PN_E_NOMEM, "no memory for a sampler of %d tokens", (int)s->n_vocab);
    if (n_bias) {
        memcpy(s->bias_ids, s->o.bias_ids, n_bias * sizeof *s->bias_ids);
        memcpy(s->bias_values, s->o.bias_values, n_bias * sizeof *s->bias_values);
    }
    return PN_OK;
}

pn_status pn_sampler_create(int32_t n_vocab, const pn_sampler_options *options, pn_sampler **out, pn_error *err)
{
    pn_sampler_options o = PN_OPTIONS_INIT(pn_sampler_options);
    pn_sampler *s;
    pn_status status;
    if (options)
        memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
    o.struct_size = sizeof o;
    status = check(&o, n_vocab, err);
    if (status)
        return status;
    s = pn_calloc(1, sizeof *s);
    if (!s)
        return pn_fail(err, PN_E_NOMEM, "no memory for a sampler");
    if (!o.repeat_last)
        o.repeat_last = 64;
    s->o = o;
    s->n_vocab = n_vocab;
    status = take_memory(s, err);
    if (status) {
        pn_sampler_destroy(s);
        return status;
    }
    s->o.bias_ids = s->bias_ids;
    s->o.bias_values = s->bias_values;
    if (!o.has_seed)
        s->o.seed = system_seed();
    rng_seed(s->rng, s->o.seed);
    *out = s;
    return PN_OK;
}

pn_status pn_sampler_options_from(const pn_config *config, pn_sampler_options *out, pn_error *err)
{
    pn_sampler_options o = PN_OPTIONS_INIT(pn_sampler_options);
    const char *seed = pn_config_text(config, "sampling", "seed");
    (void)err;
    o.temperature = (float)pn_config_float(config, "sampling", "temperature");
    o.top_k = (int32_t)pn_config_int(config, "sampling", "top_k");
    o.top_p = (float)pn_config_float(config, "sampling", "top_p");
    o.min_p = (float)pn_config_float(config, "sampling", "min_p");
    o.repeat_penalty = (float)pn_config_float(config, "sampling", "repeat_penalty");
    o.repeat_last = (int32_t)pn_config_int(config, "sampling", "repeat_last");
    if (seed && *seed) {
        o.has_seed = 1;
        o.seed = (uint64_t)pn_config_int(config, "sampling", "seed");
    }
    o.n_bias = pn_config_bias(config, &o.bias_ids, &o.bias_values);
    *out = o;
    return PN_OK;
}

void pn_sampler_destroy(pn_sampler *s)
{
    if (!s)
        return;
    pn_free(s->logits);
    pn_free(s->candidates);
    pn_free(s->bias_ids);
    pn_free(s->bias_values);
    pn_free(s->recent);
    pn_free(s->stamps);
    pn_free(s);
}

uint64_t pn_sampler_seed(const pn_sampler *s)
{
    return s->o.seed;
}

/* ---- bias and penalty -------------------------------------------------------------------------------------------- */

/* What overflows stays the largest number there is; a logit that is not finite is never chosen. */
static float bounded(float x)
{
    return x > FLT_MAX ? FLT_MAX : x < -FLT_MAX ? -FLT_MAX : x;
}

static void penalize(pn_sampler *s)
{
    int32_t i;
    if (!s->recent)
        return;
    if (!++s->stamp) {
        memset(s->stamps, 0, (size_t)s->n_vocab * sizeof *s->stamps);
        s->stamp = 1;
    }
    for (i = 0; i < s->n_recent; i++) {
        int32_t id = s->recent[i];
        float x = s->logits[id];
        if (s->stamps[id] == s->stamp || !isfinite(x))
            continue;
        s->stamps[id] = s->stamp;
        s->logits[id] = bounded(x > 0 ? x / s->o.repeat_penalty : x * s->o.repeat_penalty);
    }
}

static void adjust(pn_sampler *s, const float *logits)
{
    size_t i;
    memcpy(s->logits, logits, (size_t)s->n_vocab * sizeof *logits);
    for (i = 0; i < s->o.n_bias; i++) {
        int32_t id = s->bias_ids[i];
        if (s->bias_values[i] == -INFINITY)
            s->logits[id] = -INFINITY;
        else if (isfinite(s->logits[id]))
            s->logits[id] = bounded(s->logits[id] + s->bias_values[i]);
    }
    penalize(s);
}

void pn_sampler_accept(pn_sampler *s, int32_t token)
{
    if (!s->recent || token < 0 || token >= s->n_vocab)
        return;
    s->recent[s->next_recent] = token;
    s->next_recent = s->next_recent + 1 == s->o.repeat_last ? 0 : s->next_recent + 1;
    if (s->n_recent < s->o.repeat_last)
        s->n_recent++;
}

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

/* Does a come before b? By logit, the lower id among equals. */
static int before(candidate a, candidate b)
{
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

static void heap_down(candidate *heap, size_t n, size_t i)
{
    candidate moving = heap[i];
    size_t child;
    while ((child = i * 2 + 1) < n) {
        if (child + 1 < n && before(heap[child + 1], heap[child]))
            child++;
        if (!before(heap[child], moving))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = moving;
}

/* The candidates as a heap of which only the best are taken out, to the end of the array: the j-th best becomes item
 * n - 1 - j. */
typedef struct ranking {
    candidate *items;
    size_t n, taken;
} ranking;

static void rank_begin(ranking *r)
{
    size_t i;
    for (i = r->n / 2; i-- > 0;)
        heap_down(r->items, r->n, i);
}

static candidate rank_take(ranking *r)
{
    size_t last = r->n - 1 - r->taken;
    candidate best = r->items[0];
    r->items[0] = r->items[last];
    r->items[last] = best;
    r->taken++;
    heap_down(r->items, last, 0);
    return best;
}

static double weight(candidate c, float best)
{
    return exp_fixed((double)c.logit - (double)best);
}

/* The finite logits by id; returns their number. */
static size_t gather(pn_sampler *s, candidate *best)
{
    size_t n = 0;
    int32_t i;
    for (i = 0; i < s->n_vocab; i++)
        if (isfinite(s->logits[i])) {
            candidate c = { s->logits[i], i };
            if (!n || c.logit > best->logit)
                *best = c;
            s->candidates[n++] = c;
        }
    return n;
}

/* Applies top-k, top-p and min-p; what stays is items[0 .. n). */
static size_t shorten(pn_sampler *s, size_t n, float best, candidate **items)
{
    const pn_sampler_options *o = &s->o;
    size_t limit = o->top_k > 0 && (size_t)o->top_k < n ? (size_t)o->top_k : n, i, kept = 0;
    ranking r = { s->candidates, n, 0 };
    double total = 0, sum = 0;
    int top_p = o->top_p > 0 && o->top_p < 1;
    *items = s->candidates;
    if (limit == n && !top_p) {
        for (i = 0; i < n; i++)
            if (!(o->min_p > 0) || weight(s->candidates[i], best) >= (double)o->min_p)
                s->candidates[kept++] = s->candidates[i];
        return kept;
    }
    if (top_p && limit == n)
        for (i = 0; i < n; i++)
            total += weight(s->candidates[i], best);
    rank_begin(&r);
    if (limit < n)
        for (i = 0; i < limit; i++)
            total += weight(rank_take(&r), best);
    while (kept < limit) {
        double w = weight(kept < r.taken ? r.items[n - 1 - kept] : rank_take(&r), best);
        if (kept && ((top_p && sum >= (double)o->top_p * total) || (o->min_p > 0 && w < (double)o->min_p)))
            break;
        sum += w;
        kept++;
    }
    *items = s->candidates + n - kept;
    return kept;
}

static int32_t draw(pn_sampler *s, const candidate *items, size_t n, float best)
{
    double t = (double)s->o.temperature, total = 0, at, sum = 0;
    size_t i, last = 0;
    for (i = 0; i < n; i++)
        total += exp_fixed(((double)items[i].logit - (double)best) / t);
    at = rng_unit(s->rng) * total;
    for (i = 0; i < n; i++) {
        double w = exp_fixed(((double)items[i].logit - (double)best) / t);
        if (!(w > 0))
            continue;
        last = i;
        sum += w;
        if (sum > at)
            break;
    }
    return items[last].id;
}

pn_status pn_sampler_sample(pn_sampler *s, const float *logits, int32_t *token, pn_error *err)
{
    candidate best = { 0, 0 }, *items;
    size_t n;
    adjust(s, logits);
    n = gather(s, &best);
    if (!n)
        return pn_fail(err, PN_E_ARGUMENT, "none of the %d logits is a finite number: there is no token to choose",
                       (int)s->n_vocab);
    if (s->o.temperature > 0) {
        n = shorten(s, n, best.logit, &items);
        best.id = draw(s, items, n, best.logit);
    }
    *token = best.id;
    pn_sampler_accept(s, *token);
    return PN_OK;
}
