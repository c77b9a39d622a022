/* The plugin ABI of Pantheon: everything that a plugin author needs, and nothing that must be linked against.
 *
 * A plugin is one shared object that exports one constant data object, its descriptor, made by PN_PLUGIN below:
 *
 *     #include <pantheon/plugin.h>
 *     static pn_status start(const pn_host *host, pn_error *err)
 *     {
 *         static const pn_quant type = { .struct_size = sizeof type, .name = "nib2", ... };
 *         return pn_host_register_quant(host, &type, err);
 *     }
 *     PN_PLUGIN("org.example.nib2", "1.0", "MIT", "two-bit blocks", 0, start)
 *
 *     cc -std=c11 -O3 -fPIC -shared -fvisibility=hidden $(pkg-config --cflags pantheon) nib2.c -o nib2.so
 *
 * Life of a plugin: the host checks owner and permissions of the file and its folder, its ELF header and its note, and
 * only then loads it (RTLD_NOW | RTLD_LOCAL); it compares the descriptor field by field; it calls `init`, which
 * registers what the plugin brings. A loaded plugin is never unloaded, so what it registers (structs, names, functions)
 * may be static constants.
 *
 * Growth: structs and tables grow at their end only and begin with `struct_size`. A host fills what an older plugin
 * lacks with zero: every such field is optional. Whoever fills a struct of the other side writes no further than its
 * struct_size, whoever reads one looks there before a field that came later. pn_error, pn_str and pn_value never grow.
 * What a newer plugin registers is taken as far as the host knows it; what it asks for (weights, operations and their
 * parameters) is refused when it says something the host does not know. A plugin calls the host through the pn_host_*
 * wrappers below: each checks that the host has the slot and otherwise fails with "needs host >= x", so a new plugin on
 * an old host gets an error and never a wild jump.
 *
 * Threads: unless a comment says otherwise, a callback may be called from any thread but never twice at once for the
 * same object (file, tokenizer, plan). Functions marked [any, at once] run on many threads at the same time and must
 * not touch shared mutable state. Failure: a callback that returns pn_status fills `err` (never NULL in calls by the
 * host) and leaves its outputs as they were. A plugin never exits, aborts, prints, or throws, and uses no OpenMP: the
 * host owns threads.
 */
#ifndef PANTHEON_PLUGIN_H
#define PANTHEON_PLUGIN_H

#include <pantheon/kit/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PN_ABI_MAJOR 1
#define PN_ABI_MINOR 0

typedef struct pn_host pn_host;
typedef struct pn_source pn_source; /* opaque: bytes of a file, a buffer, or a folder */
typedef struct pn_file pn_file;     /* opaque: an opened model file: metadata, tensors, roles */
typedef struct pn_plan pn_plan;     /* opaque: a plan being written */
typedef struct pn_writer pn_writer; /* opaque: a model file being written */

/* ---- CPU features ------------------------------------------------------------------------------------------------ */

/* Bits of `cpu_features`. A thing that needs a bit the processor or the operating system lacks (or PANTHEON_CPU masks)
 * is refused (plugin) or passed over (kernel, packing). */
#define PN_CPU_AVX2 (UINT64_C(1) << 0) /* with AVX */
#define PN_CPU_FMA (UINT64_C(1) << 1)
#define PN_CPU_F16C (UINT64_C(1) << 2)
#define PN_CPU_AVX512 (UINT64_C(1) << 3) /* F, BW, DQ and VL together */
#define PN_CPU_AVX512_VNNI (UINT64_C(1) << 4)
#define PN_CPU_AVX512_VBMI (UINT64_C(1) << 5)
#define PN_CPU_AVX512_BF16 (UINT64_C(1) << 6)
#define PN_CPU_AVX_VNNI (UINT64_C(1) << 7)
#define PN_CPU_AVX512_FP16 (UINT64_C(1) << 8)
#define PN_CPU_AMX_INT8 (UINT64_C(1) << 9) /* with tiles, which the system has granted this process */
#define PN_CPU_NEON (UINT64_C(1) << 32)
#define PN_CPU_DOTPROD (UINT64_C(1) << 33)
#define PN_CPU_I8MM (UINT64_C(1) << 34)
#define PN_CPU_FP16 (UINT64_C(1) << 35)
#define PN_CPU_SVE (UINT64_C(1) << 36)

/* What the files *_avx2.c, *_avx512.c and *_amx.c are compiled for. */
#define PN_LEVEL_AVX2 (PN_CPU_AVX2 | PN_CPU_FMA | PN_CPU_F16C)
#define PN_LEVEL_AVX512 (PN_LEVEL_AVX2 | PN_CPU_AVX512 | PN_CPU_AVX512_VNNI)
#define PN_LEVEL_AMX (PN_LEVEL_AVX512 | PN_CPU_AMX_INT8)

/* ---- roles ------------------------------------------------------------------------------------------------------- */

/* What core, architectures and tokenizers ask of a model file, by neutral names; each format plugin maps them to its
 * own keys. A role is a string, so that new ones cost nothing. Scalars unless "per layer" (a scalar, or an array with
 * one item per layer). */
#define PN_ROLE_ARCHITECTURE "architecture"     /* string */
#define PN_ROLE_NAME "name"                     /* string: what people call the model */
#define PN_ROLE_CONTEXT_LENGTH "context_length" /* tokens the model was trained for */
#define PN_ROLE_VOCAB_SIZE "vocab_size"
#define PN_ROLE_BLOCK_COUNT "block_count"
#define PN_ROLE_EMBEDDING_LENGTH "embedding_length"
#define PN_ROLE_FEED_FORWARD "feed_forward_length"      /* per layer */
#define PN_ROLE_HEAD_COUNT "attention.head_count"       /* per layer */
#define PN_ROLE_HEAD_COUNT_KV "attention.head_count_kv" /* per layer; absent: as many as heads */
#define PN_ROLE_KEY_LENGTH "attention.key_length"       /* absent: embedding_length / head_count */
#define PN_ROLE_VALUE_LENGTH "attention.value_length"   /* absent: as key_length */
#define PN_ROLE_RMS_EPS "attention.rms_epsilon"
#define PN_ROLE_NORM_EPS "attention.norm_epsilon"
#define PN_ROLE_SLIDING_WINDOW "attention.sliding_window"
#define PN_ROLE_ATTN_SCALE "attention.scale"
#define PN_ROLE_ROPE_DIMS "rope.dimension_count" /* absent: key length */
#define PN_ROLE_ROPE_BASE "rope.freq_base"
#define PN_ROLE_ROPE_PAIRING \
    "rope.pairing" /* string "interleaved" (x0,x1) or "halves" (x0,x[d/2]) of this file's rows */
