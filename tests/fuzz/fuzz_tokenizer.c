/* Fuzz target: a vocabulary, a pattern, a chat template and a text, all from the input, through tokenizer and prompt.
 *
 * The input is lines; the first byte of each says what it is: N, C, U, K, B a token of that kind (normal, control,
 * user-defined, unknown, byte), M a merge, P the pre-tokenizer's name, R its pattern, J the chat template, I the
 * numbers of special tokens. What follows the first NUL is the text. It must hold that sizes are as announced and that
 * a text of a user never becomes a control token. */
#include <pantheon/pantheon.h>

#include <stdlib.h>
#include <unistd.h>

static char folder[4200];

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    (void)argc;
    (void)argv;
    path[n > 0 ? n : 0] = 0;
    /* BUILD/tests/fuzz_tokenizer -> BUILD/plugins */
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(path, '/');
        if (slash)
            *slash = 0;
    }
    snprintf(folder, sizeof folder, "%s/plugins", path);
    return 0;
}

/* ---- the file --------------------------------------------------------------------------------------------------- */

typedef struct bytes {
    uint8_t *data;
    size_t size, room;
} bytes;

static void put(bytes *b, const void *p, size_t n)
{
    if (b->size + n > b->room) {
        b->room = (b->size + n) * 2;
        b->data = realloc(b->data, b->room);
        if (!b->data)
            abort();
    }
    if (n)
        memcpy(b->data + b->size, p, n);
    b->size += n;
}

static void put_u32(bytes *b, uint32_t x) { put(b, &x, 4); }
static void put_u64(bytes *b, uint64_t x) { put(b, &x, 8); }

static void put_string(bytes *b, pn_str s)
{
    put_u64(b, s.size);
    put(b, s.data, s.size);
}

static void put_key(bytes *b, const char *key, uint32_t type)
{
    put_string(b, pn_str_from(key));
    put_u32(b, type);
}

typedef struct input {
    pn_str lines[512];
    size_t n;
    pn_str pre, pattern, template_text, ids, text;
} input;

static const char kinds[] = "?NKCU?B";      /* index = PN_TOKEN_* */

static int is_token(pn_str line)
{
    return line.size && line.data[0] != '?' && memchr(kinds, line.data[0], sizeof kinds - 1) != NULL;
}

static pn_str rest(pn_str line)
{
    return (pn_str){ line.data + 1, line.size - 1 };
}

static void parse(const uint8_t *data, size_t size, input *in)
{
    const char *at = (const char *)data, *end = at + size;
    const char *nul = memchr(at, 0, size);
    memset(in, 0, sizeof *in);
    if (nul) {
        in->text = (pn_str){ nul + 1, (size_t)(end - nul - 1) };
        end = nul;
    }
    while (at < end && in->n < 512) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        pn_str line = { at, (size_t)((stop ? stop : end) - at) };
        at += line.size + 1;
        if (!line.size)
            continue;
        switch (line.data[0]) {
        case 'P': in->pre = rest(line); break;
        case 'R': in->pattern = rest(line); break;
        case 'J': in->template_text = rest(line); break;
        case 'I': in->ids = rest(line); break;
        default: in->lines[in->n++] = line;
        }
    }
}

static void put_list(bytes *b, const input *in, int merges)
{
    size_t i, at = b->size, count = 0;
    put_u32(b, 8);
    put_u64(b, 0);
    for (i = 0; i < in->n; i++)
        if (merges ? in->lines[i].data[0] == 'M' : is_token(in->lines[i])) {
            put_string(b, rest(in->lines[i]));
            count++;
        }
    memcpy(b->data + at + 4, &count, 8);
}

