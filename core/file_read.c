/* Numbers out of a model file's tensors: float32 by way of the type's plugin, and weights for the kernels. */
#include "file.h"

#include "alloc.h"
#include "registry.h"

#include <stdbool.h>

#define SHOWN(s) ((s).size > 200 ? 200 : (int)(s).size), ((s).size ? (s).data : "")

uint64_t pn_tensor_elements(const pn_tensor *tensor)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < tensor->n_dims && i < PN_MAX_DIMS; i++)
        if (!tensor->dims[i])
            return 0;
    for (uint32_t i = 0; i < tensor->n_dims && i < PN_MAX_DIMS; i++)
        n *= tensor->dims[i];
    return n;
}

/* A tensor as rows of its type. */
typedef struct rows {
    const pn_quant *type;
    uint64_t rows, cols, row_bytes;
} rows;

uint64_t pn_quant_row_bytes(const pn_quant *q, uint64_t cols)
{
    if (q->row_bytes)
        return q->row_bytes(cols);
    if (cols % q->block_elems || cols / q->block_elems > UINT64_MAX / q->block_bytes)
        return 0;
    return cols / q->block_elems * q->block_bytes;
}

/* Find the type and check that all rows lie inside the tensor's bytes, whoever said how many those are. */
static pn_status find_rows(const pn_file *file, const pn_tensor *t, rows *out, pn_error *err)
{
    const char *path = pn_file_path(file);
    if (!t->type)
        return pn_fail(err, PN_E_UNSUPPORTED,
                       "%s: tensor '%.*s' has the type number %llu, which has no name here: say what it is "
                       "with [quant] alias.%llu = NAME",
                       path, SHOWN(t->name), (unsigned long long)t->type_id, (unsigned long long)t->type_id);
    const pn_quant *q = pn_runtime_find(pn_file_runtime(file), PN_KIND_QUANT, t->type);
    if (!q) {
        pn_registry_missing(pn_file_runtime(file), PN_KIND_QUANT, pn_str_from(t->type), err);
        pn_error_wrap(err, "%s: tensor '%.*s' of type '%s'", path, SHOWN(t->name), t->type);
        return PN_E_UNSUPPORTED;
    }
    uint64_t n = pn_tensor_elements(t);
    out->type = q;
    out->cols = t->n_dims ? t->dims[t->n_dims - 1] : 1;
    out->rows = n ? n / out->cols : 0;
    out->row_bytes = n ? pn_quant_row_bytes(q, out->cols) : 0;
    if (n && !out->row_bytes)
        return pn_fail(err, PN_E_FORMAT,
                       "%s: tensor '%.*s' has rows of %llu elements, but its type '%s' comes in blocks of %u", path,
                       SHOWN(t->name), (unsigned long long)out->cols, t->type, (unsigned)q->block_elems);
    if (n && (!t->data || out->rows > t->size / out->row_bytes))
        return pn_fail(err, PN_E_FORMAT,
                       "%s: tensor '%.*s' has %llu bytes, but %llu rows of type '%s' need %llu bytes each: the "
                       "file's idea of the type and the plugin's differ",
                       path, SHOWN(t->name), (unsigned long long)t->size, (unsigned long long)out->rows, t->type,
                       (unsigned long long)out->row_bytes);
    return PN_OK;
}

/* A type that lays out rows its own way knows only whole rows: one is unpacked and the wanted part copied. */
static pn_status whole_rows(const rows *r, const pn_tensor *t, uint64_t first, uint64_t n, float *out, pn_error *err)
{
    uint64_t padded = r->cols + (r->type->block_elems - r->cols % r->type->block_elems) % r->type->block_elems;
    float *row = padded >= r->cols && padded <= SIZE_MAX ? pn_realloc(NULL, (size_t)padded, sizeof *row) : NULL;
    if (!row)
        return pn_fail(err, PN_E_NOMEM, "tensor '%.*s': no memory for a row of %llu numbers", SHOWN(t->name),
                       (unsigned long long)r->cols);
    while (n) {
        uint64_t at = first % r->cols, part = r->cols - at < n ? r->cols - at : n;
        const unsigned char *bytes = (const unsigned char *)t->data + first / r->cols * r->row_bytes;
        r->type->dequantize(bytes, row, (size_t)padded);
        memcpy(out, row + at, (size_t)part * sizeof *out);
        out += part;
        first += part;
        n -= part;
    }
    pn_free(row);
    return PN_OK;
}

