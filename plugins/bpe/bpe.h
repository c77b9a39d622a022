/* What the files of the byte-level BPE plugin share: the vocabulary, the pre-tokenizer, the normalizer. */
#ifndef BPE_H
#define BPE_H

#include <pantheon/plugin.h>

/* Work on every pre-token of a text; a status other than PN_OK stops the walk. */
typedef pn_status (*bpe_word_fn)(void *arg, const char *word, size_t size, pn_error *err);

/* ---- pre.c: which pieces of a text are merged apart from each other -------------------------------------------- */

enum {
    BPE_WHOLE_WORDS = 1u,       /* a pre-token that is an entry of the vocabulary is not merged but taken whole */
    BPE_NFC = 2u,               /* text is brought to Unicode's composed form first */
    BPE_WANTS_BOS = 4u          /* add_bos when the file does not say */
};

#define BPE_MAX_PATTERNS 6

typedef struct bpe_pre {
    uint32_t flags;
    uint32_t n_codes;
    void *codes[BPE_MAX_PATTERNS];  /* pcre2_code */
    void *memory;                   /* pcre2_general_context */
} bpe_pre;

/* Compile what `pattern` says or, when that is NULL, what is published for `name` (empty: the default, with a warning);
 * `key` is where the name stands. To be closed also after a failure. */
pn_status bpe_pre_open(const pn_host *host, bpe_pre *pre, pn_str name, const char *key, const char *pattern,
                       pn_error *err);
void bpe_pre_close(bpe_pre *pre);
/* Cut text (valid UTF-8; `shadow` is what patterns see of it, of the same size) into words, in order. [any, at once] */
pn_status bpe_pre_split(const bpe_pre *pre, const char *text, const char *shadow, size_t size, bpe_word_fn word,
                        void *arg, pn_error *err);

/* ---- utf8.c: repairing and normalizing text -------------------------------------------------------------------- */

/* A text ready to be cut: both may point to the text that was given or to memory that bpe_text_free frees. */
typedef struct bpe_text {
    const char *bytes;
    const char *shadow;         /* the same with surrogates replaced, so that it is valid UTF-8 */
    size_t size;
    void *owned[2];
} bpe_text;

/* Each byte that is not part of well-formed UTF-8 becomes U+FFFD; encoded surrogates stay what they are. */
pn_status bpe_text_clean(const pn_host *host, const char *text, size_t size, int nfc, bpe_text *out, pn_error *err);
void bpe_text_free(const pn_host *host, bpe_text *text);
/* Decode the character at text (size > 0) into *cp; returns its length, or 0 when it is ill-formed. Surrogates pass. */
size_t bpe_utf8_decode(const char *text, size_t size, uint32_t *cp);
/* Write cp (at most 4 bytes); returns the length. */
size_t bpe_utf8_encode(uint32_t cp, char *out);
/* Unicode's composed form of well-formed text, in memory of pn_host_alloc. Linear. */
pn_status bpe_nfc(const pn_host *host, const char *text, size_t size, char **out, size_t *out_size, pn_error *err);

/* ---- vocab.c: tokens, merges, special tokens ------------------------------------------------------------------- */

typedef struct bpe_merge {
    int32_t left, right, merged;
} bpe_merge;

typedef struct bpe_vocab {
    const pn_host *host;
    pn_tokenizer_info info;
    const pn_str *tokens;       /* [info.n_tokens], the file's memory */
    uint8_t *types;             /* PN_TOKEN_* */
    size_t longest;             /* bytes of the longest token text */

    uint32_t *slots;            /* text -> token: id + 1, 0 = free; linear probing */
    size_t slot_mask;
    uint64_t seed;

    bpe_merge *merges;          /* by rank */
    uint32_t n_merges;
    uint32_t *pairs;            /* (left, right) -> rank + 1 */
    size_t pair_mask;

    int32_t byte_id[256];       /* token of a byte; -1 = none */

    int32_t *specials;          /* control, unknown and user-defined tokens, sorted by text */
    uint32_t special_from[257]; /* those whose text begins with byte b: special_from[b] .. special_from[b + 1] */
} bpe_vocab;

pn_status bpe_vocab_open(const pn_host *host, pn_file *file, bpe_vocab *v, pn_error *err);
void bpe_vocab_close(bpe_vocab *v);
/* Ordinary token whose text is a followed by b; -1 = none. */
int32_t bpe_vocab_find(const bpe_vocab *v, const char *a, size_t a_size, const char *b, size_t b_size);
/* Rank of the merge of two tokens, or UINT32_MAX. */
uint32_t bpe_vocab_rank(const bpe_vocab *v, int32_t left, int32_t right);
/* Longest special token that text begins with, -1 = none. control: also those that are not user-defined. */
int32_t bpe_vocab_special(const bpe_vocab *v, const char *text, size_t size, int control);

/* 0x41 of "<0x41>", the text of a byte token; else -1. */
int bpe_byte_text(pn_str text);

/* Byte <-> character of the byte-level alphabet (Radford et al. 2019): printable Latin-1 stands for itself, the others
 * are U+0100 and up in order. bpe_alphabet_byte: -1 = no such character. */
uint32_t bpe_alphabet_char(uint8_t byte);
int bpe_alphabet_byte(uint32_t cp);

/* ---- the tokenizer, bpe.c and encode.c ------------------------------------------------------------------------- */

typedef struct bpe {
    bpe_vocab vocab;
    bpe_pre pre;
} bpe;

pn_status bpe_encode(const pn_host *host, const void *state, const char *text, size_t size, uint32_t flags,
                     int32_t *ids, size_t capacity, size_t *count, pn_error *err);

#endif
