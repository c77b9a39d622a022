/* The SentencePiece plugin by itself: merging by score, byte fallback, unknown and unused pieces, special tokens,
 * spacing, broken UTF-8, decoding, vocabularies of every kind of damage, memory that runs out. Real vocabularies are in
 * test_spm_vectors.c. */
#include "fakehost.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define SP "\xe2\x96\x81"

enum { UNK, BOS, EOS, BYTES, FIRST = BYTES + 256 };     /* the first token of a test is number 259 */

typedef struct vocabulary {
    pn_str tokens[400];
    int32_t types[400];
    float scores[400];
    size_t n;
    char bytes[256][8];
} vocabulary;

static fake_host host;
static vocabulary voc;
static void *tok;
static pn_error err;

static int32_t add(const char *text, float score, int32_t type)
{
    voc.tokens[voc.n] = pn_str_from(text);
    voc.scores[voc.n] = score;
    voc.types[voc.n] = type;
    return (int32_t)voc.n++;
}

static int32_t piece(const char *text, float score)
{
    return add(text, score, PN_TOKEN_NORMAL);
}

/* <unk>, <s>, </s> and, when wanted, the 256 byte tokens. */
static void start(int with_bytes)
{
    int b;
    if (!host.tokenizer.open) {
        fake_init(&host);
        fake_load(&host, "spm");
    }
    host.n_roles = 0;
    host.warnings = 0;
    host.fail_at = 0;
    memset(&voc, 0, sizeof voc);
    add("<unk>", 0, PN_TOKEN_UNKNOWN);
    add("<s>", 0, PN_TOKEN_CONTROL);
    add("</s>", 0, PN_TOKEN_CONTROL);
    for (b = 0; with_bytes && b < 256; b++) {
        snprintf(voc.bytes[b], sizeof voc.bytes[b], "<0x%02X>", b);
        add(voc.bytes[b], 0, PN_TOKEN_BYTE);
    }
}

static pn_value floats(const float *items, size_t n)
{
    pn_value v = { .type = PN_T_ARRAY, .item_type = PN_T_F32, .count = n };
    v.as.items = items;
    return v;
}

static void set_lists(void)
{
    fake_set(&host, PN_ROLE_TOKENS, fake_strings(voc.tokens, voc.n));
    fake_set(&host, PN_ROLE_TOKEN_TYPES, fake_ints(voc.types, voc.n));
    fake_set(&host, PN_ROLE_SCORES, floats(voc.scores, voc.n));
}

static pn_status reopen(const pn_tokenizer_options *options)
{
    tok = NULL;
    return host.tokenizer.open(&host.host, fake_file(&host), options, &tok, &err);
}

