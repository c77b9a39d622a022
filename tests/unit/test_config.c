/* Configurations: built-in values, ranges, unknown keys, precedence, lists, includes, paths, copies, failing memory. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "config.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[256];

static pn_config *make(void)
{
    pn_config *config = NULL;
    pn_error err = {0};
    assert_int_equal(pn_config_create(&config, &err), PN_OK);
    return config;
}

static void write_file(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

static pn_status load_file(pn_config *config, const char *name, pn_error *err)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    *err = (pn_error){0};
    return pn_config_load(config, path, err);
}

static pn_status load(pn_config *config, const char *text, pn_error *err)
{
    *err = (pn_error){0};
    return pn_config_load_text(config, "dir/t.ini", text, strlen(text), err);
}

static void load_ok(pn_config *config, const char *text)
{
    pn_error err;
    if (load(config, text, &err) != PN_OK) fail_msg("%s: %s", text, err.message);
}

/* Refused, with each of the words (separated by '|') in the message, and nothing changed. */
static void refuse(const char *text, const char *words)
{
    pn_config *config = make();
    pn_error err;
    char list[512], *rest = list;
    load_ok(config, "[runtime]\nbatch = 77\n");
    assert_int_equal(load(config, text, &err), PN_E_CONFIG);
    assert_int_equal(err.status, PN_E_CONFIG);
    snprintf(list, sizeof list, "%s", words);
    for (char *w; (w = strsep(&rest, "|"));)
        if (!strstr(err.message, w)) fail_msg("'%s' lacks '%s'", err.message, w);
    assert_int_equal(pn_config_int(config, "runtime", "batch"), 77);
    pn_config_entry e;
    for (size_t i = 0; pn_config_entry_at(config, i, &e, NULL) == PN_OK; i++)
        assert_true(e.origin == PN_ORIGIN_DEFAULT || strcmp(e.key, "batch") == 0);
    pn_config_destroy(config);
}

static void assert_text(const pn_config *config, const char *section, const char *key, const char *wanted)
{
    const char *got = pn_config_text(config, section, key);
    assert_non_null(got);
    assert_string_equal(got, wanted);
}

