/* Attention over the KV cache for a tile of tokens and the query heads that share a kv head.
 *
 * Each chunk of PN_CHUNK_KEYS positions has its own running softmax; chunks are joined in ascending order. The cut
 * depends on positions alone, so a query's result is the same however tokens are batched or work is shared out. */
#include "alloc.h"
#include "exec.h"

#include <math.h>

#define PN_QUERIES 64 /* (token, head) pairs handled together */

typedef struct softmax_state {
    float m[PN_QUERIES], l[PN_QUERIES];
    float *acc; /* [PN_QUERIES][dv] */
} softmax_state;

typedef struct work_area {
    softmax_state chunk, total;
    const float *q[PN_QUERIES], *active_q[PN_QUERIES];
    float *active_acc[PN_QUERIES];
    float active_m[PN_QUERIES], active_l[PN_QUERIES];
    int32_t first[PN_QUERIES], last[PN_QUERIES]; /* positions seen, both inclusive */
    uint8_t begin[PN_QUERIES], end[PN_QUERIES];
    uint32_t active[PN_QUERIES];
    float *unpacked; /* keys and values of a cache type that needs it */
} work_area;

size_t pn_exec_attention_scratch(const pn_kv *kv)
{
    size_t widest = 0;
    for (uint32_t i = 0; i < kv->n_layers; i++)
        if (kv->layers[i].value_size > widest) widest = kv->layers[i].value_size;
    return pn_round64(sizeof(work_area)) + 2 * pn_round64(PN_QUERIES * widest * sizeof(float)) +
           pn_kv_scratch(kv) * sizeof(float);
}

/* One block of keys for the queries of the area that see any of it. */
static void attend_block(const pn_exec *ex, const pn_plan_node *node, work_area *w, uint32_t n, int32_t sequence,
                         int32_t block, uint32_t kv_head)
{
    const pn_attention_params *p = &node->p.attention;
    int32_t base = block * PN_KV_BLOCK;
    uint32_t n_active = 0;
    size_t end = 0;
    for (uint32_t i = 0; i < n; i++) {
        int32_t b = w->first[i] > base ? w->first[i] - base : 0;
        int32_t e = w->last[i] < base + PN_KV_BLOCK - 1 ? w->last[i] - base + 1 : PN_KV_BLOCK;
        if (b >= e) continue;
        w->begin[n_active] = (uint8_t)b;
        w->end[n_active] = (uint8_t)e;
        end = (size_t)e > end ? (size_t)e : end;
        w->active_q[n_active] = w->q[i];
        w->active_acc[n_active] = w->chunk.acc + (size_t)i * p->value_size;
        w->active_m[n_active] = w->chunk.m[i];
        w->active_l[n_active] = w->chunk.l[i];
        w->active[n_active++] = i;
    }
    if (!n_active) return;
    pn_kv_view view = pn_kv_look(ex->kv, node->cache, sequence, block, kv_head, end, w->unpacked);
    pn_attend a = {.k = view.k,
                   .v = view.v,
                   .d = p->key_size,
                   .dv = p->value_size,
                   .n = n_active,
                   .q = w->active_q,
                   .begin = w->begin,
                   .end = w->end,
                   .m = w->active_m,
                   .l = w->active_l,
                   .acc = w->active_acc,
                   .scale = p->scale,
                   .softcap = p->softcap};
    (ex->kv->half ? ex->ops->attend_f16 : ex->ops->attend_f32)(&a);
    for (uint32_t i = 0; i < n_active; i++) {
        w->chunk.m[w->active[i]] = w->active_m[i];
        w->chunk.l[w->active[i]] = w->active_l[i];
    }
}

/* Join the chunk into the total: both are unnormalized softmax sums with their own maximum. */
static void join(const pn_exec *ex, work_area *w, uint32_t n, uint32_t dv)
{
    for (uint32_t i = 0; i < n; i++) {
        float *t = w->total.acc + (size_t)i * dv, *c = w->chunk.acc + (size_t)i * dv;
        if (w->chunk.l[i] == 0) continue;
        if (w->total.l[i] == 0) {
            memcpy(t, c, dv * sizeof *t);
            w->total.m[i] = w->chunk.m[i];
            w->total.l[i] = w->chunk.l[i];
            continue;
        }
        float m = w->total.m[i] > w->chunk.m[i] ? w->total.m[i] : w->chunk.m[i];
        float a = expf(w->total.m[i] - m), b = expf(w->chunk.m[i] - m);
        ex->ops->scale(t, a, dv, t);
        ex->ops->scale(c, b, dv, c);
        ex->ops->add(t, c, dv, t);
        w->total.l[i] = w->total.l[i] * a + w->chunk.l[i] * b;
        w->total.m[i] = m;
    }
}

