/* pn_map: read-only mappings of files, counted and shared through one table of the process. */
#include "map.h"

#include "alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct pn_map {
    pn_map *next;               /* in the table */
    size_t references;
    int shared;                 /* in the table: a regular file, known by what follows */
    dev_t device;
    ino_t inode;
    struct timespec changed;
    off_t file_size;

    unsigned char *data;
    uint64_t size;
    int mapped;
    int reason;                 /* errno that forbade the mapping; 0 = no regular file */
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static pn_map *table;
static size_t alive;

static const unsigned char nothing[1];

static pn_status fail_io(pn_error *err, const char *name, const char *what, int number)
{
    pn_fail(err, PN_E_IO, "%s: cannot %s: %s", name, what, strerror(number));
    if (err)
        err->os_errno = number;
    return PN_E_IO;
}

static pn_status fail_memory(pn_error *err, const char *name, uint64_t size)
{
    return pn_fail(err, PN_E_NOMEM, "%s: it must be read into memory, but there is none for %llu bytes", name,
                   (unsigned long long)size);
}

/* Read to the end, however long that turns out to be: the sizes of pipes and of some file systems are unknown. */
static pn_status read_all(int fd, const char *name, pn_map *map, uint64_t expected, pn_error *err)
{
    size_t capacity = expected && expected < SIZE_MAX - 1 ? (size_t)expected + 1 : 1u << 16;
    size_t size = 0;
    unsigned char *data = NULL;
    for (;;) {
        ssize_t n;
        if (!data || size == capacity) {
            size_t want = data ? capacity * 2 : capacity;
            void *grown = want > capacity || !data ? pn_realloc(data, want, 1) : NULL;
            if (!grown) {
                pn_free(data);
                return fail_memory(err, name, want);
            }
            data = grown;
            capacity = want;
        }
        n = read(fd, data + size, capacity - size);
        if (n == 0)
            break;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            int e = errno;
            pn_free(data);
            return fail_io(err, name, "read", e);
        }
        size += (size_t)n;
    }
    map->data = data;
    map->size = size;
    return PN_OK;
}

static pn_status load(int fd, const char *name, const struct stat *st, pn_map *map, pn_error *err)
{
    if (S_ISREG(st->st_mode) && (uint64_t)st->st_size > SIZE_MAX / 2)
        return pn_fail(err, PN_E_IO, "%s: %llu bytes are more than this machine can address", name,
                       (unsigned long long)st->st_size);
    if (S_ISREG(st->st_mode) && st->st_size > 0) {
        void *p = mmap(NULL, (size_t)st->st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (p != MAP_FAILED) {
            map->data = p;
            map->size = (uint64_t)st->st_size;
            map->mapped = 1;
            return PN_OK;
        }
        map->reason = errno;
        return read_all(fd, name, map, (uint64_t)st->st_size, err);
    }
    /* A regular file of size 0 may still hold bytes (/proc); when it does not, there is nothing to map. */
    pn_status status = read_all(fd, name, map, 0, err);
    map->reason = S_ISREG(st->st_mode) ? ENODEV : 0;
    if (!status && map->size == 0 && S_ISREG(st->st_mode)) {
        pn_free(map->data);
        map->data = NULL;
        map->mapped = 1;
    }
    return status;
}

static void release(pn_map *map)
{
    if (map->data && map->mapped)
        munmap(map->data, (size_t)map->size);
    else
        pn_free(map->data);
    pn_free(map);
}

static pn_map *find(const struct stat *st)
{
    for (pn_map *m = table; m; m = m->next)
        if (m->device == st->st_dev && m->inode == st->st_ino && m->file_size == st->st_size &&
            m->changed.tv_sec == st->st_mtim.tv_sec && m->changed.tv_nsec == st->st_mtim.tv_nsec)
            return m;
    return NULL;
}

pn_status pn_map_open_fd(int fd, const char *name, pn_map **out, pn_error *err)
{
    struct stat st;
    if (fstat(fd, &st))
        return fail_io(err, name, "ask for its size", errno);
    if (S_ISDIR(st.st_mode))
        return fail_io(err, name, "read it as a file", EISDIR);
    if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode) && !S_ISSOCK(st.st_mode))
        return pn_fail(err, PN_E_IO, "%s: it is a device; wanted a file or a pipe", name);

    int shared = S_ISREG(st.st_mode) != 0;
    pn_map *map = NULL;
    pthread_mutex_lock(&table_lock);
    if (shared && (map = find(&st)) != NULL)
        map->references++;
    pthread_mutex_unlock(&table_lock);
    if (map) {
        *out = map;
        return PN_OK;
    }

    map = pn_calloc(1, sizeof *map);
    if (!map)
        return fail_memory(err, name, sizeof *map);
    pn_status status = load(fd, name, &st, map, err);
    if (status) {
        pn_free(map);
        return status;
    }
    map->references = 1;
    map->shared = shared;
    map->device = st.st_dev;
    map->inode = st.st_ino;
    map->changed = st.st_mtim;
    map->file_size = st.st_size;

    /* Another thread may have mapped it meanwhile: then that one is kept. */
    pthread_mutex_lock(&table_lock);
    pn_map *other = shared ? find(&st) : NULL;
    if (other) {
        other->references++;
    } else {
        alive++;
        if (shared) {
            map->next = table;
            table = map;
        }
    }
    pthread_mutex_unlock(&table_lock);
    if (other) {
        release(map);
        map = other;
    }
    *out = map;
    return PN_OK;
}

