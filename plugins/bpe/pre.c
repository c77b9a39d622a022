/* Pre-tokenizers: the published patterns by name, and cutting a text with them. One line of the table adds a name.
 *
 * Patterns work in a chain: each cuts every piece that the one before left, both what it matched and what lies between
 * becoming pieces. They are matched by PCRE2, compiled to machine code where that is possible. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "bpe.h"

/* Unicode's White_Space, which is what \s means in the engines that the patterns were written for; PCRE2's \s has
 * U+180E too. */
#define WS "\\t-\\r \\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define S "[" WS "]"
#define NOT_S "[^" WS "]"
#define TAIL S "+(?!" NOT_S ")|" S "+"
#define LINES S "*[\\r\\n]+|" TAIL

#define DIGIT "\\p{N}"
#define DIGITS3 "\\p{N}{1,3}"
#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" WS "\\p{L}\\p{N}]+|" TAIL
#define FALCON_PUNCT "[\\p{P}$+<=>^~|`]+"
#define DEFAULT_PUNCT "[\\p{P}$+<=>^~|]+"
#define ASCII3 "[0-9][0-9][0-9]"

#define SHORT_FORMS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define CL100K(numbers) \
    SHORT_FORMS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers "| ?[^" WS "\\p{L}\\p{N}]+[\\r\\n]*|" LINES
#define LLAMA3 CL100K(DIGITS3)
#define QWEN2 CL100K(DIGIT)
#define QWEN35 \
    SHORT_FORMS "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|" DIGIT "| ?[^" WS "\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" LINES

#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(end) \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" end "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" end
#define CASED_REST(numbers) "|" numbers "| ?[^" WS "\\p{L}\\p{N}]+[\\r\\n/]*|" LINES
#define TEKKEN CASED("") CASED_REST(DIGIT)
#define GPT4O CASED(SHORT_FORMS "?") CASED_REST(DIGITS3)

#define SEED_CODER SHORT_FORMS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" DIGIT "| ?[^" WS "\\p{L}\\p{N}\\r\\n]+|" LINES
#define BAILING \
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|" DIGIT "| ?[^" WS "\\p{L}\\p{N}]++[\\r\\n]*|" S        \
    "*[\\r\\n]|" TAIL
#define NOT_PUNCT " ?[^(" WS "|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"

/* DeepSeek: cased letters, punctuation, ideographs with syllables. The end of a run of white space is looked for once
 * per run, not once per character. */
#define DS_NEWLINE "[\\r\\n]"
#define DS_LETTERS \
    S "?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373" \
      "\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f" \
      "\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77" \
      "\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d" \
      "\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4" \
      "\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139" \
      "\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d" \
      "\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a" \
      "\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2" \
      "\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943]+"
#define DS_PUNCT S "?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"
#define DS_TAIL "(?<!" S ")" S "++\\z"
#define DS_SCRIPTS "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
#define DS3_SCRIPTS "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
#define DS3_REST \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|" \
    " ?[\\p{P}\\p{S}]+[\\r\\n]*|" LINES

