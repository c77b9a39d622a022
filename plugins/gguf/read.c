/* Reads a GGUF header: metadata and the tensor table. Everything is bounded by the bytes that are really there: a count
 * is compared with them before anything of its size is asked for, and values are used where they lie in the mapping.
 */
#include "gguf.h"

#include <pantheon/kit/cursor.h>

#include <stdlib.h>

/* Arrays within arrays: deeper ones are no honest file. */
#define MAX_DEPTH 8
/* Longest key and tensor name (the specification's limit for keys). */
#define MAX_NAME 65535
/* An alignment above this, when it also exceeds the file, is damage even where no tensor would feel it. */
#define LARGE_ALIGNMENT 65536

/* Least bytes of one metadata value (key length, type, one byte) and of one tensor (name length, dimensions, type,
 * offset). */
#define MIN_VALUE 13
#define MIN_TENSOR 24

typedef struct reader {
    const pn_host *host;
    pn_file *file;
    pn_cursor c;
    const char *name;           /* of the file, for messages */
    pn_error *err;
    uint64_t alignment;
    uint64_t n_tensors, n_values;
} reader;

/* Where a tensor's bytes are, to find overlaps. */
typedef struct extent {
    uint64_t offset, size;
    pn_str name;
} extent;

#define SHOWN(s) ((s).size > 200 ? 200 : (int)(s).size), ((s).size ? (s).data : "")

/* An error that is not the cursor's, with its place. */
#define FAIL(r, at, status, ...) fail_at((r)->err, at, pn_fail((r)->err, status, __VA_ARGS__))

static pn_status fail_at(pn_error *err, uint64_t at, pn_status status)
{
    if (err)
        err->offset = at;
    return status;
}

/* ---- metadata ---- */

/* The cursor's error, saying which key it happened in. */
static pn_status fail_in(reader *r, pn_str key)
{
    char where[512];
    snprintf(where, sizeof where, "%.250s: key '%.*s'", r->name, SHOWN(key));
    return pn_cursor_status(&r->c, where, r->err);
}

/* The format's value types, by number, and the host's. */
static const uint32_t value_types[] = {
    PN_T_U8,   PN_T_I8,     PN_T_U16,   PN_T_I16, PN_T_U32, PN_T_I32, PN_T_F32,
    PN_T_BOOL, PN_T_STRING, PN_T_ARRAY, PN_T_U64, PN_T_I64, PN_T_F64,
};
#define N_VALUE_TYPES (sizeof value_types / sizeof *value_types)

/* Read a type number; PN_T_NONE when there is none such (an error is set). */
static uint32_t read_type(reader *r, pn_str key)
{
    uint64_t at = r->c.pos;
    uint32_t number = pn_cursor_u32(&r->c, "type of a metadata value");
    if (!pn_cursor_ok(&r->c)) {
        fail_in(r, key);
        return PN_T_NONE;
    }
    if (number < N_VALUE_TYPES)
        return value_types[number];
    FAIL(r, at, PN_E_FORMAT, "%s: at byte %llu: the key '%.*s' has value type %lu; known are 0 to %u", r->name,
         (unsigned long long)at, SHOWN(key), (unsigned long)number, (unsigned)(N_VALUE_TYPES - 1));
    return PN_T_NONE;
}

static pn_status read_array(reader *r, pn_str key, pn_value *v, int depth);