static void opened(void)
{
    set_lists();
    if (reopen(NULL))
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
#define MORE PN_ENCODE_CONTINUED    /* no space before the text */

/* ---- merging ----------------------------------------------------------------------------------------------------- */

static void test_merges_by_score(void **state)
{
    (void)state;
    start(1);
    piece("a", -1);         /* 259 */
    piece("b", -2);
    piece("c", -3);
    piece("ab", -5);        /* 262 */
    piece("bc", -4);        /* 263: better */
    piece("abc", -6);       /* 264 */
    piece("aa", -7);        /* 265 */
    opened();
    assert_int_equal(host.warnings, 0);
    assert_ids("abc", MORE, "264");
    assert_ids("abcc", MORE, "264 261");
    assert_ids("aabc", MORE, "259 264");
    assert_ids("abab", MORE, "262 262");
    assert_ids("aaa", MORE, "265 259");     /* the leftmost of equals */
    assert_ids("aaaaa", MORE, "265 265 259");
    assert_ids("", 0, "");
    closed();
    /* Without the way by "bc", "abc" is reached by "ab" alone. */
    voc.scores[263] = -9;
    opened();
    assert_ids("abc", MORE, "264");
    closed();
    /* The chance of "ab" has gone when "bc" was merged: its score is not that of what "a" now goes with. */
    piece("d", -1);         /* 266 */
    piece("bcd", -10);      /* 267 */
    voc.scores[263] = -4;
    voc.scores[264] = -20;
    opened();
    assert_ids("abcd", MORE, "259 267");
    closed();
    /* "bc" is taken first, and "a" has nothing to go with it but the whole. */
    voc.tokens[264] = pn_str_from("zzz");
    opened();
    assert_ids("abc", MORE, "259 263");
    closed();
}

/* Signs, zeros and infinities of scores are in order. */
static void test_order_of_scores(void **state)
{
    static const float scores[] = { -INFINITY, -3e38f, -2, -1.5f, -1e-40f, 0.0f, 1e-40f, 1, 7, 3e38f, INFINITY };
    size_t i, n = sizeof scores / sizeof *scores;
    (void)state;
    for (i = 0; i + 1 < n; i++) {
        start(1);
        piece("xy", scores[i]);
        piece("yz", scores[i + 1]);
        opened();
        assert_ids("xyz", MORE, "123 260");     /* 120 + 3: byte token of x */
        closed();
        voc.scores[259] = scores[i + 1];
        voc.scores[260] = scores[i];
        opened();
        assert_ids("xyz", MORE, "259 125");
        closed();
    }
    start(1);
    piece("xy", -0.0f);
    piece("yz", 0.0f);
    opened();
    assert_ids("xyz", MORE, "259 125");         /* equals: the left one */
    closed();
}

static void test_unused_pieces(void **state)
{
    (void)state;
    start(1);
    piece("a", -1);
    piece("b", -1);
    add("ab", -2, PN_TOKEN_UNUSED);             /* 261 */
    add("abab", -3, PN_TOKEN_UNUSED);           /* 262 */
    piece("ababa", -4);                         /* 263 */
    add("x", -1, PN_TOKEN_UNUSED);              /* 264 */
    add("abx", -3, PN_TOKEN_UNUSED);            /* 265 */
    opened();
    assert_ids("ababa", MORE, "263");           /* reached by way of unused ones */
    assert_ids("abab", MORE, "259 260 259 260");
    assert_ids("abababab", MORE, "259 260 259 260 259 260 259 260");
    assert_ids("bab", MORE, "260 259 260");
    assert_ids("abx", MORE, "259 260 123");     /* x is its byte */
    closed();
}

static void test_long_text(void **state)
{
    enum { SIZE = 300000 };
    char *text = malloc(SIZE);
    int32_t *ids = malloc(SIZE * sizeof *ids);
    size_t n = 0, i;
    (void)state;
    assert_true(text && ids);
    start(1);
    piece("a", -1);
    piece("aa", -2);
    piece("aaaa", -3);
    opened();
    memset(text, 'a', SIZE);
    assert_int_equal(host.tokenizer.encode(&host.host, tok, text, SIZE, MORE, ids, SIZE, &n, &err), PN_OK);
    assert_int_equal(n, SIZE / 4);
    for (i = 0; i < n; i++)
        assert_int_equal(ids[i], 261);
    closed();
    free(text);
    free(ids);
}

/* ---- spacing ----------------------------------------------------------------------------------------------------- */

static void test_spaces(void **state)
{
    (void)state;
    start(1);
    piece(SP, -1);          /* 259 */
    piece("a", -2);         /* 260 */
    piece(SP "a", -3);      /* 261 */
    piece(SP SP, -4);       /* 262 */
    opened();
    assert_ids("a", 0, "261");
    assert_ids("a", MORE, "260");
    assert_ids(" a", 0, "259 261");
    assert_ids(" a", MORE, "261");
    assert_ids("a a", 0, "261 261");
    assert_ids("   ", 0, "262 262");
    assert_ids(SP "a", MORE, "261");            /* the character itself is a space as well */
    assert_ids("a", PN_ENCODE_ADD_BOS, "1 261");
    assert_ids("", PN_ENCODE_ADD_BOS, "1");
    /* After a special token as at the beginning. */
    assert_ids("<s>a</s>a", PN_ENCODE_SPECIAL, "1 261 2 261");
    assert_ids("<s>a</s>a", PN_ENCODE_SPECIAL | MORE, "1 261 2 261");
    assert_ids("a<s> a", PN_ENCODE_SPECIAL | MORE, "260 1 259 261");
    closed();
    fake_set(&host, PN_ROLE_ADD_SPACE_PREFIX, fake_int(0));
    opened();
    assert_ids("a", 0, "260");
    assert_ids("<s>a", PN_ENCODE_SPECIAL, "1 260");
    closed();
}

/* ---- bytes and unknown characters -------------------------------------------------------------------------------- */

static void test_bytes(void **state)
{
    (void)state;
    start(1);
    piece("a", -1);
    piece("\xc3\xa9", -1);  /* 260 */
    opened();
    assert_ids("a\xc3\xa9", MORE, "259 260");
    assert_ids("\xc3\xa8", MORE, "198 171");
    assert_ids("\n", MORE, "13");
    assert_ids("\0", MORE, "3");
    assert_ids("\xf0\x9f\xa6\x99", MORE, "243 162 169 156");
    /* Text that spells a byte token is text. */
    assert_ids("<0x41>", MORE, "63 51 123 55 52 65");
    assert_ids("<0x41>", MORE | PN_ENCODE_SPECIAL, "63 51 123 55 52 65");
    closed();
    piece("<0", -2);        /* 261 */
    piece("<0x", -2);
    piece("<0x4", -2);
    piece("<0x41", -2);     /* 264: one step away from the byte token */
    opened();
    assert_ids("<0x41>", MORE, "264 65");
    /* What is no UTF-8: its bytes, and the rest as it is. */
    assert_ids("\xe6\xad", MORE, "233 176");
    assert_ids("\xff", MORE, "258");
    assert_ids("a\xc3", MORE, "259 198");
    assert_ids("\xed\xa0\x80", MORE, "240 163 131");
    assert_ids("\xe6" "aa", MORE, "233 259 259");
    assert_ids("\xc3\xc3\xa9", MORE, "198 260");
    assert_ids("\xc0\x80\xf4\x90\x80\x80", MORE, "195 131 247 147 131 131");
    closed();
}

static void test_unknown_characters(void **state)
{
    (void)state;
    start(0);
    piece(SP, 0);           /* 3 */
    piece("a", 0);          /* 4 */
    opened();
    assert_ids(" z", 0, "3 3 0");
    assert_ids("a\xf0\x9f\xa6\x99z", 0, "3 4 0 0");
    assert_ids("\xff\xfe", 0, "3 0 0");
    closed();
    /* Bytes for some characters only: a character is never cut in half. */
    add("<0xC3>", 0, PN_TOKEN_BYTE);    /* 5 */
    add("<0x7A>", 0, PN_TOKEN_BYTE);    /* 6 */
    opened();
    assert_ids("z\xc3\xa9", MORE, "6 0");
    closed();
    /* No unknown token: an error that names what is missing. */
    voc.types[0] = PN_TOKEN_CONTROL;
    opened();
    assert_ids("z", MORE, "6");
    assert_ids("az\xc3\xa9", MORE, "error");
    assert_int_equal(err.status, PN_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "0xa9"));
    closed();
    fake_set(&host, PN_ROLE_UNK, fake_int(1));
    opened();
    assert_ids("q", MORE, "1");
    closed();
}