#define PN_ROLE_ROPE_SCALING "rope.scaling.type" /* string: "none", "linear", "yarn", "longrope" */
#define PN_ROLE_ROPE_FACTOR "rope.scaling.factor"
#define PN_ROLE_ROPE_ORIG_CONTEXT "rope.scaling.original_context_length"
#define PN_ROLE_ROPE_ATTN_FACTOR "rope.scaling.attn_factor"
#define PN_ROLE_ROPE_BETA_FAST "rope.scaling.yarn_beta_fast"
#define PN_ROLE_ROPE_BETA_SLOW "rope.scaling.yarn_beta_slow"
#define PN_ROLE_ROPE_EXT_FACTOR "rope.scaling.yarn_ext_factor"
#define PN_ROLE_TOKENIZER "tokenizer.model"         /* string: the kind of tokenizer, as the file calls it */
#define PN_ROLE_PRE_TOKENIZER "tokenizer.pre"       /* string */
#define PN_ROLE_TOKENS "tokenizer.tokens"           /* array of strings, index = token id */
#define PN_ROLE_TOKEN_TYPES "tokenizer.token_types" /* array of integers, PN_TOKEN_* */
#define PN_ROLE_SCORES "tokenizer.scores"           /* array of floats */
#define PN_ROLE_MERGES "tokenizer.merges"           /* array of strings "left right", best first */
#define PN_ROLE_BOS "tokenizer.bos"                 /* token ids */
#define PN_ROLE_EOS "tokenizer.eos"
#define PN_ROLE_EOT "tokenizer.eot"
#define PN_ROLE_UNK "tokenizer.unk"
#define PN_ROLE_SEP "tokenizer.sep"
#define PN_ROLE_PAD "tokenizer.pad"
#define PN_ROLE_ADD_BOS "tokenizer.add_bos"                   /* bool */
#define PN_ROLE_ADD_EOS "tokenizer.add_eos"                   /* bool */
#define PN_ROLE_ADD_SPACE_PREFIX "tokenizer.add_space_prefix" /* bool */
#define PN_ROLE_CHAT_TEMPLATE "chat_template"                 /* string */

/* Kinds of tokens in PN_ROLE_TOKEN_TYPES. */
enum {
    PN_TOKEN_NORMAL = 1,
    PN_TOKEN_UNKNOWN = 2,
    PN_TOKEN_CONTROL = 3,
    PN_TOKEN_USER = 4,
    PN_TOKEN_UNUSED = 5,
    PN_TOKEN_BYTE = 6
};

/* Answer to a role question. */
typedef struct pn_role_value {
    uint32_t struct_size;
    uint32_t present; /* 0: the file does not say */
    char key[192];    /* the file's own key for this role, for messages; "" when the format has none */
    pn_value value;   /* when present; points into the file */
} pn_role_value;

/* ---- source and file, for format plugins ------------------------------------------------------------------------- */

enum { PN_SOURCE_FILE = 1, PN_SOURCE_BUFFER = 2, PN_SOURCE_FOLDER = 3 };

typedef struct pn_source_info {
    uint32_t struct_size;
    uint32_t kind;    /* PN_SOURCE_* */
    const char *name; /* path as the user gave it, or the buffer's label; for messages only */
    const void *data; /* first byte, any alignment; NULL for a folder */
    uint64_t size;    /* bytes */
} pn_source_info;

enum {
    /* The metadata was copied from a file whose tensors had other types: what the format's own keys say of the types
     * (kind of file, version of the quantization) must be brought up to date, or added. */
    PN_WRITER_RETYPED = 1u
};

/* What a format learns of a file that it is to write. */
typedef struct pn_writer_info {
    uint32_t struct_size;
    uint32_t flags;    /* PN_WRITER_* */
    const char *path;  /* for messages only */
    uint64_t position; /* bytes put so far */
    size_t n_values, n_tensors;
} pn_writer_info;

/* A model file format. Registered by pn_host_register_format. */
typedef struct pn_format {
    uint32_t struct_size;
    uint32_t reserved;
    const char *name; /* identity */
    const char *summary;

    /* How sure is the plugin that it can open this? 0 = not mine, 100 = certain (magic number). Reads only a few bytes
     * and allocates nothing. A malformed file of the right magic still scores, so that open can say what is wrong.
     * [any, at once] */
    int32_t (*probe)(const pn_host *host, const pn_source *source);

    /* Read the header only: add every metadata value and every tensor with pn_host_file_add_*. `source` lives as long
     * as `file`; memory for arrays and names comes from pn_host_file_alloc (freed with the file). Every tensor must lie
     * inside the source. On failure the host frees what was added. `*state` (may stay NULL) is handed to the other
     * callbacks. */
    pn_status (*open)(const pn_host *host, pn_source *source, pn_file *file, void **state, pn_error *err);

    /* The file's answer to a role (PN_ROLE_*): fill key, present and value. An unknown role: key "", present 0, PN_OK.
     * May make up a value the format implies. The string may be written to memory of pn_host_file_alloc. [any, at once]
     */
    pn_status (*role)(const pn_host *host, pn_file *file, void *state, const char *role, pn_role_value *out,
                      pn_error *err);

    /* The file's own name of the tensor that architectures call `neutral` ("blk.3.attn_q.weight", see kit/plan.h),
     * written with its terminator to `name` of `capacity` bytes; PN_E_FULL when it does not fit. NULL: names are the
     * neutral ones. [any, at once] */
    pn_status (*tensor_name)(const pn_host *host, const pn_file *file, void *state, const char *neutral, char *name,
                             size_t capacity, pn_error *err);

    /* Release `state`. May be NULL. */
    void (*close)(const pn_host *host, void *state);

    /* Writing a new file; all NULL: the format is only read. What the file is to hold is asked of the host
     * (pn_host_writer_info, _value_at, _tensor_at), bytes are appended with pn_host_writer_put. The calls come in this
     * order, from one thread at a time:
     *   write_begin   once: everything that stands before the tensors' bytes. PN_E_UNSUPPORTED for what the format
     *                 cannot hold (a type without a number, a name that is too long), before anything is written.
     *                 `*state` (may stay NULL) is handed to the others.
     *   write_tensor  before the bytes of each tensor, in order: what stands between it and the one before (padding).
     *                 The host appends the bytes themselves. NULL: nothing does.
     *   write_end     after the last tensor: what closes the file. NULL: nothing.
     *   write_close   once after write_begin succeeded, also when something failed: release `state`. May be NULL. */
    pn_status (*write_begin)(const pn_host *host, pn_writer *writer, void **state, pn_error *err);
    pn_status (*write_tensor)(const pn_host *host, pn_writer *writer, void *state, size_t index, pn_error *err);
    pn_status (*write_end)(const pn_host *host, pn_writer *writer, void *state, pn_error *err);
    void (*write_close)(const pn_host *host, void *state);
} pn_format;

