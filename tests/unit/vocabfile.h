/* Model files that hold only a byte-level BPE vocabulary, made in memory for tests with ggufmake.h. */
#ifndef VOCABFILE_H
#define VOCABFILE_H

#include "ggufmake.h"

typedef struct vocab_file {
    gguf g;
    uint64_t n_values;
} vocab_file;

typedef struct vocab_token {
    const char *text;
    int32_t type;
} vocab_token;

void vocab_begin(vocab_file *v);
void vocab_string(vocab_file *v, const char *key, const char *text);
void vocab_u32(vocab_file *v, const char *key, uint32_t x);
void vocab_bool(vocab_file *v, const char *key, int x);
/* The 256 bytes (token = byte), then the tokens given; merges "left right", ended by NULL. */
void vocab_tokens(vocab_file *v, const vocab_token *more, size_t n, const char *const *merges);
void vocab_end(vocab_file *v);
void vocab_free(vocab_file *v);

#endif
