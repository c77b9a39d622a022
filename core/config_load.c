/* Loading INI files into a configuration: the files, what they include, and all or nothing. */
#include "alloc.h"
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DEPTH = 16, MAX_FILES = 256, MAX_BYTES = 16 << 20 };

/* One load with everything it includes. */
typedef struct load {
    pn_config *config;
    unsigned depth, files;
    size_t bytes;
    struct {
        dev_t device;
        ino_t node;
        bool known;
    } open[MAX_DEPTH + 1];
} load;

/* One text of it. */
typedef struct text {
    load *load;
    const char *name;
    char *folder; /* absolute */
    char *where;  /* room for "name:line" */
    size_t where_size;
} text;

static pn_status load_text(load *l, const char *name, const char *bytes, size_t size, pn_error *err);

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* All of an open file, or NULL with `err` filled. */
static char *read_fd(load *l, int fd, const char *path, size_t *size, pn_error *err)
{
    size_t capacity = 4096, used = 0;
    char *bytes = pn_realloc(NULL, capacity, 1);
    for (;;) {
        ssize_t n;
        if (bytes && used == capacity) {
            char *more = pn_realloc(bytes, capacity *= 2, 1);
            if (!more) pn_free(bytes);
            bytes = more;
        }
        if (!bytes) {
            pn_fail(err, PN_E_NOMEM, "%s: no memory to read it", path);
            return NULL;
        }
        n = read(fd, bytes + used, capacity - used);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) {
            l->bytes += used;
            *size = used;
            return bytes;
        }
        if (n < 0) {
            int e = errno;
            pn_fail(err, PN_E_IO, "%s: cannot read the configuration: %s", path, strerror(e));
            if (err) err->os_errno = e;
            break;
        }
        used += (size_t)n;
        if (used > (size_t)MAX_BYTES - l->bytes) {
            pn_fail(err, PN_E_CONFIG, "%s: with what it includes, the configuration is longer than %d MiB", path,
                    MAX_BYTES >> 20);
            break;
        }
    }
    pn_free(bytes);
    return NULL;
}

/* Open, check and read; the file is the innermost of the stack from then on. */
static pn_status load_file(load *l, const char *path, pn_error *err)
{
    /* Not to wait for a writer when an include names a pipe. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | (l->depth ? O_NONBLOCK : 0));
    struct stat st;
    char *bytes = NULL;
    size_t size = 0;
    pn_status status = PN_OK;
    if (fd < 0 || fstat(fd, &st) != 0) {
        int e = errno;
        status = pn_fail(err, e == ENOENT ? PN_E_NOT_FOUND : PN_E_IO, "%s: cannot open the configuration: %s", path,
                         strerror(e));
        if (err) err->os_errno = e;
    } else if (S_ISDIR(st.st_mode) || (l->depth && !S_ISREG(st.st_mode))) {
        status = pn_fail(err, PN_E_CONFIG, "%s: is %s, not an INI file", path,
                         S_ISDIR(st.st_mode) ? "a folder" : "no regular file");
    } else {
        for (unsigned i = 0; i < l->depth && status == PN_OK; i++)
            if (l->open[i].known && l->open[i].device == st.st_dev && l->open[i].node == st.st_ino)
                status = pn_fail(err, PN_E_CONFIG, "%s: includes itself; take out one of the includes", path);
        l->open[l->depth].device = st.st_dev;
        l->open[l->depth].node = st.st_ino;
        l->open[l->depth].known = true;
        if (status == PN_OK) {
            bytes = read_fd(l, fd, path, &size, err);
            status = bytes ? PN_OK : err ? err->status : PN_E_IO;
        }
    }
    if (fd >= 0) close(fd);
    if (status == PN_OK) status = load_text(l, path, bytes, size, err);
    pn_free(bytes);
    return status;
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static pn_status include(text *t, const char *value, pn_error *err)
{
    load *l = t->load;
    char *path;
    pn_status status;
    if (!*value)
        return pn_fail(err, PN_E_CONFIG, "%s: include: wanted the path of an INI file, found nothing", t->where);
    if (l->depth + 1 >= MAX_DEPTH)
        return pn_fail(err, PN_E_CONFIG, "%s: include: files include one another more than %d deep", t->where,
                       MAX_DEPTH);
    if (++l->files >= MAX_FILES)
        return pn_fail(err, PN_E_CONFIG, "%s: include: more than %d files", t->where, MAX_FILES);
    path = pn_config_path(t->folder, value, t->where, err);
    if (!path) return err ? err->status : PN_E_CONFIG;
    l->depth++;
    status = load_file(l, path, err);
    l->depth--;
    if (status != PN_OK && err) {
        size_t n = strlen(err->message);
        snprintf(err->message + n, sizeof err->message - n, "\n  included by %s", t->where);
    }
    pn_free(path);
    return status;
}

static pn_status on_line(void *arg, const pn_ini_line *line, pn_error *err)
{
    text *t = arg;
    snprintf(t->where, t->where_size, "%s:%zu", t->name, line->line);
    if (!line->key) return pn_key_check_section(line->section, t->where, err);
    if (strcmp(line->key, "include") == 0) return include(t, line->value, err);
    pn_config_put_args args = {
        .section = line->section,
        .key = line->key,
        .value = line->value,
        .source = t->where,
        .folder = t->folder,
        .origin = PN_ORIGIN_INI,
        .quoted = line->quoted,
    };
    return pn_config_put(t->load->config, &args, err);
}

static pn_status load_text(load *l, const char *name, const char *bytes, size_t size, pn_error *err)
{
    text t = {.load = l, .name = name, .where_size = strlen(name) + 24};
    const char *slash = strrchr(name, '/');
    size_t length = slash ? (size_t)(slash - name) + 1 : 0;
    char *folder = pn_calloc(length + 3, 1);
    pn_status status = PN_OK;
    t.where = pn_calloc(t.where_size, 1);
    if (!folder || !t.where) status = pn_fail(err, PN_E_NOMEM, "%s: no memory for the configuration", name);
    if (status == PN_OK) { /* absolute now: the current folder may be another when the value is used */
        snprintf(folder, length + 3, "%s%.*s", *name == '/' ? "" : "./", (int)length, name);
        while (strlen(folder) > 2 && folder[strlen(folder) - 1] == '/') folder[strlen(folder) - 1] = 0;
        t.folder = pn_config_path(NULL, folder, name, err);
        if (!t.folder) status = err ? err->status : PN_E_CONFIG;
    }
    if (status == PN_OK) status = pn_ini_read(name, bytes, size, on_line, &t, err);
    pn_free(folder);
    pn_free(t.folder);
    pn_free(t.where);
    return status;
}

/* ---- all or nothing ---------------------------------------------------------------------------------------------- */

static pn_status load_whole(pn_config *config, const char *name, const char *bytes, size_t size, pn_error *err)
{
    load l = {.files = 1};
    pn_error own = {0};
    pn_error *e = err ? err : &own; /* statuses are read from it */
    pn_status status = pn_config_clone(config, &l.config, e);
    if (status != PN_OK) return status;
    status = bytes ? load_text(&l, name, bytes, size, e) : load_file(&l, name, e);
    if (status == PN_OK) pn_config_swap(config, l.config);
    pn_config_destroy(l.config);
    return status;
}

pn_status pn_config_load(pn_config *config, const char *path, pn_error *err)
{
    return load_whole(config, path, NULL, 0, err);
}

pn_status pn_config_load_text(pn_config *config, const char *name, const char *bytes, size_t size, pn_error *err)
{
    return load_whole(config, name, size ? bytes : "", size, err);
}
