/* Tokenizer plugin "llama": SentencePiece's byte pair encoding (Kudo and Richardson 2018, arXiv:1808.06226), which
 * merges to the piece of the best score first. This file: registration, opening, decoding. */
#include "spm.h"

/* ---- opening --------------------------------------------------------------------------------------------------- */

static void close_tokenizer(const pn_host *host, void *state)
{
    spm *t = state;
    if (!t)
        return;
    pn_vocab_free(&t->vocab);
    pn_host_free(host, t->ranks, NULL);
    pn_host_free(host, t, NULL);
}

/* A number whose order is that of the scores, upside down. No NaN comes here. */
static uint32_t rank_of(float score)
{
    uint32_t bits;
    score += 0.0f;              /* no negative zero */
    memcpy(&bits, &score, sizeof bits);
    return bits >> 31 ? bits : ~(bits | UINT32_C(0x80000000));
}

static pn_status read_scores(spm *t, pn_file *file, pn_error *err)
{
    const pn_host *host = t->vocab.host;
    pn_role_value r;
    const char *key;
    void *ranks = NULL;
    int32_t i;
    pn_status s = pn_role_get(host, file, PN_ROLE_SCORES, 1, &r, err);
    if (s)
        return s;
    key = pn_role_key(&r, PN_ROLE_SCORES);
    if (r.value.type != PN_T_ARRAY || !pn_type_size(r.value.item_type))
        return pn_fail(err, PN_E_FORMAT, "'%s' is no array of numbers", key);
    if (r.value.count != (uint64_t)t->vocab.n)
        return pn_fail(err, PN_E_FORMAT, "'%s' has %llu entries, but there are %d tokens; the file is damaged", key,
                       (unsigned long long)r.value.count, (int)t->vocab.n);
    s = pn_host_alloc(host, (size_t)t->vocab.n, sizeof *t->ranks, &ranks, err);
    if (s)
        return s;
    t->ranks = ranks;
    for (i = 0; i < t->vocab.n; i++) {
        pn_value item = pn_value_at(&r.value, (uint64_t)i);
        double score;
        if (!pn_value_float(&item, &score) || score != score)
            return pn_fail(err, PN_E_FORMAT, "item %d of '%s' is not a number; the file is damaged", (int)i, key);
        t->ranks[i] = rank_of((float)score);
    }
    return PN_OK;
}

/* `id` when the vocabulary has that control token there, as files without a say on it expect. */
static int32_t usual_id(const spm *t, int32_t id, uint32_t type, const char *text)
{
    if (id >= t->vocab.n)
        return -1;
    return t->vocab.types[id] == type || (!t->vocab.has_types && pn_str_is(t->vocab.tokens[id], text)) ? id : -1;
}

static pn_status read_ids(spm *t, pn_file *file, pn_error *err)
{
    static const char *const roles[5] = { PN_ROLE_BOS, PN_ROLE_EOS, PN_ROLE_EOT, PN_ROLE_UNK, PN_ROLE_PAD };
    pn_tokenizer_info *info = &t->info;
    int32_t *const ids[5] = { &info->bos, &info->eos, &info->eot, &info->unk, &info->pad };
    int32_t id;
    pn_status s = PN_OK;
    int i;
    for (i = 0; !s && i < 5; i++)
        s = pn_role_token(t->vocab.host, file, roles[i], t->vocab.n, ids[i], err);
    if (s)
        return s;
    if (info->bos < 0)
        info->bos = usual_id(t, 1, PN_TOKEN_CONTROL, "<s>");
    if (info->eos < 0)
        info->eos = usual_id(t, 2, PN_TOKEN_CONTROL, "</s>");
    if (info->unk < 0)
        info->unk = usual_id(t, 0, PN_TOKEN_UNKNOWN, "<unk>");
    for (id = 0; info->unk < 0 && id < t->vocab.n; id++)
        if (t->vocab.types[id] == PN_TOKEN_UNKNOWN)
            info->unk = id;
    return PN_OK;
}

