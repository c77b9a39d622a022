/* Fuzz target: a SentencePiece vocabulary and a text, both from the input, through the plugin, which is built in.
 *
 * The input is lines up to a NUL, each a token: a letter for its kind (N, U, C, K, X, B: normal, user-defined, control,
 * unknown, unused, byte), a byte for its score, its text. Lines that begin with another byte set flags. The text comes
 * after the NUL. It must hold that sizes are as announced, that plain text never becomes a control token, and that what
 * was encoded without loss decodes to the text. */
#include <stdlib.h>

#include "../../plugins/spm/spm.c"
#include "../../plugins/spm/encode.c"

enum { MOST_TOKENS = 600 };

typedef struct input {
    pn_str tokens[MOST_TOKENS];
    int32_t types[MOST_TOKENS];
    float scores[MOST_TOKENS];
    uint64_t n;
    unsigned flags;             /* of the input: which roles the file has, how to encode */
} input;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int good)
{
    if (!good)
        abort();
}

/* ---- a host ----------------------------------------------------------------------------------------------------- */

static long live;

static pn_status take(const pn_host *h, size_t count, size_t size, void **out, pn_error *err)
{
    (void)h;
    *out = calloc(count ? count : 1, size ? size : 1);
    live++;
    return *out ? PN_OK : pn_fail(err, PN_E_NOMEM, "no memory");
}

static pn_status again(const pn_host *h, size_t count, size_t size, void **inout, pn_error *err)
{
    void *p = reallocarray(*inout, count ? count : 1, size ? size : 1);
    (void)h;
    if (!p)
        return pn_fail(err, PN_E_NOMEM, "no memory");
    live += !*inout;
    *inout = p;
    return PN_OK;
}

static pn_status give(const pn_host *h, void *memory, pn_error *err)
{
    (void)h;
    (void)err;
    live -= memory != NULL;
    free(memory);
    return PN_OK;
}

static pn_status say(const pn_host *h, uint32_t level, const char *message, pn_error *err)
{
    (void)h;
    (void)level;
    (void)err;
    must(message[0] != 0);
    return PN_OK;
}

static void list(pn_role_value *out, uint32_t item_type, const void *items, uint64_t n)
{
    out->present = 1;
    out->value.type = PN_T_ARRAY;
    out->value.item_type = item_type;
    out->value.count = n;
    out->value.as.items = items;
}

static void number(pn_role_value *out, int64_t i)
{
    out->present = 1;
    out->value.type = PN_T_I64;
    out->value.as.i = i;
}

static pn_status answer(const pn_host *h, pn_file *file, const char *role, pn_role_value *out, pn_error *err)
{
    const input *in = (const input *)(void *)file;
    (void)h;
    (void)err;
    out->present = 0;
    if (!strcmp(role, PN_ROLE_TOKENS))
        list(out, PN_T_STRING, in->tokens, in->n);
    else if (!strcmp(role, PN_ROLE_TOKEN_TYPES) && !(in->flags & 1))
        list(out, PN_T_I32, in->types, in->n);
    else if (!strcmp(role, PN_ROLE_SCORES))
        list(out, PN_T_F32, in->scores, in->n - (in->flags >> 1 & in->flags >> 2 & 1));
    else if (!strcmp(role, PN_ROLE_ADD_SPACE_PREFIX) && (in->flags & 8))
        number(out, 0);
    else if (!strcmp(role, PN_ROLE_BOS) && (in->flags & 16))
        number(out, (int64_t)(in->flags >> 3) - 4);
    else if (!strcmp(role, PN_ROLE_ARCHITECTURE) && (in->flags & 32)) {
        out->present = 1;
        out->value.type = PN_T_STRING;
        out->value.as.s = pn_str_from("phi3");
    }
    return PN_OK;
}

static const pn_host host = { .struct_size = sizeof host, .abi_major = PN_ABI_MAJOR, .alloc = take, .resize = again,
                              .free = give, .log = say, .file_role = answer };

/* ---- checks ----------------------------------------------------------------------------------------------------- */

