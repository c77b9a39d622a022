/* One plugin file: checked as data, loaded, its descriptor compared field by field. No code of a file that fails the
 * first part runs.
 *
 * Between check and load the file is held open, and its path must still lead to it after loading. That leaves no room
 * for anyone but the owner, as neither file nor folder may be writable by others. dlopen gets the real path rather
 * than /proc/self/fd/N, because the C library remembers images by the name it was given: numbers come back with other
 * files behind them, and a debugger could not read them. For the same reason a file that replaced a loaded one at its
 * path is given to dlopen by another spelling.
 */
#include "alloc.h"
#include "runtime.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Images of this process, never unloaded. */
typedef struct image {
    struct image *next;
    dev_t dev;
    ino_t ino;
    void *handle;
    char path[];                /* real path when it was loaded */
} image;

static image *images;
static pthread_mutex_t images_lock = PTHREAD_MUTEX_INITIALIZER;

static pn_status os_fail(pn_error *err, pn_status status, int e, const char *path, const char *what)
{
    pn_fail(err, status, "%s: %s: %s", path, what, strerror(e));
    if (err)
        err->os_errno = e;
    return status;
}

/* ---- permissions ------------------------------------------------------------------------------------------------- */

/* `object` is the plugin's file, or its folder. Group-writable is refused too: who is in a group changes without
 * notice. */
static pn_status check_owner(const struct stat *st, const char *path, const char *what, const char *object,
                             pn_error *err)
{
    uid_t me = geteuid();
    if (st->st_uid != 0 && st->st_uid != me)
        return pn_fail(err, PN_E_DENIED,
                       "%s: the %s %s belongs to user %lu; wanted: user %lu (you) or 0 (root). If you trust the"
                       " plugin, copy it to a folder of your own",
                       path, what, object, (unsigned long)st->st_uid, (unsigned long)me);
    if (st->st_mode & (S_IWGRP | S_IWOTH))
        return pn_fail(err, PN_E_DENIED,
                       "%s: the %s %s has permissions %04o, so others may write to it; wanted: %04o. If you"
                       " trust the plugin: chmod go-w '%s'",
                       path, what, object, (unsigned)st->st_mode & 07777, (unsigned)st->st_mode & 07755, object);
    return PN_OK;
}

static pn_status check_folder(const char *path, const char *file, pn_error *err)
{
    char copy[PATH_MAX];
    struct stat st;
    if (strlen(file) >= sizeof copy)
        return pn_fail(err, PN_E_IO, "%s: the path has %zu bytes; wanted: less than %d", file, strlen(file), PATH_MAX);
    strcpy(copy, file);
    const char *folder = dirname(copy);
    if (stat(folder, &st) != 0)
        return os_fail(err, PN_E_IO, errno, folder, "the folder of a plugin");
    return check_owner(&st, path, "folder", folder, err);
}

/* Owner, permissions, ELF header, note: nothing is executed. *fd stays open on success. */
static pn_status check_file(const char *path, const char *real, int *fd, struct stat *st, pn_elfnote *note,
                            pn_error *err)
{
    pn_status s;
    /* O_NONBLOCK: a named pipe must not stop us. */
    *fd = open(real, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*fd < 0)
        return os_fail(err, errno == ENOENT ? PN_E_NOT_FOUND : PN_E_IO, errno, path, "cannot be opened");
    if (fstat(*fd, st) != 0)
        s = os_fail(err, PN_E_IO, errno, path, "fstat");
    else if (!S_ISREG(st->st_mode))
        s = pn_fail(err, PN_E_FORMAT, "%s: it is %s; wanted: a regular file, a shared object built with PN_PLUGIN",
                    path, S_ISDIR(st->st_mode) ? "a folder" : "no regular file");
    else if ((s = check_owner(st, path, "file", real, err)) == PN_OK && (s = check_folder(path, real, err)) == PN_OK &&
             (s = check_folder(path, path, err)) == PN_OK)
        s = pn_elfnote_read(*fd, (uint64_t)st->st_size, path, note, err);
    if (s != PN_OK) {
        close(*fd);
        *fd = -1;
    }
    return s;
}

/* ---- ABI and descriptor ------------------------------------------------------------------------------------------ */

/* A newer minor is fine: what it calls beyond this host is refused slot by slot. */
static pn_status check_abi(unsigned major, unsigned minor, const char *path, const char *where, pn_error *err)
{
    if (major == PN_ABI_MAJOR)
        return PN_OK;
    return pn_fail(err, PN_E_ABI, "%s: its %s says ABI %u.%u, which is too %s: this Pantheon has ABI %u.%u. %s", path,
                   where, major, minor, major > PN_ABI_MAJOR ? "new" : "old", (unsigned)PN_ABI_MAJOR,
                   (unsigned)PN_ABI_MINOR,
                   major > PN_ABI_MAJOR ? "Update Pantheon" : "Build the plugin again with this Pantheon's headers");
}

