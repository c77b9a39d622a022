/* pn_file: an opened model file - its metadata, tensors and roles - and the slots through which a format plugin fills
 * it. */
#include "file.h"

#include "alloc.h"
#include "file_table.h"
#include "map.h"
#include "registry.h"

#include <pthread.h>

/* Memory that lives as long as the file: small pieces are cut from chunks, large ones stand alone. */
#define CHUNK_BYTES ((size_t)1 << 16)

typedef struct chunk {
    struct chunk *next;
    size_t used, size;
    _Alignas(16) unsigned char bytes[];
} chunk;

struct pn_file {
    pn_runtime *runtime;
    const pn_reg_entry *entry;      /* the format's registration */
    const pn_format *format;
    void *state;                    /* the format's own */
    pn_source *source;
    int opening;                    /* inside pn_format.open */
    pthread_mutex_t lock;           /* guards `chunks`: role() may allocate from many threads */
    chunk *chunks;
    pn_table values;                /* key -> pn_value */
    pn_table tensors;               /* name -> pn_tensor */
};

/* ---- memory of the file ------------------------------------------------------------------------------------------ */

static void *arena_alloc(pn_file *file, size_t count, size_t size)
{
    if (size && count > (SIZE_MAX - sizeof(chunk) - 16) / size)
        return NULL;
    size_t want = (count * size + 15) & ~(size_t)15;
    void *p = NULL;
    pthread_mutex_lock(&file->lock);
    chunk *c = file->chunks;
    if (!c || want > c->size - c->used) {
        int alone = want > CHUNK_BYTES / 4;
        c = pn_calloc(1, sizeof *c + (alone ? want : CHUNK_BYTES));
        if (c) {
            c->size = alone ? want : CHUNK_BYTES;
            /* One that is full from the start goes behind the chunk that still has room. */
            chunk **at = alone && file->chunks ? &file->chunks->next : &file->chunks;
            c->next = *at;
            *at = c;
        }
    }
    if (c) {
        p = c->bytes + c->used;
        c->used += want;
    }
    pthread_mutex_unlock(&file->lock);
    return p;
}

pn_status pn_file_alloc(pn_file *file, size_t count, size_t size, void **out, pn_error *err)
{
    void *p = arena_alloc(file, count, size);
    if (!p)
        return pn_fail(err, PN_E_NOMEM, "%s: no memory for %zu items of %zu bytes", pn_file_path(file), count, size);
    *out = p;
    return PN_OK;
}

/* ---- slots of the format plugin ---------------------------------------------------------------------------------- */

/* A name from a file, cut for messages. */
#define SHOWN(s) ((s).size > 200 ? 200 : (int)(s).size), ((s).size ? (s).data : "")

static pn_status add_checks(const pn_file *file, const char *slot, pn_error *err)
{
    if (file->opening)
        return PN_OK;
    return pn_fail(err, PN_E_STATE, "%s: '%s' may only be called while the file is being opened", pn_file_path(file),
                   slot);
}

pn_status pn_file_add_value(pn_file *file, pn_str key, const pn_value *value, pn_error *err)
{
    pn_status status = add_checks(file, "file_add_value", err);
    if (status)
        return status;
    if (!key.size)
        return pn_fail(err, PN_E_FORMAT, "%s: metadata value %zu has an empty key", pn_file_path(file),
                       file->values.count);
    if (pn_table_find(&file->values, key))
        return pn_fail(err, PN_E_FORMAT, "%s: the key '%.*s' is there twice", pn_file_path(file), SHOWN(key));
    pn_value *copy = arena_alloc(file, 1, sizeof *copy);
    if (copy)
        *copy = *value;
    if (!copy || !pn_table_add(&file->values, key, copy))
        return pn_fail(err, PN_E_NOMEM, "%s: no memory for its metadata", pn_file_path(file));
    return PN_OK;
}

