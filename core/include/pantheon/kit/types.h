/* Shared vocabulary of Pantheon's public headers: status codes, errors, strings, typed values, tensors, weights.
 *
 * Needs only the C library's headers, compiles as C11 and C++11, and links against nothing: a plugin uses it as it is.
 */
#ifndef PANTHEON_KIT_TYPES_H
#define PANTHEON_KIT_TYPES_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Marks a function that libpantheon exports. */
#if defined(__GNUC__)
#define PN_API __attribute__((visibility("default")))
#define PN_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define PN_UNUSED __attribute__((unused))
#else
#define PN_API
#define PN_PRINTF(f, a)
#define PN_UNUSED
#endif

/* ---- status and error -------------------------------------------------------------------------------------------- */

/* What a call came to. 0 is success; everything else is a failure that a pn_error explains. Numbers never change. */
typedef int32_t pn_status;
enum {
    PN_OK = 0,
    PN_E_ARGUMENT = 1,    /* the caller passed something that the function's contract forbids */
    PN_E_NOMEM = 2,       /* no memory */
    PN_E_IO = 3,          /* the operating system refused: open, read, map, write */
    PN_E_FORMAT = 4,      /* a file's content is malformed */
    PN_E_UNSUPPORTED = 5, /* well formed, but nothing that is loaded here can handle it */
    PN_E_NOT_FOUND = 6,   /* no such file, key, tensor, name */
    PN_E_RANGE = 7,       /* a value lies outside the permitted range */
    PN_E_FULL = 8,        /* no room: context, sequences, output buffer */
    PN_E_ABI = 9,         /* plugin and host do not fit together */
    PN_E_CPU = 10,        /* the processor (or PANTHEON_CPU) lacks a feature */
    PN_E_CONFLICT = 11,   /* a name is taken */
    PN_E_CONFIG = 12,     /* a configuration error */
    PN_E_CANCELLED = 13,  /* the caller asked to stop */
    PN_E_STATE = 14,      /* the object is not in a state that permits this */
    PN_E_DENIED = 15,     /* permissions, ownership, trust */
    PN_E_INTERNAL = 16    /* a defect of the program itself */
};

#define PN_NO_OFFSET UINT64_MAX

/* An error, owned by the caller, filled by the callee. Start it zeroed: `pn_error err = {0}` (C) or `pn_error err{}`
 * (C++). The struct never grows. `message` is one or more lines of UTF-8 without a final newline: what was found, what
 * was wanted, in which file, at which byte, and what to do about it. Names that a file gave stand in it as they are:
 * escape control characters and broken UTF-8 before it is shown on a terminal or put into another format. Every
 * function that takes a `pn_error *` also takes NULL. */
typedef struct pn_error {
    pn_status status; /* same as the returned status */
    int32_t os_errno; /* errno of the failed system call, or 0 */
    uint64_t offset;  /* byte of the file, or PN_NO_OFFSET; 0 when untouched */
    char message[4080];
} pn_error;

/* Fill `err` (may be NULL) and return `status`, so that `return pn_fail(err, PN_E_FORMAT, "...")` reads well. An error
 * that is already set is overwritten: the outermost caller may put more words around it with pn_error_wrap. Thread-safe
 * per err. */
PN_UNUSED PN_PRINTF(3, 4) static inline pn_status pn_fail(pn_error *err, pn_status status, const char *format, ...)
{
    if (err) {
        va_list ap;
        err->status = status;
        err->os_errno = 0;
        err->offset = PN_NO_OFFSET;
        va_start(ap, format);
        vsnprintf(err->message, sizeof err->message, format, ap);
        va_end(ap);
    }
    return status;
}

/* Put "WORDS: " before the message of an error that is set. Keeps status, errno and offset; returns the status. */
PN_UNUSED PN_PRINTF(2, 3) static inline pn_status pn_error_wrap(pn_error *err, const char *format, ...)
{
    char words[1024];
    va_list ap;
    size_t n, old;
    if (!err) return PN_E_INTERNAL;
    va_start(ap, format);
    vsnprintf(words, sizeof words - 2, format, ap);
    va_end(ap);
    n = strlen(words);
    words[n++] = ':';
    words[n++] = ' ';
    old = strlen(err->message);
    if (old > sizeof err->message - 1 - n) old = sizeof err->message - 1 - n;
    memmove(err->message + n, err->message, old);
    memcpy(err->message, words, n);
    err->message[n + old] = 0;
    return err->status;
}

