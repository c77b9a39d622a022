/* The byte-level BPE plugin by itself: vocabularies of every kind of damage, merging, special tokens, broken UTF-8,
 * unknown bytes, patterns, decoding, memory that runs out. Real vocabularies are in tests/golden/tokens.py. */
#include "fakehost.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define SPACE "\xc4\xa0"        /* the byte-level alphabet's character for a space */
#define LF "\xc4\x8a"           /* and for a newline */

typedef struct vocabulary {
    pn_str tokens[400];
    int32_t types[400];
    pn_str merges[64];
    size_t n_tokens, n_merges;
    char bytes[256][4];
} vocabulary;

static fake_host host;
static vocabulary voc;
static void *tok;
static pn_error err;

static void add(const char *text, int32_t type)
{
    voc.tokens[voc.n_tokens] = pn_str_from(text);
    voc.types[voc.n_tokens++] = type;
}

static void merge(const char *text)
{
    voc.merges[voc.n_merges++] = pn_str_from(text);
}

static int printable(int b)
{
    return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
}

/* The 256 bytes, token = byte, but those of `without`. */
static void start(const char *without)
{
    int b, n = 256;
    if (!host.tokenizer.open) {
        fake_init(&host);
        fake_load(&host, "bpe");
    }
    host.n_roles = 0;
    host.warnings = 0;
    host.fail_at = 0;
    memset(&voc, 0, sizeof voc);
    for (b = 0; b < 256; b++) {
        int c = printable(b) ? b : n++;
        char *t = voc.bytes[b];
        if (c >= 128)
            *t++ = (char)(0xc0 | c >> 6);
        *t++ = (char)(c >= 128 ? 0x80 | (c & 63) : c);
        if (without && strchr(without, b) && b)
            strcpy(voc.bytes[b], "<>");
        add(voc.bytes[b], PN_TOKEN_NORMAL);
    }
    fake_set(&host, PN_ROLE_PRE_TOKENIZER, fake_string("gpt-2"));
}

static pn_status open_with(const pn_tokenizer_options *options)
{
    fake_set(&host, PN_ROLE_TOKENS, fake_strings(voc.tokens, voc.n_tokens));
    fake_set(&host, PN_ROLE_TOKEN_TYPES, fake_ints(voc.types, voc.n_tokens));
    fake_set(&host, PN_ROLE_MERGES, fake_strings(voc.merges, voc.n_merges));
    tok = NULL;
    return host.tokenizer.open(&host.host, fake_file(&host), options, &tok, &err);
}

static void opened(void)
{
    if (open_with(NULL))
        fail_msg("%s", err.message);
}

static void closed(void)
{
    host.tokenizer.close(&host.host, tok);
    assert_int_equal(host.live, 0);
}

/* "1 2 3", or "error". */
static const char *encode(const char *text, size_t size, uint32_t flags)
{
    static char out[4096];
    int32_t ids[600];
    size_t n = 0, i, at = 0;
    if (host.tokenizer.encode(&host.host, tok, text, size, flags, ids, 600, &n, &err))
        return "error";
    out[0] = 0;
    for (i = 0; i < n; i++)
        at += (size_t)snprintf(out + at, sizeof out - at, i ? " %d" : "%d", (int)ids[i]);
    return out;
}

#define assert_ids(text, flags, want) assert_string_equal(encode(text, sizeof(text) - 1, flags), want)

/* ---- merging ----------------------------------------------------------------------------------------------------- */

static void test_merges_by_rank(void **state)
{
    (void)state;
    start(NULL);
    add("bc", PN_TOKEN_NORMAL);     /* 256 */
    add("ab", PN_TOKEN_NORMAL);     /* 257 */
    add("abc", PN_TOKEN_NORMAL);    /* 258 */
    add("aa", PN_TOKEN_NORMAL);     /* 259 */
    merge("b c");
    merge("a b");
    merge("ab c");
    merge("a a");
    opened();
    /* The better rank goes first, though the other pair is further left: "abc" as a whole is never reached. */
    assert_ids("abc", 0, "97 256");
    assert_ids("abab", 0, "257 257");
    /* The leftmost of equals. */
    assert_ids("aaa", 0, "259 97");
    assert_ids("aaaaa", 0, "259 259 97");
    assert_ids("", 0, "");
    assert_ids("a", 0, "97");
    closed();
}

