/* Model files inside the core: sources, and the host slots that format plugins fill a pn_file through. */
#ifndef PN_FILE_H
#define PN_FILE_H

#include <pantheon/pantheon.h>

/* A source: a file (mapped, or read where that is impossible), a buffer of the caller's, or a folder. */
pn_status pn_source_open(const char *path, pn_source **out, pn_error *err);
pn_status pn_source_buffer(const char *label, const void *data, size_t size, pn_source **out, pn_error *err);
/* Also closes the siblings that were opened through it. NULL is fine. */
void pn_source_close(pn_source *source);
/* Source number `index`: 0 = the one opened first, then its siblings; NULL past the end. */
pn_source *pn_source_at(pn_source *source, size_t index);
const char *pn_source_name(const pn_source *source);
/* The mapping behind a file, or NULL (buffer, folder). */
struct pn_map *pn_source_map(const pn_source *source);

/* Bodies of the host slots of the same names (see plugin.h for their contracts). */
pn_status pn_source_get_info(const pn_source *source, pn_source_info *out, pn_error *err);
pn_status pn_source_open_sibling(pn_source *source, const char *basename, pn_source **out, pn_error *err);
pn_status pn_file_alloc(pn_file *file, size_t count, size_t size, void **out, pn_error *err);
pn_status pn_file_add_value(pn_file *file, pn_str key, const pn_value *value, pn_error *err);
pn_status pn_file_add_tensor(pn_file *file, const pn_tensor *tensor, pn_error *err);
pn_status pn_file_value_get(const pn_file *file, pn_str key, const pn_value **out, pn_error *err);
/* A tensor by its neutral name: the format's tensor_name, then the hash. PN_E_NOT_FOUND names both names. */
pn_status pn_file_tensor_neutral(pn_file *file, const char *neutral, const pn_tensor **out, pn_error *err);

/* A weight over a tensor: rows = product of all dims but the last, cols = the last (1-D: one row). Checks that the type
 * is loaded and the row fits its blocks; finds side tensors. Errors name the tensor, its type and what to do. */
pn_status pn_file_weight(pn_file *file, const pn_tensor *tensor, pn_qweight *out, pn_error *err);
pn_runtime *pn_file_runtime(const pn_file *file);
/* Map advice for all of the file: the weights are about to be read. Applies [runtime] prefault and lock. */
pn_status pn_file_prepare(pn_file *file, pn_error *err);

#endif
