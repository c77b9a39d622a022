/* Writes GGUF version 3 in this machine's byte order: header, metadata, tensor table, padding, tensors at multiples of
 * the alignment. What was read comes out the same, bit for bit, but for the keys that say how tensors are
 * quantized, when the host says that those changed. */
#include "gguf.h"

#define VERSION 3
/* Readers limit keys and names to this; dimensions to GGUF_DIMS. */
#define MAX_NAME 65535
#define GGUF_DIMS 4
#define MAX_DEPTH 8

#define KEY_ALIGNMENT "general.alignment"
#define KEY_FILE_TYPE "general.file_type"
#define KEY_QUANT_VERSION "general.quantization_version"
#define QUANT_VERSION 2

#define SHOWN(s) ((s).size > 200 ? 200 : (int)(s).size), ((s).size ? (s).data : "")

typedef struct writing {
    const pn_host *host;
    pn_writer *writer;
    pn_writer_info info;
    pn_error *err;
    uint64_t alignment;
    pn_status status; /* the first failure sticks */
} writing;

/* ---- bytes ---- */

static void put(writing *w, const void *data, size_t size)
{
    if (!w->status && size) w->status = pn_host_writer_put(w->host, w->writer, data, size, w->err);
}

static void put_u32(writing *w, uint32_t v)
{
    put(w, &v, sizeof v);
}

static void put_u64(writing *w, uint64_t v)
{
    put(w, &v, sizeof v);
}

static void put_str(writing *w, pn_str s)
{
    put_u64(w, s.size);
    put(w, s.data, s.size);
}

/* ---- metadata ---- */

/* The format's number of a value type; the host's begin with 1, the format's have another order from the floats on. */
static uint32_t type_number(uint32_t type)
{
    switch (type) {
    case PN_T_U8: return 0;
    case PN_T_I8: return 1;
    case PN_T_U16: return 2;
    case PN_T_I16: return 3;
    case PN_T_U32: return 4;
    case PN_T_I32: return 5;
    case PN_T_F32: return 6;
    case PN_T_BOOL: return 7;
    case PN_T_STRING: return 8;
    case PN_T_ARRAY: return 9;
    case PN_T_U64: return 10;
    case PN_T_I64: return 11;
    case PN_T_F64: return 12;
    default: return UINT32_MAX;
    }
}

static void put_scalar(writing *w, const pn_value *v)
{
    uint8_t u8 = (uint8_t)v->as.u;
    uint16_t u16 = (uint16_t)v->as.u;
    uint32_t u32 = (uint32_t)v->as.u;
    int8_t i8;
    int16_t i16;
    int32_t i32;
    float f32;
    switch (v->type) {
    case PN_T_BOOL:
    case PN_T_U8: put(w, &u8, 1); break;
    case PN_T_U16: put(w, &u16, 2); break;
    case PN_T_U32: put(w, &u32, 4); break;
    case PN_T_U64: put(w, &v->as.u, 8); break;
    case PN_T_I8:
        i8 = (int8_t)v->as.i;
        put(w, &i8, 1);
        break;
    case PN_T_I16:
        i16 = (int16_t)v->as.i;
        put(w, &i16, 2);
        break;
    case PN_T_I32:
        i32 = (int32_t)v->as.i;
        put(w, &i32, 4);
        break;
    case PN_T_I64: put(w, &v->as.i, 8); break;
    case PN_T_F32:
        f32 = (float)v->as.f;
        put(w, &f32, 4);
        break;
    case PN_T_F64: put(w, &v->as.f, 8); break;
    default: break;
    }
}

static void put_items(writing *w, pn_str key, const pn_value *v, int depth);

/* The value without its type number. */
static void put_value(writing *w, pn_str key, const pn_value *v, int depth)
{
    if (v->type == PN_T_STRING) put_str(w, v->as.s);
    else if (v->type == PN_T_ARRAY) put_items(w, key, v, depth);
    else put_scalar(w, v);
}