static void test_merges_cut_at_first_blank(void **state)
{
    (void)state;
    start(NULL);
    add(" x", PN_TOKEN_NORMAL);     /* not of the alphabet, but a merge may name it: first byte is a blank */
    add("y", PN_TOKEN_NORMAL);
    add(" xy", PN_TOKEN_NORMAL);
    merge(" x y");
    opened();
    assert_int_equal(host.warnings, 0);
    closed();
}

static void test_damaged_merges(void **state)
{
    static const char *const bad[] = { "", " ", "ab", "a ", "x y", "zz a", "a zz", " a" };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        start(NULL);
        add("ab", PN_TOKEN_NORMAL);
        merge(bad[i]);
        merge("a b");
        opened();
        assert_int_equal(host.warnings, 1);
        assert_non_null(strstr(host.log, "1 of 2 entries"));
        assert_ids("ab", 0, "256");
        closed();
    }
    /* Nothing to merge is fine, no list is not. */
    start(NULL);
    opened();
    assert_ids("ab", 0, "97 98");
    closed();
    fake_unset(&host, PN_ROLE_MERGES);
    assert_int_equal(host.tokenizer.open(&host.host, fake_file(&host), NULL, &tok, &err), PN_E_FORMAT);
    assert_non_null(strstr(err.message, "merges"));
    assert_int_equal(host.live, 0);
}

static void test_long_text(void **state)
{
    enum { SIZE = 300000 };
    char *text = malloc(SIZE);
    int32_t *ids = malloc(SIZE * sizeof *ids);
    size_t n = 0, i;
    (void)state;
    assert_true(text && ids);
    start(NULL);
    add("aa", PN_TOKEN_NORMAL);
    add("aaaa", PN_TOKEN_NORMAL);
    merge("a a");
    merge("aa aa");
    opened();
    memset(text, 'a', SIZE);
    assert_int_equal(host.tokenizer.encode(&host.host, tok, text, SIZE, 0, ids, SIZE, &n, &err), PN_OK);
    assert_int_equal(n, SIZE / 4);
    for (i = 0; i < n; i++)
        assert_int_equal(ids[i], 257);
    closed();
    free(text);
    free(ids);
}

/* The definition, step by step: of all neighbours, merge the pair of the best rank, the leftmost of equals; again. */
static size_t naive(const int32_t (*rules)[3], size_t n_rules, int32_t *ids, size_t n)
{
    for (;;) {
        size_t i, r, best = n_rules, at = 0;
        for (i = 0; i + 1 < n; i++)
            for (r = 0; r < best; r++)
                if (ids[i] == rules[r][0] && ids[i + 1] == rules[r][1]) {
                    best = r;
                    at = i;
                }
        if (best == n_rules)
            return n;
        ids[at] = rules[best][2];
        memmove(ids + at + 1, ids + at + 2, (n - at - 2) * sizeof *ids);
        n--;
    }
}

static void test_equals_definition(void **state)
{
    enum { RULES = 40, LENGTH = 60 };
    static char texts[RULES][LENGTH], pairs[RULES][2 * LENGTH];
    int32_t rules[RULES][3], got[LENGTH], want[LENGTH];
    char text[LENGTH];
    uint32_t seed = 1;
    int round, i, k;
    (void)state;
#define RANDOM(n) ((int)((seed = seed * 1664525u + 1013904223u) >> 8) % (n))
    for (round = 0; round < 50; round++) {
        int n_rules = 0;
        start(NULL);
        while (n_rules < RULES) {
            /* Of three letters and what was made of them. */
            int32_t left = RANDOM(3 + n_rules), right = RANDOM(3 + n_rules);
            left += left < 3 ? 'a' : 256 - 3;
            right += right < 3 ? 'a' : 256 - 3;
            if (voc.tokens[left].size + voc.tokens[right].size >= 12)
                continue;
            sprintf(texts[n_rules], "%s%s", voc.tokens[left].data, voc.tokens[right].data);
            for (i = 0; (size_t)i < voc.n_tokens && strcmp(voc.tokens[i].data, texts[n_rules]); i++)
                ;
            if ((size_t)i < voc.n_tokens) {
                seed++;
                continue;
            }
            sprintf(pairs[n_rules], "%s %s", voc.tokens[left].data, voc.tokens[right].data);
            add(texts[n_rules], PN_TOKEN_NORMAL);
            merge(pairs[n_rules]);
            rules[n_rules][0] = left;
            rules[n_rules][1] = right;
            rules[n_rules][2] = 256 + n_rules;
            n_rules++;
        }
        opened();
        for (i = 0; i < 50; i++) {
            size_t n, n_want;
            for (k = 0; k < LENGTH; k++)
                want[k] = text[k] = (char)('a' + RANDOM(3));
            n_want = naive(rules, RULES, want, LENGTH);
            assert_int_equal(host.tokenizer.encode(&host.host, tok, text, LENGTH, 0, got, LENGTH, &n, &err), PN_OK);
            assert_int_equal(n, n_want);
            assert_memory_equal(got, want, n * sizeof *got);
        }
        closed();
    }
}

