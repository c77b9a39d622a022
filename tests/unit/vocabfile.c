/* Model files that hold only a vocabulary; see vocabfile.h. */
#include "vocabfile.h"

#include <stdlib.h>

static void put(vocab_file *v, const void *bytes, size_t n)
{
    if (v->size + n > v->room) {
        v->room = (v->size + n) * 2;
        v->data = realloc(v->data, v->room);
        if (!v->data)
            abort();
    }
    memcpy(v->data + v->size, bytes, n);
    v->size += n;
}

static void put_u32(vocab_file *v, uint32_t x)
{
    put(v, &x, sizeof x);
}

static void put_string(vocab_file *v, const char *text)
{
    uint64_t n = strlen(text);
    put(v, &n, sizeof n);
    put(v, text, n);
}

static void put_key(vocab_file *v, const char *key, uint32_t type)
{
    put_string(v, key);
    put_u32(v, type);
    v->n_values++;
}

static void put_array(vocab_file *v, const char *key, uint32_t type, uint64_t n)
{
    put_key(v, key, 9);
    put_u32(v, type);
    put(v, &n, sizeof n);
}

void vocab_begin(vocab_file *v)
{
    static const uint64_t zero[2];
    memset(v, 0, sizeof *v);
    put(v, "GGUF\3\0\0\0", 8);
    put(v, zero, sizeof zero);
}

void vocab_string(vocab_file *v, const char *key, const char *text)
{
    put_key(v, key, 8);
    put_string(v, text);
}

void vocab_u32(vocab_file *v, const char *key, uint32_t x)
{
    put_key(v, key, 4);
    put_u32(v, x);
}

void vocab_bool(vocab_file *v, const char *key, int x)
{
    uint8_t b = x != 0;
    put_key(v, key, 7);
    put(v, &b, 1);
}

/* The byte-level alphabet, written out: byte b is the character itself when printable, else U+0100 and up in order. */
static void byte_text(int b, char *out)
{
    int n = 0, i;
    if ((b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174) {
        n = b;
    } else {
        for (i = 0; i < b; i++)
            n += !((i >= 33 && i <= 126) || (i >= 161 && i <= 172) || i >= 174);
        n += 256;
    }
    if (n >= 128)
        *out++ = (char)(0xc0 | n >> 6);
    *out++ = (char)(n >= 128 ? 0x80 | (n & 63) : n);
    *out = 0;
}

void vocab_tokens(vocab_file *v, const vocab_token *more, size_t n, const char *const *merges)
{
    char text[4];
    size_t i, n_merges = 0;
    put_array(v, "tokenizer.ggml.tokens", 8, 256 + n);
    for (i = 0; i < 256; i++) {
        byte_text((int)i, text);
        put_string(v, text);
    }
    for (i = 0; i < n; i++)
        put_string(v, more[i].text);
    put_array(v, "tokenizer.ggml.token_type", 5, 256 + n);
    for (i = 0; i < 256; i++)
        put_u32(v, PN_TOKEN_NORMAL);
    for (i = 0; i < n; i++)
        put_u32(v, (uint32_t)more[i].type);
    while (merges[n_merges])
        n_merges++;
    put_array(v, "tokenizer.ggml.merges", 8, n_merges);
    for (i = 0; i < n_merges; i++)
        put_string(v, merges[i]);
}

void vocab_end(vocab_file *v)
{
    static const char padding[64];
    memcpy(v->data + 16, &v->n_values, sizeof v->n_values);
    put(v, padding, 32 + (32 - v->size % 32) % 32);
}

void vocab_free(vocab_file *v)
{
    free(v->data);
    memset(v, 0, sizeof *v);
}

pn_runtime *vocab_runtime(pn_log_fn log, void *log_arg, const char *const *settings)
{
    const char *build = getenv("PN_BUILD");
    pn_runtime_options options = PN_OPTIONS_INIT(pn_runtime_options);
    pn_config *config;
    pn_runtime *rt = NULL;
    pn_error err = { 0 };
    char path[4096];
    snprintf(path, sizeof path, "%s/plugins", build ? build : "build");
    options.log = log;
    options.log_arg = log_arg;
    if (!pn_config_create(&config, &err) && !pn_config_set(config, "plugins.path", path, &err)) {
        while (settings && *settings && !pn_config_set(config, settings[0], settings[1], &err))
            settings += 2;
        if (!settings || !*settings)
            pn_runtime_create(config, &options, &rt, &err);
    }
    pn_config_destroy(config);
    if (!rt) {
        fprintf(stderr, "no runtime: %s\n", err.message);
        exit(1);
    }
    return rt;
}