static void put_items(writing *w, pn_str key, const pn_value *v, int depth)
{
    /* An empty array whose items are of no known type gets one: any is right. */
    uint32_t item = v->item_type == PN_T_NONE && !v->count ? PN_T_U8 : v->item_type, number = type_number(item);
    size_t size = pn_type_size(item);
    if (w->status) return;
    if (number == UINT32_MAX || depth >= MAX_DEPTH) {
        w->status = pn_fail(w->err, PN_E_UNSUPPORTED, "%s: the key '%.*s' is an array of a kind that cannot be written",
                            w->info.path, SHOWN(key));
        return;
    }
    put_u32(w, number);
    put_u64(w, v->count);
    if (size) {
        put(w, v->as.items, (size_t)v->count * size);
        return;
    }
    for (uint64_t i = 0; i < v->count && !w->status; i++) {
        pn_value x = pn_value_at(v, i);
        put_value(w, key, &x, depth + 1);
    }
}

static void put_pair(writing *w, pn_str key, const pn_value *v)
{
    uint32_t number = type_number(v->type);
    if (w->status) return;
    if (key.size > MAX_NAME || number == UINT32_MAX) {
        w->status = pn_fail(w->err, PN_E_UNSUPPORTED,
                            "%s: the key '%.*s' of %llu bytes and value type %lu cannot be written; keys have at most "
                            "%d bytes",
                            w->info.path, SHOWN(key), (unsigned long long)key.size, (unsigned long)v->type, MAX_NAME);
        return;
    }
    put_str(w, key);
    put_u32(w, number);
    put_value(w, key, v, 0);
}

/* ---- what the format says of its types ---- */

/* Numbers of general.file_type by the type that holds most of the weights: alone, and with tensors of richer types
 * beside it (llama_ftype, as published). */
typedef struct file_kind {
    const char *type;
    uint32_t pure, mixed;
} file_kind;

static const file_kind file_kinds[] = {
    {"f32", 0, 0},     {"f16", 1, 1},      {"q4_0", 2, 2},      {"q4_1", 3, 3},     {"q8_0", 7, 7},
    {"q5_0", 8, 8},    {"q5_1", 9, 9},     {"q2_k", 21, 10},    {"q3_k", 11, 12},   {"q4_k", 14, 15},
    {"q5_k", 16, 17},  {"q6_k", 18, 18},   {"iq2_xxs", 19, 19}, {"iq2_xs", 20, 20}, {"iq3_xxs", 23, 23},
    {"iq1_s", 24, 24}, {"iq4_nl", 25, 25}, {"iq3_s", 26, 27},   {"iq2_s", 28, 29},  {"iq4_xs", 30, 30},
    {"iq1_m", 31, 31}, {"bf16", 32, 32},   {"tq1_0", 36, 36},   {"tq2_0", 37, 37},  {"mxfp4", 38, 38},
    {"nvfp4", 39, 39}, {"q1_0", 40, 40},   {"q2_0", 41, 41},
};

/* The type with the most elements in matrices; *others: how many matrices inside the blocks have another. -1 when it
 * has no number. */
static int64_t kind_of_file(writing *w)
{
    enum { MOST = 64 };
    struct {
        const char *name;
        uint64_t elements;
        size_t tensors;
    } seen[MOST] = {{0}};
    size_t n = 0, best = 0, matrices = 0;
    for (size_t i = 0; i < w->info.n_tensors; i++) {
        const pn_tensor *t = NULL;
        uint64_t elements = 1;
        size_t k = 0;
        if (pn_host_writer_tensor_at(w->host, w->writer, i, &t, NULL) || t->n_dims < 2 || !t->type) continue;
        for (uint32_t d = 0; d < t->n_dims; d++) elements *= t->dims[d];
        while (k < n && strcmp(seen[k].name, t->type) != 0) k++;
        if (k == MOST) continue;
        if (k == n) seen[n++].name = t->type;
        seen[k].elements += elements;
        /* Embedding and output have types of their own in every mix, and what is left alone (norms) is none. */
        int block = t->name.size > 4 && memcmp(t->name.data, "blk.", 4) == 0 && strcmp(t->type, "f32") != 0;
        seen[k].tensors += block;
        matrices += block;
    }
    if (!n) return -1;
    for (size_t k = 1; k < n; k++)
        if (seen[k].elements > seen[best].elements) best = k;
    for (size_t i = 0; i < sizeof file_kinds / sizeof *file_kinds; i++)
        if (strcmp(file_kinds[i].type, seen[best].name) == 0)
            return seen[best].tensors < matrices ? file_kinds[i].mixed : file_kinds[i].pure;
    return -1;
}

