/* pn_writer: a new model file - what it is to hold, and the temporary file that its bytes go to until it is whole.
 *
 * The layout is the format plugin's business (write_* of pn_format); names, sizes, order and the file are ours. */
#include "writer.h"

#include "alloc.h"
#include "file_table.h"
#include "registry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_BYTES ((size_t)1 << 18)

/* A name from elsewhere, cut for messages. */
#define SHOWN(s) ((s).size > 200 ? 200 : (int)(s).size), ((s).size ? (s).data : "")

typedef enum stage { DECLARING, LAYING_OUT, TENSORS, ENDING, DONE, FAILED } stage;

typedef struct named_value {
    pn_value value;
    char key[]; /* its copy */
} named_value;

typedef struct named_tensor {
    pn_tensor tensor;
    char name[]; /* its copy */
} named_tensor;

struct pn_writer {
    pn_runtime *runtime;
    const pn_reg_entry *entry; /* the format's registration */
    const pn_format *format;
    uint32_t flags;
    stage stage;
    int begun; /* write_begin succeeded: write_close is owed */
    void *state;
    pn_table values, tensors;

    const char *shown; /* for messages */
    char *path;        /* where it goes, links followed; NULL: only counted */
    char *temporary;   /* NULL: written directly */
    int fd;
    unsigned char *buffer;
    size_t buffered;
    uint64_t position; /* with what is buffered */

    size_t current;        /* tensor whose bytes come next */
    uint64_t current_done; /* bytes of it that came */
};

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static pn_status fail_os(const pn_writer *w, const char *what, int number, pn_error *err)
{
    pn_fail(err, PN_E_IO, "%s: cannot %s: %s", w->shown, what, strerror(number));
    if (err) err->os_errno = number;
    return PN_E_IO;
}

/* Open what the bytes go to: a device or pipe itself, else a new file beside the path, with the mode of the old one. */
static pn_status open_output(pn_writer *w, const char *path, pn_error *err)
{
    static const char ending[] = ".XXXXXX";
    struct stat st;
    w->path = pn_strdup(path);
    w->shown = w->path;
    if (!w->path) return pn_fail(err, PN_E_NOMEM, "no memory to write a file");
    int there = stat(path, &st) == 0;
    if (there && S_ISDIR(st.st_mode)) return fail_os(w, "write it", EISDIR, err);
    if (there && !S_ISREG(st.st_mode)) {
        w->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        return w->fd < 0 ? fail_os(w, "open it", errno, err) : PN_OK;
    }
    char *real = realpath(path, NULL);
    if (real) {
        char *copy = pn_strdup(real);
        free(real);
        if (!copy) return pn_fail(err, PN_E_NOMEM, "%s: no memory to write it", w->shown);
        pn_free(w->path);
        w->shown = w->path = copy;
    }
    size_t n = strlen(w->path);
    char *temporary = pn_calloc(n + sizeof ending, 1);
    if (!temporary) return pn_fail(err, PN_E_NOMEM, "%s: no memory to write it", w->shown);
    memcpy(temporary, w->path, n);
    memcpy(temporary + n, ending, sizeof ending);
    w->fd = mkstemp(temporary);
    if (w->fd < 0) {
        int number = errno;
        pn_free(temporary);
        return fail_os(w, "create a file beside it", number, err);
    }
    w->temporary = temporary;
    fcntl(w->fd, F_SETFD, FD_CLOEXEC);
    mode_t mask = umask(0);
    umask(mask);
    (void)!fchmod(w->fd, there ? st.st_mode & 0777 : 0666 & ~mask);
    return PN_OK;
}

static pn_status write_out(pn_writer *w, const unsigned char *data, size_t size, pn_error *err)
{
    while (size && w->path) {
        ssize_t n = write(w->fd, data, size < (size_t)1 << 30 ? size : (size_t)1 << 30);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_os(w, "write", errno, err);
        data += n;
        size -= (size_t)n;
    }
    return PN_OK;
}