static void reset(softmax_state *s, uint32_t n, uint32_t dv)
{
    for (uint32_t i = 0; i < n; i++) {
        s->m[i] = -INFINITY;
        s->l[i] = 0;
    }
    memset(s->acc, 0, (size_t)n * dv * sizeof(float));
}

/* ---- a tile ------------------------------------------------------------------------------------------------------ */

/* Some of the (token, head) pairs of a tile and kv head, and the keys they see. */
typedef struct pairs {
    uint32_t first_token, group, kv_head, begin, n;
    int32_t first_key, last_key, sequence;
} pairs;

static work_area *area(void *scratch, uint32_t dv)
{
    work_area *w = scratch;
    w->chunk.acc = (float *)(void *)((unsigned char *)scratch + pn_round64(sizeof *w));
    w->total.acc = w->chunk.acc + pn_round64(PN_QUERIES * dv * sizeof(float)) / sizeof(float);
    w->unpacked = w->total.acc + pn_round64(PN_QUERIES * dv * sizeof(float)) / sizeof(float);
    return w;
}

static uint32_t token_of(const pairs *p, uint32_t i)
{
    return p->first_token + (p->begin + i) / p->group;
}
static uint32_t head_of(const pairs *p, uint32_t i)
{
    return p->kv_head * p->group + (p->begin + i) % p->group;
}

/* The pairs from `begin` on, as many as fit; 0 when none is left. */
static uint32_t take_pairs(const pn_exec *ex, const pn_plan_node *node, uint32_t tile, uint32_t kv_head, uint32_t begin,
                           work_area *w, pairs *out)
{
    const pn_attention_params *p = &node->p.attention;
    const pn_tile *t = &ex->tiles[tile];
    uint32_t all = t->n * (p->n_heads / p->n_kv_heads), left = all > begin ? all - begin : 0;
    *out = (pairs){.first_token = t->first,
                   .group = p->n_heads / p->n_kv_heads,
                   .kv_head = kv_head,
                   .begin = begin,
                   .n = left < PN_QUERIES ? left : PN_QUERIES,
                   .first_key = INT32_MAX,
                   .sequence = ex->sequences[t->first]};
    for (uint32_t i = 0; i < out->n; i++) {
        int32_t position = ex->positions[token_of(out, i)];
        w->q[i] = pn_exec_row(ex, node->inputs[0], token_of(out, i)) + (size_t)head_of(out, i) * p->key_size;
        w->last[i] = position;
        w->first[i] = p->window && (uint32_t)position >= p->window ? position - (int32_t)p->window + 1 : 0;
        out->first_key = w->first[i] < out->first_key ? w->first[i] : out->first_key;
        out->last_key = position > out->last_key ? position : out->last_key;
    }
    return out->n;
}

/* The chunk's own softmax of every pair, in w->chunk. */
static void attend_chunk(const pn_exec *ex, const pn_plan_node *node, work_area *w, const pairs *p, int32_t chunk)
{
    int32_t block = chunk * (PN_CHUNK_KEYS / PN_KV_BLOCK), stop = block + PN_CHUNK_KEYS / PN_KV_BLOCK;
    reset(&w->chunk, p->n, node->p.attention.value_size);
    if (block < p->first_key / PN_KV_BLOCK) block = p->first_key / PN_KV_BLOCK;
    for (; block < stop && block <= p->last_key / PN_KV_BLOCK; block++)
        attend_block(ex, node, w, p->n, p->sequence, block, p->kv_head);
}

static void finish(const pn_exec *ex, const pn_plan_node *node, work_area *w, const pairs *p)
{
    uint32_t dv = node->p.attention.value_size;
    for (uint32_t i = 0; i < p->n; i++) {
        float *out = pn_exec_row(ex, node->output, token_of(p, i)) + (size_t)head_of(p, i) * dv;
        ex->ops->scale(w->total.acc + (size_t)i * dv, 1.0f / w->total.l[i], dv, out);
    }
}

