/* Pantheon's embedding API: load plugins, open a model file, evaluate tokens, sample, turn text into tokens and back.
 *
 *     pn_error err = {0};
 *     pn_config *cfg; pn_runtime *rt; pn_model *m; pn_session *s;
 *     pn_config_create(&cfg, &err);  pn_config_load(cfg, "model.ini", &err);
 *     pn_runtime_create(cfg, NULL, &rt, &err);
 *     pn_model_open(rt, NULL, &m, &err);              NULL: the path that [model] path gives
 *     pn_session_create(m, NULL, &s, &err);           NULL: what the configuration says
 *     pn_session_eval(s, items, n, &err);             logits: pn_session_logits(s, i)
 *
 * Conventions of every function here:
 * - It returns PN_OK or a failure, and on failure fills `err` (owned by the caller; NULL is allowed) and sets no
 * output.
 * - It never exits, aborts or prints. Messages for people go to the log callback of the runtime.
 * - `x_destroy(NULL)` does nothing. An object must be destroyed before the one it was made from (session, sampler,
 * tokenizer before model before runtime); a configuration may be destroyed as soon as the runtime is made.
 * - Strings are UTF-8 and terminated unless they are a pn_str. What a function returns as `const` pointer belongs to
 * the object it was asked of.
 * - Threads: a runtime, model, file and tokenizer are immutable once made and may be used by many threads at once; a
 * session, sampler or configuration by one thread at a time. Exceptions are said.
 * - Option structs begin with struct_size; zero in a field means "the default". Start them with PN_OPTIONS_INIT(type).
 */
#ifndef PANTHEON_PANTHEON_H
#define PANTHEON_PANTHEON_H

#include <pantheon/kit/types.h>
#include <pantheon/plugin.h>
#include <stdbool.h>

#define PN_VERSION "0.1.0"
#ifdef __cplusplus
template <class T> static inline T pn_options_init()
{
    T t = T();
    t.struct_size = static_cast<uint32_t>(sizeof(T));
    return t;
}
#define PN_OPTIONS_INIT(type) pn_options_init<type>()
#else
#define PN_OPTIONS_INIT(type)                 \
    (type)                                    \
    {                                         \
        .struct_size = (uint32_t)sizeof(type) \
    }
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The library's version, e.g. "0.1.0". */
PN_API const char *pn_version(void);
/* A short word for a status, e.g. "not found". Never NULL. */
PN_API const char *pn_status_name(pn_status status);

/* ---- allocation -------------------------------------------------------------------------------------------------- */

/* The allocator that everything in the library uses: realloc semantics (memory NULL = allocate, size 0 = free and
 * return NULL). */
typedef void *(*pn_alloc_fn)(void *arg, void *memory, size_t size);
/* Replace it, process-wide; NULL restores the C library's. Call before anything else; not thread-safe. */
PN_API void pn_set_allocator(pn_alloc_fn fn, void *arg);
/* Number of allocation calls so far (allocate and grow, not free), for tests. Thread-safe. */
PN_API uint64_t pn_allocation_count(void);

/* ---- configuration ----------------------------------------------------------------------------------------------- */

typedef struct pn_config pn_config;

/* Where a value came from, lowest precedence first. */
enum { PN_ORIGIN_DEFAULT = 0, PN_ORIGIN_MODEL = 1, PN_ORIGIN_INI = 2, PN_ORIGIN_COMMAND = 3 };

typedef struct pn_config_entry {
    uint32_t struct_size;
    uint32_t origin;     /* PN_ORIGIN_* */
    const char *section; /* "runtime" */
    const char *key;     /* "threads", or "alias.42" */
    const char *value;   /* as text, quotes removed; paths made absolute from the INI's folder */
    const char *source;  /* "file.ini:12", "command line", "model", "default" */
    const char *help;    /* one line about the key, with its range */
} pn_config_entry;

PN_API pn_status pn_config_create(pn_config **out, pn_error *err);
PN_API void pn_config_destroy(pn_config *config);
/* Read an INI file on top of what is there (last wins; lists append). Unknown sections and keys, values out of range,
 * lines that cannot be held whole, bad encodings: PN_E_CONFIG with file, line and the nearest known key; the
 * configuration is then as before. */