/* "value (source)" of a key as pn_config_entry_at tells it. */
static const char *shown(const pn_config *config, const char *section, const char *key)
{
    static char text[512];
    pn_config_entry e;
    for (size_t i = 0; pn_config_entry_at(config, i, &e, NULL) == PN_OK; i++)
        if (strcmp(e.section, section) == 0 && strcmp(e.key, key) == 0) {
            snprintf(text, sizeof text, "%s (%s)", e.value, e.source);
            return text;
        }
    return "absent";
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

/* Built-in values are values that the key takes; the help ends in the range; names are unique. */
static void test_table(void **state)
{
    (void)state;
    char range[128], end[160];
    for (size_t i = 0; i < pn_key_count(); i++) {
        const pn_key *k = pn_key_at(i);
        const char *canonical;
        pn_error err = {0};
        char name[64];
        snprintf(name, sizeof name, "%s%s", k->key, k->flags & PN_KEY_PREFIX ? "1" : "");
        if (!(k->flags & PN_KEY_PREFIX)) {
            if (pn_key_check(k, name, k->fallback, "table", &canonical, &err) != PN_OK) fail_msg("%s", err.message);
            assert_string_equal(canonical, k->fallback);
        }
        snprintf(end, sizeof end, "(%s)", pn_key_range(k, range, sizeof range));
        if (strlen(k->help) < strlen(end) || strcmp(k->help + strlen(k->help) - strlen(end), end) != 0)
            fail_msg("help of %s does not end in '%s'", k->key, end);
        assert_int_equal(pn_key_find(k->section, name), i);
        assert_int_equal(pn_key_check_section(k->section, "table", &err), PN_OK);
        assert_true((k->rest != NULL) == ((k->flags & PN_KEY_PREFIX) != 0));
    }
    assert_null(pn_key_at(pn_key_count()));
}

static void test_defaults(void **state)
{
    (void)state;
    pn_config *config = make();
    assert_text(config, "model", "path", "");
    assert_int_equal(pn_config_int(config, "runtime", "batch"), 512);
    assert_int_equal(pn_config_int(config, "runtime", "threads"), 0);
    assert_text(config, "runtime", "kv", "f16");
    assert_text(config, "runtime", "activations", "exact");
    assert_int_equal(pn_config_int(config, "runtime", "prefault"), 0);
    assert_int_equal(pn_config_int(config, "runtime", "spin"), -1);
    assert_int_equal(pn_config_int(config, "tokenizer", "add_bos"), -1);
    assert_int_equal(pn_config_int(config, "sampling", "seed"), -1);
    assert_int_equal(pn_config_int(config, "sampling", "n"), -1);
    assert_true(pn_config_float(config, "sampling", "temperature") == 0.0);
    assert_true(pn_config_float(config, "sampling", "top_p") == 0.95);
    assert_true(pn_config_float(config, "sampling", "top_k") == 40.0);
    assert_text(config, "arch", "alias.x", "");
    assert_text(config, "kernels", "x", "");
    assert_null(pn_config_text(config, "runtime", "thread"));
    assert_null(pn_config_text(config, "arch", "alias."));
    assert_null(pn_config_text(config, "nope", "threads"));
    assert_null(pn_config_text(config, "runtime", "include"));
    assert_null(pn_config_item(config, "plugins", "load", 0));
    assert_null(pn_config_item(config, "runtime", "threads", 0));
    pn_config_destroy(config);
    pn_config_destroy(NULL);
}

/* ---- wrong values ------------------------------------------------------------------------------------------------ */

static void test_unknown(void **state)
{
    (void)state;
    refuse("[runtime]\nthread = 4\n", "dir/t.ini:2|'thread'|'threads'");
    refuse("[runtime]\nbatch=1\nTHREADS = 4\n", "dir/t.ini:3|'threads'");
    refuse("[runtime]\nhtreads = 4\n", "'threads' of [runtime]");
    refuse("[runtime]\ntemperature = 4\n", "'temperature' of [sampling]");
    refuse("[sampling]\ntemp = 4\n", "'temp' in [sampling]|nearest known key is");
    refuse("[runtim]\n", "dir/t.ini:1|[runtim]|[runtime]");
    refuse("\n[Model]\n", "dir/t.ini:2|[model]");
    refuse("[]\nx=1\n", "[]");
    refuse("[*]\npath = x\n", "[*]");
    refuse("threads = 4\n", "dir/t.ini:1|before any [section]|[runtime]");
    refuse("[arch]\naliass.x = y\n", "'alias.NAME' of [arch]");
    refuse("[arch]\nalias. = y\n", "'alias.'");
    refuse("[arch]\nalias = y\n", "'alias.NAME'");
    refuse("[server]\nport = 80\n", "dir/t.ini:2|[server]|reserved");
    refuse("[model]\nthe-longest-key-that-anybody-ever-wrote-into-a-file-of-this-kind-and-more = 1\n", "and-more'");
    pn_config *config = make();
    load_ok(config, "[server]\n[model]\n");
    pn_config_destroy(config);
}

static void test_wrong_values(void **state)
{
    (void)state;
    refuse("[runtime]\nthreads = 1025\n", "dir/t.ini:2|[runtime] threads|out of range|0 to 1024|1025");
    refuse("[runtime]\nthreads = -1\n", "out of range|0 to 1024|-1");
    refuse("[runtime]\nthreads = 99999999999999999999999999\n", "out of range|0 to 1024");
    refuse("[runtime]\nthreads = four\n", "not a whole number|'four'");
    refuse("[runtime]\nthreads = 1.5\n", "not a whole number|the number 1.5");
    refuse("[runtime]\nthreads = 4 8\n", "not a whole number|'4 8'");
    refuse("[runtime]\nthreads = 0x10\n", "not a whole number");
    refuse("[runtime]\nthreads =\n", "not a whole number|nothing");
    refuse("[runtime]\nthreads = -\n", "not a whole number");
    refuse("[runtime]\nthreads = 4 ; four\n", "not a whole number|'4 ; four'");
    refuse("[runtime]\nbatch = 0\n", "1 to 65536");
    refuse("[runtime]\nprefault = maybe\n", "true or false|'maybe'");
    refuse("[runtime]\nlock =\n", "true or false|nothing");
    refuse("[runtime]\nactivations = rough\n", "exact or fast|'rough'");
    refuse("[runtime]\ncontext_end = wrap\n", "stop");
    refuse("[runtime]\nspin = never\n", "auto, spin, sleep or whole number");
    refuse("[runtime]\nkv =\n", "[runtime] kv|empty");
    refuse("[tokenizer]\nadd_bos = 1\n", "auto, true or false|the whole number 1");
    refuse("[sampling]\ntemperature = hot\n", "number, 0 to 100|'hot'");
    refuse("[sampling]\ntemperature = 0,7\n", "dot|'0,7'");
    refuse("[sampling]\ntemperature = -0.1\n", "out of range|-0.1");
    refuse("[sampling]\ntemperature = nan\n", "not a number");
    refuse("[sampling]\ntemperature = inf\n", "out of range");
    refuse("[sampling]\ntemperature = 0x1p3\n", "not a number");
    refuse("[sampling]\ntemperature = .\n", "not a number");
    refuse("[sampling]\ntemperature = 1e\n", "not a number");
    refuse("[sampling]\ntop_p = 1.0001\n", "out of range|0 to 1");
    refuse("[sampling]\nseed = 9223372036854775808\n", "out of range|or empty");
    refuse("[sampling]\nn = -2\n", "-1 to");
    refuse("[sampling]\nbias.-1 = 3\n", "whole number");
    refuse("[sampling]\nbias.x = 3\n", "whole number");
    refuse("[sampling]\nbias.01 = 3\n", "whole number");
    refuse("[sampling]\nbias.2147483648 = 3\n", "whole number");
    refuse("[sampling]\nbias.1 =\n", "nothing");
    refuse("[quant]\nalias.q = x\n", "whole number");
    refuse("[quant]\nalias.42 =\n", "empty");
    refuse("[kernels]\ntype =\n", "empty");
    refuse("[prompt]\nuser_prefix = <|user|>\\n\n", "dir/t.ini:2|backslash outside quotes");
    refuse("[prompt]\nstop = \\n\n", "backslash outside quotes");
}

/* A message names what was found, in whole characters, however long it is. */
static void test_long_found(void **state)
{
    (void)state;
    char text[4096] = "[runtime]\nthreads = x";
    pn_config *config = make();
    pn_error err;
    for (int i = 0; i < 1000; i++) strcat(text, "\xe6\xa8\xa1");
    assert_int_equal(load(config, text, &err), PN_E_CONFIG);
    assert_true(strlen(err.message) < 500);
    assert_int_equal(pn_utf8_valid(err.message, strlen(err.message)), strlen(err.message));
    pn_config_destroy(config);
}

static void test_right_values(void **state)
{
    (void)state;
    pn_config *config = make();
    load_ok(config, "[runtime]\nthreads = +8\nspin = 5000\nprefault = yes\nlock = on\n"
                    "[tokenizer]\nadd_bos = false\npattern = \\p{L}+|'s\n"
                    "[sampling]\ntemperature = .5\ntop_p = 1e-1\nmin_p = 1.\nseed = 9223372036854775807\n"
                    "bias.7 = -inf\nbias.0 = 2.5\nbias.7 = -1\n"
                    "[quant]\nalias.42 = org.example.t\nalias.0 = z\npin.T = org.example\n"
                    "[arch]\nalias.new one = old\npin.a.b = org.c\n[kernels]\nT_1 = t_1_fast\n");
    assert_int_equal(pn_config_int(config, "runtime", "threads"), 8);
    assert_int_equal(pn_config_int(config, "runtime", "spin"), 5000);
    assert_text(config, "runtime", "prefault", "true");
    assert_int_equal(pn_config_int(config, "runtime", "lock"), 1);
    assert_int_equal(pn_config_int(config, "tokenizer", "add_bos"), 0);
    assert_text(config, "tokenizer", "pattern", "\\p{L}+|'s");
    assert_true(pn_config_float(config, "sampling", "temperature") == 0.5);
    assert_true(pn_config_float(config, "sampling", "top_p") == 0.1);
    assert_true(pn_config_float(config, "sampling", "min_p") == 1.0);
    assert_true(pn_config_int(config, "sampling", "seed") == INT64_MAX);
    assert_text(config, "quant", "alias.42", "org.example.t");
    assert_text(config, "quant", "alias.0", "z");
    assert_text(config, "quant", "alias.1", "");
    assert_text(config, "arch", "alias.new one", "old");
    assert_text(config, "arch", "pin.a.b", "org.c");
    assert_text(config, "kernels", "T_1", "t_1_fast");
    const int32_t *ids;
    const float *values;
    assert_int_equal(pn_config_bias(config, &ids, &values), 2);
    assert_int_equal(ids[0], 7);
    assert_int_equal(ids[1], 0);
    assert_true(values[0] == -1.0f && values[1] == 2.5f);
    load_ok(config, "[sampling]\nbias.7 = -1e300\n"); /* no float holds it */
    assert_int_equal(pn_config_bias(config, &ids, &values), 2);
    assert_true(isinf(values[0]) && values[0] < 0);
    pn_config_destroy(config);
}

/* The decimal sign is a dot in every locale. */
static void test_locale(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8"};
    for (size_t i = 0; i < 3; i++) setlocale(LC_ALL, names[i]);
    pn_config *config = make();
    load_ok(config, "[sampling]\ntemperature = 0.75\n");
    assert_true(pn_config_float(config, "sampling", "temperature") == 0.75);
    pn_config_destroy(config);
    setlocale(LC_ALL, "C");
}

/* ---- who wins ---------------------------------------------------------------------------------------------------- */

static void test_precedence(void **state)
{
    (void)state;
    pn_config *config = make();
    pn_error err = {0};
    assert_string_equal(shown(config, "runtime", "context"), "0 (default)");
    assert_int_equal(pn_config_set_origin(config, "runtime.context", "2048", PN_ORIGIN_MODEL, &err), PN_OK);
    assert_string_equal(shown(config, "runtime", "context"), "2048 (model)");
    load_ok(config, "[runtime]\ncontext = 100\ncontext = 200\n");
    assert_string_equal(shown(config, "runtime", "context"), "200 (dir/t.ini:3)");
    assert_int_equal(pn_config_set_origin(config, "runtime.context", "4096", PN_ORIGIN_MODEL, &err), PN_OK);
    assert_string_equal(shown(config, "runtime", "context"), "200 (dir/t.ini:3)");
    assert_int_equal(pn_config_set(config, "runtime.context", "300", &err), PN_OK);
    assert_string_equal(shown(config, "runtime", "context"), "300 (command line)");
    load_ok(config, "[runtime]\ncontext = 400\n");
    assert_string_equal(shown(config, "runtime", "context"), "300 (command line)");
    assert_int_equal(pn_config_set(config, "runtime.context", "301", &err), PN_OK);
    assert_string_equal(shown(config, "runtime", "context"), "301 (command line)");
    assert_int_equal(pn_config_set(config, "quant.alias.7", "a", &err), PN_OK);
    load_ok(config, "[quant]\nalias.7 = b\nalias.8 = c\n");
    assert_string_equal(shown(config, "quant", "alias.7"), "a (command line)");
    assert_string_equal(shown(config, "quant", "alias.8"), "c (dir/t.ini:3)");
    pn_config_destroy(config);
}

static void set_refused(const char *name, const char *value, const char *words)
{
    pn_config *config = make();
    pn_error err = {0};
    assert_int_equal(pn_config_set(config, name, value, &err), PN_E_CONFIG);
    if (!strstr(err.message, words)) fail_msg("'%s' lacks '%s'", err.message, words);
    pn_config_destroy(config);
}

static void test_set(void **state)
{
    (void)state;
    set_refused("threads", "4", "section.key");
    set_refused(".threads", "4", "section.key");
    set_refused("runtime.", "4", "section.key");
    set_refused("runtime.threadz", "4", "'threads'");
    set_refused("runtim.threads", "4", "[runtime]");
    set_refused("runtime.threads", "x", "command line: [runtime] threads: not a whole number");
    set_refused("runtime.include", "x", "unknown key");
    set_refused("server.port", "1", "reserved");
    set_refused("model.name", "\xff", "UTF-8");
    set_refused("kernels.a\nb", "x", "character");
    set_refused("kernels.a=b", "x", "character");
    set_refused("kernels. a", "x", "character");
    set_refused("kernels.[a]", "x", "character");
    set_refused("arch.alias.\xff", "x", "character");
    pn_config *config = make();
    pn_error err = {0};
    assert_int_equal(pn_config_set(config, "prompt.user_prefix", "\"a\\n", &err), PN_OK); /* no quotes to remove here */
    assert_text(config, "prompt", "user_prefix", "\"a\\n");
    assert_int_equal(pn_config_set_origin(config, "model.name", "x", PN_ORIGIN_DEFAULT, &err), PN_E_ARGUMENT);
    assert_int_equal(pn_config_set_origin(config, "model.name", "x", 4, &err), PN_E_ARGUMENT);
    assert_int_equal(pn_config_set(config, "runtime.threads", "x", NULL), PN_E_CONFIG);
    assert_int_equal(pn_config_load(config, "/nowhere/at/all.ini", NULL), PN_E_NOT_FOUND);
    pn_config_destroy(config);
}

static void test_lists(void **state)
{
    (void)state;
    pn_config *config = make();
    pn_error err = {0};
    load_ok(config, "[prompt]\nstop = a\nstop = \" b\\n\"\n[model]\n[prompt]\nstop = c;d,e\n");
    assert_int_equal(pn_config_set(config, "prompt.stop", "f", &err), PN_OK);
    load_ok(config, "[prompt]\nstop = g\n");
    static const char *const wanted[] = {"a", " b\n", "c;d,e", "f", "g"};
    for (size_t i = 0; i < 5; i++) assert_string_equal(pn_config_item(config, "prompt", "stop", i), wanted[i]);
    assert_null(pn_config_item(config, "prompt", "stop", 5));
    assert_text(config, "prompt", "stop", "a");
    load_ok(config, "[prompt]\nstop =\nstop = h\n"); /* an empty value forgets, but not what outranks it */
    assert_string_equal(pn_config_item(config, "prompt", "stop", 0), "f");
    assert_string_equal(pn_config_item(config, "prompt", "stop", 1), "h");
    assert_null(pn_config_item(config, "prompt", "stop", 2));
    assert_int_equal(pn_config_set(config, "prompt.stop", "", &err), PN_OK);
    assert_null(pn_config_item(config, "prompt", "stop", 0));
    assert_string_equal(shown(config, "prompt", "stop"), " (default)");
    pn_config_destroy(config);
}

/* ---- paths, includes --------------------------------------------------------------------------------------------- */

static void test_paths(void **state)
{
    (void)state;
    pn_config *config = make();
    pn_error err = {0};
    char wanted[1024], here[512];
    assert_non_null(getcwd(here, sizeof here));
    load_ok(config, "[model]\npath = \"my model.bin\"\n[plugins]\nload = ./a.so\nload = ../b.so\nload = /c.so\n"
                    "path = ~/plugins\npath = ~\n");
    snprintf(wanted, sizeof wanted, "%s/dir/my model.bin", here);
    assert_text(config, "model", "path", wanted);
    snprintf(wanted, sizeof wanted, "%s/dir/a.so", here);
    assert_string_equal(pn_config_item(config, "plugins", "load", 0), wanted);
    snprintf(wanted, sizeof wanted, "%s/dir/../b.so", here);
    assert_string_equal(pn_config_item(config, "plugins", "load", 1), wanted);
    assert_string_equal(pn_config_item(config, "plugins", "load", 2), "/c.so");
    assert_string_equal(pn_config_item(config, "plugins", "path", 0), "/home/of nobody/plugins");
    assert_string_equal(pn_config_item(config, "plugins", "path", 1), "/home/of nobody");
    assert_int_equal(pn_config_set(config, "model.path", "x/y", &err), PN_OK);
    snprintf(wanted, sizeof wanted, "%s/x/y", here);
    assert_text(config, "model", "path", wanted);
    assert_int_equal(pn_config_set(config, "model.path", "", &err), PN_OK);
    assert_text(config, "model", "path", "");
    pn_config_destroy(config);

    static const struct {
        const char *name, *path, *wanted;
    } more[] = {
        {"/a.ini", "m", "/m"},
        {"/d/a.ini", "m", "/d/m"},
        {"/d/e/a.ini", ".//./m", "/d/e/m"},
        {"/d//a.ini", "m", "/d/m"},
        {"/d/\346\250\241 x/a.ini", "\320\274/\346\250\241 a", "/d/\346\250\241 x/\320\274/\346\250\241 a"},
        {"/d/a.ini", "C:\\x y", "/d/C:\\x y"},
        {"/d/a.ini", "~x", "/d/~x"},
        {"/d/a.ini", "./~", "/d/~"},
    };
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        config = make();
        char text[256];
        int n = snprintf(text, sizeof text, "[model]\npath = %s", more[i].path);
        assert_int_equal(pn_config_load_text(config, more[i].name, text, (size_t)n, &err), PN_OK);
        assert_text(config, "model", "path", more[i].wanted);
        pn_config_destroy(config);
    }
    unsetenv("HOME");
    refuse("[model]\npath = ~/x\n", "dir/t.ini:2|HOME");
    setenv("HOME", "/home/of nobody", 1);
}

