/* KV cache blocks: a table per sequence, reference counts for what sequences share, copy before write. */
#include "kv.h"

#include "alloc.h"
#include "registry.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* Bytes of one key or value of n elements; 0 when the type cannot hold it. */
static size_t row_bytes(const pn_kv *kv, uint32_t n)
{
    if (!kv->quant) return (size_t)n * (kv->half ? 2 : 4);
    if (n % kv->quant->block_elems) return 0;
    return kv->quant->row_bytes ? (size_t)kv->quant->row_bytes(n)
                                : (size_t)n / kv->quant->block_elems * kv->quant->block_bytes;
}

static pn_status layout(pn_kv *kv, const pn_plan *plan, pn_error *err)
{
    size_t at = 0;
    for (uint32_t i = 0; i < plan->n_nodes; i++) {
        const pn_plan_node *n = &plan->nodes[i];
        if (n->kind == PN_OP_CUSTOM && n->op->state_bytes) {
            uint32_t widths[PN_NODE_INPUTS] = {0};
            pn_op_call call = pn_plan_call(plan, n, widths);
            kv->state_bytes[n->cache] = n->op->state_bytes(&call, widths);
        }
        if (n->kind != PN_OP_ATTENTION) continue;
        const pn_attention_params *a = &n->p.attention;
        pn_kv_layer *l = &kv->layers[n->cache];
        l->n_kv_heads = a->n_kv_heads;
        l->key_size = a->key_size;
        l->value_size = a->value_size;
        l->k_head = row_bytes(kv, a->key_size) * PN_KV_BLOCK;
        l->v_head = row_bytes(kv, a->value_size) * PN_KV_BLOCK;
        if (!l->k_head || !l->v_head)
            return pn_fail(err, PN_E_UNSUPPORTED,
                           "KV cache type '%s' stores blocks of %" PRIu32 " elements, but heads have %" PRIu32
                           " and %" PRIu32 ": set [runtime] kv to f16 or f32",
                           kv->quant->name, kv->quant->block_elems, a->key_size, a->value_size);
        l->k_offset = at;
        l->v_offset = pn_round64(at + l->k_head * l->n_kv_heads);
        at = pn_round64(l->v_offset + l->v_head * l->n_kv_heads);
    }
    kv->block_bytes = at;
    if (at && (size_t)kv->n_blocks > SIZE_MAX / 2 / at)
        return pn_fail(err, PN_E_RANGE, "a KV cache of %" PRId32 " blocks of %zu bytes is too large", kv->n_blocks, at);
    return PN_OK;
}

static pn_status reserve(pn_kv *kv, const pn_plan *plan, pn_error *err)
{
    size_t n_table = (size_t)kv->n_sequences * (size_t)kv->blocks_per_sequence;
    pn_status st = layout(kv, plan, err);
    if (st) return st;
    kv->table = pn_calloc(n_table, sizeof *kv->table);
    kv->references = pn_calloc((size_t)kv->n_blocks, sizeof *kv->references);
    kv->free_list = pn_calloc((size_t)kv->n_blocks, sizeof *kv->free_list);
    kv->length = pn_calloc((size_t)kv->n_sequences, sizeof *kv->length);
    if (!kv->table || !kv->references || !kv->free_list || !kv->length)
        return pn_fail(err, PN_E_NOMEM, "no memory for the tables of the KV cache");
    if (kv->block_bytes) {
        kv->memory = pn_pages_alloc((size_t)kv->n_blocks * kv->block_bytes);
        if (!kv->memory)
            return pn_fail(err, PN_E_NOMEM,
                           "no memory for a KV cache of %zu bytes (%" PRId32 " sequences of %" PRId32
                           " tokens): lower [runtime] context",
                           (size_t)kv->n_blocks * kv->block_bytes, kv->n_sequences, kv->context);
    }
    for (uint32_t s = 0; s < kv->n_states; s++) {
        for (int32_t q = 0; q < kv->n_sequences; q++) {
            size_t i = (size_t)s * (size_t)kv->n_sequences + (size_t)q;
            kv->states[i] = pn_calloc(1, kv->state_bytes[s]);
            if (!kv->states[i])
                return pn_fail(err, PN_E_NOMEM, "no memory for a state of %zu bytes", kv->state_bytes[s]);
        }
    }
    memset(kv->table, 0xff, n_table * sizeof *kv->table);
    /* The stack hands out low blocks first. */
    for (int32_t b = kv->n_blocks - 1; b >= 0; b--) kv->free_list[kv->n_free++] = b;
    return PN_OK;
}