static pn_status flush(pn_writer *w, pn_error *err)
{
    size_t n = w->buffered;
    w->buffered = 0;
    return write_out(w, w->buffer, n, err);
}

static pn_status append(pn_writer *w, const unsigned char *data, uint64_t size, pn_error *err)
{
    pn_status st = PN_OK;
    if (size > UINT64_MAX - w->position)
        return pn_fail(err, PN_E_RANGE, "%s: it would be larger than any file", w->shown);
    w->position += size;
    if (!w->path) return PN_OK;
    while (size && !st) {
        if (data && !w->buffered && size >= BUFFER_BYTES) return write_out(w, data, (size_t)size, err);
        size_t room = BUFFER_BYTES - w->buffered, n = size < room ? (size_t)size : room;
        if (data) memcpy(w->buffer + w->buffered, data, n);
        else memset(w->buffer + w->buffered, 0, n);
        w->buffered += n;
        size -= n;
        if (data) data += n;
        if (w->buffered == BUFFER_BYTES) st = flush(w, err);
    }
    return st;
}

/* Ask for all the room now: a full disk is better found before the work than after it. Where the file system cannot
 * say, the write will. */
static pn_status reserve(pn_writer *w, pn_error *err)
{
    uint64_t total = w->position;
    for (size_t i = 0; i < w->tensors.count; i++) {
        const named_tensor *t = pn_table_at(&w->tensors, i)->item;
        total = t->tensor.size > UINT64_MAX - total ? UINT64_MAX : total + t->tensor.size;
    }
    if (!w->temporary || total > (uint64_t)INT64_MAX) return PN_OK;
#ifdef FALLOC_FL_KEEP_SIZE
    if (fallocate(w->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)total) && errno == ENOSPC) {
        fail_os(w, "reserve room for it", ENOSPC, err);
        return pn_error_wrap(err, "%llu bytes are needed", (unsigned long long)total);
    }
#endif
    return PN_OK;
}

/* The folder's entry must be on disk too. A file system that cannot is no failure. */
static void sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? pn_strndup(path, slash == path ? 1 : (size_t)(slash - path)) : pn_strdup(".");
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        (void)!fsync(fd);
        close(fd);
    }
    pn_free(folder);
}

static pn_status put_in_place(pn_writer *w, pn_error *err)
{
    pn_status st = flush(w, err);
    if (st || !w->path) return st;
    if (fsync(w->fd) && errno != EINVAL && errno != EROFS && w->temporary) return fail_os(w, "write", errno, err);
    int fd = w->fd;
    w->fd = -1;
    if (close(fd)) return fail_os(w, "write", errno, err);
    if (!w->temporary) return PN_OK;
    if (rename(w->temporary, w->path)) return fail_os(w, "put it in place", errno, err);
    pn_free(w->temporary);
    w->temporary = NULL;
    sync_folder(w->path);
    return PN_OK;
}

/* ---- creation ---------------------------------------------------------------------------------------------------- */

pn_status pn_writer_create(pn_runtime *runtime, const char *format, const char *path, const pn_writer_options *options,
                           pn_writer **out, pn_error *err)
{
    pn_error own;
    pn_writer_options o = {0};
    if (!err) err = &own;
    if (!runtime || !format || !out)
        return pn_fail(err, PN_E_ARGUMENT, "pn_writer_create: runtime, format and out must be given");
    if (options) memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
    const pn_reg_entry *e = pn_registry_find(runtime, PN_KIND_FORMAT, format);
    if (!e) return pn_registry_missing(runtime, PN_KIND_FORMAT, pn_str_from(format), err);
    const pn_format *f = e->item;
    if (!f->write_begin)
        return pn_fail(err, PN_E_UNSUPPORTED, "%s: the format '%s' can only be read here: its plugin has no writer",
                       path ? path : "a new file", format);
    pn_writer *w = pn_calloc(1, sizeof *w);
    if (!w) return pn_fail(err, PN_E_NOMEM, "no memory to write a file");
    w->runtime = runtime;
    w->entry = e;
    w->format = f;
    w->flags = o.flags;
    w->fd = -1;
    w->shown = "a new file";
    pn_status st = PN_OK;
    if (path && !(w->buffer = pn_calloc(BUFFER_BYTES, 1)))
        st = pn_fail(err, PN_E_NOMEM, "%s: no memory to write it", path);
    if (!st && path) st = open_output(w, path, err);
    if (st) pn_writer_destroy(w);
    else *out = w;
    return st;
}

