/* Writing model files inside the core: the host slots that a format plugin writes through (see plugin.h). */
#ifndef PN_WRITER_H
#define PN_WRITER_H

#include <pantheon/pantheon.h>

pn_status pn_writer_get_info(const pn_writer *writer, pn_writer_info *out, pn_error *err);
pn_status pn_writer_value_at(const pn_writer *writer, size_t index, pn_str *key, const pn_value **value, pn_error *err);
pn_status pn_writer_tensor_at(const pn_writer *writer, size_t index, const pn_tensor **out, pn_error *err);
pn_status pn_writer_put(pn_writer *writer, const void *data, size_t size, pn_error *err);

#endif