static size_t spaced(const char *text, size_t size, char *out)
{
    return unescape((pn_str){ text, size }, out, size);
}

/* Nothing was lost when the space has an ordinary piece and no token of these kinds came out. */
static int lossless(const spm *t, const int32_t *ids, size_t n)
{
    int32_t space = pn_vocab_find(&t->vocab, SPM_SPACE, SPM_SPACE_SIZE);
    size_t i;
    if (space < 0 || t->vocab.types[space] == PN_TOKEN_UNUSED)
        return 0;
    for (i = 0; i < n; i++)
        if (t->vocab.types[ids[i]] == PN_TOKEN_USER || ids[i] == t->info.unk)
            return 0;
    return 1;
}

static void check_back(const spm *t, const int32_t *ids, size_t n, const char *text, size_t size)
{
    char *want = malloc(size + 1), *got = malloc(size + 64);
    size_t i, at = 0, m, want_size;
    pn_error err;
    must(want && got);
    want_size = spaced(text, size, want);
    for (i = 0; i < n; i++, at += m) {
        pn_status s = decode(t, ids[i], i ? 0 : PN_DECODE_FIRST, got + at, size + 64 - at, &m, &err);
        must(s == PN_OK);
    }
    must(at == want_size && !memcmp(got, want, at));
    free(want);
    free(got);
}

static void check_text(const spm *t, unsigned flags, const char *text, size_t size)
{
    size_t room = size * 4 + 8, n = 0, n_again = 0, i, m;
    int32_t *ids = malloc(room * sizeof *ids);
    pn_error err;
    pn_status s;
    must(ids != NULL);
    s = spm_encode(&host, t, text, size, PN_ENCODE_SPECIAL | PN_ENCODE_ADD_BOS | PN_ENCODE_ADD_EOS, ids, room, &n,
                   &err);
    must(s == PN_OK || s == PN_E_UNSUPPORTED);
    s = spm_encode(&host, t, text, size, flags & 64 ? PN_ENCODE_CONTINUED : 0, ids, room, &n, &err);
    must(s == PN_OK || s == PN_E_UNSUPPORTED);
    if (s == PN_OK && n) {
        must(n <= room);
        must(spm_encode(&host, t, text, size, flags & 64 ? PN_ENCODE_CONTINUED : 0, ids, n - 1, &n_again, &err) ==
             PN_E_FULL && n_again == n);
        for (i = 0; i < n; i++) {
            must(token_type(t, ids[i]) != 0);
            must(token_type(t, ids[i]) != PN_TOKEN_CONTROL || ids[i] == t->info.unk);
            must(decode(t, ids[i], PN_DECODE_SPECIAL, NULL, 0, &m, &err) == (m ? PN_E_FULL : PN_OK));
        }
        if (lossless(t, ids, n) && !(flags & 64))
            check_back(t, ids, n, text, size);
    }
    free(ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char kinds[] = " NKCUXB";
    static input in;
    const char *at = (const char *)data, *end = at + size, *text;
    void *t = NULL;
    pn_error err;
    memset(&in, 0, sizeof in);
    text = size ? memchr(at, 0, size) : NULL;
    text = text ? text : end;
    while (at < text && in.n < MOST_TOKENS) {
        const char *stop = memchr(at, '\n', (size_t)(text - at));
        const char *kind = memchr(kinds + 1, *at, sizeof kinds - 2);
        stop = stop ? stop : text;
        if (!kind) {
            in.flags = (uint8_t)*at;
        } else {
            size_t skip = stop - at >= 2 ? 2 : 1;
            in.types[in.n] = (int32_t)(kind - kinds);
            in.scores[in.n] = (float)(at[skip - 1] - 'm') / 3;
            in.tokens[in.n++] = (pn_str){ at + skip, (size_t)(stop - at) - skip };
        }
        at = stop < text ? stop + 1 : text;
    }
    if (!open_tokenizer(&host, (pn_file *)(void *)&in, NULL, &t, &err)) {
        text += text < end;
        check_text(t, in.flags, text, (size_t)(end - text));
        close_tokenizer(&host, t);
    }
    must(live == 0);
    return 0;
}