static const struct {
    const char *name;
    uint32_t flags;
    const char *patterns[BPE_MAX_PATTERNS + 1];
} published[] = {
    { "default", 0, { DEFAULT_PUNCT, GPT2, "\\p{N}+", ASCII3 } },
    { "gpt-2", 0, { GPT2 } },
    { "smollm", 0, { DIGIT, GPT2 } },
    { "bailingmoe", 0, { BAILING } },
    { "bloom", 0, { NOT_PUNCT } },
    { "chatglm-bpe", 0, { LLAMA3 } },
    { "codeshell", 0, { DIGIT, GPT2 } },
    { "command-r", 0, { DIGIT, GPT2 } },
    { "dbrx", 0, { LLAMA3 } },
    { "deepseek-coder", 0, { DS_NEWLINE, S "?\\p{L}+", S "?\\p{P}+", DS_SCRIPTS, DIGIT } },
    { "deepseek-llm", 0, { DS_NEWLINE, DS_LETTERS, DS_PUNCT, DS_TAIL, DS_SCRIPTS, "\\p{N}+" } },
    { "deepseek-r1-qwen", BPE_NFC, { QWEN2 } },
    { "deepseek-v3", 0, { DIGITS3, DS3_SCRIPTS, DS3_REST } },
    { "exaone", 0, { DIGIT, GPT2 } },
    { "falcon", 0, { FALCON_PUNCT, GPT2, ASCII3 } },
    { "falcon3", BPE_WHOLE_WORDS | BPE_WANTS_BOS, { LLAMA3 } },
    { "glm4", BPE_WHOLE_WORDS, { LLAMA3 } },
    { "gpt-4o", 0, { GPT4O } },
    { "gpt3-finnish", 0, { NOT_PUNCT } },
    { "jais", 0, { GPT2 } },
    { "llama-bpe", BPE_WHOLE_WORDS | BPE_WANTS_BOS, { LLAMA3 } },
    { "llama-v3", BPE_WHOLE_WORDS | BPE_WANTS_BOS, { LLAMA3 } },
    { "llama3", BPE_WHOLE_WORDS | BPE_WANTS_BOS, { LLAMA3 } },
    { "llama4", 0, { GPT4O } },
    { "megrez", BPE_NFC, { QWEN2 } },
    { "minerva-7b", 0, { DIGIT, GPT2 } },
    { "mpt", 0, { GPT2 } },
    { "olmo", 0, { GPT2 } },
    { "phi-2", 0, { GPT2 } },
    { "poro-chat", 0, { NOT_PUNCT } },
    { "qwen2", BPE_NFC, { QWEN2 } },
    { "qwen35", 0, { QWEN35 } },
    { "refact", 0, { DIGIT, GPT2 } },
    { "seed-coder", 0, { SEED_CODER } },
    { "smaug-bpe", 0, { LLAMA3 } },
    { "stablelm2", 0, { QWEN2 } },
    { "starcoder", 0, { DIGIT, GPT2 } },
    { "tekken", BPE_WHOLE_WORDS | BPE_WANTS_BOS, { TEKKEN } },
    { "viking", 0, { NOT_PUNCT, DIGIT } },
};

/* ---- opening --------------------------------------------------------------------------------------------------- */

static void *memory_take(PCRE2_SIZE size, void *host)
{
    void *p = NULL;
    return pn_host_alloc(host, 1, size, &p, NULL) ? NULL : p;
}

static void memory_give(void *memory, void *host)
{
    pn_host_free(host, memory, NULL);
}

static pn_status compile(bpe_pre *pre, const char *pattern, const char *whose, pn_error *err)
{
    int number;
    PCRE2_SIZE at;
    pcre2_compile_context *context = pcre2_compile_context_create(pre->memory);
    pcre2_code *code;
    if (!context)
        return pn_fail(err, PN_E_NOMEM, "no memory for the pre-tokenizer's pattern");
    code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C,
                         &number, &at, context);
    pcre2_compile_context_free(context);
    if (!code) {
        char why[160];
        pcre2_get_error_message(number, (PCRE2_UCHAR *)why, sizeof why);
        return pn_fail(err, number == PCRE2_ERROR_HEAP_FAILED ? PN_E_NOMEM : PN_E_CONFIG,
                       "the pre-tokenizer pattern %s cannot be compiled: %s, at its character %zu: %.200s", whose, why,
                       (size_t)at, pattern);
    }
    /* Where machine code cannot be made, the pattern is interpreted. */
    (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    pre->codes[pre->n_codes++] = code;
    return PN_OK;
}

static int is_name(pn_str name, const char *text)
{
    return strlen(text) == name.size && !memcmp(text, name.data, name.size);
}

pn_status bpe_pre_open(const pn_host *host, bpe_pre *pre, pn_str name, const char *key, const char *pattern,
                       pn_error *err)
{
    size_t i, row = 0;
    const size_t n = sizeof published / sizeof *published;
    memset(pre, 0, sizeof *pre);
    pre->memory = pcre2_general_context_create(memory_take, memory_give, (void *)host);
    if (!pre->memory)
        return pn_fail(err, PN_E_NOMEM, "no memory for the pre-tokenizer");
    if (name.size) {
        while (row < n && !is_name(name, published[row].name))
            row++;
    } else if (!pattern) {
        pn_host_log(host, PN_LOG_WARN,
                    "the file names no pre-tokenizer; using \"default\", which may cut words in other places than the "
                    "model learned (choose one with [tokenizer] pre)",
                    NULL);
    }
    if (row < n)
        pre->flags = published[row].flags;
    if (pattern)
        return compile(pre, pattern, "in [tokenizer] pattern", err);
    if (row == n)
        return pn_fail(err, PN_E_UNSUPPORTED,
                       "%s names the pre-tokenizer \"%.*s\", which is not known; if another one cuts text the same "
                       "way, name it with [tokenizer] pre, or give its pattern with [tokenizer] pattern",
                       key, (int)(name.size < 80 ? name.size : 80), name.data);
    for (i = 0; published[row].patterns[i]; i++) {
        pn_status s = compile(pre, published[row].patterns[i], published[row].name, err);
        if (s)
            return s;
    }
    return PN_OK;
}