PN_API pn_status pn_config_load(pn_config *config, const char *path, pn_error *err);
/* The same from memory. `name` stands for the path in messages and its folder is where relative paths begin. */
PN_API pn_status pn_config_load_text(pn_config *config, const char *name, const char *text, size_t size, pn_error *err);
/* Set "section.key" from the command line (precedence over any INI), e.g. ("runtime.threads", "4"). Relative paths:
 * current folder. */
PN_API pn_status pn_config_set(pn_config *config, const char *name, const char *value, pn_error *err);
/* The same with another origin, for values that the model file gives (PN_ORIGIN_MODEL): they lose against INI and
 * command line. */
PN_API pn_status pn_config_set_origin(pn_config *config, const char *name, const char *value, uint32_t origin,
                                      pn_error *err);
/* Effective value of a key, e.g. ("runtime", "threads"); never NULL for a known key ("" = unset), NULL for an unknown
 * one. Lists: the first; see pn_config_item. */
PN_API const char *pn_config_text(const pn_config *config, const char *section, const char *key);
/* Item `index` of a list key ([plugins] load, path; [prompt] stop), or NULL past the end. */
PN_API const char *pn_config_item(const pn_config *config, const char *section, const char *key, size_t index);
/* As a number. Yes/no keys: 1 or 0. -1: an empty value, a word in place of a number (spin = auto), an unknown key. */
PN_API int64_t pn_config_int(const pn_config *config, const char *section, const char *key);
PN_API double pn_config_float(const pn_config *config, const char *section, const char *key);
/* Every effective value in a fixed order (known keys, then aliases, pins, biases): entry `index`, or PN_E_RANGE past
 * the end. Pointers live until the configuration changes. */
PN_API pn_status pn_config_entry_at(const pn_config *config, size_t index, pn_config_entry *out, pn_error *err);

/* A key that a configuration may hold. */
typedef struct pn_config_key {
    uint32_t struct_size;
    uint32_t list; /* 1: each value given adds an item */
    const char *section;
    const char *key;      /* "threads", or the beginning of a name ("alias.") when `rest` is not "" */
    const char *rest;     /* what the user puts after it: "NAME" */
    const char *fallback; /* built-in value */
    const char *help;     /* one line, ending in its range in parentheses */
} pn_config_key;

/* Known key `index`, or PN_E_RANGE past the end. Pointers live as long as the library. Thread-safe. */
PN_API pn_status pn_config_key_at(size_t index, pn_config_key *out, pn_error *err);

/* One line of an INI file that says something. */
typedef struct pn_ini_line {
    const char *section; /* "" before the first section */
    const char *key;     /* NULL: the line of a section's name */
    const char *value;   /* quotes removed; NULL with key */
    size_t line;         /* 1, 2, ... */
    bool quoted;
} pn_ini_line;

typedef pn_status (*pn_ini_fn)(void *arg, const pn_ini_line *line, pn_error *err);

/* Read INI text by the same rules as configurations, for files of other keys, and hand each section and each key to
 * `fn`, in order, once the whole text has proved to be well formed. The first failure of `fn` ends it and is returned.
 * `name` begins the messages. Thread-safe. */
PN_API pn_status pn_ini_read(const char *name, const char *text, size_t size, pn_ini_fn fn, void *arg, pn_error *err);

/* ---- runtime: plugins -------------------------------------------------------------------------------------------- */

typedef struct pn_runtime pn_runtime;
typedef void (*pn_log_fn)(void *arg, uint32_t level, const char *message);

typedef struct pn_runtime_options {
    uint32_t struct_size;
    uint32_t reserved;
    pn_log_fn log; /* may be called from any thread; NULL = silence */
    void *log_arg;
} pn_runtime_options;

/* Find and load plugins as the configuration says (NULL = all defaults). The search order is [plugins] load (files),
 * then the folders of [plugins] path, PANTHEON_PLUGIN_PATH, ~/.local/lib/pantheon, the installed folder, and "plugins"
 * beside the real program file. A plugin that is refused is recorded with its reason and does not stop the others,
 * except one named by [plugins] load, and except a name claimed by two ids without a pin. PN_E_NOT_FOUND when no plugin
 * could be loaded at all: the message names the folders. The configuration is copied. */
