/* What a shared object says of itself before any of its code runs: ELF header and plugin note, read as plain data. */
#ifndef PN_ELFNOTE_H
#define PN_ELFNOTE_H

#include <pantheon/pantheon.h>

#define PN_PLUGIN_ID_MAX 128

typedef struct pn_elfnote {
    uint16_t abi_major, abi_minor;
    char id[PN_PLUGIN_ID_MAX + 1];
} pn_elfnote;

/* Read the note of the open file `fd` (regular, `size` bytes) by pread. PN_E_FORMAT: no whole shared object for this
 * machine; PN_E_ABI: no note or a malformed one. `path` is for messages. Nothing in the file is trusted. */
pn_status pn_elfnote_read(int fd, uint64_t size, const char *path, pn_elfnote *out, pn_error *err);

/* 1 when `id` is a plugin id: 1 to PN_PLUGIN_ID_MAX letters, digits, '.', '_', '-'. */
int pn_plugin_id_ok(const char *id, size_t size);

#endif