static void test_include(void **state)
{
    (void)state;
    pn_config *config = make();
    pn_error err;
    char wanted[512], path[512];
    snprintf(path, sizeof path, "%s/sub", folder);
    mkdir(path, 0700);
    write_file("main.ini", "include = base.ini\n[runtime]\nthreads = 3\ninclude = 'sub/more.ini'\ncontext = 9\n");
    write_file("base.ini", "[runtime]\nthreads = 1\nbatch = 11\nkv = f32\n[prompt]\nstop = one\n");
    write_file("sub/more.ini",
               "include: ../last.ini\n[model]\npath = m\n[runtime]\nbatch = 22\n[prompt]\nstop = two\n");
    write_file("last.ini", "\xef\xbb\xbf[sampling]\r\nseed = 5\r\n");
    if (load_file(config, "main.ini", &err) != PN_OK) fail_msg("%s", err.message);
    snprintf(wanted, sizeof wanted, "3 (%s/main.ini:3)", folder);
    assert_string_equal(shown(config, "runtime", "threads"), wanted);
    snprintf(wanted, sizeof wanted, "22 (%s/sub/more.ini:5)", folder);
    assert_string_equal(shown(config, "runtime", "batch"), wanted);
    assert_int_equal(pn_config_int(config, "runtime", "context"), 9); /* the section goes on after an include */
    assert_int_equal(pn_config_int(config, "sampling", "seed"), 5);
    snprintf(wanted, sizeof wanted, "%s/sub/m", folder);
    assert_text(config, "model", "path", wanted);
    assert_string_equal(pn_config_item(config, "prompt", "stop", 0), "one");
    assert_string_equal(pn_config_item(config, "prompt", "stop", 1), "two");
    pn_config_destroy(config);
}

