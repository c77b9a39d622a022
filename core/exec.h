/* A plan made ready to run in one session: kernels chosen, operations gathered into phases, buffers laid out in an
 * arena; and its execution.
 *
 * A phase is what threads do between two barriers: token phases (norms, ropes, additions, packing: whatever is local to
 * a token, one token after the other), row phases (matmuls of everything whose input is packed, cut by rows), attention
 * phases (cut by tile of tokens and head), unit phases (operations of plugins). */
#ifndef PN_EXEC_H
#define PN_EXEC_H

#include "kv.h"
#include "ops.h"
#include "plan.h"
#include "team.h"

typedef enum pn_phase_kind { PN_PHASE_TOKENS, PN_PHASE_ROWS, PN_PHASE_ATTENTION, PN_PHASE_UNITS } pn_phase_kind;
typedef enum pn_item_kind { PN_ITEM_NODE, PN_ITEM_PACK, PN_ITEM_STORE, PN_ITEM_ROPE_TABLE } pn_item_kind;

typedef struct pn_item {
    pn_item_kind kind;
    uint32_t
        node; /* plan node; STORE: the attention; PACK: any linear that uses it; ROPE_TABLE: any rope of the table */
    uint32_t index; /* PACK: buffer; ROPE_TABLE: table; ROWS: pn_linear */
} pn_item;

typedef struct pn_phase {
    pn_phase_kind kind;
    int selected;
    uint32_t first, n_items;
    size_t n_units; /* row phases: pieces of some rows each */
    uint64_t bytes; /* row phases: of all weights */
} pn_phase;

typedef struct pn_linear_run {
    uint32_t node;
    const pn_kernel *kernel; /* NULL: dequantize and dot */
    const pn_packing *packing;
    uint32_t packed; /* buffer of the packed input; unused without kernel */
    size_t unit_rows, n_units;
    char why[96];
} pn_linear_run;

/* A piece of the arena: bytes per token, alive from phase `birth` to phase `death`. */
typedef struct pn_buffer {
    size_t bytes;
    size_t offset; /* per token: the buffer begins at arena + offset * batch */
    uint32_t birth, death;
    uint32_t value; /* packed buffers: the value packed */
    const pn_packing *packing;
} pn_buffer;

typedef struct pn_rope_table {
    uint32_t n_pairs;
    double *frequency;    /* [n_pairs] radians per position */
    double magnitude;     /* factor of cosine and sine */
    float *cosine, *sine; /* [batch][n_pairs] */
} pn_rope_table;

/* Tokens of one sequence at consecutive positions, neighbours in the batch. */
typedef struct pn_tile {
    uint32_t first, n;
} pn_tile;

/* Results of single chunks of keys, waiting to be joined. */
typedef struct pn_partials {
    float *memory; /* [token][head][chunk] of {m, l, acc[value_size]}, `stride` floats each; NULL: never cut */
    size_t bytes, stride, max_chunks, max_heads;
    _Atomic uint32_t *pending; /* [tile][kv head]: chunks still to do */
    uint32_t n_pending;
} pn_partials;

