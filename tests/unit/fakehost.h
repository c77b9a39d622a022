/* A host for plugins under test: hands out the roles of a made-up file, counts and fails allocations, keeps the log. */
#ifndef FAKEHOST_H
#define FAKEHOST_H

#include <pantheon/plugin.h>

#define FAKE_ROLES 32

typedef struct fake_host {
    pn_host host;
    struct { const char *role; pn_value value; } roles[FAKE_ROLES];
    size_t n_roles;
    long fail_at;               /* the n-th allocation from now fails; 0 = none does */
    long allocations;           /* so far */
    long live;                  /* not freed yet */
    int warnings;
    char log[1024];             /* the last message */
    pn_tokenizer_type tokenizer;
    pn_template_type template_type;
} fake_host;

void fake_init(fake_host *f);
/* Loads a plugin of the build and lets it register. */
void fake_load(fake_host *f, const char *name);
/* Set (or replace) a role; fake_unset takes it away. The pointers must stay valid. */
void fake_set(fake_host *f, const char *role, pn_value value);
void fake_unset(fake_host *f, const char *role);
pn_value fake_int(int64_t i);
pn_value fake_string(const char *text);
pn_value fake_strings(const pn_str *items, size_t n);
pn_value fake_ints(const int32_t *items, size_t n);
/* What plugins take for the file; its bytes are never looked at. */
pn_file *fake_file(fake_host *f);

#endif