int pn_version_ok(const char *v)
{
    size_t n = strlen(v);
    if (n < 1 || n > 64)
        return 0;
    for (size_t i = 0; i < n; i++) {
        int digit = v[i] >= '0' && v[i] <= '9';
        if (!digit && (v[i] != '.' || i == 0 || v[i - 1] == '.' || i == n - 1))
            return 0;
    }
    return 1;
}

/* Numbers of any length: leading zeros off, then longer is larger. Missing numbers count as 0. */
int pn_version_compare(const char *a, const char *b)
{
    while (*a || *b) {
        a += strspn(a, "0");
        b += strspn(b, "0");
        size_t na = strspn(a, "123456789") ? strspn(a, "0123456789") : 0;
        size_t nb = strspn(b, "123456789") ? strspn(b, "0123456789") : 0;
        if (na != nb)
            return na < nb ? -1 : 1;
        int d = na ? memcmp(a, b, na) : 0;
        if (d)
            return d < 0 ? -1 : 1;
        a += na;
        b += nb;
        a += *a == '.';
        b += *b == '.';
    }
    return 0;
}

pn_status pn_descriptor_check(const pn_plugin *d, const pn_elfnote *note, uint64_t cpu, const char *path, pn_error *err)
{
    char magic[9], have[256], lack[256];
    const size_t least = offsetof(pn_plugin, init) + sizeof d->init;
    pn_status s;

    if (memcmp(d->magic, PN_PLUGIN_MAGIC, sizeof d->magic) != 0) {
        for (size_t i = 0; i < 8; i++)
            magic[i] = d->magic[i] >= 32 && d->magic[i] < 127 ? d->magic[i] : '?';
        magic[8] = 0;
        return pn_fail(err, PN_E_ABI,
                       "%s: descriptor field magic is '%s'; wanted: '%s'. Define the descriptor by PN_PLUGIN", path,
                       magic, PN_PLUGIN_MAGIC);
    }
    if (d->struct_size < least)
        return pn_fail(err, PN_E_ABI,
                       "%s: descriptor field struct_size is %u; wanted: at least %zu. Build the plugin again with this"
                       " Pantheon's headers",
                       path, (unsigned)d->struct_size, least);
    if ((s = check_abi(d->abi_major, d->abi_minor, path, "descriptor", err)) != PN_OK)
        return s;
    if (note && (note->abi_major != d->abi_major || note->abi_minor != d->abi_minor))
        return pn_fail(
            err, PN_E_ABI, "%s: note and descriptor disagree in the ABI: %u.%u and %u.%u. Define both by one PN_PLUGIN",
            path, (unsigned)note->abi_major, (unsigned)note->abi_minor, (unsigned)d->abi_major, (unsigned)d->abi_minor);
    const struct { const char *field, *value; } strings[] = {
        { "id", d->id }, { "version", d->version }, { "licence", d->licence }, { "summary", d->summary },
    };
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++)
        if (!strings[i].value)
            return pn_fail(err, PN_E_ABI, "%s: descriptor field %s is NULL; wanted: a string", path, strings[i].field);
    if (!pn_plugin_id_ok(d->id, strlen(d->id)))
        return pn_fail(err, PN_E_ABI,
                       "%s: descriptor field id is '%.140s'; wanted: 1 to %d letters, digits, '.', '_', '-'", path,
                       d->id, PN_PLUGIN_ID_MAX);
    if (note && strcmp(note->id, d->id) != 0)
        return pn_fail(err, PN_E_ABI,
                       "%s: note and descriptor disagree in the id: '%s' and '%s'. Define both by one PN_PLUGIN", path,
                       note->id, d->id);
    if (!pn_version_ok(d->version))
        return pn_fail(err, PN_E_ABI, "%s: descriptor field version is '%.80s'; wanted: dotted numbers such as 1.0",
                       path, d->version);
    if (!d->init)
        return pn_fail(err, PN_E_ABI,
                       "%s: descriptor field init is NULL; wanted: the function that registers what the plugin brings",
                       path);
    if (d->cpu_features & ~cpu)
        return pn_fail(err, PN_E_CPU,
                       "%s: descriptor field cpu_features needs %s; usable here: %s. Run it on another machine%s", path,
                       pn_cpu_names(d->cpu_features & ~cpu, lack, sizeof lack),
                       cpu ? pn_cpu_names(cpu, have, sizeof have) : "none of the optional ones",
                       getenv("PANTHEON_CPU") ? ", or take away PANTHEON_CPU, which lowers what may be used" : "");
    return PN_OK;
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

