/* Attention over the KV cache for a tile of tokens and the query heads that share a kv head.
 *
 * Keys are walked in chunks of PN_CHUNK_BLOCKS blocks of positions. Each chunk has its own running softmax; chunks are joined in ascending order. The cut
 * depends on positions alone, so a query's result is the same however tokens are batched or shared out. */
#include "exec.h"

#include <math.h>

#define PN_CHUNK_BLOCKS 8
#define PN_QUERIES 64           /* (token, head) pairs handled together */

typedef struct softmax_state {
    float m[PN_QUERIES], l[PN_QUERIES];
    float *acc;                 /* [PN_QUERIES][dv] */
} softmax_state;

typedef struct work_area {
    softmax_state chunk, total;
    const float *q[PN_QUERIES], *active_q[PN_QUERIES];
    float *active_acc[PN_QUERIES];
    float active_m[PN_QUERIES], active_l[PN_QUERIES];
    int32_t first[PN_QUERIES], last[PN_QUERIES];    /* positions seen, both inclusive */
    uint8_t begin[PN_QUERIES], end[PN_QUERIES];
    uint32_t active[PN_QUERIES];
} work_area;

static size_t round64(size_t n) { return (n + 63) & ~(size_t)63; }

size_t pn_exec_attention_scratch(const pn_plan *plan)
{
    size_t widest = 0;
    for (uint32_t i = 0; i < plan->n_nodes; i++)
        if (plan->nodes[i].kind == PN_OP_ATTENTION && plan->nodes[i].p.attention.value_size > widest)
            widest = plan->nodes[i].p.attention.value_size;
    return round64(sizeof(work_area)) + 2 * round64(PN_QUERIES * widest * sizeof(float));
}

/* One block of keys for the queries of the area that see any of it. */
static void attend_block(const pn_exec *ex, const pn_plan_node *node, work_area *w, uint32_t n, int32_t sequence, int32_t block, uint32_t kv_head)
{
    const pn_attention_params *p = &node->p.attention;
    int32_t base = block * PN_KV_BLOCK;
    uint32_t n_active = 0;
    for (uint32_t i = 0; i < n; i++) {
        int32_t b = w->first[i] > base ? w->first[i] - base : 0;
        int32_t e = w->last[i] < base + PN_KV_BLOCK - 1 ? w->last[i] - base + 1 : PN_KV_BLOCK;
        if (b >= e)
            continue;
        w->begin[n_active] = (uint8_t)b;
        w->end[n_active] = (uint8_t)e;
        w->active_q[n_active] = w->q[i];
        w->active_acc[n_active] = w->chunk.acc + (size_t)i * p->value_size;
        w->active_m[n_active] = w->chunk.m[i];
        w->active_l[n_active] = w->chunk.l[i];
        w->active[n_active++] = i;
    }
    if (!n_active)
        return;
    pn_attend a = { .k = pn_kv_keys(ex->kv, node->cache, sequence, block, kv_head),
                    .v = pn_kv_values(ex->kv, node->cache, sequence, block, kv_head),
                    .d = p->key_size, .dv = p->value_size, .n = n_active, .q = w->active_q, .begin = w->begin, .end = w->end,
                    .m = w->active_m, .l = w->active_l, .acc = w->active_acc, .scale = p->scale, .softcap = p->softcap };
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
        if (w->chunk.l[i] == 0)
            continue;
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

void pn_exec_attention(const pn_exec *ex, const pn_plan_node *node, const pn_tile *tile, uint32_t kv_head, void *scratch)
{
    const pn_attention_params *p = &node->p.attention;
    uint32_t group = p->n_heads / p->n_kv_heads, pairs = tile->n * group, dv = p->value_size;
    int32_t sequence = ex->sequences[tile->first];
    work_area *w = scratch;
    w->chunk.acc = (float *)(void *)((unsigned char *)scratch + round64(sizeof *w));
    w->total.acc = w->chunk.acc + round64(PN_QUERIES * dv * sizeof(float)) / sizeof(float);
    for (uint32_t done = 0; done < pairs; done += PN_QUERIES) {
        uint32_t n = pairs - done < PN_QUERIES ? pairs - done : PN_QUERIES;
        int32_t first = INT32_MAX, last = 0;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t token = tile->first + (done + i) / group, head = kv_head * group + (done + i) % group;
            int32_t position = ex->positions[token];
            w->q[i] = pn_exec_row(ex, node->inputs[0], token) + (size_t)head * p->key_size;
            w->last[i] = position;
            w->first[i] = p->window && (uint32_t)position >= p->window ? position - (int32_t)p->window + 1 : 0;
            first = w->first[i] < first ? w->first[i] : first;
            last = position > last ? position : last;
        }
        reset(&w->total, n, dv);
        for (int32_t block = first / PN_KV_BLOCK; block <= last / PN_KV_BLOCK;) {
            int32_t stop = (block / PN_CHUNK_BLOCKS + 1) * PN_CHUNK_BLOCKS;
            reset(&w->chunk, n, dv);
            for (; block < stop && block <= last / PN_KV_BLOCK; block++)
                attend_block(ex, node, w, n, sequence, block, kv_head);
            join(ex, w, n, dv);
        }
        for (uint32_t i = 0; i < n; i++) {
            uint32_t token = tile->first + (done + i) / group, head = kv_head * group + (done + i) % group;
            float *out = pn_exec_row(ex, node->output, token) + (size_t)head * dv;
            ex->ops->scale(w->total.acc + (size_t)i * dv, 1.0f / w->total.l[i], dv, out);
        }
    }
}