/* ---- special tokens ---------------------------------------------------------------------------------------------- */

static void test_special_tokens(void **state)
{
    (void)state;
    start(1);
    piece("<", -1);                             /* 259 */
    piece("s", -1);
    piece(">", -1);
    piece("<s", -2);                            /* 262 */
    add("<u>", -3, PN_TOKEN_USER);              /* 263 */
    add("<u>uu", -3, PN_TOKEN_USER);            /* 264 */
    piece("<n>", -9);                           /* 265: an ordinary entry that looks like a marker */
    opened();
    assert_ids("<s>", MORE, "262 261");         /* the last step, to the control token, is not taken */
    assert_ids("<s>", MORE | PN_ENCODE_SPECIAL, "1");
    assert_ids("<s><s>", MORE | PN_ENCODE_SPECIAL, "1 1");
    assert_ids("<unk>", MORE | PN_ENCODE_SPECIAL, "0");
    assert_ids("<u>", MORE, "263");
    assert_ids("<u><u>uuu", MORE, "263 264 229 153 132 120");
    assert_ids("<s", MORE | PN_ENCODE_SPECIAL, "262");
    closed();
}

static void test_stripping(void **state)
{
    (void)state;
    start(1);
    piece(SP, -1);                              /* 259 */
    piece("a", -1);
    piece(SP "a", -2);                          /* 261 */
    add("<|user|>", 0, PN_TOKEN_CONTROL);       /* 262 */
    fake_set(&host, PN_ROLE_ARCHITECTURE, fake_string("phi3"));
    opened();
    assert_ids("<|user|>\n \ta<|user|>\n", PN_ENCODE_SPECIAL, "262 261 262");
    assert_ids("<|user|>\0", PN_ENCODE_SPECIAL, "262 259 3");
    assert_ids("<s>\na", PN_ENCODE_SPECIAL, "1 259 13 260");
    assert_ids("<unk> a", PN_ENCODE_SPECIAL, "0 259 261");
    closed();
    fake_set(&host, PN_ROLE_ARCHITECTURE, fake_string("llama"));
    opened();
    assert_ids("<|user|>\na", PN_ENCODE_SPECIAL, "262 259 13 260");
    closed();
}