void pn_exec_attention(const pn_exec *ex, const pn_plan_node *node, uint32_t tile, uint32_t kv_head, void *scratch)
{
    uint32_t dv = node->p.attention.value_size;
    work_area *w = area(scratch, dv);
    pairs p;
    for (uint32_t done = 0; take_pairs(ex, node, tile, kv_head, done, w, &p); done += p.n) {
        reset(&w->total, p.n, dv);
        for (int32_t chunk = p.first_key / PN_CHUNK_KEYS; chunk <= p.last_key / PN_CHUNK_KEYS; chunk++) {
            attend_chunk(ex, node, w, &p, chunk);
            join(ex, w, p.n, dv);
        }
        finish(ex, node, w, &p);
    }
}

/* ---- one chunk of it, when there are too few tiles for all threads ----------------------------------------------- */

pn_status pn_partials_init(pn_partials *p, const pn_plan *plan, int32_t context, pn_error *err)
{
    size_t kv_heads = 0;
    p->max_chunks = (size_t)(context - 1) / PN_CHUNK_KEYS + 1;
    for (uint32_t i = 0; i < plan->n_nodes; i++) {
        const pn_attention_params *a = &plan->nodes[i].p.attention;
        if (plan->nodes[i].kind != PN_OP_ATTENTION) continue;
        p->stride = a->value_size + 2u > p->stride ? a->value_size + 2u : p->stride;
        p->max_heads = a->n_heads > p->max_heads ? a->n_heads : p->max_heads;
        kv_heads = a->n_kv_heads > kv_heads ? a->n_kv_heads : kv_heads;
    }
    if (p->max_chunks < 2 || !kv_heads) return PN_OK;
    p->n_pending = (uint32_t)(PN_SPLIT_TOKENS * kv_heads);
    p->pending = pn_calloc(p->n_pending, sizeof *p->pending);
    p->bytes = PN_SPLIT_TOKENS * p->max_heads * p->max_chunks * p->stride * sizeof(float);
    p->memory = pn_pages_alloc(p->bytes);
    return p->pending && p->memory
               ? PN_OK
               : pn_fail(err, PN_E_NOMEM, "no memory for partial attention results of %zu bytes", p->bytes);
}

void pn_partials_free(pn_partials *p)
{
    if (p->memory) pn_pages_free(p->memory, p->bytes);
    pn_free((void *)p->pending);
}

static float *partial(const pn_exec *ex, const pairs *p, uint32_t i, size_t chunk)
{
    const pn_partials *s = &ex->partials;
    return s->memory + ((token_of(p, i) * s->max_heads + head_of(p, i)) * s->max_chunks + chunk) * s->stride;
}

static void join_partials(const pn_exec *ex, const pn_plan_node *node, work_area *w, const pairs *p)
{
    uint32_t dv = node->p.attention.value_size;
    reset(&w->total, p->n, dv);
    for (int32_t chunk = p->first_key / PN_CHUNK_KEYS; chunk <= p->last_key / PN_CHUNK_KEYS; chunk++) {
        for (uint32_t i = 0; i < p->n; i++) {
            const float *from = partial(ex, p, i, (size_t)chunk);
            w->chunk.m[i] = from[0];
            w->chunk.l[i] = from[1];
            memcpy(w->chunk.acc + (size_t)i * dv, from + 2, dv * sizeof *from);
        }
        join(ex, w, p->n, dv);
    }
    finish(ex, node, w, p);
}

void pn_exec_attention_chunk(const pn_exec *ex, const pn_plan_node *node, uint32_t tile, uint32_t kv_head,
                             uint32_t chunk, void *scratch)
{
    uint32_t dv = node->p.attention.value_size;
    work_area *w = area(scratch, dv);
    pairs p;
    for (uint32_t done = 0; take_pairs(ex, node, tile, kv_head, done, w, &p); done += p.n) {
        attend_chunk(ex, node, w, &p, (int32_t)chunk);
        for (uint32_t i = 0; i < p.n; i++) {
            float *to = partial(ex, &p, i, chunk);
            to[0] = w->chunk.m[i];
            to[1] = w->chunk.l[i];
            memcpy(to + 2, w->chunk.acc + (size_t)i * dv, dv * sizeof *to);
        }
    }
    _Atomic uint32_t *pending = &ex->partials.pending[tile * node->p.attention.n_kv_heads + kv_head];
    if (atomic_fetch_sub(pending, 1) != 1) return;
    atomic_store(pending, (uint32_t)ex->n_chunks); /* for the next layer */
    for (uint32_t done = 0; take_pairs(ex, node, tile, kv_head, done, w, &p); done += p.n)
        join_partials(ex, node, w, &p);
}
