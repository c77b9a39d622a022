/* pn_source: where a model file's bytes come from - a file, a buffer or a folder - and the files beside it. */
#include "file.h"

#include "alloc.h"
#include "map.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct pn_source {
    uint32_t kind;              /* PN_SOURCE_* */
    char *name;                 /* as the user gave it, or folder/basename */
    char *folder;               /* where siblings are; NULL for a buffer */
    pn_map *map;                /* files */
    const void *data;           /* buffers */
    uint64_t size;

    pn_source *root;            /* the one that was opened first; itself for that */
    pn_source *next;            /* its siblings, in the order they were opened */
    pthread_mutex_t lock;       /* guards the list, in the root */
};

static pn_status no_memory(pn_error *err, const char *name)
{
    return pn_fail(err, PN_E_NOMEM, "%s: no memory to open it", name);
}

static void free_one(pn_source *s)
{
    pn_map_close(s->map);
    pn_free(s->folder);
    pn_free(s->name);
    pn_free(s);
}

/* A source with its name and nothing else; NULL without memory. */
static pn_source *make(uint32_t kind, const char *name, pn_source *root)
{
    pn_source *s = pn_calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->kind = kind;
    s->root = root ? root : s;
    s->name = pn_strdup(name);
    if (!s->name) {
        pn_free(s);
        return NULL;
    }
    if (!root)
        pthread_mutex_init(&s->lock, NULL);
    return s;
}

/* The folder part of a path: "." when it has none. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return pn_strdup(".");
    return pn_strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

pn_status pn_source_open(const char *path, pn_source **out, pn_error *err)
{
    struct stat st;
    int is_folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    pn_source *s = make(is_folder ? PN_SOURCE_FOLDER : PN_SOURCE_FILE, path, NULL);
    if (!s)
        return no_memory(err, path);
    s->folder = is_folder ? pn_strdup(path) : folder_of(path);
    pn_status status = s->folder ? PN_OK : no_memory(err, path);
    if (!status && !is_folder)
        status = pn_map_open(path, &s->map, err);
    if (status) {
        pn_source_close(s);
        return status;
    }
    *out = s;
    return PN_OK;
}

pn_status pn_source_buffer(const char *label, const void *data, size_t size, pn_source **out, pn_error *err)
{
    pn_source *s = make(PN_SOURCE_BUFFER, label, NULL);
    if (!s)
        return no_memory(err, label);
    s->data = data ? data : "";
    s->size = data ? size : 0;
    *out = s;
    return PN_OK;
}

void pn_source_close(pn_source *source)
{
    if (!source)
        return;
    pn_source *s = source->root->next;
    while (s) {
        pn_source *next = s->next;
        free_one(s);
        s = next;
    }
    pthread_mutex_destroy(&source->root->lock);
    free_one(source->root);
}

pn_source *pn_source_at(pn_source *source, size_t index)
{
    pn_source *root = source->root, *s = root;
    pthread_mutex_lock(&root->lock);
    while (s && index--)
        s = s->next;
    pthread_mutex_unlock(&root->lock);
    return s;
}

const char *pn_source_name(const pn_source *source) { return source->name; }
struct pn_map *pn_source_map(const pn_source *source) { return source->map; }

pn_status pn_source_get_info(const pn_source *source, pn_source_info *out, pn_error *err)
{
    pn_source_info info = { .struct_size = sizeof info, .kind = source->kind, .name = source->name };
    (void)err;
    if (source->kind == PN_SOURCE_FILE) {
        info.data = pn_map_data(source->map);
        info.size = pn_map_size(source->map);
    } else if (source->kind == PN_SOURCE_BUFFER) {
        info.data = source->data;
        info.size = source->size;
    }
    /* An older plugin's struct is shorter. */
    size_t n = out->struct_size && out->struct_size < sizeof info ? out->struct_size : sizeof info;
    info.struct_size = (uint32_t)n;
    memcpy(out, &info, n);
    return PN_OK;
}