pn_status pn_file_add_tensor(pn_file *file, const pn_tensor *tensor, pn_error *err)
{
    pn_status status = add_checks(file, "file_add_tensor", err);
    if (status)
        return status;
    /* An older plugin's struct is shorter, but has all of ABI 1.0. */
    const size_t least = offsetof(pn_tensor, offset) + sizeof tensor->offset;
    if (tensor->struct_size < least)
        return pn_fail(err, PN_E_ABI, "%s: its format plugin gives tensors of %u bytes where %zu are wanted",
                       pn_file_path(file), (unsigned)tensor->struct_size, least);
    if (tensor->n_dims > PN_MAX_DIMS)
        return pn_fail(err, PN_E_FORMAT, "%s: tensor '%.*s' has %u dimensions; at most %d are possible",
                       pn_file_path(file), SHOWN(tensor->name), (unsigned)tensor->n_dims, PN_MAX_DIMS);
    uint64_t n = 1;
    for (uint32_t i = 0; i < tensor->n_dims; i++) {
        if (tensor->dims[i] && n > UINT64_MAX / tensor->dims[i])
            return pn_fail(err, PN_E_FORMAT, "%s: tensor '%.*s' has more elements than 64 bits can count",
                           pn_file_path(file), SHOWN(tensor->name));
        n *= tensor->dims[i] ? tensor->dims[i] : 1;
    }
    if (pn_table_find(&file->tensors, tensor->name))
        return pn_fail(err, PN_E_FORMAT, "%s: the tensor '%.*s' is there twice", pn_file_path(file),
                       SHOWN(tensor->name));
    pn_tensor *copy = arena_alloc(file, 1, sizeof *copy);
    if (copy) {
        memcpy(copy, tensor, tensor->struct_size < sizeof *copy ? tensor->struct_size : sizeof *copy);
        copy->struct_size = sizeof *copy;
    }
    if (!copy || !pn_table_add(&file->tensors, copy->name, copy))
        return pn_fail(err, PN_E_NOMEM, "%s: no memory for its tensors", pn_file_path(file));
    return PN_OK;
}