static pn_status find_type(pn_kv *kv, const pn_runtime *rt, const char *type, pn_error *err)
{
    kv->half = !strcmp(type, "f16");
    if (kv->half || !strcmp(type, "f32")) return PN_OK;
    const pn_reg_entry *e = pn_registry_find(rt, PN_KIND_QUANT, type);
    if (!e) {
        pn_registry_missing(rt, PN_KIND_QUANT, pn_str_from(type), err);
        return err ? pn_error_wrap(err, "KV cache type '%s' ([runtime] kv)", type) : PN_E_UNSUPPORTED;
    }
    kv->quant = e->item;
    if (!kv->quant->quantize)
        return pn_fail(err, PN_E_UNSUPPORTED,
                       "KV cache type '%s' ([runtime] kv) cannot be made here, only read: choose f16 or f32", type);
    return PN_OK;
}

pn_status pn_kv_create(const pn_plan *plan, const char *type, int32_t context, int32_t n_sequences, pn_kv **out,
                       pn_error *err)
{
    pn_kv *kv = pn_calloc(1, sizeof *kv);
    pn_status st;
    if (!kv) return pn_fail(err, PN_E_NOMEM, "no memory for a KV cache");
    kv->context = context;
    kv->n_sequences = n_sequences;
    kv->n_layers = plan->n_caches;
    kv->n_states = plan->n_states;
    kv->blocks_per_sequence = (context - 1) / PN_KV_BLOCK + 1;
    kv->layers = pn_calloc(plan->n_caches, sizeof *kv->layers);
    kv->state_bytes = pn_calloc(plan->n_states, sizeof *kv->state_bytes);
    kv->states = pn_calloc((size_t)plan->n_states * (size_t)n_sequences, sizeof *kv->states);
    st = find_type(kv, plan->runtime, type, err);
    if (st)
        ;
    else if (!kv->layers || !kv->state_bytes || !kv->states) st = pn_fail(err, PN_E_NOMEM, "no memory for a KV cache");
    else if ((int64_t)kv->blocks_per_sequence * n_sequences > INT32_MAX)
        st = pn_fail(err, PN_E_RANGE, "%" PRId32 " sequences of %" PRId32 " tokens are too many", n_sequences, context);
    else {
        kv->n_blocks = kv->blocks_per_sequence * n_sequences;
        st = reserve(kv, plan, err);
    }
    if (st) pn_kv_destroy(kv);
    else *out = kv;
    return st;
}

void pn_kv_destroy(pn_kv *kv)
{
    if (!kv) return;
    if (kv->states)
        for (size_t i = 0; i < (size_t)kv->n_states * (size_t)kv->n_sequences; i++) pn_free(kv->states[i]);
    if (kv->memory) pn_pages_free(kv->memory, (size_t)kv->n_blocks * kv->block_bytes);
    pn_free(kv->states);
    pn_free(kv->state_bytes);
    pn_free(kv->layers);
    pn_free(kv->table);
    pn_free(kv->references);
    pn_free(kv->free_list);
    pn_free(kv->length);
    pn_free(kv);
}

static int32_t *entry(const pn_kv *kv, int32_t sequence, int32_t index)
{
    return &kv->table[(size_t)sequence * (size_t)kv->blocks_per_sequence + (size_t)index];
}

static unsigned char *block(const pn_kv *kv, int32_t b)
{
    return kv->memory + (size_t)b * kv->block_bytes;
}

static void release(pn_kv *kv, int32_t b)
{
    if (--kv->references[b] == 0) kv->free_list[kv->n_free++] = b;
}

void pn_kv_extend(pn_kv *kv, int32_t sequence, int32_t n)
{
    int32_t first = kv->length[sequence];
    if (n <= 0) return;
    for (int32_t i = first / PN_KV_BLOCK; i <= (first + n - 1) / PN_KV_BLOCK; i++) {
        int32_t *e = entry(kv, sequence, i);
        if (*e >= 0 && kv->references[*e] == 1) continue;
        /* A sequence holds at most blocks_per_sequence distinct blocks, so the stack cannot be empty here. */
        int32_t b = kv->free_list[--kv->n_free];
        kv->references[b] = 1;
        if (*e >= 0) {
            memcpy(block(kv, b), block(kv, *e), kv->block_bytes);
            release(kv, *e);
        }
        *e = b;
    }
    kv->length[sequence] = first + n;
}