/* ---- special tokens ---------------------------------------------------------------------------------------------- */

static void test_special_tokens(void **state)
{
    const pn_tokenizer_options o = { sizeof o, -1, "[\\s\\S]+", NULL };
    (void)state;
    start(NULL);
    add("<s>", PN_TOKEN_CONTROL);       /* 256 */
    add("<s>x", PN_TOKEN_CONTROL);      /* 257 */
    add("<u>", PN_TOKEN_USER);          /* 258 */
    add("<n>", PN_TOKEN_NORMAL);        /* 259 */
    add("<?>", PN_TOKEN_UNKNOWN);       /* 260 */
    add("<u>uu", PN_TOKEN_USER);        /* 261 */
    add("<s", PN_TOKEN_NORMAL);         /* 262 */
    merge("< s");
    merge("<s >");                      /* leads to a control token: no way for a text to spell one */
    assert_int_equal(open_with(&o), PN_OK);
    assert_int_equal(host.warnings, 1);
    assert_ids("<s>", PN_ENCODE_SPECIAL, "256");
    assert_ids("<s>", 0, "262 62");
    assert_ids("a<s>xy", PN_ENCODE_SPECIAL, "97 257 121");
    assert_ids("<s><s>", PN_ENCODE_SPECIAL, "256 256");
    assert_ids("<u>", 0, "258");
    assert_ids("a<u>u", 0, "97 258 117");
    assert_ids("<u>uuu", 0, "261 117");
    assert_ids("<n>", PN_ENCODE_SPECIAL, "60 110 62");
    assert_ids("<?>", PN_ENCODE_SPECIAL, "260");
    assert_ids("<?>", 0, "60 63 62");
    assert_ids("<s", PN_ENCODE_SPECIAL, "262");
    assert_ids("\0<s>\0", PN_ENCODE_SPECIAL, "0 256 0");
    closed();
}

static void test_start_and_end(void **state)
{
    pn_tokenizer_options o = { sizeof o, -1, NULL, NULL };
    pn_tokenizer_info info = { sizeof info, 0, 0, 0, 0, 0, 0, 0, 0 };
    (void)state;
    start(NULL);
    add("<s>", PN_TOKEN_CONTROL);
    add("</s>", PN_TOKEN_CONTROL);
    add("<|im_end|>", PN_TOKEN_CONTROL);
    fake_set(&host, PN_ROLE_BOS, fake_int(256));
    fake_set(&host, PN_ROLE_EOS, fake_int(257));
    fake_set(&host, PN_ROLE_ADD_BOS, fake_int(1));
    fake_set(&host, PN_ROLE_ADD_EOS, fake_int(1));
    opened();
    assert_ids("a", PN_ENCODE_ADD_BOS | PN_ENCODE_ADD_EOS, "256 97 257");
    assert_ids("a", 0, "97");
    assert_ids("", PN_ENCODE_ADD_BOS, "256");
    assert_int_equal(host.tokenizer.info(tok, &info), PN_OK);
    assert_int_equal(info.n_tokens, 259);
    assert_int_equal(info.bos, 256);
    assert_int_equal(info.eos, 257);
    assert_int_equal(info.eot, 258);
    assert_int_equal(info.unk, -1);
    closed();
    o.add_bos = 0;
    assert_int_equal(open_with(&o), PN_OK);
    assert_ids("a", PN_ENCODE_ADD_BOS | PN_ENCODE_ADD_EOS, "97 257");
    closed();
    /* Ids outside of the vocabulary are ignored, and said to be. */
    fake_set(&host, PN_ROLE_BOS, fake_int(1000000));
    fake_set(&host, PN_ROLE_EOS, fake_int(0xffffffff));
    opened();
    assert_int_equal(host.warnings, 2);
    assert_ids("a", PN_ENCODE_ADD_BOS | PN_ENCODE_ADD_EOS, "97");
    closed();
}