PN_API pn_status pn_runtime_create(const pn_config *config, const pn_runtime_options *options, pn_runtime **out,
                                   pn_error *err);
PN_API void pn_runtime_destroy(pn_runtime *runtime);
/* The runtime's own copy of the configuration. */
PN_API const pn_config *pn_runtime_config(const pn_runtime *runtime);
/* PN_CPU_* bits in use, after PANTHEON_CPU. */
PN_API uint64_t pn_runtime_cpu(const pn_runtime *runtime);
/* The names of the bits, separated by blanks, cut to `capacity`; returns `text`. */
PN_API const char *pn_cpu_names(uint64_t features, char *text, size_t capacity);

enum { PN_PLUGIN_LOADED = 1, PN_PLUGIN_REFUSED = 2, PN_PLUGIN_REPLACED = 3 /* an older version of a loaded id */ };

typedef struct pn_plugin_report {
    uint32_t struct_size;
    uint32_t state;                               /* PN_PLUGIN_* */
    const char *path;                             /* "" for the core's own */
    const char *id, *version, *licence, *summary; /* "" when unknown */
    const char *reason;                           /* refused, replaced: why; else "" */
} pn_plugin_report;

/* Plugin `index` in the order they were found, or PN_E_RANGE past the end. Pointers live as long as the runtime. */
PN_API pn_status pn_runtime_plugin(const pn_runtime *runtime, size_t index, pn_plugin_report *out, pn_error *err);

/* Folder `index` in the order they are searched, or NULL past the end. *why: who asked for it ("[plugins] path", "home
 * folder", ...); *present: 0 when there is no such folder. Both may be NULL. */
PN_API const char *pn_runtime_folder(const pn_runtime *runtime, size_t index, const char **why, int *present);

/* Things that plugins registered. */
enum {
    PN_KIND_FORMAT = 1,
    PN_KIND_QUANT,
    PN_KIND_PACKING,
    PN_KIND_KERNEL,
    PN_KIND_OP,
    PN_KIND_ARCH,
    PN_KIND_TOKENIZER,
    PN_KIND_TEMPLATE
};

typedef struct pn_registration {
    uint32_t struct_size;
    uint32_t kind;   /* PN_KIND_* */
    uint32_t plugin; /* index of its plugin in pn_runtime_plugin */
    int32_t score;   /* kernels, packings */
    uint32_t usable; /* 0: needs a CPU feature that is absent */
    uint32_t chosen; /* kernels, packings: the one this machine would use in its mode; others: 1 */
    const char *name;
    const char *quant, *packing; /* kernels; else "" */
    uint32_t precision;          /* kernels, packings: PN_EXACT or PN_FAST; else 0 */
    uint32_t reserved;
    uint64_t cpu_features;
    const char *note; /* ties, pins, overrides; "" when nothing to say */
    const void *item; /* the registered struct (pn_quant, pn_kernel, ...), full size, for tests and tools */
} pn_registration;

PN_API pn_status pn_runtime_registration(const pn_runtime *runtime, size_t index, pn_registration *out, pn_error *err);
/* A registered thing by kind and name, as registered (its struct zero-filled to this header's size), or NULL. */
PN_API const void *pn_runtime_find(const pn_runtime *runtime, uint32_t kind, const char *name);

/* ---- model files ------------------------------------------------------------------------------------------------- */

/* Open a file (or folder) by the format plugin with the highest probe score: header only. PN_E_UNSUPPORTED when no
 * plugin knows it. */
PN_API pn_status pn_file_open(pn_runtime *runtime, const char *path, pn_file **out, pn_error *err);
/* The same for bytes in memory, which must outlive the file. `label` stands for the path in messages. */
PN_API pn_status pn_file_open_buffer(pn_runtime *runtime, const char *label, const void *data, size_t size,
                                     pn_file **out, pn_error *err);
PN_API void pn_file_destroy(pn_file *file);
PN_API const char *pn_file_path(const pn_file *file);
PN_API const char *pn_file_format(const pn_file *file); /* name of the format */
PN_API uint64_t pn_file_bytes(const pn_file *file);     /* size of everything mapped for it */
/* 1 when the file lies in a mapping, 0 when it had to be read into memory. */
PN_API int pn_file_mapped(const pn_file *file);