/* The kinds of tokens when the file does not say; bytes are found by find_bytes. */
static void guess_kinds(spm *t)
{
    uint8_t *types = t->vocab.types;
    pn_warn(t->vocab.host, "the file does not say of what kinds its tokens are (%s): bytes, start, end and unknown "
            "token are guessed, other control tokens will look like text", PN_ROLE_TOKEN_TYPES);
    if (t->info.unk >= 0)
        types[t->info.unk] = PN_TOKEN_UNKNOWN;
    if (t->info.bos >= 0)
        types[t->info.bos] = PN_TOKEN_CONTROL;
    if (t->info.eos >= 0)
        types[t->info.eos] = PN_TOKEN_CONTROL;
}

/* Byte tokens; in a vocabulary that has none of that kind, those that look like one. */
static void find_bytes(spm *t)
{
    pn_vocab *v = &t->vocab;
    int32_t id, odd = 0, bytes = 0;
    int b;
    for (id = 0; id < v->n; id++)
        bytes += v->types[id] == PN_TOKEN_BYTE;
    for (b = 0; b < 256; b++)
        t->byte_id[b] = -1;
    for (id = 0; id < v->n; id++) {
        b = pn_byte_token(v->tokens[id]);
        if (v->types[id] == PN_TOKEN_BYTE && b < 0) {
            v->types[id] = PN_TOKEN_NORMAL;
            odd++;
        } else if (b >= 0 && (v->types[id] == PN_TOKEN_BYTE || (!bytes && v->types[id] == PN_TOKEN_NORMAL))) {
            v->types[id] = PN_TOKEN_BYTE;
            t->byte_id[b] = id;
        }
    }
    if (odd)
        pn_warn(v->host, "%d tokens are said to stand for bytes, but do not read like <0x41>; taken for ordinary ones",
                (int)odd);
}

static pn_status read_flags(spm *t, pn_file *file, const pn_tokenizer_options *options, pn_error *err)
{
    const pn_host *host = t->vocab.host;
    pn_str arch = { NULL, 0 };
    int add_bos = 1, add_eos = 0, prefix = 1;
    pn_status s = pn_role_bool_or(host, file, PN_ROLE_ADD_BOS, 1, &add_bos, err);
    if (!s)
        s = pn_role_bool_or(host, file, PN_ROLE_ADD_EOS, 0, &add_eos, err);
    if (!s)
        s = pn_role_bool_or(host, file, PN_ROLE_ADD_SPACE_PREFIX, 1, &prefix, err);
    if (!s)
        s = pn_role_str_or(host, file, PN_ROLE_ARCHITECTURE, NULL, &arch, err);
    if (s)
        return s;
    t->strip_right = pn_str_is(arch, "phi3");
    t->space_prefix = prefix;
    t->info.add_bos = options && options->add_bos >= 0 ? options->add_bos != 0 : add_bos;
    t->info.add_eos = add_eos;
    if (options && ((options->pattern && *options->pattern) || (options->pre && *options->pre)))
        pn_warn(host, "[tokenizer] pattern and pre have no meaning for this vocabulary: its pieces span whole texts");
    return PN_OK;
}

/* What ends a turn when the file does not say: a control token of a well-known name. */
static int32_t find_end_of_turn(const pn_vocab *v)
{
    static const char *const names[] = { "<|im_end|>", "<|eot_id|>", "<|end|>", "<end_of_turn>" };
    size_t i;
    for (i = 0; i < sizeof names / sizeof *names; i++) {
        int32_t id = pn_vocab_special_named(v, names[i]);
        if (id >= 0 && v->types[id] == PN_TOKEN_CONTROL)
            return id;
    }
    return -1;
}

static pn_status open_parts(const pn_host *host, pn_file *file, const pn_tokenizer_options *options, spm *t,
                            pn_error *err)
{
    const uint32_t kinds = PN_VOCAB_KIND(PN_TOKEN_NORMAL) | PN_VOCAB_KIND(PN_TOKEN_USER) |
                           PN_VOCAB_KIND(PN_TOKEN_UNUSED);
    pn_status s = pn_vocab_read(host, file, &t->vocab, err);
    if (s)
        return s;
    t->info.struct_size = sizeof t->info;
    t->info.n_tokens = t->vocab.n;
    s = read_scores(t, file, err);
    if (!s)
        s = read_ids(t, file, err);
    if (!s)
        s = read_flags(t, file, options, err);
    if (s)
        return s;
    if (!t->vocab.has_types)
        guess_kinds(t);
    find_bytes(t);
    s = pn_vocab_index(&t->vocab, kinds, err);
    if (!s && t->info.eot < 0)
        t->info.eot = find_end_of_turn(&t->vocab);
    return s;
}