typedef struct pn_exec {
    const pn_plan *plan;
    const pn_ops *ops;
    pn_kv *kv;
    uint32_t n_threads; /* wanted */
    size_t batch;       /* tokens per evaluation */

    pn_phase *phases;
    pn_item *items;
    pn_linear_run *linears;
    pn_buffer *buffers; /* [1 .. n_values] of plan values, then packed ones */
    uint32_t n_phases, n_items, n_linears, n_buffers;
    size_t cap_phases, cap_items;
    pn_rope_table *ropes;
    unsigned char *arena;
    size_t arena_bytes, packed_bytes;
    unsigned char *scratch; /* n_threads * scratch_bytes */
    size_t scratch_bytes;
    size_t attention_queries; /* most queries handled at once by one thread */
    pn_op_args *custom;       /* [node] for custom nodes: filled at every evaluation */
    const float **custom_inputs;
    uint32_t *custom_widths;
    const pn_qweight **custom_weights;

    /* the batch under way */
    size_t n_tokens, n_selected;
    const int32_t *tokens, *positions, *sequences;    /* [n_tokens] */
    uint32_t *selected;                               /* [n_selected]: index of the token */
    int32_t *selected_positions, *selected_sequences; /* [n_selected] */
    size_t n_chunks; /* > 1: few tokens and many keys, so attention is cut by chunks of keys too */
    pn_partials partials;
    pn_tile *tiles;
    size_t n_tiles;
    float *logits; /* [n_selected][vocabulary] */
    pn_barrier barrier;
    pn_work work;
    _Atomic int32_t failed; /* first failing status */
    uint32_t failed_node;   /* where; written by whoever set `failed` */
    int stop;               /* written by the last thread at a barrier */
    int (*cancelled)(void *arg);
    void *cancelled_arg;
    void (*observe)(void *arg, const pn_tensor *weight, const float *input, size_t columns, size_t cols);
    void *observe_arg;
    uint32_t phase; /* the one under way; written behind the barrier by the last thread there */
    uint32_t spin;
} pn_exec;

/* Choose kernels, schedule, lay out, allocate. `context` decides what depends on the session. */
pn_status pn_exec_create(const pn_plan *plan, pn_kv *kv, uint32_t precision, int32_t context, size_t batch,
                         uint32_t n_threads, uint32_t spin, pn_exec **out, pn_error *err);
void pn_exec_destroy(pn_exec *ex);
/* Evaluate n <= batch tokens whose KV blocks are writable. positions, tokens, sequences: [n]; wants: [n] flags. Logits
 * of those that want them go to logits[k][vocabulary] in order. Allocates nothing. PN_E_CANCELLED or what an operation
 * returned. */
pn_status pn_exec_run(pn_exec *ex, size_t n, const int32_t *tokens, const int32_t *positions, const int32_t *sequences,
                      const uint8_t *wants, float *logits, pn_error *err);

/* exec.c: where a value's or packed buffer's data begins. */
static inline unsigned char *pn_exec_data(const pn_exec *ex, uint32_t buffer)
{
    return ex->arena + ex->buffers[buffer].offset * ex->batch;
}
/* The row of a value for token (or selected token) t. */
static inline float *pn_exec_row(const pn_exec *ex, pn_val v, size_t t)
{
    size_t width = ex->plan->values[v].width;
    if (v == ex->plan->output) return ex->logits + t * width;
    return (float *)(void *)pn_exec_data(ex, v) + t * width;
}

/* Tokens per attention tile. */
#define PN_TILE_TOKENS 16
/* Attention walks keys in chunks of this many positions, each with its own running softmax, joined in ascending order.
 */
#define PN_CHUNK_KEYS (8 * PN_KV_BLOCK)
/* Batches of at most this many tokens may cut attention by chunks too. */
#define PN_SPLIT_TOKENS 8

/* attend.c: attention of a tile and kv head over all keys, and over one chunk (the last chunk to be done joins them
 * all); scratch it needs. */
void pn_exec_attention(const pn_exec *ex, const pn_plan_node *node, uint32_t tile, uint32_t kv_head, void *scratch);
void pn_exec_attention_chunk(const pn_exec *ex, const pn_plan_node *node, uint32_t tile, uint32_t kv_head,
                             uint32_t chunk, void *scratch);
size_t pn_exec_attention_scratch(const pn_kv *kv);
pn_status pn_partials_init(pn_partials *p, const pn_plan *plan, int32_t context, pn_error *err);
void pn_partials_free(pn_partials *p);
/* rope.c: fill the table's frequencies and magnitude for a context length. */
pn_status pn_rope_table_init(pn_rope_table *t, const pn_plan *plan, const pn_plan_node *node, int32_t context,
                             size_t batch, pn_error *err);
void pn_rope_table_free(pn_rope_table *t);
/* Cosines and sines of one token. */
void pn_rope_table_fill(const pn_rope_table *t, size_t token, int32_t position);
/* schedule.c: phases, items, linears, buffers. */
pn_status pn_exec_schedule(pn_exec *ex, uint32_t precision, pn_error *err);

#endif