/* Keys that replace those of the same name; value type PN_T_NONE: the key is left out. */
typedef struct replacement {
    const char *key;
    pn_value value;
    int done;
} replacement;

static void set_u32(replacement *r, const char *key, int64_t number)
{
    memset(r, 0, sizeof *r);
    r->key = key;
    r->value.type = number < 0 ? PN_T_NONE : PN_T_U32;
    r->value.as.u = number < 0 ? 0 : (uint64_t)number;
}

static int is_plain(const char *type)
{
    return !strcmp(type, "f32") || !strcmp(type, "f16") || !strcmp(type, "bf16") || !strcmp(type, "f64");
}

static int any_quantized(writing *w)
{
    const pn_tensor *t = NULL;
    for (size_t i = 0; i < w->info.n_tensors; i++)
        if (!pn_host_writer_tensor_at(w->host, w->writer, i, &t, NULL) && t->type && !is_plain(t->type)) return 1;
    return 0;
}

static void put_metadata(writing *w, replacement *r, size_t n_replaced)
{
    uint64_t count = 0;
    const pn_value *v = NULL;
    pn_str key;
    /* Twice the same loop: to count, and to write. */
    for (int pass = 0; pass < 2 && !w->status; pass++) {
        for (size_t k = 0; k < n_replaced; k++) r[k].done = 0;
        for (size_t i = 0; i < w->info.n_values && !w->status; i++) {
            w->status = pn_host_writer_value_at(w->host, w->writer, i, &key, &v, w->err);
            for (size_t k = 0; k < n_replaced && !w->status; k++)
                if (pn_str_is(key, r[k].key)) {
                    r[k].done = 1;
                    v = &r[k].value;
                }
            if (w->status || v->type == PN_T_NONE) continue;
            if (pass) put_pair(w, key, v);
            else count++;
        }
        for (size_t k = 0; k < n_replaced; k++) {
            if (r[k].done || r[k].value.type == PN_T_NONE) continue;
            if (pass) put_pair(w, pn_str_from(r[k].key), &r[k].value);
            else count++;
        }
        if (!pass) put_u64(w, count);
    }
}

/* ---- tensors ---- */

/* The format's number of a type; for one that the format does not define, what [quant] alias says, or what the file
 * that it was copied from called it. */
static uint32_t number_of(writing *w, const pn_tensor *t)
{
    uint64_t number = 0;
    const gguf_type *known = t->type ? gguf_type_named(t->type) : NULL;
    if (known && !t->type_id) return known->number;
    if (t->type) {
        const gguf_type *copied = gguf_type_of(t->type_id);
        if (copied && !strcmp(copied->name, t->type)) return copied->number;
        if (known) return known->number;
        pn_error why;
        if (!pn_host_quant_number(w->host, t->type, &number, &why) && number <= UINT32_MAX) return (uint32_t)number;
    } else if (t->type_id && t->type_id <= UINT32_MAX) {
        return (uint32_t)t->type_id;
    }
    w->status = pn_fail(w->err, PN_E_UNSUPPORTED,
                        "%s: tensor '%.*s' has the type '%s', which has no number in this format: give it one with "
                        "[quant] alias.N = %s",
                        w->info.path, SHOWN(t->name), t->type ? t->type : "?", t->type ? t->type : "NAME");
    return 0;
}

static uint64_t aligned(const writing *w, uint64_t at)
{
    uint64_t over = at % w->alignment;
    return over ? at + (w->alignment - over) : at;
}

