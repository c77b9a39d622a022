/* Model files that hold only a vocabulary; see vocabfile.h. */
#include "vocabfile.h"

void vocab_begin(vocab_file *v)
{
    memset(v, 0, sizeof *v);
    g_begin(&v->g, 3, 0, 0);
}

void vocab_string(vocab_file *v, const char *key, const char *text)
{
    g_key_text(&v->g, key, text);
    v->n_values++;
}

void vocab_u32(vocab_file *v, const char *key, uint32_t x)
{
    g_key_u32(&v->g, key, x);
    v->n_values++;
}

void vocab_bool(vocab_file *v, const char *key, int x)
{
    g_key(&v->g, key, G_BOOL);
    g_u8(&v->g, x != 0);
    v->n_values++;
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
    g_key_array(&v->g, "tokenizer.ggml.tokens", G_STR, 256 + n);
    for (i = 0; i < 256; i++) {
        byte_text((int)i, text);
        g_text(&v->g, text);
    }
    for (i = 0; i < n; i++)
        g_text(&v->g, more[i].text);
    g_key_array(&v->g, "tokenizer.ggml.token_type", G_I32, 256 + n);
    for (i = 0; i < 256; i++)
        g_u32(&v->g, PN_TOKEN_NORMAL);
    for (i = 0; i < n; i++)
        g_u32(&v->g, (uint32_t)more[i].type);
    while (merges[n_merges])
        n_merges++;
    g_key_array(&v->g, "tokenizer.ggml.merges", G_STR, n_merges);
    for (i = 0; i < n_merges; i++)
        g_text(&v->g, merges[i]);
    v->n_values += 3;
}

void vocab_end(vocab_file *v)
{
    memcpy(v->g.data + 16, &v->n_values, sizeof v->n_values);
    g_pad(&v->g, 32);
}

void vocab_free(vocab_file *v)
{
    g_free(&v->g);
}