static pn_status read_value(reader *r, pn_str key, uint32_t type, pn_value *v, int depth)
{
    static const char what[] = "metadata value";
    pn_cursor *c = &r->c;
    v->type = type;
    switch (type) {
    case PN_T_U8: v->as.u = pn_cursor_u8(c, what); break;
    case PN_T_I8: v->as.i = pn_cursor_i8(c, what); break;
    case PN_T_U16: v->as.u = pn_cursor_u16(c, what); break;
    case PN_T_I16: v->as.i = pn_cursor_i16(c, what); break;
    case PN_T_U32: v->as.u = pn_cursor_u32(c, what); break;
    case PN_T_I32: v->as.i = pn_cursor_i32(c, what); break;
    case PN_T_U64: v->as.u = pn_cursor_u64(c, what); break;
    case PN_T_I64: v->as.i = pn_cursor_i64(c, what); break;
    case PN_T_F32: v->as.f = (double)pn_cursor_f32(c, what); break;
    case PN_T_F64: v->as.f = pn_cursor_f64(c, what); break;
    case PN_T_BOOL: v->as.u = pn_cursor_u8(c, what) != 0; break;
    case PN_T_STRING: v->as.s = pn_cursor_str_u64(c, UINT64_MAX, "length of a text value"); break;
    default: return read_array(r, key, v, depth);
    }
    return pn_cursor_ok(c) ? PN_OK : fail_in(r, key);
}

/* Strings are collected as an array of pn_str; each takes at least its 8-byte length. */
static pn_status read_strings(reader *r, pn_value *v)
{
    void *room = NULL;
    if (v->count > pn_cursor_left(&r->c) / 8) {
        pn_cursor_fail(&r->c, "number of texts in an array", v->count, pn_cursor_left(&r->c) / 8);
        return PN_OK;
    }
    pn_status st = pn_host_file_alloc(r->host, r->file, (size_t)v->count, sizeof(pn_str), &room, r->err);
    if (st)
        return st;
    pn_str *items = room;
    for (uint64_t i = 0; i < v->count && pn_cursor_ok(&r->c); i++)
        items[i] = pn_cursor_str_u64(&r->c, UINT64_MAX, "length of a text in an array");
    v->as.items = items;
    return PN_OK;
}

/* Arrays in an array: each takes at least its type and count. */
static pn_status read_arrays(reader *r, pn_str key, pn_value *v, int depth)
{
    void *room = NULL;
    if (v->count > pn_cursor_left(&r->c) / 12) {
        pn_cursor_fail(&r->c, "number of arrays in an array", v->count, pn_cursor_left(&r->c) / 12);
        return PN_OK;
    }
    pn_status st = pn_host_file_alloc(r->host, r->file, (size_t)v->count, sizeof(pn_value), &room, r->err);
    pn_value *items = room;
    for (uint64_t i = 0; !st && i < v->count; i++)
        st = read_value(r, key, PN_T_ARRAY, &items[i], depth + 1);
    v->as.items = items;
    return st;
}

static pn_status read_array(reader *r, pn_str key, pn_value *v, int depth)
{
    pn_cursor *c = &r->c;
    if (depth >= MAX_DEPTH)
        return FAIL(r, c->pos, PN_E_FORMAT, "%s: at byte %llu: the key '%.*s' has arrays nested more than %d deep",
                    r->name, (unsigned long long)c->pos, SHOWN(key), MAX_DEPTH);
    v->item_type = read_type(r, key);
    if (v->item_type == PN_T_NONE)
        return PN_E_FORMAT;
    v->count = pn_cursor_u64(c, "length of an array");
    pn_status st = PN_OK;
    if (v->item_type == PN_T_STRING)
        st = read_strings(r, v);
    else if (v->item_type == PN_T_ARRAY)
        st = read_arrays(r, key, v, depth);
    else
        v->as.items = pn_cursor_items(c, v->count, pn_type_size(v->item_type), "number of items in an array");
    return st || pn_cursor_ok(c) ? st : fail_in(r, key);
}