static void refuse_file(const char *name, pn_status status, const char *words)
{
    pn_config *config = make();
    pn_error err;
    pn_config_entry e;
    char list[512], *rest = list;
    assert_int_equal(load_file(config, name, &err), status);
    snprintf(list, sizeof list, "%s", words);
    for (char *w; (w = strsep(&rest, "|"));)
        if (!strstr(err.message, w)) fail_msg("'%s' lacks '%s'", err.message, w);
    for (size_t i = 0; pn_config_entry_at(config, i, &e, NULL) == PN_OK; i++)
        assert_int_equal(e.origin, PN_ORIGIN_DEFAULT);
    pn_config_destroy(config);
}

static void test_include_refused(void **state)
{
    (void)state;
    char name[64], text[512];
    write_file("self.ini", "[runtime]\nbatch = 3\ninclude = self.ini\n");
    refuse_file("self.ini", PN_E_CONFIG, "/self.ini: includes itself|/self.ini:3");
    write_file("a.ini", "[model]\nname = x\ninclude = b.ini\n");
    write_file("b.ini", "\ninclude = ./sub/../a.ini\n");
    refuse_file("a.ini", PN_E_CONFIG, "includes itself|/b.ini:2|/a.ini:3");
    write_file("gone.ini", "[model]\nname = x\ninclude = nothing here.ini\n");
    refuse_file("gone.ini", PN_E_NOT_FOUND, "nothing here.ini: cannot open|/gone.ini:3");
    write_file("folder.ini", "include = .\n");
    refuse_file("folder.ini", PN_E_CONFIG, "a folder|/folder.ini:1");
    write_file("device.ini", "include = /dev/zero\n");
    refuse_file("device.ini", PN_E_CONFIG, "no regular file");
    write_file("none.ini", "[model]\ninclude =\n");
    refuse_file("none.ini", PN_E_CONFIG, "/none.ini:2|found nothing");
    write_file("outer.ini", "[model]\nname = x\ninclude = inner.ini\n");
    write_file("inner.ini", "[runtime]\n\nthreads = x\n");
    refuse_file("outer.ini", PN_E_CONFIG, "/inner.ini:3: [runtime] threads|included by|/outer.ini:3");
    refuse_file(".", PN_E_CONFIG, "a folder");
    refuse_file("absent.ini", PN_E_NOT_FOUND, "absent.ini|cannot open");
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "deep%d.ini", i);
        snprintf(text, sizeof text, "include = deep%d.ini\n", i + 1);
        write_file(name, i < 19 ? text : "");
    }
    refuse_file("deep0.ini", PN_E_CONFIG, "more than 16 deep");
    pn_config *config = make();
    pn_error err;
    assert_int_equal(load_file(config, "deep5.ini", &err), PN_OK);
    pn_config_destroy(config);
    for (int i = 0; i < 12; i++) { /* each includes the next one twice: 4096 files */
        snprintf(name, sizeof name, "twice%d.ini", i);
        snprintf(text, sizeof text, "include = twice%d.ini\ninclude = twice%d.ini\n", i + 1, i + 1);
        write_file(name, i < 11 ? text : "");
    }
    refuse_file("twice0.ini", PN_E_CONFIG, "more than 256 files");
    write_file("big.ini", "include = huge.ini\n");
    write_file("huge.ini", "");
    snprintf(text, sizeof text, "%s/huge.ini", folder);
    assert_int_equal(truncate(text, (16 << 20) + 1), 0); /* a hole, so no disk is used */
    refuse_file("big.ini", PN_E_CONFIG, "huge.ini|longer than 16 MiB|/big.ini:1");
    refuse_file("huge.ini", PN_E_CONFIG, "longer than 16 MiB");
}