/* ---- quantization types ------------------------------------------------------------------------------------------ */

enum {
    PN_QUANT_FLOAT = 1u /* elements are plain floating-point numbers: matmuls use float activations in every mode */
};

/* A quantization type: how a row of numbers lies in memory. Registered by pn_host_register_quant. */
typedef struct pn_quant {
    uint32_t struct_size;
    uint32_t flags;   /* PN_QUANT_* */
    const char *name; /* identity, lower case, e.g. "nib2" */
    const char *summary;
    uint32_t block_elems; /* elements per block, >= 1 */
    uint32_t block_bytes; /* bytes per block, >= 1 */

    /* Bytes of a row of `cols` elements; 0 = such a row cannot be. NULL: cols / block_elems * block_bytes, cols a
     * multiple of block_elems. [any, at once] */
    uint64_t (*row_bytes)(uint64_t cols);

    /* out[0..n-1] = the n elements of the row that begins at `row`. n is a multiple of block_elems; both may have any
     * alignment. Bit-exact with the type's published definition. Required. [any, at once] */
    void (*dequantize)(const void *row, float *out, size_t n);

    /* The inverse: n (a multiple of block_elems) floats to blocks. `importance`: n non-negative weights of the squared
     * error, or NULL. NULL: the type cannot be made here. [any, at once] */
    pn_status (*quantize)(const float *x, const float *importance, void *row, size_t n, pn_error *err);

    /* Swap the byte order of the wide fields of the row's blocks, in place. NULL: no field is wider than a byte. [any,
     * at once] */
    void (*byteswap)(void *row, size_t n);

    /* For use as a KV cache type; optional. dot: sum of row[i] * x[i]; axpy: y[i] += a * row[i]; i < n, a multiple of
     * block_elems. A host may do without them: a type with `quantize` serves as a cache type. [any, at once] */
    float (*dot)(const void *row, const float *x, size_t n);
    void (*axpy)(float a, const void *row, float *y, size_t n);

    /* Side tensors: suffixes that replace "weight" in a tensor's name ("scale" -> "blk.0.ffn_up.scale"); what the file
     * has of them arrives in pn_qweight.side in this order. */
    const char *const *side_suffixes;
    uint32_t n_side;
    uint32_t reserved;
} pn_quant;

/* ---- packings of activations and kernels ------------------------------------------------------------------------- */

enum { PN_EXACT = 1, PN_FAST = 2 }; /* precision classes; [runtime] activations chooses which a session uses */

/* A packing: how activation columns are stored for kernels. Registered by pn_host_register_packing; several
 * registrations of one name by one plugin (one per CPU level) must produce the same layout. The core brings "f32"
 * (plain floats, PN_EXACT), "i16" (16-bit integers, PN_EXACT) and "i8" (8-bit integers, PN_FAST); layouts in
 * kit/pack.h. */
typedef struct pn_packing {
    uint32_t struct_size;
    uint32_t precision; /* PN_EXACT or PN_FAST */
    const char *name;
    uint64_t cpu_features;
    int32_t score; /* the highest that runs here wins */
    uint32_t reserved;

    /* Bytes of one packed column of `cols` elements, a multiple of 64; 0 = such a column cannot be. Columns of a batch
     * lie that far apart. [any, at once] */
    size_t (*column_bytes)(size_t cols);

    /* Pack one column: x[0..cols-1] -> out (aligned to 64 bytes, column_bytes(cols) long). The result depends on x and
     * cols only. [any, at once] */
    void (*pack)(const float *x, size_t cols, void *out);
} pn_packing;

/* What a matmul gets: out[c * out_stride + r] = sum over k of W[r][k] * x_c[k] for row_begin <= r < row_end, 0 <= c <
 * columns. */
typedef struct pn_matmul_args {
    uint32_t struct_size;
    uint32_t plane; /* reserved: 0 */
    const pn_qweight *weight;
    uint64_t row_begin, row_end;
    const void *packed;   /* column c begins at packed + c * packed_stride; aligned to 64 */
    size_t packed_stride; /* bytes */
    size_t columns;       /* >= 1 */
    float *out;        /* rows are absolute: element (r, c) is out[c * out_stride + r]; nothing else may be written */
    size_t out_stride; /* floats */
    void *scratch;     /* aligned to 64; pn_kernel.scratch_bytes(...) long; this thread's own */
    size_t scratch_bytes;
    const void *ahead; /* what this thread will most likely read next, to ask for with prefetch instructions alone, as
                          it may lie anywhere. NULL: not known */
} pn_matmul_args;

/* A kernel for one (quantization type, packing, CPU features) triple. Registered by pn_host_register_kernel, also for
 * types of other plugins (pins decide between rivals). Results for a column must not depend on `columns`, on the row
 * range or on the thread: the order of every sum is a function of the position in the sum alone. */