static pn_status set_alignment(reader *r, const pn_value *v, uint64_t at)
{
    int64_t a = 0;
    if (v->type == PN_T_F32 || v->type == PN_T_F64 || v->type == PN_T_BOOL || !pn_value_int(v, &a) || a <= 0 ||
        a > (int64_t)UINT32_MAX || (a % 8 && a != 1 && a != 2 && a != 4)) {
        if (v->type == PN_T_ARRAY || v->type == PN_T_STRING || !pn_value_int(v, &a))
            return FAIL(r, at, PN_E_FORMAT,
                        "%s: at byte %llu: 'general.alignment' is no integer; wanted a 32-bit multiple of 8", r->name,
                        (unsigned long long)at);
        return FAIL(r, at, PN_E_FORMAT,
                    "%s: at byte %llu: 'general.alignment' is %lld; wanted a 32-bit multiple of 8 (or 1, 2, 4)",
                    r->name, (unsigned long long)at, (long long)a);
    }
    r->alignment = (uint64_t)a;
    return PN_OK;
}

static pn_status read_metadata(reader *r)
{
    for (uint64_t i = 0; i < r->n_values; i++) {
        uint64_t at = r->c.pos;
        pn_str key = pn_cursor_str_u64(&r->c, MAX_NAME, "length of a key");
        pn_value v;
        memset(&v, 0, sizeof v);
        if (!pn_cursor_ok(&r->c))
            return pn_cursor_status(&r->c, r->name, r->err);
        if (!key.size)
            return FAIL(r, at, PN_E_FORMAT, "%s: at byte %llu: metadata value %llu has an empty key", r->name,
                        (unsigned long long)at, (unsigned long long)i);
        uint32_t type = read_type(r, key);
        pn_status st = type == PN_T_NONE ? PN_E_FORMAT : read_value(r, key, type, &v, 0);
        if (!st && (st = pn_host_file_add_value(r->host, r->file, key, &v, r->err)) == PN_E_FORMAT)
            FAIL(r, at, st, "%s: at byte %llu: the key '%.*s' is there twice", r->name, (unsigned long long)at,
                 SHOWN(key));
        if (!st && pn_str_is(key, "general.alignment"))
            st = set_alignment(r, &v, at);
        if (st)
            return st;
    }
    return PN_OK;
}

/* ---- tensors ---- */

/* Dimensions, innermost first in the file, outermost first in the tensor. Their product fits 63 bits. */
static pn_status read_dims(reader *r, pn_tensor *t)
{
    uint64_t at = r->c.pos, elements = 1;
    t->n_dims = pn_cursor_u32(&r->c, "number of dimensions of a tensor");
    if (pn_cursor_ok(&r->c) && t->n_dims > PN_MAX_DIMS)
        return FAIL(r, at, PN_E_FORMAT, "%s: at byte %llu: tensor '%.*s' has %lu dimensions; at most %d are possible",
                    r->name, (unsigned long long)at, SHOWN(t->name), (unsigned long)t->n_dims, PN_MAX_DIMS);
    for (uint32_t i = 0; i < t->n_dims && pn_cursor_ok(&r->c); i++) {
        uint64_t d = pn_cursor_u64(&r->c, "dimension of a tensor");
        t->dims[t->n_dims - 1 - i] = d;
        if (d > (uint64_t)INT64_MAX || (d && elements > (uint64_t)INT64_MAX / d))
            return FAIL(r, at, PN_E_FORMAT,
                        "%s: at byte %llu: the dimensions of tensor '%.*s' are too large (up to %llu)", r->name,
                        (unsigned long long)at, SHOWN(t->name), (unsigned long long)d);
        elements *= d ? d : 1;
    }
    return pn_cursor_status(&r->c, r->name, r->err);
}

