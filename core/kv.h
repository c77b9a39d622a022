/* The sequence state: keys and values of every attention layer, in blocks of PN_KV_BLOCK positions that sequences own
 * or share, and the states of operations that plugins brought. Not thread-safe, but pn_kv_store for different tokens
 * may run at once. */
#ifndef PN_KV_H
#define PN_KV_H

#include "ops.h"
#include "plan.h"

typedef struct pn_kv_layer {
    uint32_t n_kv_heads, key_size, value_size;
    size_t k_offset, v_offset; /* bytes from the start of a block */
    size_t k_head, v_head;     /* bytes per head */
} pn_kv_layer;

typedef struct pn_kv {
    int half;              /* 1: f16, 0: f32 or `quant` */
    const pn_quant *quant; /* another type: a row of blocks per key and value, unpacked when attended; else NULL */
    int32_t context, n_sequences;
    uint32_t n_layers;
    pn_kv_layer *layers;
    size_t block_bytes; /* all layers of one block of positions */
    int32_t blocks_per_sequence, n_blocks;
    unsigned char *memory; /* n_blocks * block_bytes, zero pages until touched */
    int32_t *table;        /* [sequence][block of positions] -> block, or -1 */
    int32_t *references;   /* [block] */
    int32_t *free_list;    /* stack of free blocks */
    int32_t n_free;
    int32_t *length;     /* [sequence] */
    size_t *state_bytes; /* [state] */
    uint32_t n_states;
    unsigned char **states; /* [state * n_sequences + sequence] */
} pn_kv;

/* kv: "f16", "f32" or a loaded type that can quantize rows of the heads' sizes. */
pn_status pn_kv_create(const pn_plan *plan, const char *kv, int32_t context, int32_t n_sequences, pn_kv **out,
                       pn_error *err);
void pn_kv_destroy(pn_kv *kv);
/* Make position `length` .. `length + n - 1` of a sequence writable (fresh or unshared blocks) and count them in. Never
 * fails when they lie inside the context: there are enough blocks for every sequence. */
void pn_kv_extend(pn_kv *kv, int32_t sequence, int32_t n);
/* Forget positions >= length. */
void pn_kv_trim(pn_kv *kv, int32_t sequence, int32_t length);
void pn_kv_copy(pn_kv *kv, int32_t from, int32_t to);
/* Drop positions keep .. keep + drop - 1: what follows moves down by `drop`, and turn(arg, layer, head's keys as
 * floats) re-rotates each moved key for its new position. keep + drop <= length. `row`: room for the longest key, as
 * floats. On failure (the cache's type cannot hold a turned key) the sequence is trimmed to `keep`. */
typedef void (*pn_kv_turn)(const void *arg, uint32_t layer, float *key);
pn_status pn_kv_shift(pn_kv *kv, const pn_ops *ops, int32_t sequence, int32_t keep, int32_t drop, pn_kv_turn turn,
                      const void *arg, float *row);
/* Write one token's keys [n_kv_heads][key_size] and values [n_kv_heads][value_size] of a layer. Fails when the cache's
 * type cannot hold them. */
pn_status pn_kv_store(const pn_kv *kv, const pn_ops *ops, uint32_t layer, int32_t sequence, int32_t position,
                      const float *k, const float *v);
/* Keys [key_size][PN_KV_BLOCK] and values [PN_KV_BLOCK][value_size] of a head in the block that holds positions index *
 * PN_KV_BLOCK ..., of type f16 when kv->half, else f32. Other types are unpacked to `scratch`, pn_kv_scratch bytes;
 * positions from `end` on may be left out. */
typedef struct pn_kv_view {
    const void *k, *v;
} pn_kv_view;
pn_kv_view pn_kv_look(const pn_kv *kv, uint32_t layer, int32_t sequence, int32_t index, uint32_t head, size_t end,
                      float *scratch);
/* Floats of scratch for pn_kv_look: 0 when nothing needs unpacking. */
size_t pn_kv_scratch(const pn_kv *kv);
uint64_t pn_kv_bytes(const pn_kv *kv);

#endif
