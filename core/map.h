/* Read-only mappings of files, shared between all who open the same file: one mapping per file and process.
 *
 * Where a file cannot be mapped (a pipe, a file system without mmap) its bytes are read into memory; pn_map_reason says
 * why, so that the caller can announce it. Thread-safe, but for pn_map_close of one's own last reference.
 *
 * What cannot be guarded: a file that somebody truncates while it is mapped. Reading beyond its new end kills the
 * process with SIGBUS. Replace model files by writing a new one and renaming it, never in place.
 */
#ifndef PN_MAP_H
#define PN_MAP_H

#include <pantheon/pantheon.h>

typedef struct pn_map pn_map;

/* Map a file. A folder, a device and an unreadable file are PN_E_IO. `name` stands for the file in messages. */
pn_status pn_map_open(const char *path, pn_map **out, pn_error *err);
/* The same from a descriptor, which stays the caller's. */
pn_status pn_map_open_fd(int fd, const char *name, pn_map **out, pn_error *err);
/* Give back one reference; NULL is fine. */
void pn_map_close(pn_map *map);

const void *pn_map_data(const pn_map *map);     /* never NULL, also for an empty file */
uint64_t pn_map_size(const pn_map *map);
/* 1 = mapped; 0 = read into memory, for the reason (static text, or of the map) that pn_map_reason gives. */
int pn_map_mapped(const pn_map *map);
const char *pn_map_reason(const pn_map *map);
/* `size` bytes at `offset`, or NULL when they are not all inside. */
const void *pn_map_view(const pn_map *map, uint64_t offset, uint64_t size);

enum { PN_MAP_NORMAL, PN_MAP_SEQUENTIAL, PN_MAP_RANDOM, PN_MAP_WILLNEED };
/* A hint about what will be read next; outside ranges are cut. Does nothing where it cannot help. */
void pn_map_advise(const pn_map *map, uint64_t offset, uint64_t size, int advice);
/* Bring all pages in now. */
void pn_map_prefault(const pn_map *map);
/* Keep all pages in memory until the map is closed. PN_E_IO (with errno) when the system refuses. */
pn_status pn_map_lock(pn_map *map, pn_error *err);

/* Mappings alive in this process, for tests. */
size_t pn_map_count(void);

#endif
