/* Writes GGUF files in memory, well-formed or not: the caller says every field. Native byte order, version as given. */
#ifndef GGUFMAKE_H
#define GGUFMAKE_H

#include <pantheon/pantheon.h>

/* The format's value type numbers. */
enum { G_U8, G_I8, G_U16, G_I16, G_U32, G_I32, G_F32, G_BOOL, G_STR, G_ARR, G_U64, G_I64, G_F64 };

typedef struct gguf {
    unsigned char *data;
    size_t size, capacity;
} gguf;

void g_free(gguf *g);
void g_bytes(gguf *g, const void *p, size_t n);
void g_u8(gguf *g, unsigned v);
void g_u32(gguf *g, uint32_t v);
void g_u64(gguf *g, uint64_t v);
void g_f32(gguf *g, float v);
void g_text(gguf *g, const char *text);             /* length and bytes */
void g_begin(gguf *g, uint32_t version, uint64_t n_tensors, uint64_t n_values);
void g_key(gguf *g, const char *key, uint32_t type);
void g_key_u32(gguf *g, const char *key, uint32_t v);
void g_key_text(gguf *g, const char *key, const char *text);
void g_key_array(gguf *g, const char *key, uint32_t item_type, uint64_t count);
/* Dims innermost first, as in the file. */
void g_tensor(gguf *g, const char *name, uint32_t n_dims, const uint64_t *dims, uint32_t type, uint64_t offset);
void g_pad(gguf *g, size_t align);

/* A runtime that finds the plugins of this build (PN_BUILD), or the test fails. */
pn_runtime *test_runtime(void);
/* The same with settings: section.key and value in turn, then NULL. "%s" in a value is the build folder. */
pn_runtime *test_runtime_with(const char *const *settings);
/* Messages logged by it since the last call: the last one; "" when there was none. */
const char *test_log(void);

#endif