/* ---- copies, memory ---------------------------------------------------------------------------------------------- */

static const char EVERYTHING[] = "[model]\npath = x\nname = \"y\\u00e9\"\n[plugins]\nload = a\nload = b\n"
                                 "[runtime]\nthreads = 2\nlock = yes\n[sampling]\nbias.3 = 1\nbias.4 = 2\nbias.5 = 3\n"
                                 "bias.6 = 4\nbias.7 = 5\n[arch]\nalias.a = b\nalias.c = d\n[prompt]\nstop = s\n";

static void assert_same(const pn_config *a, const pn_config *b)
{
    pn_config_entry x, y;
    size_t i = 0;
    for (; pn_config_entry_at(a, i, &x, NULL) == PN_OK; i++) {
        assert_int_equal(pn_config_entry_at(b, i, &y, NULL), PN_OK);
        assert_string_equal(x.section, y.section);
        assert_string_equal(x.key, y.key);
        assert_string_equal(x.value, y.value);
        assert_string_equal(x.source, y.source);
        assert_int_equal(x.origin, y.origin);
        assert_string_equal(pn_config_text(a, x.section, x.key), pn_config_text(b, x.section, x.key));
    }
    assert_int_equal(pn_config_entry_at(b, i, &y, NULL), PN_E_RANGE);
}