pn_status pn_file_tensor_f32(const pn_file *file, const pn_tensor *tensor, uint64_t first, uint64_t n, float *out,
                             pn_error *err)
{
    pn_error own;
    rows r;
    if (!err)
        err = &own;
    if (!file || !tensor || (!out && n))
        return pn_fail(err, PN_E_ARGUMENT, "pn_file_tensor_f32: file, tensor and out must be given");
    pn_status status = find_rows(file, tensor, &r, err);
    if (status)
        return status;
    uint64_t total = pn_tensor_elements(tensor);
    if (first > total || n > total - first || n > SIZE_MAX / sizeof *out)
        return pn_fail(err, PN_E_RANGE, "%s: tensor '%.*s' has %llu elements; %llu from number %llu on were asked for",
                       pn_file_path(file), SHOWN(tensor->name), (unsigned long long)total, (unsigned long long)n,
                       (unsigned long long)first);
    if (!n)
        return PN_OK;
    if (r.type->row_bytes)
        return whole_rows(&r, tensor, first, n, out, err);
    uint64_t block = r.type->block_elems;
    if (first % block || n % block)
        return pn_fail(err, PN_E_RANGE,
                       "%s: tensor '%.*s' of type '%s' is read in blocks of %llu elements; %llu from number %llu on "
                       "were asked for",
                       pn_file_path(file), SHOWN(tensor->name), tensor->type, (unsigned long long)block,
                       (unsigned long long)n, (unsigned long long)first);
    /* Rows follow each other without gaps and are whole blocks, so the tensor is one run of blocks. */
    r.type->dequantize((const unsigned char *)tensor->data + first / block * r.type->block_bytes, out, (size_t)n);
    return PN_OK;
}

/* "blk.0.ffn_up.weight" and "scale" -> the tensor "blk.0.ffn_up.scale", or NULL. */
static const pn_tensor *side_of(const pn_file *file, pn_str name, const char *suffix)
{
    static const char word[] = "weight";
    char room[512];
    size_t n = sizeof word - 1;
    if (name.size < n || memcmp(name.data + name.size - n, word, n) != 0 ||
        name.size - n + strlen(suffix) >= sizeof room)
        return NULL;
    memcpy(room, name.data, name.size - n);
    strcpy(room + name.size - n, suffix);
    return pn_file_tensor(file, room);
}

pn_status pn_file_weight(pn_file *file, const pn_tensor *tensor, pn_qweight *out, pn_error *err)
{
    pn_error own;
    rows r;
    if (!err)
        err = &own;
    pn_status status = find_rows(file, tensor, &r, err);
    if (status)
        return status;
    const pn_tensor **side = NULL;
    uint32_t n_side = r.type->side_suffixes ? r.type->n_side : 0;
    bool any = false;
    if (n_side) {
        status = pn_file_alloc(file, n_side, sizeof *side, (void **)&side, err);
        if (status)
            return status;
        for (uint32_t i = 0; i < n_side; i++) {
            side[i] = side_of(file, tensor->name, r.type->side_suffixes[i]);
            any = any || side[i];
        }
    }
    *out = (pn_qweight){
        .struct_size = sizeof *out,
        .n_side = any ? n_side : 0,
        .type = r.type,
        .data = tensor->data,
        .rows = r.rows,
        .cols = r.cols,
        .row_stride = r.row_bytes,
        .planes = 1,
        .side = any ? side : NULL,
        .tensor = tensor,
    };
    return PN_OK;
}