/* The image of this very file, from before. Call with images_lock held. */
static image *find_image(dev_t dev, ino_t ino)
{
    for (image *i = images; i; i = i->next)
        if (i->dev == dev && i->ino == ino)
            return i;
    return NULL;
}

/* DIR/././FILE: one "./" for every other image that was loaded from this path. */
static char *spelling(const char *real)
{
    size_t others = 0, n = strlen(real), slash = (size_t)(strrchr(real, '/') - real) + 1;
    for (image *i = images; i; i = i->next)
        others += !strcmp(i->path, real);
    char *text = pn_calloc(n + 2 * others + 1, 1);
    if (!text)
        return NULL;
    memcpy(text, real, slash);
    for (size_t k = 0; k < others; k++)
        memcpy(text + slash + 2 * k, "./", 2);
    memcpy(text + slash + 2 * others, real + slash, n - slash + 1);
    return text;
}

static pn_status open_image(const char *path, const char *real, const struct stat *st, void **handle, pn_error *err)
{
    struct stat now;
    image *img = find_image(st->st_dev, st->st_ino);
    if (img) {
        *handle = img->handle;
        return PN_OK;
    }
    char *text = spelling(real);
    img = pn_calloc(1, sizeof *img + strlen(real) + 1);
    if (!text || !img) {
        pn_free(text);
        pn_free(img);
        return pn_fail(err, PN_E_NOMEM, "%s: no memory to load it", path);
    }
    void *h = dlopen(text, RTLD_NOW | RTLD_LOCAL);
    pn_free(text);
    if (!h) {
        const char *why = dlerror();    /* asked once: it forgets */
        pn_free(img);
        return pn_fail(err, PN_E_ABI,
                       "%s: the system's loader refuses it: %s. A plugin must contain, or link to, everything it calls;"
                       " functions of Pantheon come through the host table",
                       path, why ? why : "no reason given");
    }
    img->dev = st->st_dev;
    img->ino = st->st_ino;
    img->handle = h;
    strcpy(img->path, real);
    img->next = images;
    images = img;
    if (stat(real, &now) != 0 || now.st_dev != st->st_dev || now.st_ino != st->st_ino) {
        /* What was mapped may be the other file: no later check may take it for this one. */
        img->ino = 0;
        return pn_fail(err, PN_E_DENIED, "%s: the file was replaced while it was being loaded; try again", path);
    }
    *handle = h;
    return PN_OK;
}

static pn_status load_descriptor(const char *path, const char *real, const struct stat *st, const pn_elfnote *note,
                                 uint64_t cpu, pn_plugin_rec *rec, pn_error *err)
{
    void *handle = NULL;
    pthread_mutex_lock(&images_lock);
    pn_status s = open_image(path, real, st, &handle, err);
    pthread_mutex_unlock(&images_lock);
    if (s != PN_OK)
        return s;
    const pn_plugin *d = dlsym(handle, PN_PLUGIN_SYMBOL);
    if (!d)
        return pn_fail(err, PN_E_ABI, "%s: it has no symbol '%s'; define the descriptor by PN_PLUGIN, which exports it",
                       path, PN_PLUGIN_SYMBOL);
    if ((s = pn_descriptor_check(d, note, cpu, path, err)) != PN_OK)
        return s;
    char *const copies[] = { pn_strdup(d->version), pn_strdup(d->licence), pn_strdup(d->summary) };
    rec->version = copies[0];
    rec->licence = copies[1];
    rec->summary = copies[2];
    if (!copies[0] || !copies[1] || !copies[2])
        return pn_fail(err, PN_E_NOMEM, "%s: no memory for its description", path);
    rec->descriptor = d;
    return PN_OK;
}

pn_status pn_image_load(const char *path, uint64_t cpu, pn_plugin_rec *rec, pn_error *err)
{
    pn_elfnote note;
    struct stat st;
    int fd;
    char *real = realpath(path, NULL);
    if (!real)
        return os_fail(err, errno == ENOENT ? PN_E_NOT_FOUND : errno == ENOMEM ? PN_E_NOMEM : PN_E_IO, errno, path,
                       "cannot be opened");
    pn_status s = check_file(path, real, &fd, &st, &note, err);
    if (s == PN_OK) {
        rec->dev = st.st_dev;
        rec->ino = st.st_ino;
        rec->id = pn_strdup(note.id);
        s = rec->id ? check_abi(note.abi_major, note.abi_minor, path, "note", err)
                    : pn_fail(err, PN_E_NOMEM, "%s: no memory for its id", path);
        if (s == PN_OK)
            s = load_descriptor(path, real, &st, &note, cpu, rec, err);
        close(fd);
    }
    free(real);
    return s;
}
