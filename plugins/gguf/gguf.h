/* What the files of the GGUF format plugin share. */
#ifndef GGUF_H
#define GGUF_H

#include <pantheon/plugin.h>

#define GGUF_MAGIC "GGUF"
#define GGUF_ALIGNMENT 32       /* where general.alignment is absent */

/* A type number of the format. */
typedef struct gguf_type {
    uint32_t number;
    const char *name;           /* the host's name for it */
    uint32_t elems, bytes;      /* of a block */
} gguf_type;

/* NULL for a number that the format does not define (or defines no longer). */
const gguf_type *gguf_type_of(uint64_t number);
/* The same by the host's name. */
const gguf_type *gguf_type_named(const char *name);

pn_status gguf_open(const pn_host *host, pn_source *source, pn_file *file, void **state, pn_error *err);
pn_status gguf_role(const pn_host *host, pn_file *file, void *state, const char *role, pn_role_value *out,
                    pn_error *err);

pn_status gguf_write_begin(const pn_host *host, pn_writer *writer, void **state, pn_error *err);
pn_status gguf_write_tensor(const pn_host *host, pn_writer *writer, void *state, size_t index, pn_error *err);
pn_status gguf_write_end(const pn_host *host, pn_writer *writer, void *state, pn_error *err);
void gguf_write_close(const pn_host *host, void *state);

#endif