static void free_items(pn_table *table)
{
    for (size_t i = 0; i < table->count; i++) pn_free(pn_table_at(table, i)->item);
    pn_table_free(table);
}

void pn_writer_destroy(pn_writer *w)
{
    if (!w) return;
    if (w->begun && w->format->write_close) w->format->write_close(w->entry->host, w->state);
    if (w->fd >= 0) close(w->fd);
    if (w->temporary) unlink(w->temporary);
    free_items(&w->values);
    free_items(&w->tensors);
    pn_free(w->temporary);
    pn_free(w->path);
    pn_free(w->buffer);
    pn_free(w);
}

/* ---- declaring --------------------------------------------------------------------------------------------------- */

static pn_status wants_stage(const pn_writer *w, stage wanted, const char *call, pn_error *err)
{
    if (w->stage == wanted) return PN_OK;
    return pn_fail(err, PN_E_STATE, "%s: %s %s", w->shown, call,
                   w->stage == FAILED  ? "after a failure: nothing can follow it"
                   : w->stage < wanted ? "before pn_writer_begin"
                   : wanted == TENSORS ? "after the file was finished"
                                       : "after pn_writer_begin");
}

pn_status pn_writer_add_value(pn_writer *w, pn_str key, const pn_value *value, pn_error *err)
{
    pn_status st = wants_stage(w, DECLARING, "pn_writer_add_value", err);
    if (st) return st;
    if (!key.size || value->type == PN_T_NONE || value->type > PN_T_ARRAY)
        return pn_fail(err, PN_E_ARGUMENT, "%s: metadata needs a key and a value; the key is '%.*s', the type %lu",
                       w->shown, SHOWN(key), (unsigned long)value->type);
    if (pn_table_find(&w->values, key))
        return pn_fail(err, PN_E_CONFLICT, "%s: the key '%.*s' is there already", w->shown, SHOWN(key));
    named_value *v = key.size < SIZE_MAX / 2 ? pn_calloc(1, sizeof *v + key.size) : NULL;
    if (v) {
        v->value = *value;
        memcpy(v->key, key.data, key.size);
    }
    if (!v || !pn_table_add(&w->values, (pn_str){v->key, key.size}, v)) {
        pn_free(v);
        return pn_fail(err, PN_E_NOMEM, "%s: no memory for its metadata", w->shown);
    }
    return PN_OK;
}

/* The bytes of a tensor by its type, which must be loaded unless the size was given. */
static pn_status size_of(const pn_writer *w, const pn_tensor *t, uint64_t *size, pn_error *err)
{
    const pn_quant *q = t->type ? pn_runtime_find(w->runtime, PN_KIND_QUANT, t->type) : NULL;
    uint64_t cols = t->n_dims ? t->dims[t->n_dims - 1] : 1, rows = 1, row;
    for (uint32_t i = 0; i + 1 < t->n_dims; i++) {
        if (t->dims[i] && rows > (uint64_t)INT64_MAX / t->dims[i])
            return pn_fail(err, PN_E_RANGE, "%s: tensor '%.*s' has more rows than a file can hold", w->shown,
                           SHOWN(t->name));
        rows *= t->dims[i];
    }
    if (!q && t->size) {
        *size = t->size;
        return PN_OK;
    }
    if (!q) {
        pn_registry_missing(w->runtime, PN_KIND_QUANT, pn_str_from(t->type ? t->type : "?"), err);
        return pn_error_wrap(err, "%s: tensor '%.*s'", w->shown, SHOWN(t->name));
    }
    row = rows && cols ? pn_quant_row_bytes(q, cols) : 0;
    if (rows && cols && !row)
        return pn_fail(err, PN_E_FORMAT, "%s: tensor '%.*s' has rows of %llu elements, but type '%s' has blocks of %lu",
                       w->shown, SHOWN(t->name), (unsigned long long)cols, q->name, (unsigned long)q->block_elems);
    if (row && rows > (uint64_t)INT64_MAX / row)
        return pn_fail(err, PN_E_RANGE, "%s: tensor '%.*s' is larger than any file", w->shown, SHOWN(t->name));
    *size = rows * row;
    if (t->size && t->size != *size)
        return pn_fail(err, PN_E_ARGUMENT, "%s: tensor '%.*s' is said to have %llu bytes, but as '%s' it has %llu",
                       w->shown, SHOWN(t->name), (unsigned long long)t->size, q->name, (unsigned long long)*size);
    return PN_OK;
}