static void test_start_and_end(void **state)
{
    pn_tokenizer_options o = { sizeof o, -1, NULL, NULL };
    pn_tokenizer_info info = { sizeof info, 0, 0, 0, 0, 0, 0, 0, 0 };
    (void)state;
    start(1);
    add("<|end|>", 0, PN_TOKEN_CONTROL);        /* 259 */
    opened();
    assert_int_equal(host.tokenizer.info(tok, &info), PN_OK);
    assert_int_equal(info.n_tokens, 260);
    assert_int_equal(info.bos, 1);
    assert_int_equal(info.eos, 2);
    assert_int_equal(info.unk, 0);
    assert_int_equal(info.eot, 259);
    assert_int_equal(info.pad, -1);
    assert_int_equal(info.add_bos, 1);
    assert_int_equal(info.add_eos, 0);
    assert_ids("a", MORE | PN_ENCODE_ADD_BOS | PN_ENCODE_ADD_EOS, "1 100");
    closed();
    fake_set(&host, PN_ROLE_BOS, fake_int(259));
    fake_set(&host, PN_ROLE_EOS, fake_int(1));
    fake_set(&host, PN_ROLE_ADD_EOS, fake_int(1));
    opened();
    assert_ids("a", MORE | PN_ENCODE_ADD_BOS | PN_ENCODE_ADD_EOS, "259 100 1");
    assert_ids("a", MORE, "100");
    closed();
    o.add_bos = 0;
    assert_int_equal(reopen(&o), PN_OK);
    assert_ids("a", MORE | PN_ENCODE_ADD_BOS, "100");
    closed();
    fake_set(&host, PN_ROLE_ADD_BOS, fake_int(0));
    o.add_bos = 1;
    assert_int_equal(reopen(&o), PN_OK);
    assert_ids("a", MORE | PN_ENCODE_ADD_BOS, "259 100");
    closed();
    assert_int_equal(host.warnings, 0);
    /* Ids outside of the vocabulary are said to be ignored; the usual ones stand in where they are control tokens. */
    fake_set(&host, PN_ROLE_BOS, fake_int(1000000));
    fake_set(&host, PN_ROLE_EOS, fake_int(0xffffffff));
    voc.types[EOS] = PN_TOKEN_NORMAL;
    o.add_bos = 1;
    set_lists();
    assert_int_equal(reopen(&o), PN_OK);
    assert_int_equal(host.warnings, 2);
    assert_ids("a", MORE | PN_ENCODE_ADD_BOS | PN_ENCODE_ADD_EOS, "1 100");
    closed();
}

/* ---- damaged vocabularies ---------------------------------------------------------------------------------------- */

static pn_status damaged(const char *role, pn_value value)
{
    start(1);
    opened();
    closed();
    if (value.type)
        fake_set(&host, role, value);
    else
        fake_unset(&host, role);
    return reopen(NULL);
}

