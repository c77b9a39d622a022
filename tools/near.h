/* Names near to one that was not found, for messages. */
#ifndef PN_NEAR_H
#define PN_NEAR_H

#include "tool.h"

/* Name number `index`, or {NULL, 0} past the end. */
typedef pn_str (*near_name)(const pn_file *file, size_t index);

/* "; near: a, b, c" (or "" when none is near) into `text`; returns it. */
const char *near_names(const pn_file *file, near_name name, const char *wanted, char *text, size_t capacity);
pn_str near_tensor(const pn_file *file, size_t index);
pn_str near_key(const pn_file *file, size_t index);

#endif
