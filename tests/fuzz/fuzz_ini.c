/* Fuzzes the configuration: any bytes as INI text, and as a value from the command line. What loads must be kept, must
 * be the same in a copy, and must never change a configuration when it is refused. */
#include "config.h"

#include <stdlib.h>

/* The reader's promise: what it hands over stood in the text, with nothing missing in between. */
typedef struct seen {
    const char *text;
    size_t size, line;
} seen;

static pn_status on_line(void *arg, const pn_ini_line *line, pn_error *err)
{
    seen *s = arg;
    (void)err;
    if (line->line < s->line || line->line > s->size + 1) abort();
    s->line = line->line;
    if (!line->section || (line->key && !line->value)) abort();
    if (line->key && !line->quoted) {
        size_t v = strlen(line->value), k = strlen(line->key);
        if (v && !memmem(s->text, s->size, line->value, v)) abort();
        if (!k || !memmem(s->text, s->size, line->key, k)) abort();
    }
    if (line->value && pn_utf8_valid(line->value, strlen(line->value)) != strlen(line->value)) abort();
    return PN_OK;
}

static size_t entries(const pn_config *config, bool ini)
{
    pn_config_entry e;
    size_t n = 0;
    for (size_t i = 0; pn_config_entry_at(config, i, &e, NULL) == PN_OK; i++) {
        const pn_key *k = pn_key_at(pn_key_find(e.section, e.key));
        const char *canonical;
        n += e.origin == PN_ORIGIN_INI || !ini;
        /* Whatever is there is a value that the key takes. */
        if (!k || pn_key_check(k, e.key, e.value, "fuzz", &canonical, NULL) != PN_OK) abort();
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    seen s = {(const char *)data, size, 0};
    pn_config *config = NULL, *copy = NULL;
    pn_error err = {0};
    pn_ini_read("fuzz.ini", (const char *)data, size, on_line, &s, &err);
    if (pn_config_create(&config, &err) != PN_OK) return 0;
    if (pn_config_load_text(config, "/nowhere/fuzz.ini", (const char *)data, size, &err) != PN_OK) {
        if (!err.message[0] || entries(config, true) != 0) abort();
        if (pn_utf8_valid(err.message, strlen(err.message)) != strlen(err.message)) abort();
    }
    if (pn_config_clone(config, &copy, &err) == PN_OK && entries(config, false) != entries(copy, false)) abort();

    /* The first line as a key, the rest as its value. */
    char *text = malloc(size + 1);
    if (text) {
        memcpy(text, data, size);
        text[size] = 0;
        char *value = strchr(text, '\n');
        if (value) *value++ = 0;
        pn_config_set(config, text, value ? value : "", &err);
        entries(config, false);
        free(text);
    }
    pn_config_destroy(copy);
    pn_config_destroy(config);
    return 0;
}