void bpe_pre_close(bpe_pre *pre)
{
    while (pre->n_codes)
        pcre2_code_free(pre->codes[--pre->n_codes]);
    if (pre->memory)
        pcre2_general_context_free(pre->memory);
    pre->memory = NULL;
}

/* ---- cutting --------------------------------------------------------------------------------------------------- */

typedef struct cutter {
    const bpe_pre *pre;
    const char *text, *shadow;
    bpe_word_fn word;
    void *arg;
    pcre2_match_data *match;
    pcre2_match_context *limits;
    pn_error *err;
} cutter;

static pn_status match_failed(const cutter *c, int code)
{
    char why[160];
    if (code == PCRE2_ERROR_NOMEMORY)
        return pn_fail(c->err, PN_E_NOMEM, "no memory to match the pre-tokenizer's pattern");
    pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why);
    return pn_fail(c->err, PN_E_UNSUPPORTED,
                   "the pre-tokenizer's pattern cannot be matched on this text: %s; a pattern of [tokenizer] must not "
                   "backtrack without bound",
                   why);
}

/* The next non-empty match at or after `from` in the piece; *begin = *end = size when there is none. */
static pn_status next_match(const cutter *c, uint32_t stage, const char *piece, size_t size, size_t from, size_t *begin,
                            size_t *end)
{
    const pcre2_code *code = c->pre->codes[stage];
    const uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
    const PCRE2_SIZE *at;
    int n = pcre2_match(code, (PCRE2_SPTR)piece, size, from, options, c->match, c->limits);
    /* Groups that pile up overflow the stack of the machine code; the interpreter keeps them on the heap. */
    if (n == PCRE2_ERROR_JIT_STACKLIMIT)
        n = pcre2_match(code, (PCRE2_SPTR)piece, size, from, options | PCRE2_NO_JIT, c->match, c->limits);
    *begin = *end = size;
    if (n == PCRE2_ERROR_NOMATCH)
        return PN_OK;
    if (n < 0)
        return match_failed(c, n);
    at = pcre2_get_ovector_pointer(c->match);
    if (at[0] < from || at[1] <= at[0])
        return pn_fail(c->err, PN_E_UNSUPPORTED, "the pre-tokenizer's pattern moves its own start (\\K)");
    *begin = at[0];
    *end = at[1];
    return PN_OK;
}

/* As deep as there are patterns, whatever the text. */
static pn_status cut(const cutter *c, uint32_t stage, size_t offset, size_t size)
{
    size_t at = 0, begin, end;
    pn_status s = PN_OK;
    if (stage == c->pre->n_codes)
        return c->word(c->arg, c->text + offset, size, c->err);
    while (!s && at < size) {
        s = next_match(c, stage, c->shadow + offset, size, at, &begin, &end);
        if (!s && begin > at)
            s = cut(c, stage + 1, offset + at, begin - at);
        if (!s && end > begin)
            s = cut(c, stage + 1, offset + begin, end - begin);
        at = end;
    }
    return s;
}

pn_status bpe_pre_split(const bpe_pre *pre, const char *text, const char *shadow, size_t size, bpe_word_fn word,
                        void *arg, pn_error *err)
{
    cutter c = { pre, text, shadow, word, arg, NULL, NULL, err };
    pn_status s;
    c.match = pcre2_match_data_create(1, pre->memory);
    c.limits = pcre2_match_context_create(pre->memory);
    if (c.match && c.limits) {
        /* Enough for any pattern that is linear in the text; one that is not becomes an error, not a hang. */
        uint64_t steps = 1000000 + (uint64_t)size * 64;
        pcre2_set_match_limit(c.limits, steps < UINT32_MAX ? (uint32_t)steps : UINT32_MAX);
        pcre2_set_heap_limit(c.limits, 512 * 1024);
        s = cut(&c, 0, 0, size);
    } else {
        s = pn_fail(err, PN_E_NOMEM, "no memory to match the pre-tokenizer's pattern");
    }
    pcre2_match_context_free(c.limits);
    pcre2_match_data_free(c.match);
    return s;
}