void pn_kv_trim(pn_kv *kv, int32_t sequence, int32_t length)
{
    if (length >= kv->length[sequence]) return;
    int32_t keep = length ? (length - 1) / PN_KV_BLOCK + 1 : 0;
    for (int32_t i = keep; i < kv->blocks_per_sequence; i++) {
        int32_t *e = entry(kv, sequence, i);
        if (*e >= 0) release(kv, *e);
        *e = -1;
    }
    kv->length[sequence] = length;
    if (length == 0)
        for (uint32_t s = 0; s < kv->n_states; s++)
            memset(kv->states[(size_t)s * (size_t)kv->n_sequences + (size_t)sequence], 0, kv->state_bytes[s]);
}

void pn_kv_copy(pn_kv *kv, int32_t from, int32_t to)
{
    if (from == to) return;
    pn_kv_trim(kv, to, 0);
    for (int32_t i = 0; i < kv->blocks_per_sequence; i++) {
        int32_t b = *entry(kv, from, i);
        if (b >= 0) kv->references[b]++;
        *entry(kv, to, i) = b;
    }
    kv->length[to] = kv->length[from];
    for (uint32_t s = 0; s < kv->n_states; s++) {
        size_t base = (size_t)s * (size_t)kv->n_sequences;
        memcpy(kv->states[base + (size_t)to], kv->states[base + (size_t)from], kv->state_bytes[s]);
    }
}

/* Where the key or value of a position lies: its block's part for (layer, head). */
static unsigned char *keys(const pn_kv *kv, uint32_t layer, int32_t sequence, int32_t index, uint32_t head)
{
    return block(kv, *entry(kv, sequence, index)) + kv->layers[layer].k_offset + head * kv->layers[layer].k_head;
}

static unsigned char *values(const pn_kv *kv, uint32_t layer, int32_t sequence, int32_t index, uint32_t head)
{
    return block(kv, *entry(kv, sequence, index)) + kv->layers[layer].v_offset + head * kv->layers[layer].v_head;
}

/* What lies beyond half precision becomes its largest number, not infinity: a score stays a number. x[i] is in h[i *
 * stride]. */
static void saturate(const float *x, size_t n, uint16_t *h, size_t stride)
{
    for (size_t i = 0; i < n; i++)
        if ((h[i * stride] & 0x7fff) == 0x7c00 && isfinite(x[i]))
            h[i * stride] = (uint16_t)((h[i * stride] & 0x8000) | 0x7bff);
}

static pn_status store_key(const pn_kv *kv, const pn_ops *ops, const pn_kv_layer *l, unsigned char *kb, size_t j,
                           const float *key)
{
    pn_error unheard; /* types fill it without asking whether it is there */
    if (kv->quant) return kv->quant->quantize(key, NULL, kb + j * (l->k_head / PN_KV_BLOCK), l->key_size, &unheard);
    if (kv->half) {
        ops->store_key_f16(key, l->key_size, j, (uint16_t *)(void *)kb);
        saturate(key, l->key_size, (uint16_t *)(void *)kb + j, PN_KV_BLOCK);
    } else {
        ops->store_key_f32(key, l->key_size, j, (float *)(void *)kb);
    }
    return PN_OK;
}

static pn_status store_value(const pn_kv *kv, const pn_ops *ops, const pn_kv_layer *l, unsigned char *vb, size_t j,
                             const float *v)
{
    unsigned char *to = vb + j * (l->v_head / PN_KV_BLOCK);
    pn_error unheard;
    if (kv->quant) return kv->quant->quantize(v, NULL, to, l->value_size, &unheard);
    if (kv->half) {
        ops->f16_from_f32(v, l->value_size, (uint16_t *)(void *)to);
        saturate(v, l->value_size, (uint16_t *)(void *)to, 1);
    } else {
        memcpy(to, v, l->value_size * sizeof(float));
    }
    return PN_OK;
}