typedef struct pn_kernel {
    uint32_t struct_size;
    int32_t score;       /* the highest that runs here wins; 0 = only when pinned by name */
    const char *name;    /* identity, e.g. "nib2.i16.avx512" */
    const char *quant;   /* name of the type */
    const char *packing; /* name of the packing */
    uint64_t cpu_features;
    uint32_t row_tile;    /* preferred multiple of rows per call, >= 1 */
    uint32_t max_columns; /* most columns per call; 0 = any */

    /* Bytes of scratch for a call with this many columns of `cols` elements; NULL: none. Asked when a session is made,
     * for the most columns that a call can have, so it must not be less for more columns. [any, at once] */
    size_t (*scratch_bytes)(size_t cols, size_t columns);

    /* [any, at once] Returns PN_OK, or a status for what only the kernel can know (the host words the error). */
    pn_status (*matmul)(const pn_matmul_args *args);

    /* Can it handle this weight? NULL: any of its type. [any, at once] */
    int32_t (*accepts)(const pn_qweight *weight);
} pn_kernel;

/* ---- plan: values, weights, operations --------------------------------------------------------------------------- */

/* A value of the plan: for every token (or every token whose logits are wanted) one vector of `width` floats. 0 is no
 * value. */
typedef uint32_t pn_val;
/* A weight of the plan. 0 is no weight (an optional one that the file lacks). */
typedef uint32_t pn_wt;

enum { PN_WEIGHT_OPTIONAL = 1u };

/* What a model puts out. Pooled vectors come later. */
enum { PN_OUTPUT_LOGITS = 1 };

/* Ask for a tensor. Shapes outermost first: a matrix that maps `cols` inputs to `rows` outputs is {rows, cols}, a
 * vector {n}. */
typedef struct pn_weight_request {
    uint32_t struct_size;
    uint32_t flags;   /* PN_WEIGHT_* */
    const char *name; /* neutral name, see kit/plan.h */
    uint32_t n_dims;
    uint32_t reserved;
    uint64_t dims[4]; /* what must be found; 0 = any */
    uint64_t row_begin,
        rows; /* rows > 0: only rows row_begin .. row_begin + rows - 1 of the matrix (fused projections) */
} pn_weight_request;

/* One operation of the plan. The core knows (kit/plan.h has a word for each, with the formula):
 *   embed            weights: table                         params -
 *   rms_norm         x; scale                               pn_norm_params
 *   layer_norm       x; scale, bias or 0                    pn_norm_params
 *   linear           x; weight, bias or 0                   -
 *   rope             x; factors or 0, long factors or 0     pn_rope_params
 *   attention        q, k, v                                pn_attention_params
 *   add, mul         a, b (same width)                      -
 *   scale            x                                      pn_scale_params
 *   activation       x                                      pn_activation_params
 *   glu              gate, up: act(gate) * up               pn_activation_params
 *   slice            x: part of each vector                 pn_slice_params
 *   select           x: keep the tokens whose logits are wanted
 * and any name that a plugin registered with pn_host_register_op. */
typedef struct pn_op_call {
    uint32_t struct_size;
    uint32_t layer; /* for messages, and which KV cache layer an attention uses */
    const char *op;
    const pn_val *inputs;
    uint32_t n_inputs;
    uint32_t n_weights;
    const pn_wt *weights;
    const void *params; /* copied by the host */
    size_t params_size;
} pn_op_call;

typedef struct pn_norm_params {
    uint32_t struct_size;
    float eps;
} pn_norm_params;
typedef struct pn_scale_params {
    uint32_t struct_size;
    float factor;
} pn_scale_params;
typedef struct pn_slice_params {
    uint32_t struct_size;
    uint32_t begin, width;
} pn_slice_params;

enum { PN_ACT_SILU = 1, PN_ACT_GELU_TANH = 2, PN_ACT_GELU_ERF = 3, PN_ACT_RELU = 4 };
typedef struct pn_activation_params {
    uint32_t struct_size;
    uint32_t kind;
} pn_activation_params;

enum { PN_ROPE_INTERLEAVED = 1, PN_ROPE_HALVES = 2 };
enum { PN_ROPE_NONE = 0, PN_ROPE_LINEAR = 1, PN_ROPE_YARN = 2, PN_ROPE_LONGROPE = 3 };

/* Rotary embedding of each head's first n_dims elements (Su et al. 2021, arXiv:2104.09864). Pair i turns by
 * position * base^(-2i/n_dims), divided by the factors tensor's entry i when there is one, and changed by the scaling:
 * linear: position / factor. YaRN (Peng et al. 2023, arXiv:2309.00071): per-pair blend of the two by the ramp between
 * beta_fast and beta_slow; cos and sin times attn_factor * (1 + 0.1 ln factor). Longrope: `factors` when the session's
 * context is at most original_context, else the long factors; cos and sin times attn_factor. */
typedef struct pn_rope_params {
    uint32_t struct_size;
    uint32_t head_size; /* elements per head; the value's width is a multiple */
    uint32_t n_dims;    /* rotated elements per head, even, <= head_size */
    uint32_t pairing;   /* PN_ROPE_INTERLEAVED or PN_ROPE_HALVES */
    uint32_t scaling;   /* PN_ROPE_NONE ... */
    float base;
    float factor;               /* >= 1 stretches; 1 when unused */
    float attn_factor;          /* 1 when unused */
    float beta_fast, beta_slow; /* YaRN: 32 and 1 by default */
    float ext_factor;           /* YaRN: 1 = full blend, 0 = none */
    uint32_t original_context;  /* YaRN, longrope */
} pn_rope_params;

/* Causal attention with grouped queries: softmax(scale * q k^T + mask) v, keys and values of the same sequence at
 * positions <= the query's, and > position - window when window > 0. Writes k and v to the sequence's cache. */
typedef struct pn_attention_params {
    uint32_t struct_size;
    uint32_t n_heads, n_kv_heads;
    uint32_t key_size, value_size; /* per head */
    uint32_t window;               /* 0 = all */
    float scale;                   /* usually 1/sqrt(key_size) */
    float softcap;                 /* > 0: cap * tanh(score / cap); 0 = none */
    uint32_t flags;                /* reserved: 0 (non-causal masks later) */
} pn_attention_params;

/* ---- operations that the core lacks ------------------------------------------------------------------------------ */

enum {
    PN_AXIS_TOKENS = 1, /* run(begin, end) is a range of tokens; an operation local to each token */
    PN_AXIS_UNITS = 2   /* run(begin, end) is a range of what `units` counted; all inputs of all tokens are ready */
};