/* Name and size of the type. An unknown one leaves the name NULL and the size 0. */
static pn_status set_type(reader *r, pn_tensor *t, uint64_t at)
{
    const gguf_type *known = gguf_type_of(t->type_id);
    uint32_t elems = known ? known->elems : 0, bytes = known ? known->bytes : 0;
    t->type = known ? known->name : NULL;
    pn_status st = pn_host_quant_alias(r->host, t->type_id, &t->type, &elems, &bytes, r->err);
    if (st) {
        pn_error_wrap(r->err, "%s: tensor '%.*s'", r->name, SHOWN(t->name));
        return st;
    }
    if (!t->type || !elems || !bytes)
        return PN_OK;
    uint64_t row = t->n_dims ? t->dims[t->n_dims - 1] : 1, elements = 1;
    /* read_dims saw to it that the dimensions before a 0 do not wrap. */
    for (uint32_t i = 0; i < t->n_dims; i++)
        elements *= t->dims[i];
    if (row % elems)
        return FAIL(r, at, PN_E_FORMAT,
                    "%s: at byte %llu: tensor '%.*s' has rows of %llu elements, but its type '%s' comes in blocks "
                    "of %lu",
                    r->name, (unsigned long long)at, SHOWN(t->name), (unsigned long long)row, t->type,
                    (unsigned long)elems);
    if (elements / elems > (uint64_t)INT64_MAX / bytes)
        return FAIL(r, at, PN_E_FORMAT,
                    "%s: at byte %llu: tensor '%.*s' of %llu elements of type '%s' is larger than any file", r->name,
                    (unsigned long long)at, SHOWN(t->name), (unsigned long long)elements, t->type);
    t->size = elements / elems * bytes;
    return PN_OK;
}

/* One entry of the table; t->offset is still relative to the data section. */
static pn_status read_tensor(reader *r, pn_tensor *t)
{
    uint64_t at = r->c.pos;
    memset(t, 0, sizeof *t);
    t->struct_size = sizeof *t;
    t->name = pn_cursor_str_u64(&r->c, MAX_NAME, "length of a tensor's name");
    if (!pn_cursor_ok(&r->c))
        return pn_cursor_status(&r->c, r->name, r->err);
    pn_status st = read_dims(r, t);
    if (st)
        return st;
    t->type_id = pn_cursor_u32(&r->c, "type of a tensor");
    t->offset = pn_cursor_u64(&r->c, "offset of a tensor");
    if (!pn_cursor_ok(&r->c))
        return pn_cursor_status(&r->c, r->name, r->err);
    if (t->offset % r->alignment)
        return FAIL(r, at, PN_E_FORMAT,
                    "%s: at byte %llu: tensor '%.*s' begins at offset %llu, which is no multiple of the alignment "
                    "%llu",
                    r->name, (unsigned long long)at, SHOWN(t->name), (unsigned long long)t->offset,
                    (unsigned long long)r->alignment);
    return set_type(r, t, at);
}