/* ---- strings and typed values ------------------------------------------------------------------------------------ */

/* Bytes with a length: not terminated, may hold any byte, may point into a mapped file. `data` may be NULL when size is
 * 0. */
typedef struct pn_str {
    const char *data;
    size_t size;
} pn_str;

PN_UNUSED static inline pn_str pn_str_from(const char *text)
{
    pn_str s;
    s.data = text;
    s.size = text ? strlen(text) : 0;
    return s;
}

PN_UNUSED static inline int pn_str_is(pn_str s, const char *text)
{
    size_t n = strlen(text);
    return s.size == n && (n == 0 || memcmp(s.data, text, n) == 0);
}

/* Type of a metadata value. Numbers never change. */
enum {
    PN_T_NONE = 0,
    PN_T_U8 = 1,
    PN_T_I8,
    PN_T_U16,
    PN_T_I16,
    PN_T_U32,
    PN_T_I32,
    PN_T_U64,
    PN_T_I64,
    PN_T_F32,
    PN_T_F64,
    PN_T_BOOL,
    PN_T_STRING,
    PN_T_ARRAY
};

/* A metadata value. Plain copyable; what it points to belongs to the pn_file it came from and lives as long as that.
 * Arrays: numbers lie packed and possibly unaligned in the host's byte order (read them with pn_value_*_at); strings
 * are `pn_str[count]`, arrays of arrays `pn_value[count]`, both aligned. */
typedef struct pn_value {
    uint32_t type;      /* PN_T_* */
    uint32_t item_type; /* arrays: PN_T_* of the items (PN_T_NONE when empty and unknown) */
    uint64_t count;     /* arrays: number of items */
    union {
        uint64_t u;        /* PN_T_U8 .. PN_T_U64, PN_T_BOOL (0 or 1) */
        int64_t i;         /* PN_T_I8 .. PN_T_I64 */
        double f;          /* PN_T_F32, PN_T_F64 */
        pn_str s;          /* PN_T_STRING */
        const void *items; /* PN_T_ARRAY */
    } as;
} pn_value;

/* Bytes of one packed array item of a number type; 0 for strings, arrays and unknown types. */
PN_UNUSED static inline size_t pn_type_size(uint32_t type)
{
    switch (type) {
    case PN_T_U8:
    case PN_T_I8:
    case PN_T_BOOL: return 1;
    case PN_T_U16:
    case PN_T_I16: return 2;
    case PN_T_U32:
    case PN_T_I32:
    case PN_T_F32: return 4;
    case PN_T_U64:
    case PN_T_I64:
    case PN_T_F64: return 8;
    default: return 0;
    }
}

/* Read item `index` (< count) of a number array, or the scalar itself for index 0 of a scalar, as a scalar value. The
 * result has type PN_T_NONE when there is no such item or it is no number. */
PN_UNUSED static inline pn_value pn_value_at(const pn_value *v, uint64_t index)
{
    pn_value r;
    size_t n;
    memset(&r, 0, sizeof r);
    if (v->type != PN_T_ARRAY) return index == 0 ? *v : r;
    if (index >= v->count) return r;
    if (v->item_type == PN_T_STRING) {
        r.type = PN_T_STRING;
        r.as.s = ((const pn_str *)v->as.items)[index];
        return r;
    }
    if (v->item_type == PN_T_ARRAY) return ((const pn_value *)v->as.items)[index];
    n = pn_type_size(v->item_type);
    if (n) {
        const unsigned char *p = (const unsigned char *)v->as.items + index * n;
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint16_t u16;
        uint32_t u32;
        float f32;
        double f64;
        r.type = v->item_type;
        switch (v->item_type) {
        case PN_T_U8: r.as.u = *p; break;
        case PN_T_BOOL: r.as.u = *p != 0; break;
        case PN_T_I8:
            memcpy(&i8, p, 1);
            r.as.i = i8;
            break;
        case PN_T_U16:
            memcpy(&u16, p, 2);
            r.as.u = u16;
            break;
        case PN_T_I16:
            memcpy(&i16, p, 2);
            r.as.i = i16;
            break;
        case PN_T_U32:
            memcpy(&u32, p, 4);
            r.as.u = u32;
            break;
        case PN_T_I32:
            memcpy(&i32, p, 4);
            r.as.i = i32;
            break;
        case PN_T_U64: memcpy(&r.as.u, p, 8); break;
        case PN_T_I64:
            memcpy(&i64, p, 8);
            r.as.i = i64;
            break;
        case PN_T_F32:
            memcpy(&f32, p, 4);
            r.as.f = (double)f32;
            break;
        case PN_T_F64:
            memcpy(&f64, p, 8);
            r.as.f = f64;
            break;
        default: break;
        }
    }
    return r;
}

