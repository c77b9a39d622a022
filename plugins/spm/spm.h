/* What the files of the SentencePiece plugin share. */
#ifndef SPM_H
#define SPM_H

#include <pantheon/kit/text.h>

/* Work counted by the test that bounds it; nothing in a normal build. */
#ifndef SPM_COUNT
#define SPM_COUNT(what) ((void)0)
#endif

#define SPM_SPACE "\xe2\x96\x81"    /* U+2581, which stands for a space in pieces */
#define SPM_SPACE_SIZE 3

typedef struct spm {
    pn_vocab vocab;             /* control, unknown and byte tokens are not found by text: no text can spell one */
    pn_tokenizer_info info;
    uint32_t *ranks;            /* [n_tokens]: the order of scores, the best is the least */
    int32_t byte_id[256];       /* token of a byte; -1 = none */
    int32_t space_prefix;       /* text that begins, or follows a special token, gets a space before it */
    int32_t strip_right;        /* white space after a special token belongs to it (phi3) */
} spm;

pn_status spm_encode(const pn_host *host, const void *state, const char *text, size_t size, uint32_t flags,
                     int32_t *ids, size_t capacity, size_t *count, pn_error *err);

#endif