/* What a registered operation sees while it runs. Vector of token t of input i: inputs[i] + t * input_widths[i]. */
typedef struct pn_op_args {
    uint32_t struct_size;
    uint32_t n_inputs;
    const float *const *inputs;
    const uint32_t *input_widths;
    float *output; /* token t's vector at output + t * output_width */
    uint32_t output_width;
    uint32_t n_weights;
    const pn_qweight *const *weights; /* a vector is a matrix of one row; entries may be NULL (absent weights) */
    const void *params;
    size_t params_size;
    size_t n_tokens;
    const int32_t *positions; /* [n_tokens] */
    const int32_t *sequences; /* [n_tokens] */
    /* [sequence]: this operation's state of that sequence, or NULL when state_bytes is NULL. Host's memory, aligned to
     * 16, at the same place as long as the session. */
    void *const *state;
    void *scratch;      /* this thread's own, aligned to 64, scratch_bytes long */
    uint32_t layer;
    uint32_t thread; /* index of the calling thread in the team */
} pn_op_args;

typedef struct pn_op {
    uint32_t struct_size;
    uint32_t axis;    /* PN_AXIS_* */
    const char *name; /* identity, e.g. "example.swish_gate" */
    const char *summary;

    /* Check a call (number of inputs, widths, params) and say the width of the result, 1 or more. `widths` are those of
     * the inputs; both live during the call. Called by the thread that opens the model. */
    pn_status (*shape)(const pn_host *host, const pn_op_call *call, const uint32_t *widths, uint32_t *out_width,
                       pn_error *err);
    /* Bytes of scratch per thread, whatever the number of tokens; NULL: none. Asked when a session is made, also by
     * several threads. [any, at once] */
    size_t (*scratch_bytes)(const pn_op_call *call, const uint32_t *widths);
    /* Bytes of state that each sequence keeps between evaluations (zeroed when a sequence begins, copied when it is);
     * NULL: none. With it `axis` must be PN_AXIS_UNITS, since tokens of a sequence follow each other, and the inputs
     * must not be selected. A model with states can be trimmed to nothing only, and not shifted. [any, at once] */
    size_t (*state_bytes)(const pn_op_call *call, const uint32_t *widths);
    /* PN_AXIS_UNITS: number of independent units for this many tokens (n_tokens > 0; scratch is not set). Every thread
     * asks, and the answer must be the same. [any, at once] */
    size_t (*units)(const pn_op_args *args);
    /* Do [begin, end). Results must not depend on how the range is cut. A failure ends the evaluation, which is undone;
     * the host words the error. Everything in `args` lives during the call. [any, at once] */
    pn_status (*run)(const pn_op_args *args, size_t begin, size_t end);
} pn_op;

/* ---- architectures ----------------------------------------------------------------------------------------------- */

/* A model architecture: reads parameters, writes the plan, does no arithmetic. Registered by pn_host_register_arch. */
typedef struct pn_arch {
    uint32_t struct_size;
    uint32_t n_names;
    const char *const *names; /* values of PN_ROLE_ARCHITECTURE that it answers to */
    const char *summary;

    /* Read and check metadata (pn_host_file_role, kit/model.h) into `*params`, memory of pn_host_alloc that `release`
     * frees, once, whatever becomes of the rest. `name` is the one of `names` that the file (or an alias) asked for. On
     * failure *params stays NULL. configure, build and release of one model come from one thread, several models may
     * be opened at once. */
    pn_status (*configure)(const pn_host *host, pn_file *file, const char *name, void **params, pn_error *err);

    /* Write the plan (pn_host_plan_*, or the words of kit/plan.h). One value is given to pn_host_plan_output; every
     * other must be used by some operation. */
    pn_status (*build)(const pn_host *host, pn_plan *plan, const void *params, pn_error *err);

    void (*release)(const pn_host *host, void *params);
} pn_arch;

/* ---- tokenizers -------------------------------------------------------------------------------------------------- */

enum {
    PN_ENCODE_SPECIAL = 1u,  /* recognise the text of control tokens as those tokens; else they are plain text */
    PN_ENCODE_ADD_BOS = 2u,  /* begin with the start token if this vocabulary wants one */
    PN_ENCODE_ADD_EOS = 4u,  /* end with the end token if this vocabulary wants one */
    PN_ENCODE_CONTINUED = 8u /* text goes on after other text or a special token: no dummy space prefix */
};
enum {
    PN_DECODE_SPECIAL = 1u, /* render control tokens as their text; else they give no bytes */
    PN_DECODE_FIRST = 2u
}; /* the piece is the first of a text (leading-space rule) */

typedef struct pn_tokenizer_info {
    uint32_t struct_size;
    int32_t n_tokens;
    int32_t bos, eos, eot, unk, pad; /* -1 = none */
    int32_t add_bos, add_eos;        /* what the vocabulary wants */
} pn_tokenizer_info;

/* Settings that the configuration may give to a tokenizer. Strings live during the call only. */
typedef struct pn_tokenizer_options {
    uint32_t struct_size;
    int32_t add_bos;     /* -1 = as the file says, 0, 1 */
    const char *pattern; /* pre-tokenizer pattern (PCRE2 syntax) in place of the file's, or NULL */
    const char *pre;     /* name of the pre-tokenizer in place of the file's, or NULL */
} pn_tokenizer_options;