/* ---- siblings ---------------------------------------------------------------------------------------------------- */

static pn_status fail_os(pn_error *err, const char *folder, const char *base, const char *what, int number)
{
    pn_status status = number == ENOENT ? PN_E_NOT_FOUND : number == ELOOP ? PN_E_DENIED : PN_E_IO;
    pn_fail(err, status, "%s/%s: cannot %s: %s", folder, base, what, strerror(number));
    if (err)
        err->os_errno = number;
    return status;
}

/* Where a link that must stay in its folder ends: *target is its base name there (in `room`). */
static pn_status follow(const char *folder, const char *base, char *room, const char **target, pn_error *err)
{
    char inside[PATH_MAX], path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, base) >= sizeof path)
        return fail_os(err, folder, base, "follow the link", ENAMETOOLONG);
    if (!realpath(folder, inside) || !realpath(path, room))
        return fail_os(err, folder, base, "follow the link", errno);
    char *slash = strrchr(room, '/');
    size_t n = (size_t)(slash - room);
    if (strncmp(inside, room, n) != 0 || (inside[n] && strcmp(inside, "/") != 0))
        return pn_fail(err, PN_E_DENIED,
                       "%s/%s: it is a link that leaves its folder (to %s), which a model file must not use: "
                       "put the file itself there",
                       folder, base, room);
    *target = slash + 1;
    return PN_OK;
}

/* Open `base` in `folder` without ever following a link: what a link names was looked up before. */
static pn_status open_in(const char *folder, const char *base, int *out, pn_error *err)
{
    char room[PATH_MAX];
    const char *target = base;
    struct stat st;
    int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return fail_os(err, folder, base, "open the folder", errno);
    pn_status status = PN_OK;
    if (fstatat(dir, base, &st, AT_SYMLINK_NOFOLLOW))
        status = fail_os(err, folder, base, "open", errno);
    else if (S_ISLNK(st.st_mode))
        status = follow(folder, base, room, &target, err);
    if (!status) {
        /* Not blocking: a pipe may lie there. */
        int fd = openat(dir, target, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        if (fd < 0) {
            status = fail_os(err, folder, base, "open", errno);
        } else if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
            close(fd);
            status = pn_fail(err, PN_E_DENIED, "%s/%s: it is no regular file", folder, base);
        } else {
            *out = fd;
        }
    }
    close(dir);
    return status;
}

pn_status pn_source_open_sibling(pn_source *source, const char *basename, pn_source **out, pn_error *err)
{
    if (!basename || !*basename || strcmp(basename, ".") == 0 || strcmp(basename, "..") == 0 ||
        strpbrk(basename, "/\\"))
        return pn_fail(err, PN_E_DENIED,
                       "%s: it asks for the file '%s', which is no plain file name: a model file may only use "
                       "files beside it",
                       source->name, basename ? basename : "");
    if (source->kind == PN_SOURCE_BUFFER)
        return pn_fail(err, PN_E_NOT_FOUND,
                       "%s: it asks for the file '%s' beside it, but it lies in memory: open it from a folder",
                       source->name, basename);

    int fd = -1;
    pn_status status = open_in(source->folder, basename, &fd, err);
    if (status)
        return status;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", source->folder, basename);
    pn_source *s = make(PN_SOURCE_FILE, path, source->root);
    status = s && (s->folder = pn_strdup(source->folder)) ? PN_OK : no_memory(err, path);
    if (!status)
        status = pn_map_open_fd(fd, path, &s->map, err);
    close(fd);
    if (status) {
        if (s)
            free_one(s);
        return status;
    }
    pthread_mutex_lock(&s->root->lock);
    pn_source **end = &s->root->next;
    while (*end)
        end = &(*end)->next;
    *end = s;
    pthread_mutex_unlock(&s->root->lock);
    *out = s;
    return PN_OK;
}