/* The scalar as a signed integer, whatever width it was stored in. Returns 1 and sets *out when it is an integer, a
 * bool or an integral float that fits in int64_t; else 0. */
PN_UNUSED static inline int pn_value_int(const pn_value *v, int64_t *out)
{
    switch (v->type) {
    case PN_T_U8:
    case PN_T_U16:
    case PN_T_U32:
    case PN_T_U64:
    case PN_T_BOOL:
        if (v->as.u > (uint64_t)INT64_MAX) return 0;
        *out = (int64_t)v->as.u;
        return 1;
    case PN_T_I8:
    case PN_T_I16:
    case PN_T_I32:
    case PN_T_I64: *out = v->as.i; return 1;
    case PN_T_F32:
    case PN_T_F64:
        if (!(v->as.f >= -9.0e15 && v->as.f <= 9.0e15) || (double)(int64_t)v->as.f != v->as.f) return 0;
        *out = (int64_t)v->as.f;
        return 1;
    default: return 0;
    }
}

/* The scalar as a double: any integer, bool or float. Returns 1 and sets *out, or 0. */
PN_UNUSED static inline int pn_value_float(const pn_value *v, double *out)
{
    switch (v->type) {
    case PN_T_U8:
    case PN_T_U16:
    case PN_T_U32:
    case PN_T_U64:
    case PN_T_BOOL: *out = (double)v->as.u; return 1;
    case PN_T_I8:
    case PN_T_I16:
    case PN_T_I32:
    case PN_T_I64: *out = (double)v->as.i; return 1;
    case PN_T_F32:
    case PN_T_F64: *out = v->as.f; return 1;
    default: return 0;
    }
}

/* ---- tensors and weights ----------------------------------------------------------------------------------------- */

#define PN_MAX_DIMS 8

/* A tensor as a model file holds it. Owned by the pn_file; `data` points into its mapping (any alignment). */
typedef struct pn_tensor {
    uint32_t struct_size;       /* sizeof(pn_tensor) of whoever filled it */
    uint32_t n_dims;            /* 0 .. PN_MAX_DIMS; 0 dimensions = one element */
    uint64_t dims[PN_MAX_DIMS]; /* outermost first: {rows, cols} for a matrix (a file's own innermost-first order is
                                   reversed) */
    pn_str name;                /* the file's own name for it */
    const char
        *type; /* name of the quantization type, or NULL when the number is unknown. Lives as long as the file. */
    uint64_t type_id; /* the file's own number for the type, for messages */
    const void *data; /* first byte, or NULL when the size cannot be known (type == NULL) */
    uint64_t size;    /* bytes; 0 when unknown or when a dimension is 0 */
    uint64_t offset;  /* byte of the file at which data begins, for messages */
} pn_tensor;

struct pn_quant;

/* A weight as kernels see it: a matrix of `rows` rows of `cols` elements of one type, each row `row_stride` bytes after
 * the one before. Points into the mapping. y[r] = sum over c of W[r][c] * x[c]. */
typedef struct pn_qweight {
    uint32_t struct_size;
    uint32_t n_side; /* number of side tensors the type asked for and the file has (entries may be NULL) */
    const struct pn_quant *type;
    const void *data; /* any alignment */
    uint64_t rows, cols;
    uint64_t row_stride;   /* bytes */
    uint64_t planes;       /* third dimension (experts), 1 for an ordinary matrix; reserved */
    uint64_t plane_stride; /* bytes between planes; reserved */
    const pn_tensor *const *side;
    const pn_tensor *tensor; /* where it came from, for messages */
} pn_qweight;

#ifdef __cplusplus
}
#endif
#endif