static void test_clone(void **state)
{
    (void)state;
    pn_config *config = make(), *copy = NULL;
    pn_error err = {0};
    load_ok(config, EVERYTHING);
    assert_int_equal(pn_config_clone(config, &copy, &err), PN_OK);
    assert_same(config, copy);
    const int32_t *ids;
    const float *values;
    assert_int_equal(pn_config_bias(copy, &ids, &values), 5);
    assert_int_equal(ids[4], 7);
    assert_true(values[4] == 5.0f);
    assert_int_equal(pn_config_set(copy, "runtime.threads", "9", &err), PN_OK);
    assert_int_equal(pn_config_int(config, "runtime", "threads"), 2);
    pn_config_destroy(config);
    assert_int_equal(pn_config_int(copy, "runtime", "threads"), 9);
    assert_text(copy, "arch", "alias.c", "d");
    pn_config_destroy(copy);
}

/* Known keys first, in the order of the table; then the names that the user chose. */
static void test_order(void **state)
{
    (void)state;
    pn_config *config = make();
    pn_config_entry e;
    load_ok(config, "[sampling]\nbias.1 = 1\n[kernels]\nT = k\n[quant]\npin.T = p\nalias.1 = t\n[arch]\nalias.a = b\n");
    static const char *const last[] = {"alias.a", "alias.1", "pin.T", "T", "bias.1"};
    size_t n = 0;
    while (pn_config_entry_at(config, n, &e, NULL) == PN_OK) {
        assert_non_null(e.help);
        assert_int_equal(e.struct_size, sizeof e);
        n++;
    }
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(pn_config_entry_at(config, n - 5 + i, &e, NULL), PN_OK);
        assert_string_equal(e.key, last[i]);
    }
    assert_int_equal(pn_config_entry_at(config, 0, &e, NULL), PN_OK);
    assert_string_equal(e.key, "path");
    pn_config_key k;
    assert_int_equal(pn_config_key_at(0, &k, NULL), PN_OK);
    assert_string_equal(k.key, "path");
    assert_int_equal(pn_config_key_at(pn_key_count(), &k, NULL), PN_E_RANGE);
    pn_config_destroy(config);
}