pn_status pn_map_open(const char *path, pn_map **out, pn_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return fail_io(err, path, "open", errno);
    pn_status status = pn_map_open_fd(fd, path, out, err);
    close(fd);
    return status;
}

void pn_map_close(pn_map *map)
{
    if (!map)
        return;
    pthread_mutex_lock(&table_lock);
    int last = --map->references == 0;
    if (last) {
        alive--;
        for (pn_map **p = &table; *p; p = &(*p)->next)
            if (*p == map) {
                *p = map->next;
                break;
            }
    }
    pthread_mutex_unlock(&table_lock);
    if (last)
        release(map);
}

const void *pn_map_data(const pn_map *map) { return map->data ? map->data : nothing; }
uint64_t pn_map_size(const pn_map *map) { return map->size; }
int pn_map_mapped(const pn_map *map) { return map->mapped; }

const char *pn_map_reason(const pn_map *map)
{
    if (map->mapped)
        return "";
    return map->reason ? "its file system does not allow it" : "it is no regular file";
}

const void *pn_map_view(const pn_map *map, uint64_t offset, uint64_t size)
{
    if (offset > map->size || size > map->size - offset)
        return NULL;
    return (const unsigned char *)pn_map_data(map) + offset;
}

void pn_map_advise(const pn_map *map, uint64_t offset, uint64_t size, int advice)
{
    static const int word[] = { MADV_NORMAL, MADV_SEQUENTIAL, MADV_RANDOM, MADV_WILLNEED };
    if (!map->mapped || !map->data || offset >= map->size || advice < 0 || advice > PN_MAP_WILLNEED)
        return;
    if (size > map->size - offset)
        size = map->size - offset;
    uint64_t into = offset % (uint64_t)sysconf(_SC_PAGESIZE);
    madvise(map->data + (offset - into), (size_t)(size + into), word[advice]);
}

void pn_map_prefault(const pn_map *map)
{
    if (!map->mapped || !map->data)
        return;
#ifdef MADV_POPULATE_READ
    if (madvise(map->data, (size_t)map->size, MADV_POPULATE_READ) == 0)
        return;
#endif
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    volatile unsigned char sink = 0;
    madvise(map->data, (size_t)map->size, MADV_WILLNEED);
    for (uint64_t i = 0; i < map->size; i += page)
        sink ^= map->data[i];
    (void)sink;
}

pn_status pn_map_lock(pn_map *map, pn_error *err)
{
    if (!map->data || mlock(map->data, (size_t)map->size) == 0)
        return PN_OK;
    int e = errno;
    pn_fail(err, PN_E_IO, "cannot keep %llu bytes in memory ([runtime] lock): %s; see `ulimit -l`",
            (unsigned long long)map->size, strerror(e));
    if (err)
        err->os_errno = e;
    return PN_E_IO;
}

size_t pn_map_count(void)
{
    pthread_mutex_lock(&table_lock);
    size_t n = alive;
    pthread_mutex_unlock(&table_lock);
    return n;
}