static void test_damaged_vocabularies(void **state)
{
    static const int32_t three[3] = { 1, 1, 1 };
    static float bad[259];
    const pn_value none = { .type = PN_T_NONE };
    (void)state;
    assert_int_equal(damaged(PN_ROLE_TOKENS, none), PN_E_NOT_FOUND);
    assert_int_equal(damaged(PN_ROLE_TOKENS, fake_int(3)), PN_E_FORMAT);
    assert_int_equal(damaged(PN_ROLE_TOKENS, fake_ints(three, 3)), PN_E_FORMAT);
    assert_int_equal(damaged(PN_ROLE_TOKENS, fake_strings(NULL, 0)), PN_E_FORMAT);
    assert_int_equal(damaged(PN_ROLE_TOKEN_TYPES, fake_ints(three, 3)), PN_E_FORMAT);
    assert_non_null(strstr(err.message, "3 entries"));
    assert_int_equal(damaged(PN_ROLE_TOKEN_TYPES, fake_int(1)), PN_E_FORMAT);
    assert_int_equal(damaged(PN_ROLE_TOKEN_TYPES, fake_strings(voc.tokens, 259)), PN_E_FORMAT);
    assert_int_equal(damaged(PN_ROLE_SCORES, none), PN_E_NOT_FOUND);
    assert_int_equal(damaged(PN_ROLE_SCORES, floats(bad, 3)), PN_E_FORMAT);
    assert_non_null(strstr(err.message, "3 entries"));
    assert_int_equal(damaged(PN_ROLE_SCORES, fake_string("0")), PN_E_FORMAT);
    assert_int_equal(damaged(PN_ROLE_SCORES, fake_strings(voc.tokens, 259)), PN_E_FORMAT);
    bad[7] = NAN;
    assert_int_equal(damaged(PN_ROLE_SCORES, floats(bad, 259)), PN_E_FORMAT);
    assert_non_null(strstr(err.message, "item 7"));
    assert_int_equal(damaged(PN_ROLE_ADD_BOS, fake_string("yes")), PN_E_RANGE);
    assert_int_equal(host.live, 0);
}

static void test_odd_vocabularies(void **state)
{
    (void)state;
    /* One token, of one byte, nothing else. */
    start(0);
    voc.tokens[0] = pn_str_from("a");
    voc.types[0] = PN_TOKEN_NORMAL;
    voc.n = 1;
    opened();
    assert_ids("aa", MORE, "0 0");
    assert_ids("a", PN_ENCODE_ADD_BOS | PN_ENCODE_ADD_EOS, "error");    /* no piece for the space */
    assert_ids("", PN_ENCODE_ADD_BOS | PN_ENCODE_ADD_EOS, "");
    closed();
    /* No kinds: guessed, with a warning. */
    start(1);
    piece("a", -1);
    set_lists();
    fake_unset(&host, PN_ROLE_TOKEN_TYPES);
    assert_int_equal(reopen(NULL), PN_OK);
    assert_int_equal(host.warnings, 1);
    assert_ids("<s>a\n", MORE | PN_ENCODE_SPECIAL, "1 229 153 132 259 13");
    assert_ids("b", MORE, "101");
    assert_int_equal(host.tokenizer.token_type(tok, BOS), PN_TOKEN_CONTROL);
    assert_int_equal(host.tokenizer.token_type(tok, BYTES), PN_TOKEN_BYTE);
    assert_int_equal(host.tokenizer.token_type(tok, 259), PN_TOKEN_NORMAL);
    closed();
    /* A token that the file calls its start is no byte, whatever it looks like. */
    fake_set(&host, PN_ROLE_BOS, fake_int(BYTES + 'b'));
    assert_int_equal(reopen(NULL), PN_OK);
    assert_ids("b", MORE, "0");
    assert_ids("a", MORE | PN_ENCODE_ADD_BOS, "101 259");
    closed();
    /* Kinds that are not known, byte tokens that are none, empty texts, texts that are there twice. */
    start(1);
    add("q", -1, 77);                           /* 259 */
    add("<0xzz>", 0, PN_TOKEN_BYTE);            /* 260 */
    piece("", 0);
    add("", 0, PN_TOKEN_CONTROL);
    piece("d", -1);
    piece("d", -1);                             /* 264 */
    opened();
    assert_int_equal(host.warnings, 1);
    assert_int_equal(host.tokenizer.token_type(tok, 260), PN_TOKEN_NORMAL);
    assert_ids("qd", MORE | PN_ENCODE_SPECIAL, "259 264");
    closed();
    /* Settings without a meaning here are not passed over in silence. */
    {
        const pn_tokenizer_options o = { sizeof o, -1, "x+", NULL };
        host.warnings = 0;
        start(1);
        set_lists();
        assert_int_equal(reopen(&o), PN_OK);
        assert_int_equal(host.warnings, 1);
        closed();
    }
}