static size_t live, calls, fail_at_call;

static void *failing(void *arg, void *memory, size_t size)
{
    (void)arg;
    if (size == 0) {
        live -= memory != NULL;
        free(memory);
        return NULL;
    }
    if (++calls == fail_at_call) return NULL;
    void *got = realloc(memory, size);
    live += !memory && got;
    return got;
}

/* Every allocation fails once: the load fails whole, the configuration is as before, and nothing is lost. */
static void test_memory(void **state)
{
    (void)state;
    char path[512];
    write_file("whole.ini",
               "include = part.ini\n[runtime]\nthreads = 4\n[sampling]\nbias.9 = 9\n[plugins]\nload = q\n");
    write_file("part.ini", EVERYTHING);
    snprintf(path, sizeof path, "%s/whole.ini", folder);
    pn_set_allocator(failing, NULL);
    bool done = false;
    for (size_t n = 1; !done; n++) {
        pn_config *config = NULL, *before = NULL, *copy = NULL;
        pn_error err = {0};
        fail_at_call = 0;
        assert_int_equal(live, 0);
        assert_int_equal(pn_config_create(&config, &err), PN_OK);
        load_ok(config, "[runtime]\nthreads = 3\n[sampling]\nbias.3 = 7\n[plugins]\nload = p\n");
        assert_int_equal(pn_config_clone(config, &before, &err), PN_OK);
        calls = 0;
        fail_at_call = n;
        pn_status status = pn_config_load(config, path, &err);
        assert_int_equal(status, calls >= n ? PN_E_NOMEM : PN_OK); /* no failure is passed over */
        if (status != PN_OK) {
            assert_int_equal(err.status, PN_E_NOMEM);
            assert_same(config, before);
            load_ok(config, EVERYTHING); /* and it still works */
        } else {
            assert_int_equal(pn_config_int(config, "runtime", "threads"), 4);
            status = pn_config_set(config, "arch.alias.new", "x", &err);
            if (status == PN_OK) status = pn_config_set(config, "sampling.bias.11", "1", &err);
            if (status == PN_OK) status = pn_config_set(config, "sampling.bias.11", "1", &err);
            if (status == PN_OK) status = pn_config_set(config, "plugins.load", "z", &err);
            if (status == PN_OK) status = pn_config_clone(config, &copy, &err);
            if (status != PN_OK) {
                assert_int_equal(status, PN_E_NOMEM);
                assert_null(copy);
            }
            done = calls < n;
        }
        pn_config_destroy(config);
        pn_config_destroy(before);
        pn_config_destroy(copy);
    }
    fail_at_call = 1;
    calls = 0;
    pn_config *none = NULL;
    assert_int_equal(pn_config_create(&none, NULL), PN_E_NOMEM);
    assert_null(none);
    pn_set_allocator(NULL, NULL);
    assert_int_equal(live, 0);
}