/* Metadata: value `index` in file order (PN_E_RANGE past the end), or by the file's own key. NULL when absent. */
PN_API pn_status pn_file_value_at(const pn_file *file, size_t index, pn_str *key, const pn_value **value,
                                  pn_error *err);
PN_API const pn_value *pn_file_value(const pn_file *file, const char *key);
/* By key: the string ({NULL, 0} when absent or no string); the integer of any width, or `fallback`. */
PN_API pn_str pn_file_str(const pn_file *file, const char *key);
PN_API int64_t pn_file_int(const pn_file *file, const char *key, int64_t fallback);
/* By role (PN_ROLE_*). Thread-safe. */
PN_API pn_status pn_file_role(pn_file *file, const char *role, pn_role_value *out, pn_error *err);

/* Tensors: number `index` in file order or by the file's own name; NULL when there is none. */
PN_API size_t pn_file_tensor_count(const pn_file *file);
PN_API const pn_tensor *pn_file_tensor_at(const pn_file *file, size_t index);
PN_API const pn_tensor *pn_file_tensor(const pn_file *file, const char *name);
/* Elements first .. first+n-1 of the tensor (row-major) as float32 into out[n]. `first` and `n` are multiples of the
 * type's block, or the range ends the tensor. Errors name the tensor and its type: type unknown, its plugin missing
 * (with the folders searched). Thread-safe. */
PN_API pn_status pn_file_tensor_f32(const pn_file *file, const pn_tensor *tensor, uint64_t first, uint64_t n,
                                    float *out, pn_error *err);
/* Number of elements; 0 when a dimension is 0. */
PN_API uint64_t pn_tensor_elements(const pn_tensor *tensor);
/* Bytes of a row of `cols` elements of a type, or 0 when such a row cannot be. Thread-safe. */
PN_API uint64_t pn_quant_row_bytes(const pn_quant *type, uint64_t cols);

/* ---- writing model files ----------------------------------------------------------------------------------------- */

/*     pn_writer_create(rt, "name of a format", path, NULL, &w, &err);
 *     pn_writer_add_value(w, key, &value, &err);  pn_writer_add_tensor(w, &tensor, &err);  ... in the file's order
 *     pn_writer_begin(w, &err);                   the header; nothing can be added any more
 *     pn_writer_data(w, bytes, n, &err);          ... the tensors' bytes, one tensor after the other, cut anywhere
 *     pn_writer_finish(w, &err);                  whole and on disk: only now `path` is there, or replaced
 *     pn_writer_destroy(w);                       without pn_writer_finish: nothing is left behind
 *
 * The bytes go to a temporary file beside `path` (a link is followed and stays one), which is renamed at the end; a
 * device or pipe is written directly. A failure is final: what remains is pn_writer_destroy. One thread at a time. */
typedef struct pn_writer_options {
    uint32_t struct_size;
    uint32_t flags; /* PN_WRITER_* (plugin.h) */
} pn_writer_options;

/* PN_E_UNSUPPORTED when no loaded format of that name can write; PN_E_IO. path NULL: nothing is written, but
 * everything is checked and counted. options may be NULL. */
PN_API pn_status pn_writer_create(pn_runtime *runtime, const char *format, const char *path,
                                  const pn_writer_options *options, pn_writer **out, pn_error *err);
PN_API void pn_writer_destroy(pn_writer *writer);
/* Add a metadata value. What `value` points to must live until pn_writer_begin; the key is copied. PN_E_CONFLICT when
 * the key is already there. */
PN_API pn_status pn_writer_add_value(pn_writer *writer, pn_str key, const pn_value *value, pn_error *err);
/* Declare a tensor: name, n_dims, dims and type are taken and copied; the size follows from the type, which must be
 * loaded, or else is given (size > 0, with type_id the format's own number). PN_E_CONFLICT when the name is there. */
PN_API pn_status pn_writer_add_tensor(pn_writer *writer, const pn_tensor *tensor, pn_error *err);
PN_API pn_status pn_writer_begin(pn_writer *writer, pn_error *err);
/* PN_E_RANGE when these are more bytes than the tensors have. */
PN_API pn_status pn_writer_data(pn_writer *writer, const void *data, size_t size, pn_error *err);
/* PN_E_STATE when bytes are missing. With path NULL none need to have been given: they are counted. */
PN_API pn_status pn_writer_finish(pn_writer *writer, pn_error *err);
/* Bytes of the file so far; after pn_writer_finish: of the whole file. */
PN_API uint64_t pn_writer_bytes(const pn_writer *writer);