static int by_offset(const void *a, const void *b)
{
    const extent *x = a, *y = b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* `places` (n of them, none empty) in file order must not overlap: bytes that two tensors claim are damage. */
static pn_status check_overlaps(reader *r, extent *places, size_t n)
{
    int sorted = 1;
    for (size_t i = 1; i < n && sorted; i++)
        sorted = places[i - 1].offset <= places[i].offset;
    if (!sorted)
        qsort(places, n, sizeof *places, by_offset);
    for (size_t i = 1; i < n; i++)
        if (places[i].offset - places[i - 1].offset < places[i - 1].size)
            return FAIL(r, places[i].offset, PN_E_FORMAT, "%s: at byte %llu: tensors '%.*s' and '%.*s' overlap",
                        r->name, (unsigned long long)places[i].offset, SHOWN(places[i - 1].name),
                        SHOWN(places[i].name));
    return PN_OK;
}

/* Put each tensor into the data section that begins at `start`, which may lie past the end when nothing is in it. */
static pn_status place_tensors(reader *r, pn_tensor *tensors, extent *places, uint64_t start)
{
    uint64_t room = start < r->c.size ? r->c.size - start : 0;
    size_t n = 0;
    for (uint64_t i = 0; i < r->n_tensors; i++) {
        pn_tensor *t = &tensors[i];
        if (t->offset > room || t->size > room - t->offset) {
            if (t->size || !t->type)
                return FAIL(r, start, PN_E_FORMAT,
                            "%s: tensor '%.*s' needs %llu bytes at offset %llu of the data, which begins at byte "
                            "%llu, but the file ends at byte %llu: it is cut short or damaged",
                            r->name, SHOWN(t->name), (unsigned long long)t->size, (unsigned long long)t->offset,
                            (unsigned long long)start, (unsigned long long)r->c.size);
            t->offset = r->c.size;
        } else {
            t->offset += start < r->c.size ? start : r->c.size;
        }
        if (t->type)
            t->data = r->c.data + t->offset;
        if (t->size)
            places[n++] = (extent){ t->offset, t->size, t->name };
        pn_status st = pn_host_file_add_tensor(r->host, r->file, t, r->err);
        if (st)
            return st;
    }
    return check_overlaps(r, places, n);
}

static pn_status read_tensors(reader *r)
{
    void *tensors = NULL, *places = NULL;
    pn_status st = pn_host_alloc(r->host, (size_t)r->n_tensors, sizeof(pn_tensor), &tensors, r->err);
    if (!st)
        st = pn_host_alloc(r->host, (size_t)r->n_tensors, sizeof(extent), &places, r->err);
    for (uint64_t i = 0; !st && i < r->n_tensors; i++)
        st = read_tensor(r, (pn_tensor *)tensors + i);
    if (!st) {
        uint64_t start = pn_cursor_aligned(&r->c, r->alignment);
        if (start > r->c.size && r->alignment > LARGE_ALIGNMENT)
            st = FAIL(r, r->c.pos, PN_E_FORMAT,
                      "%s: 'general.alignment' is %llu, so that the data would begin at byte %llu of a file of "
                      "%llu bytes",
                      r->name, (unsigned long long)r->alignment, (unsigned long long)start,
                      (unsigned long long)r->c.size);
        else
            st = place_tensors(r, tensors, places, start);
    }
    pn_host_free(r->host, places, NULL);
    pn_host_free(r->host, tensors, NULL);
    return st;
}

/* ---- header ---- */

static pn_status read_header(reader *r)
{
    pn_cursor_skip(&r->c, 4, "magic number");
    uint32_t version = pn_cursor_u32(&r->c, "version");
    if (!pn_cursor_ok(&r->c))
        return pn_cursor_status(&r->c, r->name, r->err);
    if (version && !(version & 0xffff))
        return FAIL(r, 4, PN_E_UNSUPPORTED,
                    "%s: the file has the other byte order than this machine (its version reads as 0x%08lx): "
                    "such files cannot be used here yet; convert it",
                    r->name, (unsigned long)version);
    if (version != 2 && version != 3)
        return FAIL(r, 4, PN_E_UNSUPPORTED, "%s: it is GGUF version %lu; versions 2 and 3 can be read%s", r->name,
                    (unsigned long)version, version == 1 ? ": convert it with a newer tool" : "");
    r->n_tensors = pn_cursor_u64(&r->c, "number of tensors");
    r->n_values = pn_cursor_u64(&r->c, "number of metadata values");
    uint64_t left = pn_cursor_left(&r->c);
    if (r->n_tensors > left / MIN_TENSOR)
        pn_cursor_fail(&r->c, "number of tensors", r->n_tensors, left / MIN_TENSOR);
    if (r->n_values > left / MIN_VALUE)
        pn_cursor_fail(&r->c, "number of metadata values", r->n_values, left / MIN_VALUE);
    return pn_cursor_status(&r->c, r->name, r->err);
}

pn_status gguf_open(const pn_host *host, pn_source *source, pn_file *file, void **state, pn_error *err)
{
    pn_source_info info;
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    (void)state;
    pn_status st = pn_host_source_info(host, source, &info, err);
    if (st)
        return st;
    reader r = { .host = host, .file = file, .c = pn_cursor_begin(info.data, info.size), .name = info.name, .err = err,
                 .alignment = GGUF_ALIGNMENT };
    st = read_header(&r);
    if (!st)
        st = read_metadata(&r);
    if (!st)
        st = read_tensors(&r);
    return st;
}
