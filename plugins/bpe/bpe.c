/* Tokenizer plugin "gpt2": byte-level byte pair encoding (Sennrich et al. 2016, arXiv:1508.07909; over bytes: Radford
 * et al. 2019). This file: registration, opening, decoding. */
#include "bpe.h"

static void close_tokenizer(const pn_host *host, void *state)
{
    bpe *b = state;
    if (!b)
        return;
    bpe_pre_close(&b->pre);
    bpe_vocab_close(&b->vocab);
    pn_host_free(host, b, NULL);
}

static pn_status open_parts(const pn_host *host, pn_file *file, const pn_tokenizer_options *options, bpe *b,
                            pn_error *err)
{
    const char *pattern = options && options->pattern && *options->pattern ? options->pattern : NULL;
    const char *pre = options && options->pre && *options->pre ? options->pre : NULL;
    pn_tokenizer_info *t = &b->vocab.info;
    pn_role_value r;
    pn_str name = { NULL, 0 };
    pn_status s = bpe_vocab_open(host, file, &b->vocab, err);
    if (s)
        return s;
    memset(&r, 0, sizeof r);
    r.struct_size = sizeof r;
    s = pn_host_file_role(host, file, PN_ROLE_PRE_TOKENIZER, &r, err);
    if (s)
        return s;
    if (pre)
        name = pn_str_from(pre);
    else if (r.present && r.value.type == PN_T_STRING)
        name = r.value.as.s;
    s = bpe_pre_open(host, &b->pre, name, pre ? "[tokenizer] pre" : r.key, pattern, err);
    if (s)
        return s;
    if (options && options->add_bos >= 0)
        t->add_bos = options->add_bos != 0;
    else if (t->add_bos < 0)
        t->add_bos = (b->pre.flags & BPE_WANTS_BOS) != 0;
    t->add_eos = t->add_eos > 0;
    return PN_OK;
}

static pn_status open_tokenizer(const pn_host *host, pn_file *file, const pn_tokenizer_options *options, void **state,
                                pn_error *err)
{
    void *b = NULL;
    pn_status s = pn_host_alloc(host, 1, sizeof(bpe), &b, err);
    if (s)
        return s;
    ((bpe *)b)->vocab.host = host;
    s = open_parts(host, file, options, b, err);
    if (s)
        close_tokenizer(host, b);
    else
        *state = b;
    return s;
}

static pn_status info(const void *state, pn_tokenizer_info *out)
{
    const bpe *b = state;
    uint32_t size = out->struct_size < sizeof *out ? out->struct_size : (uint32_t)sizeof *out;
    memcpy(out, &b->vocab.info, size);
    out->struct_size = size;
    return PN_OK;
}

static int32_t token_type(const void *state, int32_t id)
{
    const bpe *b = state;
    return id >= 0 && id < b->vocab.info.n_tokens ? b->vocab.types[id] : 0;
}

/* ---- decoding -------------------------------------------------------------------------------------------------- */

/* Bytes of a text in the byte-level alphabet into out (as far as capacity goes); SIZE_MAX when it has a character
 * that is not of the alphabet. */
static size_t from_alphabet(pn_str text, char *out, size_t capacity)
{
    size_t i = 0, n = 0;
    while (i < text.size) {
        uint32_t cp;
        size_t k = bpe_utf8_decode(text.data + i, text.size - i, &cp);
        int byte = k ? bpe_alphabet_byte(cp) : -1;
        if (byte < 0)
            return SIZE_MAX;
        if (n < capacity)
            out[n] = (char)byte;
        n++;
        i += k;
    }
    return n;
}

static pn_status decode(const void *state, int32_t id, uint32_t flags, char *bytes, size_t capacity, size_t *size,
                        pn_error *err)
{
    const bpe *b = state;
    const bpe_vocab *v = &b->vocab;
    pn_str text;
    size_t n;
    int byte;
    if (id < 0 || id >= v->info.n_tokens)
        return pn_fail(err, PN_E_RANGE, "there is no token %d: the vocabulary has 0 .. %d", (int)id,
                       (int)v->info.n_tokens - 1);
    text = v->tokens[id];
    n = SIZE_MAX;
    switch (v->types[id]) {
    case PN_TOKEN_CONTROL:
    case PN_TOKEN_UNKNOWN:
    case PN_TOKEN_UNUSED:
        if (!(flags & PN_DECODE_SPECIAL))
            text.size = 0;
        break;
    case PN_TOKEN_USER:
        break;
    case PN_TOKEN_BYTE:
        byte = bpe_byte_text(text);
        if (byte >= 0) {
            n = 1;
            if (capacity)
                bytes[0] = (char)byte;
        }
        break;
    default:
        /* Measured first: a token of other characters is its own text. */
        n = from_alphabet(text, NULL, 0);
        if (n != SIZE_MAX)
            from_alphabet(text, bytes, capacity);
    }
    if (n == SIZE_MAX) {
        n = text.size;
        if (n && capacity)
            memcpy(bytes, text.data, n < capacity ? n : capacity);
    }
    *size = n;
    if (n > capacity)
        return pn_fail(err, PN_E_FULL, "token %d is %zu bytes long, but there is room for %zu", (int)id, n, capacity);
    return PN_OK;
}

/* ---- registration ---------------------------------------------------------------------------------------------- */

static const char *const names[] = { "gpt2" };

static const pn_tokenizer_type type = {
    .struct_size = sizeof type,
    .n_names = 1,
    .names = names,
    .summary = "byte-level BPE",
    .open = open_tokenizer,
    .close = close_tokenizer,
    .info = info,
    .encode = bpe_encode,
    .decode = decode,
    .token_type = token_type,
};

static pn_status start(const pn_host *host, pn_error *err)
{
    return pn_host_register_tokenizer(host, &type, err);
}

PN_PLUGIN("org.pantheon.bpe", "0.1.0", "MIT", "byte-level BPE tokenizer", 0, start)