typedef struct pn_tokenizer_type {
    uint32_t struct_size;
    uint32_t n_names;
    const char *const *names; /* values of PN_ROLE_TOKENIZER that it answers to */
    const char *summary;

    /* Build a tokenizer from the file's roles. `file` outlives it. Everything is checked here: an id outside the
     * vocabulary, arrays of different lengths, malformed merges are errors (or warnings by pn_host_log), never
     * surprises in encode. On failure the host calls `close` if *state was set. */
    pn_status (*open)(const pn_host *host, pn_file *file, const pn_tokenizer_options *options, void **state,
                      pn_error *err);
    void (*close)(const pn_host *host, void *state);
    /* Fill *out, which holds -1 and 0 for nothing; its struct_size is the host's. [any, at once] */
    pn_status (*info)(const void *state, pn_tokenizer_info *out);

    /* Text (any bytes) to token ids. Writes at most `capacity` ids and always the full count to *count; PN_E_FULL when
     * count > capacity (nothing is written past it; ids may be NULL when capacity is 0). Near-linear in the text's
     * length. [any, at once] */
    pn_status (*encode)(const pn_host *host, const void *state, const char *text, size_t size, uint32_t flags,
                        int32_t *ids, size_t capacity, size_t *count, pn_error *err);

    /* One token to bytes (possibly part of a character). Writes at most `capacity` bytes and always the full size to
     * *size; PN_E_FULL when size > capacity. An id outside the vocabulary is PN_E_RANGE. [any, at once] */
    pn_status (*decode)(const void *state, int32_t id, uint32_t flags, char *bytes, size_t capacity, size_t *size,
                        pn_error *err);

    /* PN_TOKEN_* of an id, or 0 when outside the vocabulary. [any, at once] */
    int32_t (*token_type)(const void *state, int32_t id);
} pn_tokenizer_type;

/* ---- chat templates ---------------------------------------------------------------------------------------------- */

typedef struct pn_message {
    pn_str role; /* "system", "user", "assistant" */
    pn_str content;
} pn_message;

/* Receives rendered text. markup != 0: written by the template, control tokens in it are recognised; 0: text of a user,
 * never a control token. A status other than PN_OK stops the rendering and is returned. */
typedef pn_status (*pn_template_emit)(void *arg, int32_t markup, const char *text, size_t size, pn_error *err);

typedef struct pn_template_type {
    uint32_t struct_size;
    uint32_t reserved;
    const char *name; /* value of [prompt] template */
    const char *summary;

    /* How well does the template text of a file (PN_ROLE_CHAT_TEMPLATE) match? 0 = not this one, 100 = surely. [any, at
     * once] */
    int32_t (*recognise)(const char *source, size_t size);

    /* Render messages: message i begins i * stride bytes after `messages`. `source` is the file's template text or
     * empty (a default system message may be taken from it). `first`: index of the first message to render (those
     * before were rendered earlier and only give context); add_generation: end with the opening of an assistant's turn.
     * [any, at once] */
    pn_status (*render)(const pn_host *host, pn_str source, const pn_message *messages, size_t stride,
                        size_t n_messages, size_t first, int32_t add_generation, pn_template_emit emit, void *arg,
                        pn_error *err);

    /* Text that ends an assistant's turn ("<|im_end|>"), a control token's text. May be NULL. */
    const char *end_of_turn;
} pn_template_type;

/* ---- the host's table -------------------------------------------------------------------------------------------- */

enum { PN_LOG_DEBUG = 0, PN_LOG_INFO = 1, PN_LOG_WARN = 2 };

/* Functions the host offers. One table per loaded plugin; valid for the life of the process. Call them through the
 * pn_host_* wrappers below (same name, same arguments), which check that the slot exists. All are safe to call from any
 * thread, except that registration works only inside `init`. `err` may be NULL. Strings passed in are copied unless
 * "static" is said. */
struct pn_host {
    uint32_t struct_size;
    uint16_t abi_major, abi_minor;
    void *context; /* the host's own */

    /* *out = memory for count * size bytes, zeroed, or PN_E_NOMEM (also when the product overflows). Owned by the
     * caller; freed by `free`. */
    pn_status (*alloc)(const pn_host *host, size_t count, size_t size, void **out, pn_error *err);
    /* Grow or shrink *inout (NULL or from alloc) to count * size bytes; new bytes are not zeroed; on failure *inout
     * stays valid. */
    pn_status (*resize)(const pn_host *host, size_t count, size_t size, void **inout, pn_error *err);
    /* Free what alloc or resize gave; NULL is fine. */
    pn_status (*free)(const pn_host *host, void *memory, pn_error *err);
    /* Say something to whoever runs the program. Level PN_LOG_*. One line, no newline. */
    pn_status (*log)(const pn_host *host, uint32_t level, const char *message, pn_error *err);
    /* *out = PN_CPU_* bits usable here, after PANTHEON_CPU. */
    pn_status (*cpu_features)(const pn_host *host, uint64_t *out, pn_error *err);

    /* Registration, only inside `init`. The struct is copied as far as its struct_size goes; names, arrays and
     * functions in it are static (they stay valid for the life of the process). PN_E_CONFLICT when another plugin holds
     * the name and no pin decides. */
    pn_status (*register_format)(const pn_host *host, const pn_format *format, pn_error *err);
    pn_status (*register_quant)(const pn_host *host, const pn_quant *quant, pn_error *err);
    pn_status (*register_packing)(const pn_host *host, const pn_packing *packing, pn_error *err);
    pn_status (*register_kernel)(const pn_host *host, const pn_kernel *kernel, pn_error *err);
    pn_status (*register_op)(const pn_host *host, const pn_op *op, pn_error *err);
    pn_status (*register_arch)(const pn_host *host, const pn_arch *arch, pn_error *err);
    pn_status (*register_tokenizer)(const pn_host *host, const pn_tokenizer_type *tokenizer, pn_error *err);
    pn_status (*register_template)(const pn_host *host, const pn_template_type *type, pn_error *err);

    /* What a source is. The data pointer stays valid as long as the source. */
    pn_status (*source_info)(const pn_host *host, const pn_source *source, pn_source_info *out, pn_error *err);
    /* Open a sibling (or, for a folder, a member) by its base name: no separators, no "..", no link that leaves the
     * folder. The result belongs to the file being opened and lives as long as it. PN_E_NOT_FOUND, PN_E_DENIED,
     * PN_E_IO. */
    pn_status (*open_sibling)(const pn_host *host, pn_source *source, const char *basename, pn_source **out,
                              pn_error *err);