static void put_tensors(writing *w)
{
    uint64_t offset = 0;
    for (size_t i = 0; i < w->info.n_tensors && !w->status; i++) {
        const pn_tensor *t = NULL;
        w->status = pn_host_writer_tensor_at(w->host, w->writer, i, &t, w->err);
        if (w->status) return;
        if (t->name.size > MAX_NAME || t->n_dims > GGUF_DIMS) {
            w->status = pn_fail(w->err, PN_E_UNSUPPORTED,
                                "%s: tensor '%.*s' has a name of %llu bytes and %lu dimensions; the format has at most "
                                "%d and %d",
                                w->info.path, SHOWN(t->name), (unsigned long long)t->name.size,
                                (unsigned long)t->n_dims, MAX_NAME, GGUF_DIMS);
            return;
        }
        uint32_t number = number_of(w, t);
        put_str(w, t->name);
        put_u32(w, t->n_dims);
        for (uint32_t d = t->n_dims; d > 0; d--) put_u64(w, t->dims[d - 1]); /* innermost first */
        put_u32(w, number);
        put_u64(w, offset);
        offset = aligned(w, offset) + t->size;
        offset = aligned(w, offset);
    }
}

static void pad(writing *w)
{
    if (w->status) return;
    w->status = pn_host_writer_info(w->host, w->writer, &w->info, w->err);
    uint64_t end = aligned(w, w->info.position);
    if (!w->status && end > w->info.position)
        w->status = pn_host_writer_put(w->host, w->writer, NULL, (size_t)(end - w->info.position), w->err);
}

/* ---- callbacks ---- */

/* What the metadata says, or the default. */
static void find_alignment(writing *w)
{
    const pn_value *v = NULL;
    pn_str key;
    int64_t a;
    w->alignment = GGUF_ALIGNMENT;
    for (size_t i = 0; i < w->info.n_values && !w->status; i++) {
        w->status = pn_host_writer_value_at(w->host, w->writer, i, &key, &v, w->err);
        if (w->status || !pn_str_is(key, KEY_ALIGNMENT)) continue;
        if (!pn_value_int(v, &a) || v->type == PN_T_BOOL || a < 1 || a > INT32_MAX ||
            (a % 8 && a != 1 && a != 2 && a != 4))
            w->status = pn_fail(w->err, PN_E_FORMAT, "%s: '" KEY_ALIGNMENT "' must be a multiple of 8 (or 1, 2, 4)",
                                w->info.path);
        else w->alignment = (uint64_t)a;
    }
}

static writing start(const pn_host *host, pn_writer *writer, pn_error *err)
{
    writing w = {.host = host, .writer = writer, .err = err};
    w.info.struct_size = sizeof w.info;
    w.status = pn_host_writer_info(host, writer, &w.info, err);
    return w;
}

pn_status gguf_write_begin(const pn_host *host, pn_writer *writer, void **state, pn_error *err)
{
    writing w = start(host, writer, err);
    replacement r[2];
    size_t n = 0;
    void *room = NULL;
    if (!w.status) find_alignment(&w);
    if (w.status) return w.status;
    if (w.info.flags & PN_WRITER_RETYPED) {
        set_u32(&r[n++], KEY_FILE_TYPE, kind_of_file(&w));
        if (any_quantized(&w)) set_u32(&r[n++], KEY_QUANT_VERSION, QUANT_VERSION);
    }
    put(&w, GGUF_MAGIC, 4);
    put_u32(&w, VERSION);
    put_u64(&w, w.info.n_tensors);
    put_metadata(&w, r, n);
    put_tensors(&w);
    pad(&w);
    if (!w.status) w.status = pn_host_alloc(host, 1, sizeof(uint64_t), &room, err);
    if (!w.status) {
        memcpy(room, &w.alignment, sizeof w.alignment);
        *state = room;
    }
    return w.status;
}

pn_status gguf_write_tensor(const pn_host *host, pn_writer *writer, void *state, size_t index, pn_error *err)
{
    writing w = start(host, writer, err);
    (void)index;
    memcpy(&w.alignment, state, sizeof w.alignment);
    pad(&w);
    return w.status;
}

pn_status gguf_write_end(const pn_host *host, pn_writer *writer, void *state, pn_error *err)
{
    return gguf_write_tensor(host, writer, state, 0, err);
}

void gguf_write_close(const pn_host *host, void *state)
{
    pn_host_free(host, state, NULL);
}