pn_status pn_kv_store(const pn_kv *kv, const pn_ops *ops, uint32_t layer, int32_t sequence, int32_t position,
                      const float *k, const float *v)
{
    const pn_kv_layer *l = &kv->layers[layer];
    int32_t index = position / PN_KV_BLOCK;
    size_t j = (size_t)(position % PN_KV_BLOCK);
    pn_status st = PN_OK;
    for (uint32_t h = 0; h < l->n_kv_heads && !st; h++) {
        st = store_key(kv, ops, l, keys(kv, layer, sequence, index, h), j, k + (size_t)h * l->key_size);
        if (!st) st = store_value(kv, ops, l, values(kv, layer, sequence, index, h), j, v + (size_t)h * l->value_size);
    }
    return st;
}

size_t pn_kv_scratch(const pn_kv *kv)
{
    size_t most = 0;
    for (uint32_t i = 0; i < kv->n_layers && kv->quant; i++) {
        size_t n = (size_t)kv->layers[i].key_size * (PN_KV_BLOCK + 1) + (size_t)kv->layers[i].value_size * PN_KV_BLOCK;
        most = n > most ? n : most;
    }
    return most;
}

pn_kv_view pn_kv_look(const pn_kv *kv, uint32_t layer, int32_t sequence, int32_t index, uint32_t head, size_t end,
                      float *scratch)
{
    const pn_kv_layer *l = &kv->layers[layer];
    const unsigned char *k = keys(kv, layer, sequence, index, head), *v = values(kv, layer, sequence, index, head);
    if (!kv->quant) return (pn_kv_view){k, v};
    float *turned = scratch, *rows = turned + (size_t)l->key_size * PN_KV_BLOCK,
          *key = rows + (size_t)l->value_size * PN_KV_BLOCK;
    for (size_t j = 0; j < end; j++) {
        kv->quant->dequantize(k + j * (l->k_head / PN_KV_BLOCK), key, l->key_size);
        for (size_t i = 0; i < l->key_size; i++) turned[i * PN_KV_BLOCK + j] = key[i];
        kv->quant->dequantize(v + j * (l->v_head / PN_KV_BLOCK), rows + j * l->value_size, l->value_size);
    }
    return (pn_kv_view){turned, rows};
}

/* One key as floats, from wherever it lies. */
static void load_key(const pn_kv *kv, const pn_ops *ops, const pn_kv_layer *l, const unsigned char *kb, size_t j,
                     float *key)
{
    if (kv->quant) {
        kv->quant->dequantize(kb + j * (l->k_head / PN_KV_BLOCK), key, l->key_size);
        return;
    }
    for (size_t i = 0; i < l->key_size; i++) {
        if (kv->half) ops->f32_from_f16((const uint16_t *)(const void *)kb + i * PN_KV_BLOCK + j, 1, key + i);
        else key[i] = ((const float *)(const void *)kb)[i * PN_KV_BLOCK + j];
    }
}

pn_status pn_kv_shift(pn_kv *kv, const pn_ops *ops, int32_t sequence, int32_t keep, int32_t drop, pn_kv_turn turn,
                      const void *arg, float *row)
{
    int32_t length = kv->length[sequence];
    pn_status st = PN_OK;
    /* Blocks that are written must be this sequence's own. */
    if (length > keep + drop) {
        kv->length[sequence] = keep;
        pn_kv_extend(kv, sequence, length - keep);
    }
    for (uint32_t layer = 0; layer < kv->n_layers; layer++) {
        const pn_kv_layer *l = &kv->layers[layer];
        size_t v_row = l->v_head / PN_KV_BLOCK;
        for (int32_t from = keep + drop; from < length && !st; from++) {
            int32_t to = from - drop;
            size_t fj = (size_t)(from % PN_KV_BLOCK), tj = (size_t)(to % PN_KV_BLOCK);
            for (uint32_t h = 0; h < l->n_kv_heads && !st; h++) {
                load_key(kv, ops, l, keys(kv, layer, sequence, from / PN_KV_BLOCK, h), fj, row);
                turn(arg, layer, row);
                st = store_key(kv, ops, l, keys(kv, layer, sequence, to / PN_KV_BLOCK, h), tj, row);
                memcpy(values(kv, layer, sequence, to / PN_KV_BLOCK, h) + tj * v_row,
                       values(kv, layer, sequence, from / PN_KV_BLOCK, h) + fj * v_row, v_row);
            }
        }
    }
    pn_kv_trim(kv, sequence, st ? keep : length - drop);
    return st;
}

uint64_t pn_kv_bytes(const pn_kv *kv)
{
    return (uint64_t)kv->n_blocks * kv->block_bytes;
}