/* ---- model ------------------------------------------------------------------------------------------------------- */

typedef struct pn_model pn_model;

/* Open a model: file, architecture, plan. path NULL: [model] path. Checks every tensor's presence, shape and type
 * before anything is evaluated. */
PN_API pn_status pn_model_open(pn_runtime *runtime, const char *path, pn_model **out, pn_error *err);
/* The same on an open file, which the model does not own and which must outlive it. */
PN_API pn_status pn_model_from_file(pn_runtime *runtime, pn_file *file, pn_model **out, pn_error *err);
PN_API void pn_model_destroy(pn_model *model);
PN_API pn_file *pn_model_file(pn_model *model);
PN_API int32_t pn_model_vocab(const pn_model *model);    /* logits per token */
PN_API int32_t pn_model_context(const pn_model *model);  /* tokens the file says it was trained for; 0 = does not say */
PN_API const char *pn_model_arch(const pn_model *model); /* the file's architecture name */
PN_API uint64_t
pn_model_weight_bytes(const pn_model *model); /* bytes of weights read for one token (embedding: one row) */
/* Multiply-adds with weights for evaluating `tokens` tokens, of which `outputs` want logits. Attention is not counted.
 */
PN_API double pn_model_multiply_adds(const pn_model *model, uint64_t tokens, uint64_t outputs);
/* One line per step of the plan into `text` (terminated, cut to capacity); returns the length it would need without the
 * terminator. */
PN_API size_t pn_model_describe(const pn_model *model, char *text, size_t capacity);

/* ---- session ----------------------------------------------------------------------------------------------------- */

typedef struct pn_session pn_session;

typedef struct pn_session_options {
    uint32_t struct_size;
    int32_t context; /* positions per sequence; 0 = [runtime] context, else what the model was trained for (at most 4096
                        by default) */
    int32_t sequences;  /* how many sequences it can hold; 0 = 1 */
    int32_t batch;      /* tokens evaluated at a time; more are cut into pieces; 0 = [runtime] batch (512) */
    int32_t threads;    /* 0 = [runtime] threads, else one per physical core that this process may use */
    uint32_t precision; /* PN_EXACT, PN_FAST; 0 = [runtime] activations */
    const char *kv;     /* type of the KV cache: "f16", "f32" or a loaded type; NULL = [runtime] kv; copied */
    /* Asked between steps of an evaluation, on one of its threads; non-zero stops it with PN_E_CANCELLED. May be NULL.
     * None of these callbacks may call functions of this session. */
    int (*cancelled)(void *arg);
    void *cancelled_arg;
    /* Told after each piece of a long batch: tokens done of total. May be NULL. */
    void (*progress)(void *arg, size_t done, size_t total);
    void *progress_arg;
    /* Shown what each matrix is multiplied with, before it is: `columns` vectors of `cols` floats, one after the other.
     * Called for each weight (once where parts of it share an input), on one of the evaluation's threads, while the
     * others wait. The results do not depend on it. May be NULL. */
    void (*observe)(void *arg, const pn_tensor *weight, const float *input, size_t columns, size_t cols);
    void *observe_arg;
} pn_session_options;

/* One token of a batch. */
typedef struct pn_token {
    int32_t token;        /* id, 0 .. vocab-1 */
    int32_t position;     /* must be the sequence's length (tokens of one sequence come in order); -1 = just that */
    int32_t sequence;     /* 0 .. sequences-1 */
    int32_t wants_logits; /* 0 or 1 */
} pn_token;

/* Make a session: chooses kernels and packings for every weight, lays out the arena, reserves the KV cache. All memory
 * is taken here. */
PN_API pn_status pn_session_create(pn_model *model, const pn_session_options *options, pn_session **out, pn_error *err);
PN_API void pn_session_destroy(pn_session *session);
/* Evaluate n tokens of any mixture of sequences. Results are the same bits however tokens are cut into calls and
 * pieces, beside whatever sequences, for any number of threads. PN_E_FULL (a sequence would pass the context),
 * PN_E_RANGE (token, sequence), PN_E_ARGUMENT (position): nothing is changed. PN_E_CANCELLED, and what an operation or
 * kernel returned: every sequence of the batch is trimmed back to its length before the call (to nothing where a state
 * cannot be cut short, see pn_session_length), and there are no logits. */