pn_status pn_file_value_get(const pn_file *file, pn_str key, const pn_value **out, pn_error *err)
{
    const pn_value *v = pn_table_find(&file->values, key);
    if (!v)
        return pn_fail(err, PN_E_NOT_FOUND, "%s: it has no key '%.*s'", pn_file_path(file), SHOWN(key));
    *out = v;
    return PN_OK;
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

/* What the first bytes are, for people who opened the wrong file: "89 50 4e 47 ('.PNG')". */
static void first_bytes(const pn_source_info *info, char *text, size_t capacity)
{
    const unsigned char *p = info->data;
    size_t n = info->size < 8 ? (size_t)info->size : 8, at = 0;
    char shown[9] = "";
    for (size_t i = 0; i < n; i++) {
        at += (size_t)snprintf(text + at, capacity - at, "%02x ", p[i]);
        shown[i] = p[i] >= 32 && p[i] < 127 && p[i] != '\'' ? (char)p[i] : '.';
    }
    snprintf(text + at, capacity - at, "('%s')", shown);
}

static pn_status unknown_format(pn_file *file, const pn_source_info *info, pn_error *err)
{
    char bytes[64], names[512] = "";
    size_t at = 0;
    const pn_reg_entry *e;
    for (size_t i = 0; (e = pn_registry_at(file->runtime, PN_KIND_FORMAT, i)) != NULL && at < sizeof names - 1; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", at ? ", " : "", e->name);
    if (!at)
        return pn_registry_missing(file->runtime, PN_KIND_FORMAT, pn_str_from(info->name), err);
    if (info->kind == PN_SOURCE_FOLDER)
        return pn_fail(err, PN_E_UNSUPPORTED, "%s: no loaded format knows this folder as a model; loaded: %s",
                       info->name, names);
    if (!info->size)
        return pn_fail(err, PN_E_UNSUPPORTED, "%s: the file is empty; wanted a model file (%s)", info->name, names);
    first_bytes(info, bytes, sizeof bytes);
    return pn_fail(err, PN_E_UNSUPPORTED, "%s: no loaded format knows this file, which begins with %s; loaded: %s",
                   info->name, bytes, names);
}

static pn_status choose_format(pn_file *file, pn_error *err)
{
    pn_source_info info = { .struct_size = sizeof info };
    int32_t best = 0;
    const pn_reg_entry *e;
    pn_source_get_info(file->source, &info, err);
    for (size_t i = 0; (e = pn_registry_at(file->runtime, PN_KIND_FORMAT, i)) != NULL; i++) {
        const pn_format *f = e->item;
        int32_t score = e->usable && f->probe && f->open ? f->probe(e->host, file->source) : 0;
        if (score > 0 && score == best)
            pn_runtime_log(file->runtime, PN_LOG_INFO,
                           "%s: formats '%s' and '%s' are equally sure of it; the first is used", info.name,
                           file->entry->name, e->name);
        if (score > best) {
            best = score;
            file->entry = e;
        }
    }
    if (!file->entry)
        return unknown_format(file, &info, err);
    file->format = file->entry->item;
    pn_runtime_log(file->runtime, PN_LOG_DEBUG, "%s: format '%s' (score %d), %llu bytes", info.name, file->entry->name,
                   (int)best, (unsigned long long)info.size);
    return PN_OK;
}

/* Nothing is hidden: bytes that lie in memory of their own are announced. */
static void announce_reads(const pn_file *file)
{
    pn_source *s;
    for (size_t i = 0; (s = pn_source_at(file->source, i)) != NULL; i++) {
        const pn_map *m = pn_source_map(s);
        if (m && !pn_map_mapped(m))
            pn_runtime_log(file->runtime, PN_LOG_WARN,
                           "%s: it cannot be mapped (%s), so its %llu bytes were read into memory", pn_source_name(s),
                           pn_map_reason(m), (unsigned long long)pn_map_size(m));
    }
}

/* Takes the source over, also on failure. */
static pn_status open_source(pn_runtime *runtime, pn_source *source, pn_file **out, pn_error *err)
{
    pn_file *file = pn_calloc(1, sizeof *file);
    if (!file) {
        pn_status status = pn_fail(err, PN_E_NOMEM, "%s: no memory to open it", pn_source_name(source));
        pn_source_close(source);
        return status;
    }
    file->runtime = runtime;
    file->source = source;
    pthread_mutex_init(&file->lock, NULL);
    pn_status status = choose_format(file, err);
    if (!status) {
        file->opening = 1;
        status = file->format->open(file->entry->host, source, file, &file->state, err);
        file->opening = 0;
    }
    if (status) {
        pn_file_destroy(file);
        return status;
    }
    announce_reads(file);
    *out = file;
    return PN_OK;
}

pn_status pn_file_open(pn_runtime *runtime, const char *path, pn_file **out, pn_error *err)
{
    pn_error own;
    pn_source *source = NULL;
    if (!err)
        err = &own;
    if (!runtime || !path || !out)
        return pn_fail(err, PN_E_ARGUMENT, "pn_file_open: runtime, path and out must be given");
    pn_status status = pn_source_open(path, &source, err);
    return status ? status : open_source(runtime, source, out, err);
}

pn_status pn_file_open_buffer(pn_runtime *runtime, const char *label, const void *data, size_t size, pn_file **out,
                              pn_error *err)
{
    pn_error own;
    pn_source *source = NULL;
    if (!err)
        err = &own;
    if (!runtime || !out || (!data && size))
        return pn_fail(err, PN_E_ARGUMENT, "pn_file_open_buffer: runtime, data and out must be given");
    pn_status status = pn_source_buffer(label ? label : "buffer", data, size, &source, err);
    return status ? status : open_source(runtime, source, out, err);
}

void pn_file_destroy(pn_file *file)
{
    if (!file)
        return;
    if (file->state && file->format->close)
        file->format->close(file->entry->host, file->state);
    pn_table_free(&file->values);
    pn_table_free(&file->tensors);
    for (chunk *c = file->chunks, *next; c; c = next) {
        next = c->next;
        pn_free(c);
    }
    pn_source_close(file->source);
    pthread_mutex_destroy(&file->lock);
    pn_free(file);
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

const char *pn_file_path(const pn_file *file) { return pn_source_name(file->source); }
const char *pn_file_format(const pn_file *file) { return file->format->name; }
pn_runtime *pn_file_runtime(const pn_file *file) { return file->runtime; }

uint64_t pn_file_bytes(const pn_file *file)
{
    uint64_t total = 0;
    pn_source *s;
    for (size_t i = 0; (s = pn_source_at(file->source, i)) != NULL; i++) {
        pn_source_info info = { .struct_size = sizeof info };
        pn_source_get_info(s, &info, NULL);
        total += info.size;
    }
    return total;
}

int pn_file_mapped(const pn_file *file)
{
    size_t files = 0;
    pn_source *s;
    for (size_t i = 0; (s = pn_source_at(file->source, i)) != NULL; i++) {
        const pn_map *m = pn_source_map(s);
        if (m && !pn_map_mapped(m))
            return 0;
        files += m != NULL;
    }
    return files > 0;
}

pn_status pn_file_value_at(const pn_file *file, size_t index, pn_str *key, const pn_value **value, pn_error *err)
{
    const pn_entry *e = pn_table_at(&file->values, index);
    if (!e)
        return pn_fail(err, PN_E_RANGE, "%s: it has %zu metadata values; number %zu was asked for", pn_file_path(file),
                       file->values.count, index);
    if (key)
        *key = e->key;
    if (value)
        *value = e->item;
    return PN_OK;
}

const pn_value *pn_file_value(const pn_file *file, const char *key)
{
    return key ? pn_table_find(&file->values, pn_str_from(key)) : NULL;
}

pn_str pn_file_str(const pn_file *file, const char *key)
{
    const pn_value *v = pn_file_value(file, key);
    return v && v->type == PN_T_STRING ? v->as.s : (pn_str){ NULL, 0 };
}

int64_t pn_file_int(const pn_file *file, const char *key, int64_t fallback)
{
    const pn_value *v = pn_file_value(file, key);
    int64_t i;
    return v && pn_value_int(v, &i) ? i : fallback;
}

pn_status pn_file_role(pn_file *file, const char *role, pn_role_value *out, pn_error *err)
{
    pn_role_value answer = { .struct_size = sizeof answer };
    pn_error own;
    if (!err)
        err = &own;
    if (!role || !out)
        return pn_fail(err, PN_E_ARGUMENT, "a role and a place for its value must be given");
    pn_status status =
        file->format->role ? file->format->role(file->entry->host, file, file->state, role, &answer, err) : PN_OK;
    if (status)
        return status;
    size_t n = out->struct_size && out->struct_size < sizeof answer ? out->struct_size : sizeof answer;
    answer.struct_size = (uint32_t)n;
    memcpy(out, &answer, n);
    return PN_OK;
}

size_t pn_file_tensor_count(const pn_file *file) { return file->tensors.count; }

const pn_tensor *pn_file_tensor_at(const pn_file *file, size_t index)
{
    const pn_entry *e = pn_table_at(&file->tensors, index);
    return e ? e->item : NULL;
}

const pn_tensor *pn_file_tensor(const pn_file *file, const char *name)
{
    return name ? pn_table_find(&file->tensors, pn_str_from(name)) : NULL;
}

pn_status pn_file_tensor_neutral(pn_file *file, const char *neutral, const pn_tensor **out, pn_error *err)
{
    char room[512];
    const char *name = neutral;
    pn_error own;
    if (!err)
        err = &own;
    if (file->format->tensor_name) {
        pn_status status =
            file->format->tensor_name(file->entry->host, file, file->state, neutral, room, sizeof room, err);
        if (status)
            return status;
        name = room;
    }
    const pn_tensor *t = pn_file_tensor(file, name);
    if (!t && strcmp(name, neutral) == 0)
        return pn_fail(err, PN_E_NOT_FOUND, "%s: it has no tensor '%s'", pn_file_path(file), name);
    if (!t)
        return pn_fail(err, PN_E_NOT_FOUND, "%s: it has no tensor '%s' (for '%s')", pn_file_path(file), name, neutral);
    *out = t;
    return PN_OK;
}

/* ---- before the weights are read --------------------------------------------------------------------------------- */

pn_status pn_file_prepare(pn_file *file, pn_error *err)
{
    const pn_config *config = pn_runtime_config(file->runtime);
    int prefault = config && pn_config_int(config, "runtime", "prefault") > 0;
    int lock = config && pn_config_int(config, "runtime", "lock") > 0;
    pn_source *s;
    (void)err;
    for (size_t i = 0; (s = pn_source_at(file->source, i)) != NULL; i++) {
        pn_map *m = pn_source_map(s);
        pn_error refused = { 0 };
        if (!m)
            continue;
        pn_map_advise(m, 0, pn_map_size(m), PN_MAP_WILLNEED);
        if (prefault)
            pn_map_prefault(m);
        /* The result is right without the lock, so a refusal is told and no failure. */
        if (lock && pn_map_lock(m, &refused))
            pn_runtime_log(file->runtime, PN_LOG_WARN, "%s: %s", pn_source_name(s), refused.message);
    }
    return PN_OK;
}
