/* The GGUF writer and the runtime of the unit tests. */
#include "ggufmake.h"

#include <stdlib.h>

void g_free(gguf *g)
{
    free(g->data);
    *g = (gguf){ 0 };
}

void g_bytes(gguf *g, const void *p, size_t n)
{
    if (g->size + n > g->capacity) {
        g->capacity = (g->size + n) * 2 + 64;
        g->data = realloc(g->data, g->capacity);
        if (!g->data)
            abort();
    }
    if (n)
        memcpy(g->data + g->size, p, n);
    g->size += n;
}

void g_u8(gguf *g, unsigned v)
{
    unsigned char b = (unsigned char)v;
    g_bytes(g, &b, 1);
}

void g_u32(gguf *g, uint32_t v) { g_bytes(g, &v, 4); }
void g_u64(gguf *g, uint64_t v) { g_bytes(g, &v, 8); }
void g_f32(gguf *g, float v) { g_bytes(g, &v, 4); }

void g_text(gguf *g, const char *text)
{
    g_u64(g, strlen(text));
    g_bytes(g, text, strlen(text));
}

void g_begin(gguf *g, uint32_t version, uint64_t n_tensors, uint64_t n_values)
{
    g->size = 0;
    g_bytes(g, "GGUF", 4);
    g_u32(g, version);
    g_u64(g, n_tensors);
    g_u64(g, n_values);
}

void g_key(gguf *g, const char *key, uint32_t type)
{
    g_text(g, key);
    g_u32(g, type);
}

void g_key_u32(gguf *g, const char *key, uint32_t v)
{
    g_key(g, key, G_U32);
    g_u32(g, v);
}

void g_key_text(gguf *g, const char *key, const char *text)
{
    g_key(g, key, G_STR);
    g_text(g, text);
}

void g_key_array(gguf *g, const char *key, uint32_t item_type, uint64_t count)
{
    g_key(g, key, G_ARR);
    g_u32(g, item_type);
    g_u64(g, count);
}

void g_tensor(gguf *g, const char *name, uint32_t n_dims, const uint64_t *dims, uint32_t type, uint64_t offset)
{
    g_text(g, name);
    g_u32(g, n_dims);
    for (uint32_t i = 0; i < n_dims; i++)
        g_u64(g, dims[i]);
    g_u32(g, type);
    g_u64(g, offset);
}

void g_pad(gguf *g, size_t align)
{
    while (g->size % align)
        g_u8(g, 0);
}

/* ---- the runtime ------------------------------------------------------------------------------------------------- */

static char logged[1024];

static void keep(void *arg, uint32_t level, const char *message)
{
    (void)arg;
    if (level >= PN_LOG_INFO)
        snprintf(logged, sizeof logged, "%s", message);
}

const char *test_log(void)
{
    static char text[sizeof logged];
    memcpy(text, logged, sizeof text);
    logged[0] = 0;
    return text;
}

pn_runtime *test_runtime(void) { return test_runtime_with(NULL); }

pn_runtime *test_runtime_with(const char *const *settings)
{
    pn_error err = { 0 };
    pn_config *config = NULL;
    pn_runtime *runtime = NULL;
    pn_runtime_options options = PN_OPTIONS_INIT(pn_runtime_options);
    char folder[1024];
    const char *build = getenv("PN_BUILD");
    options.log = keep;
    snprintf(folder, sizeof folder, "%s/plugins", build ? build : "build");
    pn_status st = pn_config_create(&config, &err);
    if (!st)
        st = pn_config_set(config, "plugins.path", folder, &err);
    for (; !st && settings && settings[0]; settings += 2) {
        snprintf(folder, sizeof folder, settings[1], build ? build : "build");
        st = pn_config_set(config, settings[0], folder, &err);
    }
    if (st || pn_runtime_create(config, &options, &runtime, &err)) {
        fprintf(stderr, "no runtime: %s\n", err.message);
        abort();
    }
    pn_config_destroy(config);
    logged[0] = 0;
    return runtime;
}