PN_API pn_status pn_session_eval(pn_session *session, const pn_token *tokens, size_t n, pn_error *err);
/* Logits [vocab] of the i-th token of the last pn_session_eval that wanted them (0, 1, ...); NULL past the end. Valid
 * until the next evaluation. */
PN_API const float *pn_session_logits(const pn_session *session, size_t i);
/* The largest number of logits vectors that one eval call keeps: tokens wanting logits beyond it are PN_E_FULL. */
PN_API size_t pn_session_max_logits(const pn_session *session);
PN_API int32_t pn_session_context(const pn_session *session);
PN_API int32_t pn_session_batch(const pn_session *session);
PN_API int32_t pn_session_threads(const pn_session *session);
/* Tokens in a sequence (= the next position). -1: no such sequence. */
PN_API int32_t pn_session_length(const pn_session *session, int32_t sequence);
/* Forget positions >= length (0 empties it). PN_E_STATE when keys that would be needed were evicted. */
PN_API pn_status pn_session_trim(pn_session *session, int32_t sequence, int32_t length, pn_error *err);
/* Drop positions keep .. keep + drop - 1 and move what follows down, turning its keys to their new positions. What
 * follows was computed while it could see the dropped tokens, so later results are not those of a text without them.
 * PN_E_STATE, PN_E_UNSUPPORTED where a model's state cannot be moved: nothing is changed. Another failure (the cache's
 * type cannot hold a turned key) leaves the first `keep` tokens. */
PN_API pn_status pn_session_shift(pn_session *session, int32_t sequence, int32_t keep, int32_t drop, pn_error *err);
/* Make `to` a copy of `from` (what `to` held is forgotten). */
PN_API pn_status pn_session_copy(pn_session *session, int32_t from, int32_t to, pn_error *err);
/* Which kernel each weight uses and why, one line each; as pn_model_describe. */
PN_API size_t pn_session_describe(const pn_session *session, char *text, size_t capacity);
/* Bytes: what = "arena", "kv", "packed", "scratch". */
PN_API uint64_t pn_session_bytes(const pn_session *session, const char *what);

/* ---- tokenizer --------------------------------------------------------------------------------------------------- */

typedef struct pn_tokenizer pn_tokenizer;

/* The tokenizer that the file asks for, with what [tokenizer] says. Works on files that hold only a vocabulary. The
 * file must outlive it. */
PN_API pn_status pn_tokenizer_create(pn_runtime *runtime, pn_file *file, pn_tokenizer **out, pn_error *err);
PN_API void pn_tokenizer_destroy(pn_tokenizer *tokenizer);
PN_API const pn_tokenizer_info *pn_tokenizer_get_info(const pn_tokenizer *tokenizer);
/* flags: PN_ENCODE_*. As pn_tokenizer_type.encode: PN_E_FULL with *count set when capacity is too small. Thread-safe.
 */
PN_API pn_status pn_tokenizer_encode(const pn_tokenizer *tokenizer, const char *text, size_t size, uint32_t flags,
                                     int32_t *ids, size_t capacity, size_t *count, pn_error *err);
/* flags: PN_DECODE_*. One token to bytes: PN_E_FULL with *size set when capacity is too small. Thread-safe. */
PN_API pn_status pn_tokenizer_decode(const pn_tokenizer *tokenizer, int32_t id, uint32_t flags, char *bytes,
                                     size_t capacity, size_t *size, pn_error *err);
/* 1 when the token ends a generation: the end-of-text and end-of-turn tokens of the vocabulary. */
PN_API int pn_tokenizer_ends(const pn_tokenizer *tokenizer, int32_t id);

/* ---- prompt ------------------------------------------------------------------------------------------------------ */

/* Token ids in memory that grows. Start zeroed; free with pn_ids_free. */
typedef struct pn_ids {
    int32_t *data;
    size_t count, capacity;
} pn_ids;
PN_API pn_status pn_ids_push(pn_ids *ids, const int32_t *more, size_t n, pn_error *err);
PN_API void pn_ids_free(pn_ids *ids);

