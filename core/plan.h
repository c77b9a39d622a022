/* A plan: the operations of a model in the order its architecture wrote them, with values, weights and checked shapes.
 * Built once per model, immutable afterwards. */
#ifndef PN_PLAN_H
#define PN_PLAN_H

#include <pantheon/pantheon.h>

typedef enum pn_op_kind {
    PN_OP_EMBED,
    PN_OP_RMS_NORM,
    PN_OP_LAYER_NORM,
    PN_OP_LINEAR,
    PN_OP_ROPE,
    PN_OP_ATTENTION,
    PN_OP_ADD,
    PN_OP_MUL,
    PN_OP_SCALE,
    PN_OP_ACTIVATION,
    PN_OP_GLU,
    PN_OP_SLICE,
    PN_OP_SELECT,
    PN_OP_CUSTOM
} pn_op_kind;

#define PN_NODE_INPUTS 8
#define PN_NODE_WEIGHTS 8

typedef struct pn_plan_weight {
    const pn_tensor *tensor;
    pn_qweight q;             /* matrices: over the mapping */
    float *vector;            /* vectors: as floats, owned by the plan; NULL for matrices */
    uint64_t n;               /* vectors: length */
    uint64_t row_begin, rows; /* matrices: part of the tensor, as requested */
} pn_plan_weight;

typedef struct pn_plan_value {
    uint32_t width; /* floats per token */
    uint32_t node;  /* who makes it */
    int selected;   /* 1: only for tokens whose logits are wanted */
} pn_plan_value;

typedef struct pn_plan_node {
    pn_op_kind kind;
    uint32_t layer;
    uint32_t n_inputs, n_weights;
    pn_val inputs[PN_NODE_INPUTS];
    pn_wt weights[PN_NODE_WEIGHTS];
    pn_val output;
    uint32_t cache; /* attention: index of its KV cache layer; ropes: of its table; custom with state: of that */
    union {
        pn_norm_params norm;
        pn_rope_params rope;
        pn_attention_params attention;
        pn_scale_params scale;
        pn_activation_params activation;
        pn_slice_params slice;
    } p;
    const pn_op *op; /* custom */
    void *params;    /* custom: copy, owned */
    size_t params_size;
} pn_plan_node;

struct pn_plan {
    pn_runtime *runtime;
    pn_file *file;
    pn_plan_weight *weights; /* [1 .. n_weights] */
    pn_plan_value *values;   /* [1 .. n_values] */
    pn_plan_node *nodes;     /* [0 .. n_nodes-1] */
    uint32_t n_weights, n_values, n_nodes;
    size_t cap_weights, cap_values, cap_nodes;
    pn_val output;     /* logits */
    uint32_t n_caches; /* attentions */
    uint32_t n_ropes;  /* distinct rope tables */
    uint32_t n_states; /* custom operations with state */
};

pn_status pn_plan_create(pn_runtime *rt, pn_file *file, pn_plan **out, pn_error *err);
void pn_plan_destroy(pn_plan *plan);
/* After build: there is an output, and every value leads to it. */
pn_status pn_plan_finish(pn_plan *plan, pn_error *err);
/* Bytes of weights that one token reads: every matrix of a linear once, one row of an embedding. */
uint64_t pn_plan_weight_bytes(const pn_plan *plan);
/* Multiply-adds of all linears for `tokens` tokens, `outputs` of them selected. */
double pn_plan_multiply_adds(const pn_plan *plan, uint64_t tokens, uint64_t outputs);
/* A custom node as its plugin called it; the widths of its inputs go to `widths`. Points into the node. */
pn_op_call pn_plan_call(const pn_plan *plan, const pn_plan_node *node, uint32_t widths[PN_NODE_INPUTS]);
/* The word of a node, for messages. */
const char *pn_plan_op_name(const pn_plan_node *node);
size_t pn_plan_describe(const pn_plan *plan, char *text, size_t capacity);

/* Bodies of the host slots of the same names (see plugin.h for their contracts). */
pn_status pn_plan_add_weight(pn_plan *plan, const pn_weight_request *request, pn_wt *out, pn_error *err);
pn_status pn_plan_add_op(pn_plan *plan, const pn_op_call *call, pn_val *out, pn_error *err);
pn_status pn_plan_set_output(pn_plan *plan, pn_val value, uint32_t kind, pn_error *err);

#endif