/* ---- damaged vocabularies ---------------------------------------------------------------------------------------- */

static pn_status damaged(const char *role, pn_value value)
{
    start(NULL);
    opened();
    closed();
    if (value.type)
        fake_set(&host, role, value);
    else
        fake_unset(&host, role);
    return host.tokenizer.open(&host.host, fake_file(&host), NULL, &tok, &err);
}

static void test_damaged_vocabularies(void **state)
{
    static const int32_t three[3] = { 1, 1, 1 };
    const pn_value none = { .type = PN_T_NONE };
    (void)state;
    assert_int_equal(damaged(PN_ROLE_TOKENS, none), PN_E_FORMAT);
    assert_int_equal(damaged(PN_ROLE_TOKENS, fake_int(3)), PN_E_FORMAT);
    assert_int_equal(damaged(PN_ROLE_TOKENS, fake_ints(three, 3)), PN_E_FORMAT);
    assert_int_equal(damaged(PN_ROLE_TOKENS, fake_strings(NULL, 0)), PN_E_FORMAT);
    assert_int_equal(damaged(PN_ROLE_TOKEN_TYPES, fake_ints(three, 3)), PN_E_FORMAT);
    assert_non_null(strstr(err.message, "3 entries"));
    assert_int_equal(damaged(PN_ROLE_TOKEN_TYPES, fake_int(1)), PN_E_FORMAT);
    assert_int_equal(damaged(PN_ROLE_TOKEN_TYPES, fake_strings(voc.tokens, 256)), PN_E_FORMAT);
    assert_int_equal(damaged(PN_ROLE_MERGES, fake_ints(three, 3)), PN_E_FORMAT);
    assert_int_equal(damaged(PN_ROLE_MERGES, fake_string("a b")), PN_E_FORMAT);
    assert_int_equal(damaged(PN_ROLE_ADD_BOS, fake_string("yes")), PN_E_FORMAT);
    assert_int_equal(host.live, 0);
    /* Without kinds every token is an ordinary one. */
    assert_int_equal(damaged(PN_ROLE_TOKEN_TYPES, none), PN_OK);
    assert_ids("a", 0, "97");
    closed();
    /* One token, of one byte. */
    start(NULL);
    voc.tokens[0] = pn_str_from("a");
    voc.n_tokens = 1;
    opened();
    assert_ids("a", 0, "0");
    assert_ids("ab", 0, "error");
    closed();
}

static void test_unknown_bytes(void **state)
{
    (void)state;
    start(" z");
    add("<unk>", PN_TOKEN_UNKNOWN);
    fake_set(&host, PN_ROLE_UNK, fake_int(256));
    opened();
    assert_ids("a z", 0, "97 256 256");
    closed();
    /* Not said by the file, but of that kind. */
    fake_unset(&host, PN_ROLE_UNK);
    opened();
    assert_ids("a z", 0, "97 256 256");
    closed();
    start(" z");
    opened();
    assert_ids("az", 0, "error");
    assert_int_equal(err.status, PN_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "0x7a"));
    closed();
    start(" z");
    add("<0x7A>", PN_TOKEN_BYTE);
    add("<0x7G>", PN_TOKEN_BYTE);
    opened();
    assert_ids("az", 0, "97 256");
    assert_ids("<0x7A>", 0, "60 48 120 55 65 62");
    closed();
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void test_broken_utf8(void **state)
{
    (void)state;
    start(NULL);
    opened();
    /* Each bad byte is U+FFFD; an encoded surrogate is its own three bytes. */
    assert_ids("\xe6\xad", 0, "239 191 189 239 191 189");
    assert_ids("\xff", 0, "239 191 189");
    assert_ids("a\xc3", 0, "97 239 191 189");
    assert_ids("\xed\xa0\x80", 0, "237 160 128");
    assert_ids("\xe6\xad\xaa", 0, "230 173 170");
    assert_ids("\xc0\x80", 0, "239 191 189 239 191 189");
    assert_ids("\xf4\x90\x80\x80", 0, "239 191 189 239 191 189 239 191 189 239 191 189");
    assert_ids("\xf4\x8f\xbf\xbf", 0, "244 143 191 191");
    assert_ids("a\xed\xb0\x80 \xff", 0, "97 237 176 128 32 239 191 189");
    closed();
}