static void test_sizes(void **state)
{
    int32_t ids[4] = { -7, -7, -7, -7 };
    size_t n = 0;
    (void)state;
    start(1);
    opened();
    assert_int_equal(host.tokenizer.encode(&host.host, tok, "abc", 3, MORE, NULL, 0, &n, &err), PN_E_FULL);
    assert_int_equal(n, 3);
    n = 0;
    assert_int_equal(host.tokenizer.encode(&host.host, tok, "abc", 3, MORE, ids, 2, &n, &err), PN_E_FULL);
    assert_int_equal(n, 3);
    assert_int_equal(ids[1], 101);
    assert_int_equal(ids[2], -7);
    assert_int_equal(host.tokenizer.encode(&host.host, tok, "abc", 3, MORE, ids, 3, &n, &err), PN_OK);
    assert_int_equal(ids[3], -7);
    assert_int_equal(host.tokenizer.encode(&host.host, tok, NULL, 0, 0, NULL, 0, &n, &err), PN_OK);
    assert_int_equal(n, 0);
    closed();
}

/* ---- decoding ---------------------------------------------------------------------------------------------------- */

static void assert_decodes(int32_t id, uint32_t flags, const char *want)
{
    char bytes[64];
    size_t n = 0;
    assert_int_equal(host.tokenizer.decode(tok, id, flags, bytes, sizeof bytes, &n, &err), PN_OK);
    if (n != strlen(want) || memcmp(bytes, want, n))
        fail_msg("token %d gives \"%.*s\", not \"%s\"", (int)id, (int)n, bytes, want);
}

static void test_decode(void **state)
{
    char bytes[8] = "-------";
    size_t n = 0;
    int b;
    (void)state;
    start(1);
    piece(SP "a" SP "b", -1);                   /* 259 */
    piece(SP, -1);                              /* 260 */
    add(SP "u", -1, PN_TOKEN_USER);             /* 261 */
    add("gone", -1, PN_TOKEN_UNUSED);           /* 262 */
    piece("a\xe2\x96", -1);                     /* 263: half a character */
    piece("", -1);                              /* 264 */
    add(" v", -1, PN_TOKEN_USER);               /* 265 */
    opened();
    for (b = 0; b < 256; b++) {
        assert_int_equal(host.tokenizer.decode(tok, BYTES + b, 0, bytes, 8, &n, &err), PN_OK);
        assert_int_equal(n, 1);
        assert_int_equal((uint8_t)bytes[0], b);
    }
    assert_decodes(259, 0, " a b");
    assert_decodes(259, PN_DECODE_FIRST, "a b");
    assert_decodes(260, 0, " ");
    assert_decodes(260, PN_DECODE_FIRST, "");
    assert_decodes(BYTES + ' ', PN_DECODE_FIRST, " ");
    assert_decodes(261, PN_DECODE_FIRST, "u");
    assert_decodes(265, PN_DECODE_FIRST, " v");
    assert_decodes(262, 0, "gone");
    assert_decodes(263, 0, "a\xe2\x96");
    assert_decodes(264, 0, "");
    assert_decodes(BOS, 0, "");
    assert_decodes(BOS, PN_DECODE_SPECIAL, "<s>");
    assert_decodes(UNK, 0, "");
    assert_decodes(UNK, PN_DECODE_SPECIAL, "<unk>");
    strcpy(bytes, "-------");
    assert_int_equal(host.tokenizer.decode(tok, 259, 0, bytes, 2, &n, &err), PN_E_FULL);
    assert_int_equal(n, 4);
    assert_string_equal(bytes, " a-----");
    assert_int_equal(host.tokenizer.decode(tok, BOS, PN_DECODE_SPECIAL, bytes, 2, &n, &err), PN_E_FULL);
    assert_string_equal(bytes, "<s-----");
    assert_int_equal(host.tokenizer.decode(tok, 259, 0, NULL, 0, &n, &err), PN_E_FULL);
    assert_int_equal(host.tokenizer.decode(tok, BYTES, 0, NULL, 0, &n, &err), PN_E_FULL);
    assert_int_equal(host.tokenizer.decode(tok, 266, 0, bytes, 8, &n, &err), PN_E_RANGE);
    assert_int_equal(host.tokenizer.decode(tok, -1, 0, bytes, 8, &n, &err), PN_E_RANGE);
    assert_int_equal(host.tokenizer.token_type(tok, BOS), PN_TOKEN_CONTROL);
    assert_int_equal(host.tokenizer.token_type(tok, 266), 0);
    assert_int_equal(host.tokenizer.token_type(tok, -1), 0);
    closed();
    fake_set(&host, PN_ROLE_ADD_SPACE_PREFIX, fake_int(0));
    opened();
    assert_decodes(259, PN_DECODE_FIRST, " a b");
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
    start(1);
    add(text, 0, PN_TOKEN_CONTROL);             /* 259 */
    add(text, 0, PN_TOKEN_NORMAL);              /* 260 */
    add(text + SIZE - 512, 0, PN_TOKEN_USER);   /* 261: the longest that is looked for */
    opened();
    assert_int_equal(host.warnings, 1);
    assert_non_null(strstr(host.log, "1 special tokens"));
    assert_int_equal(host.tokenizer.decode(tok, 259, PN_DECODE_SPECIAL, small, sizeof small, &n, &err), PN_E_FULL);
    assert_int_equal(n, SIZE);
    assert_int_equal(host.tokenizer.decode(tok, 260, 0, small, sizeof small, &n, &err), PN_E_FULL);
    assert_int_equal(n, SIZE);
    assert_string_equal(encode(text, 1025, MORE | PN_ENCODE_SPECIAL), "261 261 229 153 132 100");
    assert_ids("aa", MORE, "100 100");
    closed();
    free(text);
}