    /* Memory that is freed with the file, zeroed, aligned to 16. Only inside `open` and `role`. */
    pn_status (*file_alloc)(const pn_host *host, pn_file *file, size_t count, size_t size, void **out, pn_error *err);
    /* Add a metadata value. `key`'s bytes and what `value` points to must live as long as the file (mapping or
     * file_alloc); PN_E_FORMAT when the key is empty or already there. Only inside `open`. */
    pn_status (*file_add_value)(const pn_host *host, pn_file *file, pn_str key, const pn_value *value, pn_error *err);
    /* Add a tensor; the struct is copied, name and data as above. PN_E_FORMAT when the name is already there. Only
     * inside `open`. */
    pn_status (*file_add_tensor)(const pn_host *host, pn_file *file, const pn_tensor *tensor, pn_error *err);
    /* A value by the file's own key (PN_E_NOT_FOUND). The pointer lives as long as the file. */
    pn_status (*file_value)(const pn_host *host, const pn_file *file, pn_str key, const pn_value **out, pn_error *err);
    /* Answer to a role: asks the file's format. present = 0 when the file does not say. */
    pn_status (*file_role)(const pn_host *host, pn_file *file, const char *role, pn_role_value *out, pn_error *err);
    /* A tensor by its neutral name (PN_E_NOT_FOUND names it). */
    pn_status (*file_tensor)(const pn_host *host, pn_file *file, const char *neutral, const pn_tensor **out,
                             pn_error *err);
    /* Number (in a file's own numbering) to type name: what [quant] alias.N says, else `name` (static or NULL). When
     * the name is an alias's, *elems and *bytes are set from the registered type (PN_E_NOT_FOUND when it is not
     * loaded). */
    pn_status (*quant_alias)(const pn_host *host, uint64_t number, const char **name, uint32_t *elems, uint32_t *bytes,
                             pn_error *err);

    /* Plan building, only inside pn_arch.build. plan_weight finds a tensor and checks its shape: an error names the
     * tensor, what was found and what was expected. *out = 0 for an optional tensor that is absent. */
    pn_status (*plan_weight)(const pn_host *host, pn_plan *plan, const pn_weight_request *request, pn_wt *out,
                             pn_error *err);
    /* Append an operation; *out is its value. Unknown names, wrong numbers of inputs and widths that do not fit are
     * errors; so are (PN_E_UNSUPPORTED) parameters that this host does not know and that are not zero. */
    pn_status (*plan_op)(const pn_host *host, pn_plan *plan, const pn_op_call *call, pn_val *out, pn_error *err);
    /* This value is what the model puts out. kind: PN_OUTPUT_LOGITS (its width is the vocabulary's size); others
     * PN_E_UNSUPPORTED. */
    pn_status (*plan_output)(const pn_host *host, pn_plan *plan, pn_val value, uint32_t kind, pn_error *err);

    /* Writing, only inside the write_* callbacks of a format. */
    pn_status (*writer_info)(const pn_host *host, const pn_writer *writer, pn_writer_info *out, pn_error *err);
    /* Metadata value `index` in order; pointers live as long as write_begin runs. PN_E_RANGE past the end. */
    pn_status (*writer_value_at)(const pn_host *host, const pn_writer *writer, size_t index, pn_str *key,
                                 const pn_value **value, pn_error *err);
    /* Tensor `index` in order: name, dims, type, size (data NULL, offset 0); lives as long as the writer. */
    pn_status (*writer_tensor_at)(const pn_host *host, const pn_writer *writer, size_t index, const pn_tensor **out,
                                  pn_error *err);
    /* Append bytes (NULL: that many zeros). PN_E_IO. */
    pn_status (*writer_put)(const pn_host *host, pn_writer *writer, const void *data, size_t size, pn_error *err);
    /* The inverse of quant_alias: the number N for which [quant] alias.N gives this type (the lowest of several), by
     * its name or its plugin. PN_E_NOT_FOUND. */
    pn_status (*quant_number)(const pn_host *host, const char *name, uint64_t *number, pn_error *err);
};

/* ---- negotiation: one checked wrapper per slot ------------------------------------------------------------------- */

#define PN_HOST_HAS(host, slot) ((host)->struct_size >= offsetof(pn_host, slot) + sizeof((host)->slot) && (host)->slot)

PN_UNUSED static inline pn_status pn_host_lacks(const pn_host *host, const char *slot, const char *since, pn_error *err)
{
    return pn_fail(err, PN_E_ABI, "this plugin calls '%s' and needs host >= %s, but the host is %u.%u: update Pantheon",
                   slot, since, (unsigned)host->abi_major, (unsigned)host->abi_minor);
}