static void test_sizes(void **state)
{
    int32_t ids[4] = { -7, -7, -7, -7 };
    size_t n = 0;
    (void)state;
    start(NULL);
    opened();
    assert_int_equal(host.tokenizer.encode(&host.host, tok, "abc", 3, 0, NULL, 0, &n, &err), PN_E_FULL);
    assert_int_equal(n, 3);
    n = 0;
    assert_int_equal(host.tokenizer.encode(&host.host, tok, "abc", 3, 0, ids, 2, &n, &err), PN_E_FULL);
    assert_int_equal(n, 3);
    assert_int_equal(ids[1], 98);
    assert_int_equal(ids[2], -7);
    assert_int_equal(host.tokenizer.encode(&host.host, tok, "abc", 3, 0, ids, 3, &n, &err), PN_OK);
    assert_int_equal(ids[3], -7);
    closed();
}

static void test_whole_words(void **state)
{
    (void)state;
    start(NULL);
    add(SPACE "hello", PN_TOKEN_NORMAL);
    opened();
    assert_ids(" hello", 0, "32 104 101 108 108 111");
    closed();
    fake_set(&host, PN_ROLE_PRE_TOKENIZER, fake_string("llama-bpe"));
    opened();
    assert_ids(" hello", 0, "256");
    assert_ids("hello hello", 0, "104 101 108 108 111 256");
    closed();
}

static void test_composed_form(void **state)
{
    (void)state;
    start(NULL);
    fake_set(&host, PN_ROLE_PRE_TOKENIZER, fake_string("qwen2"));
    opened();
    assert_ids("e\xcc\x81", 0, "195 169");
    /* Marks in the wrong order: U+0323 (220) comes before U+0302 (230). */
    assert_ids("a\xcc\x82\xcc\xa3", 0, "225 186 173");
    assert_ids("\xe1\x84\x80\xe1\x85\xa1", 0, "234 176 128");
    assert_ids("\xed\xa0\x80" "e\xcc\x81", 0, "237 160 128 195 169");
    assert_ids("\xff" "e\xcc\x81", 0, "239 191 189 195 169");
    closed();
}

/* ---- pre-tokenizers ---------------------------------------------------------------------------------------------- */

static void test_patterns(void **state)
{
    pn_tokenizer_options o = { sizeof o, -1, NULL, NULL };
    (void)state;
    start(NULL);
    add("1" "2", PN_TOKEN_NORMAL);
    add("b" SPACE, PN_TOKEN_NORMAL);
    merge("1 2");
    merge("b " SPACE);
    opened();
    assert_ids("12", 0, "256");
    assert_ids("b c", 0, "98 32 99");
    closed();
    o.pre = "smollm";           /* digits one by one */
    assert_int_equal(open_with(&o), PN_OK);
    assert_ids("12", 0, "49 50");
    closed();
    o.pattern = "[^c]+";        /* counts more than the name */
    assert_int_equal(open_with(&o), PN_OK);
    assert_ids("12b c", 0, "256 257 99");
    closed();
    o.pattern = "(?=x)|\\b";    /* matches nothing of any length: all is one piece */
    assert_int_equal(open_with(&o), PN_OK);
    assert_ids("12b c", 0, "256 257 99");
    closed();
    o.pattern = "(";
    assert_int_equal(open_with(&o), PN_E_CONFIG);
    assert_non_null(strstr(err.message, "[tokenizer] pattern"));
    o.pattern = NULL;
    o.pre = "nonsense";
    assert_int_equal(open_with(&o), PN_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "nonsense"));
    assert_int_equal(host.live, 0);
    fake_set(&host, PN_ROLE_PRE_TOKENIZER, fake_string("other-nonsense"));
    assert_int_equal(open_with(NULL), PN_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "other-nonsense"));
    assert_non_null(strstr(err.message, "the.tokenizer.pre"));
    assert_int_equal(host.warnings, 0);
    fake_unset(&host, PN_ROLE_PRE_TOKENIZER);
    opened();
    assert_int_equal(host.warnings, 1);
    assert_ids("12", 0, "256");
    closed();
}