/* ---- round trips, memory ----------------------------------------------------------------------------------------- */

/* Bytes of any kind come back as they were, whatever they are cut into. */
static void test_round_trips(void **state)
{
    static const char some[] = " ab<s>u\xc3\xa9\xe2\x96\x82\xf0\x9f";
    char text[48], back[256];
    int32_t ids[256];
    uint64_t random = 1;
    int round;
    (void)state;
    start(1);
    piece(SP, -1);
    piece("a", -1);
    piece(SP "a", -2);
    piece("ab", -3);
    piece("\xc3\xa9", -2);
    piece("a\xc3\xa9", -4);
    piece(SP SP, -5);
    opened();
    for (round = 0; round < 20000; round++) {
        size_t size, n, i, at = 0, m;
        random = random * 6364136223846793005u + 1442695040888963407u;
        size = random >> 40 & 31;
        for (i = 0; i < size; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            text[i] = round & 1 ? some[(random >> 33) % (sizeof some - 1)] : (char)(random >> 33);
        }
        assert_int_equal(host.tokenizer.encode(&host.host, tok, text, size, 0, ids, 256, &n, &err), PN_OK);
        for (i = 0; i < n; i++, at += m)
            assert_int_equal(host.tokenizer.decode(tok, ids[i], i ? 0 : PN_DECODE_FIRST, back + at, sizeof back - at,
                                                   &m, &err), PN_OK);
        /* U+2581 cannot be told from a space; random bytes hardly ever spell it. */
        if (at != size || memcmp(back, text, size))
            fail_msg("round %d: \"%.*s\" comes back as \"%.*s\"", round, (int)size, text, (int)at, back);
    }
    closed();
}

static void test_no_memory(void **state)
{
    static const char text[] = "caf\xc3\xa9 <s> \xff\xed\xa0\x80 hello";
    long n, failures = 0;
    size_t count;
    int32_t ids[64];
    pn_status s;
    (void)state;
    start(1);
    piece("a", -1);
    set_lists();
    for (n = 1, s = PN_E_NOMEM; s; n++) {
        host.fail_at = n;
        s = reopen(NULL);
        assert_true(s == PN_OK || (s == PN_E_NOMEM && err.status == s && host.live == 0));
        failures += s != PN_OK;
    }
    assert_int_equal(failures, 5);
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
    assert_true(failures >= 3);
    closed();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merges_by_score),      cmocka_unit_test(test_order_of_scores),
        cmocka_unit_test(test_unused_pieces),        cmocka_unit_test(test_long_text),
        cmocka_unit_test(test_spaces),               cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_unknown_characters),   cmocka_unit_test(test_special_tokens),
        cmocka_unit_test(test_stripping),            cmocka_unit_test(test_start_and_end),
        cmocka_unit_test(test_damaged_vocabularies), cmocka_unit_test(test_odd_vocabularies),
        cmocka_unit_test(test_sizes),                cmocka_unit_test(test_decode),
        cmocka_unit_test(test_huge_token),           cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
