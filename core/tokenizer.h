/* The tokenizer inside the core: what prompts need of it beyond pantheon.h. */
#ifndef PN_TOKENIZER_H
#define PN_TOKENIZER_H

#include <pantheon/pantheon.h>

/* Append the ids of a text. flags: PN_ENCODE_*. Thread-safe per `out`. */
pn_status pn_tokenizer_append(const pn_tokenizer *tokenizer, const char *text, size_t size, uint32_t flags, pn_ids *out,
                              pn_error *err);
/* PN_TOKEN_* of an id; 0 when outside the vocabulary or when the plugin does not say. */
int32_t pn_tokenizer_token_type(const pn_tokenizer *tokenizer, int32_t id);

#endif