/* Patterns that pile up groups or backtrack without bound end in an answer or an error, not in a crash or a hang. */
static void test_hostile_patterns(void **state)
{
    enum { SIZE = 200000 };
    pn_tokenizer_options o = { sizeof o, -1, NULL, NULL };
    char *text = malloc(SIZE);
    size_t n = 0;
    (void)state;
    assert_non_null(text);
    memset(text, 'a', SIZE);
    start(NULL);
    o.pattern = "(?:(a)|b)*";
    assert_int_equal(open_with(&o), PN_OK);
    assert_int_equal(host.tokenizer.encode(&host.host, tok, text, SIZE, 0, NULL, 0, &n, &err), PN_E_FULL);
    assert_int_equal(n, SIZE);
    closed();
    o.pattern = "(?:a+a+)+[bc]";
    assert_int_equal(open_with(&o), PN_OK);
    assert_int_equal(host.tokenizer.encode(&host.host, tok, text, SIZE, 0, NULL, 0, &n, &err), PN_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "pattern"));
    closed();
    free(text);
}

/* Every name of the table has patterns that compile and lose no byte. */
static void test_every_name(void **state)
{
    static const char *const names[] = {
        "default", "gpt-2", "smollm", "bailingmoe", "bloom", "chatglm-bpe", "codeshell", "command-r", "dbrx",
        "deepseek-coder", "deepseek-llm", "deepseek-r1-qwen", "deepseek-v3", "exaone", "falcon", "falcon3", "glm4",
        "gpt-4o", "gpt3-finnish", "jais", "llama-bpe", "llama-v3", "llama3", "llama4", "megrez", "minerva-7b", "mpt",
        "olmo", "phi-2", "poro-chat", "qwen2", "qwen35", "refact", "seed-coder", "smaug-bpe", "stablelm2", "starcoder",
        "tekken", "viking"
    };
    static const char text[] = "It's 1234 o'clock,\r\n\n  \tna\xc3\xafve \xe6\x88\x91\xe6\x83\xb3 x_y!?  \xe1\xa0\x8e"
                               "\xf0\x9f\x98\x80 DON'T (a+b)=c\n    return;   ";
    size_t i, j, n;
    (void)state;
    for (i = 0; i < sizeof names / sizeof *names; i++) {
        int32_t ids[200];
        start(NULL);
        fake_set(&host, PN_ROLE_PRE_TOKENIZER, fake_string(names[i]));
        opened();
        assert_int_equal(host.tokenizer.encode(&host.host, tok, text, sizeof text - 1, 0, ids, 200, &n, &err), PN_OK);
        assert_int_equal(n, sizeof text - 1);
        for (j = 0; j < n; j++)
            assert_int_equal(ids[j], (uint8_t)text[j]);
        closed();
    }
}

/* ---- decoding ---------------------------------------------------------------------------------------------------- */

static void assert_decodes(int32_t id, uint32_t flags, const char *want)
{
    char bytes[64];
    size_t n = 0;
    assert_int_equal(host.tokenizer.decode(tok, id, flags, bytes, sizeof bytes, &n, &err), PN_OK);
    assert_int_equal(n, strlen(want));
    assert_memory_equal(bytes, want, n);
}

static void test_decode(void **state)
{
    char bytes[8] = "-------";
    size_t n = 0;
    int b;
    (void)state;
    start(NULL);
    add(SPACE "a" LF, PN_TOKEN_NORMAL);         /* 256 */
    add("<s>", PN_TOKEN_CONTROL);               /* 257 */
    add("<u>" SPACE, PN_TOKEN_USER);            /* 258 */
    add("a \xef\xbd\x9c", PN_TOKEN_NORMAL);     /* 259: characters that are not of the alphabet */
    add("<0xE6>", PN_TOKEN_BYTE);               /* 260 */
    add("", PN_TOKEN_NORMAL);                   /* 261 */
    add("gone", PN_TOKEN_UNUSED);               /* 262 */
    add("a\xff", PN_TOKEN_NORMAL);              /* 263: not even UTF-8 */
    opened();
    for (b = 0; b < 256; b++) {
        assert_int_equal(host.tokenizer.decode(tok, b, 0, bytes, 8, &n, &err), PN_OK);
        assert_int_equal(n, 1);
        assert_int_equal((uint8_t)bytes[0], b);
    }
    assert_decodes(256, 0, " a\n");
    assert_decodes(257, 0, "");
    assert_decodes(257, PN_DECODE_SPECIAL, "<s>");
    assert_decodes(258, 0, "<u>" SPACE);
    assert_decodes(259, 0, "a \xef\xbd\x9c");
    assert_decodes(260, 0, "\xe6");
    assert_decodes(261, 0, "");
    assert_decodes(262, PN_DECODE_SPECIAL, "gone");
    assert_decodes(263, 0, "a\xff");
    strcpy(bytes, "-------");
    assert_int_equal(host.tokenizer.decode(tok, 256, 0, bytes, 2, &n, &err), PN_E_FULL);
    assert_int_equal(n, 3);
    assert_string_equal(bytes, " a-----");
    assert_int_equal(host.tokenizer.decode(tok, 256, 0, NULL, 0, &n, &err), PN_E_FULL);
    assert_int_equal(host.tokenizer.decode(tok, 264, 0, bytes, 8, &n, &err), PN_E_RANGE);
    assert_int_equal(host.tokenizer.decode(tok, -1, 0, bytes, 8, &n, &err), PN_E_RANGE);
    assert_int_equal(host.tokenizer.token_type(tok, 257), PN_TOKEN_CONTROL);
    assert_int_equal(host.tokenizer.token_type(tok, 264), 0);
    assert_int_equal(host.tokenizer.token_type(tok, -1), 0);
    closed();
}

