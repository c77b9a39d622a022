/* The documents and examples of the configuration say what the table of keys says. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "config.h"

#include <stdlib.h>

static char *read_text(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s: not there (run from the source tree)", path);
    char *text = calloc(1, 1 << 18);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 18) - 1, f) > 0);
    fclose(f);
    return text;
}

/* docs/ini.md has this row for the key: name, built-in value, range, what it is. */
static void row_of(const pn_key *k, char *row, size_t capacity)
{
    char range[128];
    const char *end = strrchr(k->help, '('); /* no range holds a parenthesis */
    pn_key_range(k, range, sizeof range);
    snprintf(row, capacity, "| `%s%s` | %s%s%s | %s | %.*s |", k->key, k->rest ? k->rest : "", *k->fallback ? "`" : "",
             k->fallback, *k->fallback ? "`" : "", range, (int)(end - k->help - 1), k->help);
}

static void test_reference(void **state)
{
    (void)state;
    char *text = read_text("docs/ini.md"), row[512], heading[64];
    size_t rows = 0, wanted = 0;
    for (size_t i = 0; i < pn_key_count(); i++) {
        const pn_key *k = pn_key_at(i);
        snprintf(heading, sizeof heading, "### [%s]\n", k->section);
        const char *section = strstr(text, heading);
        if (!section) fail_msg("docs/ini.md has no heading '%s'", heading);
        const char *next = strstr(section + 1, "\n##");
        row_of(k, row, sizeof row);
        const char *at = strstr(section, row);
        if (!at || (next && at > next)) fail_msg("docs/ini.md lacks, under [%s]:\n%s", k->section, row);
        wanted++;
    }
    for (const char *p = text; (p = strstr(p, "\n| `")); p++) rows++;
    assert_int_equal(rows, wanted); /* and no row of a key that is gone */
    free(text);
}

/* conf/example.ini shows each key, in use or behind a ; for want of what it would name. */
static void test_example_is_complete(void **state)
{
    (void)state;
    char *text = read_text("conf/example.ini"), name[64], off[66];
    for (size_t i = 0; i < pn_key_count(); i++) {
        const pn_key *k = pn_key_at(i);
        char heading[64];
        snprintf(heading, sizeof heading, "\n[%s]\n", k->section);
        const char *section = strstr(text, heading);
        if (!section) fail_msg("conf/example.ini has no [%s]", k->section);
        const char *next = strstr(section + 1, "\n[");
        /* Chosen names: whatever follows the prefix. */
        snprintf(name, sizeof name, k->flags & PN_KEY_PREFIX ? "\n%s" : "\n%s =", *k->key ? k->key : ";NIB2 =");
        snprintf(off, sizeof off, "\n;%s", name + 1);
        const char *at = strstr(section, name), *hidden = strstr(section, off);
        if (!(at && (!next || at < next)) && !(hidden && (!next || hidden < next)))
            fail_msg("conf/example.ini does not show %s of [%s]", k->key, k->section);
    }
    free(text);
}

static void load_example(const char *path, char *text)
{
    pn_config *config;
    pn_error err = {0};
    assert_int_equal(pn_config_create(&config, &err), PN_OK);
    if (pn_config_load_text(config, path, text, strlen(text), &err) != PN_OK) fail_msg("%s", err.message);
    pn_config_destroy(config);
}

static void test_examples_load(void **state)
{
    (void)state;
    char *text = read_text("conf/smollm2.ini");
    load_example("conf/smollm2.ini", text);
    free(text);
    text = read_text("conf/example.ini");
    load_example("conf/example.ini", text);
    /* What stands behind a ; is well formed too (but for the include, which names no file of ours). */
    for (char *p = text; (p = strstr(p, "\n;"));) {
        p++;
        bool example = p[1] != ' ' && strncmp(p + 1, "include", 7) != 0;
        if (example) *p = ' ';
    }
    load_example("conf/example.ini", text);
    assert_non_null(strstr(text, "\n user_prefix = "));
    free(text);
}

/* Built-in values that the example shows are the built-in values. */
static void test_example_values(void **state)
{
    (void)state;
    static const char *const own[] = {"path", "name", "system", "stop"}; /* examples, not defaults */
    pn_config *config;
    pn_config_entry e;
    pn_error err = {0};
    assert_int_equal(pn_config_create(&config, &err), PN_OK);
    if (pn_config_load(config, "conf/example.ini", &err) != PN_OK) fail_msg("%s", err.message);
    for (size_t i = 0; pn_config_entry_at(config, i, &e, NULL) == PN_OK; i++) {
        bool example = false;
        const pn_key *k = pn_key_at(pn_key_find(e.section, e.key));
        for (size_t j = 0; j < 4; j++) example = example || strcmp(own[j], e.key) == 0;
        if (!example && !(k->flags & PN_KEY_PREFIX)) assert_string_equal(e.value, k->fallback);
    }
    pn_config_destroy(config);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--rows") == 0) { /* to write the tables of docs/ini.md */
        char row[512];
        for (size_t i = 0; i < pn_key_count(); i++) {
            row_of(pn_key_at(i), row, sizeof row);
            printf("[%s] %s\n", pn_key_at(i)->section, row);
        }
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_example_is_complete),
        cmocka_unit_test(test_examples_load),
        cmocka_unit_test(test_example_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