typedef struct pn_prompt pn_prompt;

/* How messages become tokens: the role strings of [prompt] when given, else the template named by [prompt] template,
 * else the one recognised in the file's template text, else an error that says how to name one. Tokenizer and file must
 * outlive it. */
PN_API pn_status pn_prompt_create(pn_runtime *runtime, pn_file *file, const pn_tokenizer *tokenizer, pn_prompt **out,
                                  pn_error *err);
PN_API void pn_prompt_destroy(pn_prompt *prompt);
/* Append the tokens of messages[first ..], then (add_generation) the opening of an assistant's turn. The start token
 * comes once, at the very beginning (first == 0), if the vocabulary wants it and the template did not write it. Markers
 * of the template become control tokens; the text of messages never does. */
PN_API pn_status pn_prompt_render(const pn_prompt *prompt, const pn_message *messages, size_t n, size_t first,
                                  int add_generation, pn_ids *out, pn_error *err);
/* 1 when the token ends an assistant's turn: pn_tokenizer_ends, and the template's end marker. */
PN_API int pn_prompt_ends(const pn_prompt *prompt, int32_t id);
PN_API const char *pn_prompt_name(const pn_prompt *prompt); /* "role strings", or the template's name */

/* ---- sampler ----------------------------------------------------------------------------------------------------- */

typedef struct pn_sampler pn_sampler;

typedef struct pn_sampler_options {
    uint32_t struct_size;
    int32_t top_k;        /* 0 = off */
    float temperature;    /* 0 = greedy: the largest logit, the lowest id among equals */
    float top_p;          /* 0 or 1 = off */
    float min_p;          /* 0 = off: keep p >= min_p * largest p */
    float repeat_penalty; /* 0 or 1 = off: logits of recent tokens divided (positive) or multiplied (negative) by it */
    int32_t repeat_last;  /* how many recent tokens; 0 = 64 */
    uint32_t has_seed;    /* 0: a seed from the system */
    uint64_t seed;
    const int32_t *bias_ids; /* logit bias: added before everything else; copied */
    const float *bias_values;
    size_t n_bias;
} pn_sampler_options;

/* n_vocab logits per call. Order: bias, repetition penalty, (greedy, or) top-k, top-p on probabilities at temperature
 * 1, min-p, temperature, draw. */
PN_API pn_status pn_sampler_create(int32_t n_vocab, const pn_sampler_options *options, pn_sampler **out, pn_error *err);
/* Options as [sampling] says them. Bias arrays belong to the configuration. */
PN_API pn_status pn_sampler_options_from(const pn_config *config, pn_sampler_options *out, pn_error *err);
PN_API void pn_sampler_destroy(pn_sampler *sampler);
/* Choose a token from logits[n_vocab] (not changed) and remember it. No allocation. PN_E_ARGUMENT when no logit is
 * finite. The same seed, options and logits give the same tokens on every machine. */
PN_API pn_status pn_sampler_sample(pn_sampler *sampler, const float *logits, int32_t *token, pn_error *err);
/* Remember a token that was not sampled (prompt), for the repetition penalty. */
PN_API void pn_sampler_accept(pn_sampler *sampler, int32_t token);
PN_API uint64_t pn_sampler_seed(const pn_sampler *sampler); /* the seed in use */

/* ---- machine ----------------------------------------------------------------------------------------------------- */

/* Bytes per second at which `threads` threads read `bytes` bytes at `data` (a sum of all words), best of `repeats`. */
PN_API double pn_measure_read(const void *data, size_t bytes, int threads, int repeats);

typedef enum pn_arithmetic { PN_ARITHMETIC_I8 = 0, PN_ARITHMETIC_I16 = 1, PN_ARITHMETIC_F32 = 2 } pn_arithmetic;

/* Multiply-adds per second that `threads` threads reach together in registers, best of `repeats`, with the widest
 * instructions of a level that `cpu` (PN_CPU_* bits, pn_runtime_cpu) has whole. 0 = not known for it. */
PN_API double pn_measure_multiply(pn_arithmetic kind, uint64_t cpu, int threads, int repeats);

#ifdef __cplusplus
}
#endif
#endif