static void test_huge_token(void **state)
{
    enum { SIZE = 3 << 20 };
    char *text = malloc(SIZE + 1), small[64];
    size_t n = 0;
    (void)state;
    assert_non_null(text);
    memset(text, 'a', SIZE);
    text[SIZE] = 0;
    start(NULL);
    add(text, PN_TOKEN_CONTROL);
    add(text, PN_TOKEN_NORMAL);
    opened();
    assert_int_equal(host.tokenizer.decode(tok, 256, PN_DECODE_SPECIAL, small, sizeof small, &n, &err), PN_E_FULL);
    assert_int_equal(n, SIZE);
    assert_int_equal(host.tokenizer.decode(tok, 257, 0, small, sizeof small, &n, &err), PN_E_FULL);
    assert_int_equal(n, SIZE);
    assert_string_equal(encode(text, SIZE, PN_ENCODE_SPECIAL), "256");
    closed();
    free(text);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void test_no_memory(void **state)
{
    static const char text[] = "caf\x65\xcc\x81 <s> \xff\xed\xa0\x80 a\xcc\x82\xcc\xa3 hello";
    long n, failures = 0;
    size_t count;
    int32_t ids[64];
    pn_status s;
    (void)state;
    start(NULL);
    add("<s>", PN_TOKEN_CONTROL);
    merge("a b");
    fake_set(&host, PN_ROLE_PRE_TOKENIZER, fake_string("qwen2"));
    for (n = 1, s = PN_E_NOMEM; s; n++) {
        host.fail_at = n;
        s = open_with(NULL);
        assert_true(s == PN_OK || (s == PN_E_NOMEM && err.status == s && host.live == 0));
        failures += s != PN_OK;
    }
    /* PCRE2 goes without machine code when there is no memory for it, so the tokenizer may open. */
    assert_true(failures > 6);
    host.fail_at = 0;
    for (n = 1, failures = 0, s = PN_E_NOMEM; s; n++) {
        long live = host.live;
        host.fail_at = n;
        s = host.tokenizer.encode(&host.host, tok, text, sizeof text - 1, PN_ENCODE_SPECIAL, ids, 64, &count, &err);
        host.fail_at = 0;
        assert_true(s == PN_OK || (s == PN_E_NOMEM && err.status == s));
        assert_int_equal(host.live, live);
        failures += s != PN_OK;
    }
    assert_true(failures > 6);
    closed();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merges_by_rank),       cmocka_unit_test(test_merges_cut_at_first_blank),
        cmocka_unit_test(test_damaged_merges),       cmocka_unit_test(test_long_text),
        cmocka_unit_test(test_equals_definition),
        cmocka_unit_test(test_special_tokens),       cmocka_unit_test(test_start_and_end),
        cmocka_unit_test(test_damaged_vocabularies), cmocka_unit_test(test_unknown_bytes),
        cmocka_unit_test(test_broken_utf8),          cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_whole_words),          cmocka_unit_test(test_composed_form),
        cmocka_unit_test(test_patterns),             cmocka_unit_test(test_hostile_patterns),
        cmocka_unit_test(test_every_name),           cmocka_unit_test(test_decode),
        cmocka_unit_test(test_huge_token),           cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
