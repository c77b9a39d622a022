/* Configuration inside the core: the table of keys, the INI reader, copies, and what the sampler takes by array.
 * The public part (pn_config_*) is in pantheon.h. */
#ifndef PN_CONFIG_H
#define PN_CONFIG_H

#include <pantheon/pantheon.h>
#include <stdbool.h>

/* ---- for the rest of the core ------------------------------------------------------------------------------------ */

/* A copy that shares nothing with the original. */
pn_status pn_config_clone(const pn_config *config, pn_config **out, pn_error *err);
/* [sampling] bias.ID = VALUE as arrays, in the order they were first given; returns their length. They live until the
 * configuration changes. */
size_t pn_config_bias(const pn_config *config, const int32_t **ids, const float **values);
/* [runtime] and other yes/no keys: pn_config_int gives 1 or 0. A number left empty (seed), or a word in place of a
 * number (spin = auto): pn_config_int gives -1. */

/* ---- the table of keys (config_keys.c) --------------------------------------------------------------------------- */

typedef enum pn_key_type {
    PN_KEY_BOOL,   /* true false yes no on off 1 0; kept as true or false */
    PN_KEY_INT,    /* imin to imax; a word of `words`, if there are any, stands for itself */
    PN_KEY_FLOAT,  /* fmin to fmax */
    PN_KEY_STRING, /* any text */
    PN_KEY_NAME,   /* a name: not empty */
    PN_KEY_PATH,   /* made absolute */
    PN_KEY_WORD    /* one of `words` */
} pn_key_type;

enum {
    PN_KEY_LIST = 1u,     /* each line adds an item; an empty value forgets the items before it */
    PN_KEY_EMPTY = 2u,    /* may be empty where the type alone would not allow it */
    PN_KEY_PREFIX = 4u,   /* `key` is the beginning of the name ("alias."); what follows is chosen by the user */
    PN_KEY_NUMBERED = 8u, /* with PREFIX: what follows is a number from 0 to 2147483647 */
    PN_KEY_PROSE = 16u    /* a backslash outside quotes is refused, as escapes work in double quotes only */
};

typedef struct pn_key {
    const char *section, *key;
    pn_key_type type;
    unsigned flags;       /* PN_KEY_LIST ... */
    const char *fallback; /* built-in value, as text */
    const char *words;    /* separated by blanks, or NULL */
    int64_t imin, imax;
    double fmin, fmax;
    const char *rest; /* with PREFIX: what the rest of the name is called in help, "NAME" */
    const char *help; /* one line, ending in its range in parentheses */
} pn_key;

#define PN_KEY_COUNT_MAX 64
/* Key number `index` of the table, NULL past the end. */
const pn_key *pn_key_at(size_t index);
size_t pn_key_count(void);
/* Index of the key that `key` of `section` is, or (size_t)-1. */
size_t pn_key_find(const char *section, const char *key);
/* What values a key takes, in words: "whole number, 0 to 1024". Cut to capacity; returns `text`. */
const char *pn_key_range(const pn_key *key, char *text, size_t capacity);
/* Is `value` right for the key? *canonical: what to keep in its place (`value`, or a constant). `where` begins the
 * error. */
pn_status pn_key_check(const pn_key *key, const char *name, const char *value, const char *where,
                       const char **canonical, pn_error *err);
/* Is there such a section? (A reserved one exists.) Else fails with the nearest. */
pn_status pn_key_check_section(const char *section, const char *where, pn_error *err);
/* Always fails: says that `section` has no such key and which is nearest. */
pn_status pn_key_unknown(const char *section, const char *key, const char *where, pn_error *err);
/* Numbers as the table's grammar has them, whatever the locale; the whole text, or false. */
bool pn_key_parse_int(const char *text, int64_t *out);
bool pn_key_parse_float(const char *text, double *out);

/* ---- the store (config.c) ---------------------------------------------------------------------------------------- */

typedef struct pn_config_put_args {
    const char *section, *key, *value;
    const char *source; /* "file.ini:12" */
    const char *folder; /* relative paths begin here; NULL: the current folder */
    uint32_t origin;    /* PN_ORIGIN_* */
    bool quoted;        /* the value stood in quotes, so its backslashes are meant */
} pn_config_put_args;

/* Check one value and keep it if nothing of a higher origin is there. */
pn_status pn_config_put(pn_config *config, const pn_config_put_args *args, pn_error *err);
/* Exchange what two configurations hold. */
void pn_config_swap(pn_config *a, pn_config *b);
/* `path` made absolute from `folder` (itself absolute; NULL: the current one); "~/" is the home. NULL with `err` filled
 * on failure. */
char *pn_config_path(const char *folder, const char *path, const char *where, pn_error *err);

/* ---- the INI reader (config_read.c): pn_ini_read is public ------------------------------------------------------- */

/* Length of the valid UTF-8 at the start of the text; == size when all of it is. */
size_t pn_utf8_valid(const char *text, size_t size);

#endif