/* Many chosen names do not make it slow: each is found by hash. */
static void test_many(void **state)
{
    (void)state;
    enum { MANY = 60000 };
    char *text = malloc(MANY * 24), *p = text;
    pn_config *config = make();
    pn_error err = {0};
    assert_non_null(text);
    p += sprintf(p, "[sampling]\n");
    for (int i = 0; i < MANY; i++) p += sprintf(p, "bias.%d=%d\n", i, i % 7);
    assert_int_equal(pn_config_load_text(config, "t", text, (size_t)(p - text), &err), PN_OK);
    const int32_t *ids;
    const float *values;
    assert_int_equal(pn_config_bias(config, &ids, &values), MANY);
    assert_int_equal(ids[MANY - 1], MANY - 1);
    assert_text(config, "sampling", "bias.59998", "1");
    pn_config_destroy(config);
    free(text);
}

static int make_folder(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/pn_config_XXXXXX", tmp && *tmp ? tmp : "/tmp");
    setenv("HOME", "/home/of nobody", 1);
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[512];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),           cmocka_unit_test(test_defaults),   cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_wrong_values),    cmocka_unit_test(test_long_found), cmocka_unit_test(test_right_values),
        cmocka_unit_test(test_locale),          cmocka_unit_test(test_precedence), cmocka_unit_test(test_set),
        cmocka_unit_test(test_lists),           cmocka_unit_test(test_paths),      cmocka_unit_test(test_include),
        cmocka_unit_test(test_include_refused), cmocka_unit_test(test_clone),      cmocka_unit_test(test_order),
        cmocka_unit_test(test_memory),          cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