static pn_status open_tokenizer(const pn_host *host, pn_file *file, const pn_tokenizer_options *options, void **state,
                                pn_error *err)
{
    void *t = NULL;
    pn_status s = pn_host_alloc(host, 1, sizeof(spm), &t, err);
    if (s)
        return s;
    s = open_parts(host, file, options, t, err);
    if (s)
        close_tokenizer(host, t);
    else
        *state = t;
    return s;
}

static pn_status info(const void *state, pn_tokenizer_info *out)
{
    const spm *t = state;
    uint32_t size = out->struct_size < sizeof *out ? out->struct_size : (uint32_t)sizeof *out;
    memcpy(out, &t->info, size);
    out->struct_size = size;
    return PN_OK;
}

static int32_t token_type(const void *state, int32_t id)
{
    const spm *t = state;
    return id >= 0 && id < t->vocab.n ? t->vocab.types[id] : 0;
}

/* ---- decoding -------------------------------------------------------------------------------------------------- */

/* The text with U+2581 as spaces into out, as far as capacity goes. */
static size_t unescape(pn_str text, char *out, size_t capacity)
{
    size_t i = 0, n = 0;
    while (i < text.size) {
        int space = text.size - i >= SPM_SPACE_SIZE && !memcmp(text.data + i, SPM_SPACE, SPM_SPACE_SIZE);
        if (n < capacity)
            out[n] = space ? ' ' : text.data[i];
        n++;
        i += space ? SPM_SPACE_SIZE : 1;
    }
    return n;
}

static pn_status decode(const void *state, int32_t id, uint32_t flags, char *bytes, size_t capacity, size_t *size,
                        pn_error *err)
{
    const spm *t = state;
    pn_str text;
    size_t n;
    if (id < 0 || id >= t->vocab.n)
        return pn_fail(err, PN_E_RANGE, "there is no token %d: the vocabulary has 0 .. %d", (int)id,
                       (int)t->vocab.n - 1);
    text = t->vocab.tokens[id];
    switch (t->vocab.types[id]) {
    case PN_TOKEN_CONTROL:
    case PN_TOKEN_UNKNOWN:
        n = flags & PN_DECODE_SPECIAL ? text.size : 0;
        if (n && capacity)
            memcpy(bytes, text.data, n < capacity ? n : capacity);
        break;
    case PN_TOKEN_BYTE:
        n = 1;
        if (capacity)
            bytes[0] = (char)pn_byte_token(text);
        break;
    default:
        /* The space that was put before the text. None is put before a user-defined token, whose space is plain. */
        if ((flags & PN_DECODE_FIRST) && t->space_prefix && text.size >= SPM_SPACE_SIZE &&
            !memcmp(text.data, SPM_SPACE, SPM_SPACE_SIZE)) {
            text.data += SPM_SPACE_SIZE;
            text.size -= SPM_SPACE_SIZE;
        }
        n = unescape(text, bytes, capacity);
    }
    *size = n;
    if (n > capacity)
        return pn_fail(err, PN_E_FULL, "token %d is %zu bytes long, but there is room for %zu", (int)id, n, capacity);
    return PN_OK;
}

/* ---- registration ---------------------------------------------------------------------------------------------- */

static const char *const names[] = { "llama" };

static const pn_tokenizer_type type = {
    .struct_size = sizeof type,
    .n_names = 1,
    .names = names,
    .summary = "SentencePiece BPE with scores and byte fallback",
    .open = open_tokenizer,
    .close = close_tokenizer,
    .info = info,
    .encode = spm_encode,
    .decode = decode,
    .token_type = token_type,
};

static pn_status start(const pn_host *host, pn_error *err)
{
    return pn_host_register_tokenizer(host, &type, err);
}

PN_PLUGIN("org.pantheon.spm", "0.1.0", "MIT", "SentencePiece tokenizer", 0, start)