pn_status pn_writer_add_tensor(pn_writer *w, const pn_tensor *tensor, pn_error *err)
{
    uint64_t size = 0;
    pn_error own;
    if (!err) err = &own;
    pn_status st = wants_stage(w, DECLARING, "pn_writer_add_tensor", err);
    if (st) return st;
    if (tensor->struct_size < sizeof *tensor || tensor->n_dims > PN_MAX_DIMS)
        return pn_fail(err, PN_E_ARGUMENT, "%s: tensor '%.*s' has %lu dimensions in a struct of %lu bytes", w->shown,
                       SHOWN(tensor->name), (unsigned long)tensor->n_dims, (unsigned long)tensor->struct_size);
    if (pn_table_find(&w->tensors, tensor->name))
        return pn_fail(err, PN_E_CONFLICT, "%s: the tensor '%.*s' is there already", w->shown, SHOWN(tensor->name));
    if ((st = size_of(w, tensor, &size, err))) return st;
    size_t type = tensor->type ? strlen(tensor->type) + 1 : 0;
    named_tensor *t = tensor->name.size < SIZE_MAX / 2 ? pn_calloc(1, sizeof *t + tensor->name.size + type) : NULL;
    if (t) {
        t->tensor = *tensor;
        t->tensor.name.data = t->name;
        t->tensor.size = size;
        t->tensor.data = NULL;
        t->tensor.offset = 0;
        if (tensor->name.size) memcpy(t->name, tensor->name.data, tensor->name.size);
        if (type) t->tensor.type = memcpy(t->name + tensor->name.size, tensor->type, type);
    }
    if (!t || !pn_table_add(&w->tensors, t->tensor.name, t)) {
        pn_free(t);
        return pn_fail(err, PN_E_NOMEM, "%s: no memory for its tensors", w->shown);
    }
    return PN_OK;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static pn_status failed(pn_writer *w, pn_status st)
{
    if (st) w->stage = FAILED;
    return st;
}

/* What stands before tensor `current`, once its turn has come. */
static pn_status open_tensor(pn_writer *w, pn_error *err)
{
    w->current_done = 0;
    return w->format->write_tensor ? w->format->write_tensor(w->entry->host, w, w->state, w->current, err) : PN_OK;
}

/* Go on to the first tensor that still wants bytes; `skip`: as if all had come. */
static pn_status advance(pn_writer *w, int skip, pn_error *err)
{
    pn_status st = PN_OK;
    while (!st && w->current < w->tensors.count) {
        const named_tensor *t = pn_table_at(&w->tensors, w->current)->item;
        if (skip) st = append(w, NULL, t->tensor.size - w->current_done, err);
        else if (w->current_done < t->tensor.size) break;
        if (!st && ++w->current < w->tensors.count) st = open_tensor(w, err);
    }
    return st;
}

pn_status pn_writer_begin(pn_writer *w, pn_error *err)
{
    pn_error own;
    if (!err) err = &own;
    pn_status st = wants_stage(w, DECLARING, "pn_writer_begin", err);
    if (st) return st;
    w->stage = LAYING_OUT;
    st = w->format->write_begin(w->entry->host, w, &w->state, err);
    w->begun = !st;
    if (!st) st = reserve(w, err);
    if (!st) w->stage = TENSORS;
    if (!st && w->tensors.count) st = open_tensor(w, err);
    if (!st) st = advance(w, 0, err);
    return failed(w, st);
}

pn_status pn_writer_data(pn_writer *w, const void *data, size_t size, pn_error *err)
{
    const unsigned char *p = data;
    pn_error own;
    if (!err) err = &own;
    pn_status st = wants_stage(w, TENSORS, "pn_writer_data", err);
    if (st) return st;
    while (size && !st) {
        if (w->current >= w->tensors.count)
            return failed(
                w, pn_fail(err, PN_E_RANGE, "%s: %zu bytes more than its tensors have were given", w->shown, size));
        const named_tensor *t = pn_table_at(&w->tensors, w->current)->item;
        uint64_t left = t->tensor.size - w->current_done;
        size_t n = size < left ? size : (size_t)left;
        st = append(w, p, n, err);
        w->current_done += n;
        p += n;
        size -= n;
        if (!st) st = advance(w, 0, err);
    }
    return failed(w, st);
}

pn_status pn_writer_finish(pn_writer *w, pn_error *err)
{
    pn_error own;
    if (!err) err = &own;
    pn_status st = wants_stage(w, TENSORS, "pn_writer_finish", err);
    if (st) return st;
    if (!w->path) st = advance(w, 1, err);
    if (!st && w->current < w->tensors.count) {
        const named_tensor *t = pn_table_at(&w->tensors, w->current)->item;
        return failed(w, pn_fail(err, PN_E_STATE, "%s: tensor '%.*s' got %llu of its %llu bytes", w->shown,
                                 SHOWN(t->tensor.name), (unsigned long long)w->current_done,
                                 (unsigned long long)t->tensor.size));
    }
    w->stage = ENDING;
    if (!st && w->format->write_end) st = w->format->write_end(w->entry->host, w, w->state, err);
    if (!st) st = put_in_place(w, err);
    if (!st) w->stage = DONE;
    return failed(w, st);
}

uint64_t pn_writer_bytes(const pn_writer *w)
{
    return w->position;
}

/* ---- host slots -------------------------------------------------------------------------------------------------- */

pn_status pn_writer_get_info(const pn_writer *w, pn_writer_info *out, pn_error *err)
{
    pn_writer_info info = {.struct_size = sizeof info,
                           .flags = w->flags,
                           .path = w->shown,
                           .position = w->position,
                           .n_values = w->values.count,
                           .n_tensors = w->tensors.count};
    (void)err;
    size_t n = out->struct_size && out->struct_size < sizeof info ? out->struct_size : sizeof info;
    info.struct_size = (uint32_t)n;
    memcpy(out, &info, n);
    return PN_OK;
}

pn_status pn_writer_value_at(const pn_writer *w, size_t index, pn_str *key, const pn_value **value, pn_error *err)
{
    const pn_entry *e = pn_table_at(&w->values, index);
    if (!e) return pn_fail(err, PN_E_RANGE, "%s: it has %zu metadata values", w->shown, w->values.count);
    const named_value *v = e->item;
    if (key) *key = e->key;
    if (value) *value = &v->value;
    return PN_OK;
}

pn_status pn_writer_tensor_at(const pn_writer *w, size_t index, const pn_tensor **out, pn_error *err)
{
    const pn_entry *e = pn_table_at(&w->tensors, index);
    if (!e) return pn_fail(err, PN_E_RANGE, "%s: it has %zu tensors", w->shown, w->tensors.count);
    *out = &((const named_tensor *)e->item)->tensor;
    return PN_OK;
}

pn_status pn_writer_put(pn_writer *w, const void *data, size_t size, pn_error *err)
{
    if (w->stage != LAYING_OUT && w->stage != TENSORS && w->stage != ENDING)
        return pn_fail(err, PN_E_STATE, "%s: 'writer_put' may only be called while the file is being written",
                       w->shown);
    return append(w, data, size, err);
}