static void build(const input *in, bytes *b)
{
    static const char *const numbers[] = { "tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id",
                                           "tokenizer.ggml.unknown_token_id", "tokenizer.ggml.eot_token_id" };
    uint64_t n_values = 5, tokens = 0;
    size_t i;
    put(b, "GGUF\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24);
    put_key(b, "tokenizer.ggml.model", 8);
    put_string(b, pn_str_from("gpt2"));
    put_key(b, "tokenizer.ggml.tokens", 9);
    put_list(b, in, 0);
    put_key(b, "tokenizer.ggml.merges", 9);
    put_list(b, in, 1);
    for (i = 0; i < in->n; i++)
        tokens += is_token(in->lines[i]) != 0;
    put_key(b, "tokenizer.ggml.token_type", 9);
    put_u32(b, 5);
    put_u64(b, tokens);
    for (i = 0; i < in->n; i++)
        if (is_token(in->lines[i]))
            put_u32(b, (uint32_t)((const char *)memchr(kinds, in->lines[i].data[0], sizeof kinds - 1) - kinds));
    put_key(b, "tokenizer.ggml.add_bos_token", 7);
    put(b, "\1", 1);
    for (i = 0; i < 4 && i < in->ids.size; i++, n_values++) {
        put_key(b, numbers[i], 4);
        put_u32(b, (uint8_t)in->ids.data[i]);
    }
    if (in->pre.size) {
        put_key(b, "tokenizer.ggml.pre", 8);
        put_string(b, in->pre);
        n_values++;
    }
    if (in->template_text.size) {
        put_key(b, "tokenizer.chat_template", 8);
        put_string(b, in->template_text);
        n_values++;
    }
    memcpy(b->data + 16, &n_values, 8);
    put(b, (const char[64]){ 0 }, 64);
}

/* ---- what must hold ---------------------------------------------------------------------------------------------- */

#define MUST(x)                                                                                                        \
    do                                                                                                                 \
        if (!(x)) {                                                                                                    \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #x);                                      \
            abort();                                                                                                   \
        }                                                                                                              \
    while (0)

static void try_encode(const pn_tokenizer *t, pn_str text, uint32_t flags)
{
    pn_error err = { 0 };
    size_t n = 0, again = 0, i, room = text.size * 3 + 8;
    int32_t *ids = malloc(room * sizeof *ids);
    pn_status s = pn_tokenizer_encode(t, text.data, text.size, flags, ids, room, &n, &err);
    if (!ids)
        abort();
    if (s == PN_OK) {
        MUST(n <= room);
        for (i = 0; i < n; i++)
            MUST(ids[i] >= 0 && ids[i] < pn_tokenizer_get_info(t)->n_tokens);
        if (n) {
            MUST(pn_tokenizer_encode(t, text.data, text.size, flags, ids, n - 1, &again, &err) == PN_E_FULL);
            MUST(again == n);
        }
    } else {
        MUST(s == err.status && err.message[0]);
    }
    free(ids);
}

static void try_decode(const pn_tokenizer *t)
{
    int32_t id;
    for (id = -1; id <= pn_tokenizer_get_info(t)->n_tokens; id++) {
        char small[8], large[4096];
        size_t n = 0, again = 0;
        pn_status s = pn_tokenizer_decode(t, id, PN_DECODE_SPECIAL, small, sizeof small, &n, NULL);
        MUST((s == PN_E_RANGE) == (id < 0 || id == pn_tokenizer_get_info(t)->n_tokens));
        if (s != PN_E_FULL)
            continue;
        MUST(n > sizeof small);
        if (n <= sizeof large)
            MUST(pn_tokenizer_decode(t, id, PN_DECODE_SPECIAL, large, n, &again, NULL) == PN_OK && again == n);
    }
}

/* Control tokens in the rendering of this text as a user's message; -1 when it fails. */
static long controls(const pn_prompt *p, const input *in, pn_str text)
{
    pn_message m[2] = { { pn_str_from("system"), text }, { pn_str_from("user"), text } };
    pn_ids ids = { 0 };
    long count = 0;
    size_t i, k, token = 0;
    pn_status s = pn_prompt_render(p, m, 2, 0, 1, &ids, NULL);
    MUST(s || ids.count <= (text.size * 2 + 4096) * 3);
    for (i = 0; !s && i < ids.count; i++)
        for (k = 0, token = 0; k < in->n; k++)
            if (is_token(in->lines[k]) && token++ == (size_t)ids.data[i])
                count += in->lines[k].data[0] == 'C';
    pn_ids_free(&ids);
    return s ? -1 : count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static input in;
    char pattern[256];
    pn_config *config = NULL;
    pn_runtime *rt = NULL;
    pn_file *file = NULL;
    pn_tokenizer *t = NULL;
    pn_prompt *p = NULL;
    bytes b = { 0 };
    pn_error err = { 0 };
    parse(data, size, &in);
    build(&in, &b);
    snprintf(pattern, sizeof pattern, "%.*s", (int)(in.pattern.size < 255 ? in.pattern.size : 255),
             in.pattern.size ? in.pattern.data : "");
    if (pn_config_create(&config, &err) || pn_config_set(config, "plugins.path", folder, &err))
        abort();
    pn_config_set(config, "tokenizer.pattern", pattern, NULL);
    if (pn_runtime_create(config, NULL, &rt, &err))
        abort();
    if (!pn_file_open_buffer(rt, "input", b.data, b.size, &file, &err) && !pn_tokenizer_create(rt, file, &t, &err)) {
        try_encode(t, in.text, 0);
        try_encode(t, in.text, PN_ENCODE_SPECIAL | PN_ENCODE_ADD_BOS | PN_ENCODE_ADD_EOS);
        try_decode(t);
        if (!pn_prompt_create(rt, file, t, &p, &err)) {
            long with = controls(p, &in, in.text), without = controls(p, &in, pn_str_from("")), unk;
            /* The unknown token may be of the control kind, as in the demo's model. */
            unk = pn_tokenizer_get_info(t)->unk;
            MUST(with < 0 || without < 0 || with == without || unk >= 0);
        }
        MUST(err.status == PN_OK || err.message[0]);
    }
    pn_prompt_destroy(p);
    pn_tokenizer_destroy(t);
    pn_file_destroy(file);
    pn_runtime_destroy(rt);
    pn_config_destroy(config);
    free(b.data);
    return 0;
}