#define PN_HOST_SLOT(since, slot, params, args)                                                    \
    PN_UNUSED static inline pn_status pn_host_##slot params                                        \
    {                                                                                              \
        return PN_HOST_HAS(host, slot) ? host->slot args : pn_host_lacks(host, #slot, since, err); \
    }

PN_HOST_SLOT("1.0", alloc, (const pn_host *host, size_t count, size_t size, void **out, pn_error *err),
             (host, count, size, out, err))
PN_HOST_SLOT("1.0", resize, (const pn_host *host, size_t count, size_t size, void **inout, pn_error *err),
             (host, count, size, inout, err))
PN_HOST_SLOT("1.0", free, (const pn_host *host, void *memory, pn_error *err), (host, memory, err))
PN_HOST_SLOT("1.0", log, (const pn_host *host, uint32_t level, const char *message, pn_error *err),
             (host, level, message, err))
PN_HOST_SLOT("1.0", cpu_features, (const pn_host *host, uint64_t *out, pn_error *err), (host, out, err))
PN_HOST_SLOT("1.0", register_format, (const pn_host *host, const pn_format *format, pn_error *err), (host, format, err))
PN_HOST_SLOT("1.0", register_quant, (const pn_host *host, const pn_quant *quant, pn_error *err), (host, quant, err))
PN_HOST_SLOT("1.0", register_packing, (const pn_host *host, const pn_packing *packing, pn_error *err),
             (host, packing, err))
PN_HOST_SLOT("1.0", register_kernel, (const pn_host *host, const pn_kernel *kernel, pn_error *err), (host, kernel, err))
PN_HOST_SLOT("1.0", register_op, (const pn_host *host, const pn_op *op, pn_error *err), (host, op, err))
PN_HOST_SLOT("1.0", register_arch, (const pn_host *host, const pn_arch *arch, pn_error *err), (host, arch, err))
PN_HOST_SLOT("1.0", register_tokenizer, (const pn_host *host, const pn_tokenizer_type *tokenizer, pn_error *err),
             (host, tokenizer, err))
PN_HOST_SLOT("1.0", register_template, (const pn_host *host, const pn_template_type *type, pn_error *err),
             (host, type, err))
PN_HOST_SLOT("1.0", source_info, (const pn_host *host, const pn_source *source, pn_source_info *out, pn_error *err),
             (host, source, out, err))
PN_HOST_SLOT("1.0", open_sibling,
             (const pn_host *host, pn_source *source, const char *basename, pn_source **out, pn_error *err),
             (host, source, basename, out, err))
PN_HOST_SLOT("1.0", file_alloc,
             (const pn_host *host, pn_file *file, size_t count, size_t size, void **out, pn_error *err),
             (host, file, count, size, out, err))
PN_HOST_SLOT("1.0", file_add_value,
             (const pn_host *host, pn_file *file, pn_str key, const pn_value *value, pn_error *err),
             (host, file, key, value, err))
PN_HOST_SLOT("1.0", file_add_tensor, (const pn_host *host, pn_file *file, const pn_tensor *tensor, pn_error *err),
             (host, file, tensor, err))
PN_HOST_SLOT("1.0", file_value,
             (const pn_host *host, const pn_file *file, pn_str key, const pn_value **out, pn_error *err),
             (host, file, key, out, err))
PN_HOST_SLOT("1.0", file_role,
             (const pn_host *host, pn_file *file, const char *role, pn_role_value *out, pn_error *err),
             (host, file, role, out, err))
PN_HOST_SLOT("1.0", file_tensor,
             (const pn_host *host, pn_file *file, const char *neutral, const pn_tensor **out, pn_error *err),
             (host, file, neutral, out, err))
PN_HOST_SLOT("1.0", quant_alias,
             (const pn_host *host, uint64_t number, const char **name, uint32_t *elems, uint32_t *bytes, pn_error *err),
             (host, number, name, elems, bytes, err))
PN_HOST_SLOT("1.0", plan_weight,
             (const pn_host *host, pn_plan *plan, const pn_weight_request *request, pn_wt *out, pn_error *err),
             (host, plan, request, out, err))
PN_HOST_SLOT("1.0", plan_op, (const pn_host *host, pn_plan *plan, const pn_op_call *call, pn_val *out, pn_error *err),
             (host, plan, call, out, err))
PN_HOST_SLOT("1.0", plan_output, (const pn_host *host, pn_plan *plan, pn_val value, uint32_t kind, pn_error *err),
             (host, plan, value, kind, err))
PN_HOST_SLOT("1.0", writer_info,
             (const pn_host *host, const pn_writer *writer, pn_writer_info *out, pn_error *err),
             (host, writer, out, err))
PN_HOST_SLOT("1.0", writer_value_at,
             (const pn_host *host, const pn_writer *writer, size_t index, pn_str *key, const pn_value **value,
              pn_error *err),
             (host, writer, index, key, value, err))
PN_HOST_SLOT("1.0", writer_tensor_at,
             (const pn_host *host, const pn_writer *writer, size_t index, const pn_tensor **out, pn_error *err),
             (host, writer, index, out, err))
PN_HOST_SLOT("1.0", writer_put,
             (const pn_host *host, pn_writer *writer, const void *data, size_t size, pn_error *err),
             (host, writer, data, size, err))
PN_HOST_SLOT("1.0", quant_number, (const pn_host *host, const char *name, uint64_t *number, pn_error *err),
             (host, name, number, err))

/* ---- the descriptor ---------------------------------------------------------------------------------------------- */

#define PN_PLUGIN_MAGIC "PANTHEON"         /* 8 bytes, not terminated in the descriptor */
#define PN_PLUGIN_SYMBOL "pantheon_plugin" /* the one exported symbol */
#define PN_NOTE_SECTION ".note.pantheon"
#define PN_NOTE_NAME "Pantheon" /* 8 characters and the terminator */
#define PN_NOTE_TYPE 1 /* desc: u16 major, u16 minor, then the id, terminated, padded with 0 to a multiple of 4 */

typedef struct pn_plugin {
    char magic[8];
    uint32_t struct_size;
    uint16_t abi_major, abi_minor;
    const char *id;        /* reverse domain name, e.g. "org.example.nib2"; letters, digits, '.', '_', '-' */
    const char *version;   /* dotted numbers, compared number by number: "1.10" > "1.9" */
    const char *licence;   /* SPDX expression */
    const char *summary;   /* one line */
    uint64_t cpu_features; /* PN_CPU_* bits without which nothing in it works; kernels state theirs one by one */
    /* Register everything. Called once per runtime; a failure undoes what was registered. */
    pn_status (*init)(const pn_host *host, pn_error *err);
} pn_plugin;

#define PN_STR_(x) #x
#define PN_STR(x) PN_STR_(x)
#ifdef __cplusplus
#define PN_EXTERN_C extern "C"
#else
#define PN_EXTERN_C extern
#endif

/* Define the descriptor and the ELF note. `id`, `version`, `licence`, `summary` are string literals. Use once per
 * plugin, at file level. */
#define PN_PLUGIN(id, version, licence, summary, cpu_features, init)                                  \
    __asm__(".pushsection " PN_NOTE_SECTION ",\"a\",%note\n"                                          \
            ".balign 4\n.long 2f-1f\n.long 4f-3f\n.long " PN_STR(                                     \
                PN_NOTE_TYPE) "\n"                                                                    \
                              "1:.asciz \"" PN_NOTE_NAME "\"\n2:.balign 4\n"                          \
                              "3:.short " PN_STR(PN_ABI_MAJOR) "\n.short " PN_STR(                    \
                                  PN_ABI_MINOR) "\n.asciz \"" id "\"\n.balign 4\n4:\n.popsection\n"); \
    PN_EXTERN_C PN_API const pn_plugin pantheon_plugin;                                               \
    const pn_plugin pantheon_plugin = {{'P', 'A', 'N', 'T', 'H', 'E', 'O', 'N'},                      \
                                       sizeof(pn_plugin),                                             \
                                       PN_ABI_MAJOR,                                                  \
                                       PN_ABI_MINOR,                                                  \
                                       id,                                                            \
                                       version,                                                       \
                                       licence,                                                       \
                                       summary,                                                       \
                                       cpu_features,                                                  \
                                       init};

#ifdef __cplusplus
}
#endif
#endif
