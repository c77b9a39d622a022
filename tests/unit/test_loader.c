/* The loader: every refusal with its words, what is searched in which order, versions, names claimed twice. */
#include "loader_help.h"

#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

/* `file` refused: `words` are in the reason, and its code ran or not. */
typedef struct refusal {
    const char *file;
    int ran;                    /* 0: refused as data, not even the constructor ran */
    pn_status status;
    const char *words[5];
} refusal;

static const refusal refusals[] = {
    { "no_note", 0, PN_E_ABI, { "no_note.so", ".note.pantheon", "PN_PLUGIN" } },
    { "bad_note", 0, PN_E_ABI, { "bad_note.so", "malformed", "PN_PLUGIN" } },
    { "two_notes", 0, PN_E_ABI, { "two_notes.so", "more than one plugin note" } },
    { "abi_new", 0, PN_E_ABI, { "abi_new.so", "note", "ABI 2.0", "too new", "1.0" } },
    { "abi_old", 0, PN_E_ABI, { "abi_old.so", "note", "ABI 0.9", "too old", "Build the plugin again" } },
    { "no_symbol", 1, PN_E_ABI, { "no_symbol.so", "no symbol 'pantheon_plugin'", "PN_PLUGIN" } },
    { "wrong_magic", 1, PN_E_ABI, { "wrong_magic.so", "magic", "PARTHENO", "PANTHEON" } },
    { "short_struct", 1, PN_E_ABI, { "short_struct.so", "struct_size", "24", "wanted: at least" } },
    { "abi_descriptor", 1, PN_E_ABI, { "abi_descriptor.so", "descriptor", "ABI 2.0", "Update Pantheon" } },
    { "disagree_id", 1, PN_E_ABI, { "disagree_id.so", "disagree in the id", "test.note", "test.descriptor" } },
    { "disagree_abi", 1, PN_E_ABI, { "disagree_abi.so", "disagree in the ABI", "1.3", "1.0" } },
    { "no_init", 1, PN_E_ABI, { "no_init.so", "init is NULL" } },
    { "null_string", 1, PN_E_ABI, { "null_string.so", "licence is NULL" } },
    { "bad_version", 1, PN_E_ABI, { "bad_version.so", "1.0-beta", "dotted numbers" } },
    { "init_fails", 1, PN_E_IO, { "init_fails.so", "init of org.pantheon.test.init_fails 1.0", "moon" } },
    { "init_silent", 1, PN_E_UNSUPPORTED, { "init_silent.so", "status 5 (unsupported)", "without saying why" } },
    { "bad_struct", 1, PN_E_ARGUMENT, { "bad_struct.so", "test.bad_struct", "dequantize", "NULL" } },
    { "cpu_absent", 1, PN_E_CPU, { "cpu_absent.so", "cpu_features", "bit63", "usable here" } },
    /* The system's loader finds the missing symbol before it runs constructors. */
    { "unresolved", 0, PN_E_ABI, { "unresolved.so", "pn_test_this_function_exists_nowhere", "host table" } },
};

/* A file of a folder is refused with its reason, and the good one beside it is loaded all the same. */
static void each_refusal_is_reported(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const refusal *r = &refusals[i];
        char folder[PATH_MAX];
        pn_plugin_report p;
        fresh_folder(folder);
        copy_plugin(r->file, folder, NULL);
        copy_plugin("good", folder, NULL);
        pn_runtime *rt = runtime_of("path", folder, NULL);
        assert_true(report_of(rt, r->file, &p));
        if (p.state != PN_PLUGIN_REFUSED)
            fail_msg("%s: state %u", r->file, p.state);
        for (size_t w = 0; w < 5 && r->words[w]; w++)
            if (!strstr(p.reason, r->words[w]))
                fail_msg("%s: '%s' is not in: %s", r->file, r->words[w], p.reason);
        if (traced(r->file) != r->ran)
            fail_msg("%s: its code %s", r->file, r->ran ? "did not run" : "ran");
        assert_true(report_of(rt, "good", &p));
        assert_int_equal(p.state, PN_PLUGIN_LOADED);
        assert_non_null(pn_runtime_find(rt, PN_KIND_QUANT, "test.good"));
        assert_null(pn_runtime_find(rt, PN_KIND_QUANT, "test.rolled_back"));
        pn_runtime_destroy(rt);
    }
}

/* Named by [plugins] load, the same file stops everything with the same words. */
static void a_named_file_must_load(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const refusal *r = &refusals[i];
        char folder[PATH_MAX], file[PATH_MAX];
        pn_error err = {0};
        fresh_folder(folder);
        copy_plugin("good", folder, NULL);
        copy_plugin(r->file, folder, file);
        pn_runtime *rt = runtime_try("path", folder, file, &err);
        assert_null(rt);
        if (err.status != r->status)
            fail_msg("%s: status %d: %s", r->file, (int)err.status, err.message);
        for (size_t w = 0; w < 5 && r->words[w]; w++)
            if (!strstr(err.message, r->words[w]))
                fail_msg("%s: '%s' is not in: %s", r->file, r->words[w], err.message);
    }
    pn_error err = {0};
    assert_null(runtime_try("path", NULL, "/nonexistent/x.so", &err));
    assert_int_equal(err.status, PN_E_NOT_FOUND);
    assert_non_null(strstr(err.message, "/nonexistent/x.so"));
    assert_non_null(strstr(err.message, "[plugins] load"));
}

/* ---- what is no plugin file at all ------------------------------------------------------------------------------- */

static void expect_refused(const char *folder, const char *name, const char *word)
{
    pn_plugin_report p;
    pn_runtime *rt = runtime_of("path", folder, NULL);
    assert_true(report_of(rt, name, &p));
    assert_int_equal(p.state, PN_PLUGIN_REFUSED);
    if (!strstr(p.reason, word) || !strstr(p.reason, name))
        fail_msg("%s: '%s' is not in: %s", name, word, p.reason);
    assert_false(traced(name));
    assert_true(report_of(rt, "good", &p));
    assert_int_equal(p.state, PN_PLUGIN_LOADED);
    pn_runtime_destroy(rt);
}

static void no_elf_file(void **state)
{
    (void)state;
    char folder[PATH_MAX], path[PATH_MAX + 16];
    fresh_folder(folder);
    copy_plugin("good", folder, NULL);
    snprintf(path, sizeof path, "%s/odd.so", folder);

    write_file(path, "This is a text, whatever its name says.\n", 40);
    expect_refused(folder, "odd.so", "not an ELF file");
    write_file(path, "", 0);
    expect_refused(folder, "odd.so", "not an ELF file (0 bytes)");
    write_file(path, "\177ELF", 4);
    expect_refused(folder, "odd.so", "cut short");
    unlink(path);
    assert_int_equal(mkdir(path, 0755), 0);
    expect_refused(folder, "odd.so", "a folder");
    rmdir(path);
    assert_int_equal(mkfifo(path, 0600), 0);    /* opening it must not wait for a writer */
    expect_refused(folder, "odd.so", "no regular file");
    unlink(path);
    assert_int_equal(symlink("/nonexistent/target", path), 0);
    expect_refused(folder, "odd.so", "cannot be opened");
}

static void damaged_elf_headers(void **state)
{
    (void)state;
    static const struct { size_t at; unsigned char value; const char *word; } damage[] = {
        { EI_CLASS, sizeof(void *) == 8 ? ELFCLASS32 : ELFCLASS64, "ELF class" },
        { EI_DATA, ELFDATA2MSB, "byte order" },
        { EI_VERSION, 9, "ELF version" },
        { offsetof(ElfW(Ehdr), e_machine), 0xf3, "machine" },
        { offsetof(ElfW(Ehdr), e_type), ET_EXEC, "ELF type 2" },
        { offsetof(ElfW(Ehdr), e_phentsize), 1, "program headers" },
        { offsetof(ElfW(Ehdr), e_phoff) + 5, 0x7f, "program headers" },
    };
    char folder[PATH_MAX], path[PATH_MAX];
    size_t size;
    fresh_folder(folder);
    copy_plugin("good", folder, NULL);
    copy_plugin("taken_a", folder, path);
    char *whole = read_file(path, &size);
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        char *bytes = malloc(size);
        memcpy(bytes, whole, size);
        bytes[damage[i].at] = (char)damage[i].value;
        write_file(path, bytes, size);
        expect_refused(folder, "taken_a.so", damage[i].word);
        free(bytes);
    }
    /* Cut files would be a bus error in the system's loader. */
    write_file(path, whole, size / 4);
    expect_refused(folder, "taken_a.so", "cut short");
    free(whole);
}

/* Any single damaged byte of headers and notes: an answer, never a crash (the sanitizers watch). */
static void any_damaged_byte(void **state)
{
    (void)state;
    char folder[PATH_MAX], path[PATH_MAX];
    size_t size, refused = 0, limit;
    fresh_folder(folder);
    copy_plugin("good", folder, path);
    char *bytes = read_file(path, &size);
    ElfW(Ehdr) head;
    memcpy(&head, bytes, sizeof head);
    limit = (size_t)head.e_phoff + head.e_phnum * sizeof(ElfW(Phdr)) + 512;
    for (size_t at = 0; at < limit && at < size; at++)
        for (int bit = 0; bit < 9; bit++) {
            pn_elfnote note;
            pn_error err = {0};
            char old = bytes[at];
            bytes[at] = (char)(bit < 8 ? old ^ (1 << bit) : 0xff);
            int fd = memory_file(bytes, size);
            if (pn_elfnote_read(fd, size, "damaged", &note, &err) != PN_OK) {
                refused++;
                assert_true(err.message[0]);
            }
            close(fd);
            bytes[at] = old;
        }
    assert_true(refused > 100);
    for (size_t cut = 0; cut < size; cut += cut < 1024 ? 1 : 97) {
        pn_elfnote note;
        int fd = memory_file(bytes, cut);
        pn_status s = pn_elfnote_read(fd, cut, "cut", &note, NULL);
        assert_true(s == PN_OK || s == PN_E_FORMAT || s == PN_E_ABI);
        if (cut < 4096)
            assert_int_not_equal(s, PN_OK);
        /* A file that shrinks after its size was taken. */
        assert_int_not_equal(pn_elfnote_read(fd, size * 2 + 1, "shrunk", &note, NULL), PN_E_INTERNAL);
        close(fd);
    }
    free(bytes);
}

/* ---- permissions ------------------------------------------------------------------------------------------------- */

static void writable_by_others(void **state)
{
    (void)state;
    char folder[PATH_MAX], path[PATH_MAX];
    static const struct { mode_t file, folder; const char *word, *mode;
    } cases[] = {
        {0666, 0755, "the file", "0666"},   {0664, 0755, "the file", "0664"},   {0602, 0755, "the file", "0602"},
        {0644, 0777, "the folder", "0777"}, {0644, 0775, "the folder", "0775"}, {0644, 01777, "the folder", "1777"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pn_error err = {0};
        fresh_folder(folder);
        copy_plugin("taken_a", folder, path);
        assert_int_equal(chmod(path, cases[i].file), 0);
        assert_int_equal(chmod(folder, cases[i].folder), 0);
        assert_null(runtime_try("path", NULL, path, &err));
        assert_int_equal(err.status, PN_E_DENIED);
        assert_non_null(strstr(err.message, path));
        assert_non_null(strstr(err.message, cases[i].word));
        assert_non_null(strstr(err.message, cases[i].mode));
        assert_non_null(strstr(err.message, "chmod go-w"));
        assert_false(traced("taken_a"));
    }
    /* A link in a safe folder does not make a file in an unsafe one safe. */
    char safe[PATH_MAX], link[PATH_MAX + 16];
    pn_error err = {0};
    fresh_folder(safe);
    snprintf(link, sizeof link, "%s/link.so", safe);
    assert_int_equal(symlink(path, link), 0);
    assert_null(runtime_try("path", NULL, link, &err));
    assert_int_equal(err.status, PN_E_DENIED);
}

static void owned_by_someone_else(void **state)
{
    (void)state;
    char folder[PATH_MAX], path[PATH_MAX];
    pn_error err = {0};
    if (geteuid() != 0) {
        print_message("# skip: only root can give a file away\n");
        skip();
    }
    fresh_folder(folder);
    copy_plugin("taken_a", folder, path);
    assert_int_equal(chown(path, 12345, 0), 0);
    assert_null(runtime_try("path", NULL, path, &err));
    assert_int_equal(err.status, PN_E_DENIED);
    assert_non_null(strstr(err.message, "user 12345"));
    assert_int_equal(chown(path, 0, 0), 0);
    assert_int_equal(chown(folder, 12345, 0), 0);
    memset(&err, 0, sizeof err);
    assert_null(runtime_try("path", NULL, path, &err));
    assert_int_equal(err.status, PN_E_DENIED);
    assert_non_null(strstr(err.message, "the folder"));
    assert_false(traced("taken_a"));
}

/* ---- search ------------------------------------------------------------------------------------------------------ */

static size_t index_of(const pn_runtime *rt, const char *name)
{
    pn_plugin_report p = { .struct_size = sizeof p };
    for (size_t i = 0; pn_runtime_plugin(rt, i, &p, NULL) == PN_OK; i++)
        if (strstr(p.path, name))
            return i;
    return 0;
}

static void search_order(void **state)
{
    (void)state;
    char a[PATH_MAX], b[PATH_MAX], c[PATH_MAX], home[PATH_MAX], file[PATH_MAX], text[3 * PATH_MAX];
    const char *why;
    fresh_folder(a);
    fresh_folder(b);
    fresh_folder(c);
    fresh_folder(home);
    copy_plugin("taken_a", a, file);
    copy_plugin("good", b, NULL);
    copy_plugin("old_structs", c, NULL);
    snprintf(text, sizeof text, "%s/.local/lib/pantheon", home);
    make_folders(text);
    copy_plugin("version_1_9", text, NULL);
    setenv("HOME", home, 1);
    snprintf(text, sizeof text, "%s:/nonexistent/plugins", c);
    setenv("PANTHEON_PLUGIN_PATH", text, 1);
    pn_runtime *rt = runtime_of("path", b, file);
    unsetenv("PANTHEON_PLUGIN_PATH");
    setenv("HOME", "/nonexistent", 1);
    /* [plugins] load, [plugins] path, the variable, home. */
    assert_int_equal(index_of(rt, "taken_a"), 1);
    assert_int_equal(index_of(rt, "good"), 2);
    assert_int_equal(index_of(rt, "old_structs"), 3);
    assert_int_equal(index_of(rt, "version_1_9"), 4);
    assert_string_equal(pn_runtime_folder(rt, 0, &why, NULL), b);
    assert_string_equal(why, "[plugins] path");
    assert_string_equal(pn_runtime_folder(rt, 1, &why, NULL), c);
    assert_string_equal(why, "PANTHEON_PLUGIN_PATH");
    assert_string_equal(pn_runtime_folder(rt, 2, NULL, NULL), "/nonexistent/plugins");
    assert_non_null(strstr(pn_runtime_folder(rt, 3, &why, NULL), ".local/lib/pantheon"));
    assert_string_equal(why, "home folder");
    assert_null(pn_runtime_folder(rt, 1000, NULL, NULL));
    pn_runtime_destroy(rt);
}

static void the_current_folder_is_not_searched(void **state)
{
    (void)state;
    static const char *const paths[] = { "", ":", "::", ":/nonexistent:", ".", "./plugins", "plugins:" };
    char folder[PATH_MAX], sub[PATH_MAX + 16], old[PATH_MAX];
    pn_error err = {0};
    fresh_folder(folder);
    copy_plugin("good", folder, NULL);
    snprintf(sub, sizeof sub, "%s/plugins", folder);
    make_folders(sub);
    copy_plugin("good", sub, NULL);
    assert_non_null(getcwd(old, sizeof old));
    assert_int_equal(chdir(folder), 0);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        setenv("PANTHEON_PLUGIN_PATH", paths[i], 1);
        assert_null(runtime_try("path", NULL, NULL, &err));
        assert_int_equal(err.status, PN_E_NOT_FOUND);
    }
    unsetenv("PANTHEON_PLUGIN_PATH");
    assert_int_equal(chdir(old), 0);
}

/* However a file or folder is reached, it is one. */
static void one_file_is_loaded_once(void **state)
{
    (void)state;
    char a[PATH_MAX], b[PATH_MAX], file[PATH_MAX], link[PATH_MAX + 16], text[4 * PATH_MAX];
    size_t found = 0;
    pn_plugin_report p = { .struct_size = sizeof p };
    fresh_folder(a);
    fresh_folder(b);
    copy_plugin("good", a, file);
    snprintf(link, sizeof link, "%s/again.so", a);
    assert_int_equal(symlink("good.so", link), 0);
    snprintf(link, sizeof link, "%s/folder", b);
    assert_int_equal(symlink(a, link), 0);
    snprintf(text, sizeof text, "%s:%s:%s/.", link, a, a);
    setenv("PANTHEON_PLUGIN_PATH", text, 1);
    pn_runtime *rt = runtime_of("path", a, file);
    unsetenv("PANTHEON_PLUGIN_PATH");
    for (size_t i = 1; pn_runtime_plugin(rt, i, &p, NULL) == PN_OK; i++)
        found += strstr(p.path, a) || strstr(p.path, b);
    assert_int_equal(found, 1);
    pn_runtime_destroy(rt);
}

static void only_so_files_in_name_order(void **state)
{
    (void)state;
    char folder[PATH_MAX], path[PATH_MAX + 16], last[PATH_MAX] = "";
    static const char *const others[] = { "readme.txt", "good.so.bak", ".hidden.so", "so", ".so" };
    size_t found = 0;
    pn_plugin_report p = { .struct_size = sizeof p };
    fresh_folder(folder);
    copy_plugin("good", folder, NULL);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, others[i]);
        write_file(path, "text", 4);
    }
    for (int i = 0; i < 26; i++) {
        snprintf(path, sizeof path, "%s/%c.so", folder, 'a' + i * 11 % 26);
        write_file(path, "text", 4);
    }
    pn_runtime *rt = runtime_of("path", folder, NULL);
    for (size_t i = 1; pn_runtime_plugin(rt, i, &p, NULL) == PN_OK; i++) {
        if (!strstr(p.path, folder))
            continue;
        found++;
        assert_true(strcmp(last, p.path) < 0);
        snprintf(last, sizeof last, "%s", p.path);
    }
    assert_int_equal(found, 27);
    pn_runtime_destroy(rt);
}

/* No usable plugin: an error at once, with folders and reasons. */
static void nothing_to_load(void **state)
{
    (void)state;
    char folder[PATH_MAX];
    pn_error err = {0};
    fresh_folder(folder);
    assert_null(runtime_try("path", folder, NULL, &err));
    assert_int_equal(err.status, PN_E_NOT_FOUND);
    assert_non_null(strstr(err.message, folder));
    assert_non_null(strstr(err.message, "PANTHEON_PLUGIN_PATH"));
    copy_plugin("no_note", folder, NULL);
    assert_null(runtime_try("path", folder, NULL, &err));
    assert_non_null(strstr(err.message, "no_note.so"));
    assert_non_null(strstr(err.message, ".note.pantheon"));
}

/* ---- versions ---------------------------------------------------------------------------------------------------- */

static void newest_version_wins(void **state)
{
    (void)state;
    char a[PATH_MAX], b[PATH_MAX], c[PATH_MAX], text[3 * PATH_MAX];
    pn_plugin_report p;
    fresh_folder(a);
    fresh_folder(b);
    fresh_folder(c);
    copy_plugin("version_1_9", a, NULL);
    copy_plugin("version_1_10", b, NULL);
    copy_plugin("version_1_10", c, NULL);
    snprintf(text, sizeof text, "%s:%s", b, c);
    setenv("PANTHEON_PLUGIN_PATH", text, 1);
    pn_runtime *rt = runtime_of("path", a, NULL);
    unsetenv("PANTHEON_PLUGIN_PATH");
    assert_true(report_of(rt, a, &p));
    assert_int_equal(p.state, PN_PLUGIN_REPLACED);
    assert_non_null(strstr(p.reason, "1.9"));
    assert_non_null(strstr(p.reason, "1.10"));
    assert_non_null(strstr(p.reason, b));
    assert_true(report_of(rt, b, &p));
    assert_int_equal(p.state, PN_PLUGIN_LOADED);
    assert_string_equal(p.version, "1.10");
    assert_true(report_of(rt, c, &p));          /* the same version again: the first found stays */
    assert_int_equal(p.state, PN_PLUGIN_REPLACED);
    assert_non_null(strstr(p.reason, "found first"));
    assert_non_null(pn_runtime_find(rt, PN_KIND_QUANT, "test.version_1_10"));
    assert_null(pn_runtime_find(rt, PN_KIND_QUANT, "test.version_1_9"));
    pn_runtime_destroy(rt);
}

/* The newest cannot start: the one before it does. */
static void older_version_steps_in(void **state)
{
    (void)state;
    char folder[PATH_MAX];
    pn_plugin_report p;
    fresh_folder(folder);
    copy_plugin("version_1_9", folder, NULL);
    copy_plugin("version_1_10", folder, NULL);
    copy_plugin("version_2_0", folder, NULL);
    pn_runtime *rt = runtime_of("path", folder, NULL);
    assert_true(report_of(rt, "version_2_0", &p));
    assert_int_equal(p.state, PN_PLUGIN_REFUSED);
    assert_non_null(strstr(p.reason, "not today"));
    assert_true(report_of(rt, "version_1_10", &p));
    assert_int_equal(p.state, PN_PLUGIN_LOADED);
    assert_true(report_of(rt, "version_1_9", &p));
    assert_int_equal(p.state, PN_PLUGIN_REPLACED);
    pn_runtime_destroy(rt);
}

/* A file renamed over a loaded one is another file, although the C library knows its name. */
static void replaced_by_rename(void **state)
{
    (void)state;
    char folder[PATH_MAX], other[PATH_MAX], path[PATH_MAX + 16], fresh[PATH_MAX];
    pn_plugin_report p;
    fresh_folder(folder);
    fresh_folder(other);
    snprintf(path, sizeof path, "%s/plugin.so", folder);
    copy_plugin("version_1_9", other, fresh);
    assert_int_equal(rename(fresh, path), 0);
    pn_runtime *old = runtime_of("path", folder, NULL);
    assert_non_null(pn_runtime_find(old, PN_KIND_QUANT, "test.version_1_9"));
    for (int i = 0; i < 3; i++) {
        copy_plugin(i % 2 ? "version_1_9" : "version_1_10", other, fresh);
        assert_int_equal(rename(fresh, path), 0);
        pn_runtime *rt = runtime_of("path", folder, NULL);
        assert_true(report_of(rt, "plugin.so", &p));
        assert_int_equal(p.state, PN_PLUGIN_LOADED);
        assert_string_equal(p.version, i % 2 ? "1.9" : "1.10");
        assert_non_null(pn_runtime_find(rt, PN_KIND_QUANT, i % 2 ? "test.version_1_9" : "test.version_1_10"));
        pn_runtime_destroy(rt);
    }
    pn_runtime_destroy(old);
}

static void versions_compare_by_number(void **state)
{
    (void)state;
    assert_true(pn_version_compare("1.10", "1.9") > 0);
    assert_true(pn_version_compare("1.9", "1.10") < 0);
    assert_true(pn_version_compare("2", "1.99.99") > 0);
    assert_int_equal(pn_version_compare("1", "1.0.0"), 0);
    assert_int_equal(pn_version_compare("01.002", "1.2"), 0);
    assert_true(pn_version_compare("1.0.1", "1") > 0);
    assert_true(pn_version_compare("0", "0.0.1") < 0);
    assert_true(pn_version_compare("1.100000000000000000000000", "1.99999999999999999999999") > 0);
    assert_true(pn_version_ok("1") && pn_version_ok("0.1.0") && pn_version_ok("2026.11"));
    assert_false(pn_version_ok("") || pn_version_ok(".1") || pn_version_ok("1.") || pn_version_ok("1..2") ||
                 pn_version_ok("1.0a") || pn_version_ok("-1"));
}

/* ---- names claimed twice ----------------------------------------------------------------------------------------- */

static void a_name_taken_stops_the_load(void **state)
{
    (void)state;
    static const char *const rivals[] = { "taken_b", "taken_quietly" };
    for (size_t i = 0; i < 2; i++) {
        char folder[PATH_MAX], id[64];
        pn_error err = {0};
        fresh_folder(folder);
        copy_plugin("good", folder, NULL);
        copy_plugin("taken_a", folder, NULL);
        copy_plugin(rivals[i], folder, NULL);
        snprintf(id, sizeof id, "org.pantheon.test.%s", rivals[i]);
        assert_null(runtime_try("path", folder, NULL, &err));
        assert_int_equal(err.status, PN_E_CONFLICT);
        assert_non_null(strstr(err.message, "test.taken"));
        assert_non_null(strstr(err.message, "org.pantheon.test.taken_a"));
        assert_non_null(strstr(err.message, id));
        assert_non_null(strstr(err.message, "taken_a.so"));
        assert_non_null(strstr(err.message, "[quant] pin.test.taken = "));
    }
}

static void a_pin_decides(void **state)
{
    (void)state;
    static const char *const ids[] = { "org.pantheon.test.taken_a", "org.pantheon.test.taken_b" };
    for (size_t i = 0; i < 2; i++) {
        char folder[PATH_MAX];
        pn_config *cfg;
        pn_runtime *rt;
        pn_error err = {0};
        pn_registration r = { .struct_size = sizeof r };
        pn_plugin_report p = { .struct_size = sizeof p };
        int seen = 0;
        fresh_folder(folder);
        copy_plugin("taken_a", folder, NULL);
        copy_plugin("taken_b", folder, NULL);
        assert_int_equal(pn_config_create(&cfg, &err), PN_OK);
        assert_int_equal(pn_config_set(cfg, "plugins.path", folder, &err), PN_OK);
        assert_int_equal(pn_config_set(cfg, "quant.pin.test.taken", ids[i], &err), PN_OK);
        if (pn_runtime_create(cfg, NULL, &rt, &err) != PN_OK)
            fail_msg("%s", err.message);
        pn_config_destroy(cfg);
        const void *item = pn_runtime_find(rt, PN_KIND_QUANT, "test.taken");
        assert_non_null(item);
        for (size_t k = 0; pn_runtime_registration(rt, k, &r, NULL) == PN_OK; k++) {
            if (strcmp(r.name, "test.taken") != 0)
                continue;
            seen++;
            assert_int_equal(pn_runtime_plugin(rt, r.plugin, &p, NULL), PN_OK);
            assert_int_equal(r.chosen, !strcmp(p.id, ids[i]));
            assert_int_equal(r.item == item, !strcmp(p.id, ids[i]));
            assert_non_null(strstr(r.note, ids[i]));
            assert_non_null(strstr(r.note, !strcmp(p.id, ids[i]) ? "pinned" : "passed over"));
        }
        assert_int_equal(seen, 2);
        pn_runtime_destroy(rt);
    }
    /* A pin to something that does not take part decides nothing. */
    char folder[PATH_MAX];
    pn_config *cfg;
    pn_runtime *rt;
    pn_error err = {0};
    fresh_folder(folder);
    copy_plugin("taken_a", folder, NULL);
    copy_plugin("taken_b", folder, NULL);
    copy_plugin("good", folder, NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pn_config_create(&cfg, &err), PN_OK);
        assert_int_equal(pn_config_set(cfg, "plugins.path", folder, &err), PN_OK);
        assert_int_equal(
            pn_config_set(cfg, "quant.pin.test.taken", i ? "org.pantheon.test.good" : "org.example.nowhere", &err),
            PN_OK);
        assert_int_equal(pn_runtime_create(cfg, NULL, &rt, &err), PN_E_CONFLICT);
        assert_non_null(strstr(err.message, i ? "org.pantheon.test.good" : "org.example.nowhere"));
        if (!i)
            assert_non_null(strstr(err.message, "not loaded"));
        pn_config_destroy(cfg);
    }
}

/* ---- negotiation, CPU, life -------------------------------------------------------------------------------------- */

static void older_structs_are_filled_with_zero(void **state)
{
    (void)state;
    char folder[PATH_MAX];
    pn_error err = {0};
    fresh_folder(folder);
    copy_plugin("old_structs", folder, NULL);
    copy_plugin("abi_minor", folder, NULL);
    pn_runtime *rt = runtime_of("path", folder, NULL);
    const pn_quant *q = pn_runtime_find(rt, PN_KIND_QUANT, "test.old");
    assert_non_null(q);
    assert_int_equal(q->struct_size, sizeof *q);
    assert_true(!q->quantize && !q->byteswap && !q->dot && !q->axpy && !q->side_suffixes && !q->n_side);
    const pn_kernel *k = pn_runtime_find(rt, PN_KIND_KERNEL, "test.old.f32");
    assert_non_null(k);
    assert_null(k->accepts);
    /* Used, not only kept. */
    const signed char w[6] = { 1, 2, 3, -4, 5, -6 };
    pn_qweight weight = {
        .struct_size = sizeof weight, .type = q, .data = w, .rows = 2, .cols = 3, .row_stride = 3, .planes = 1};
    const pn_kernel *picked;
    const pn_packing *packing;
    float x[16] __attribute__((aligned(64))) = { 1, 10, 100 }, y[2];
    assert_int_equal(pn_registry_pick_kernel(rt, &weight, PN_EXACT, &picked, &packing, NULL, 0, &err), PN_OK);
    assert_ptr_equal(picked, k);
    assert_string_equal(packing->name, "f32");
    pn_matmul_args a = {.struct_size = sizeof a,
                        .weight = &weight,
                        .row_end = 2,
                        .packed = x,
                        .packed_stride = 64,
                        .columns = 1,
                        .out = y,
                        .out_stride = 2};
    assert_int_equal(k->matmul(&a), PN_OK);
    assert_true(y[0] == 321.0f && y[1] == -554.0f);
    /* A later minor ABI: what this host knows is taken. */
    q = pn_runtime_find(rt, PN_KIND_QUANT, "test.minor");
    assert_non_null(q);
    assert_int_equal(q->struct_size, sizeof *q);
    pn_runtime_destroy(rt);
}

static void the_cpu_level_decides(void **state)
{
    (void)state;
    char folder[PATH_MAX];
    pn_plugin_report p;
    pn_error err = {0};
    fresh_folder(folder);
    copy_plugin("good", folder, NULL);
    copy_plugin("cpu_avx512", folder, NULL);
    setenv("PANTHEON_CPU", "c", 1);
    pn_runtime *rt = runtime_of("path", folder, NULL);
    assert_true(pn_runtime_cpu(rt) == 0);
    assert_true(report_of(rt, "cpu_avx512", &p));
    assert_int_equal(p.state, PN_PLUGIN_REFUSED);
    assert_non_null(strstr(p.reason, "avx512"));
    assert_non_null(strstr(p.reason, "PANTHEON_CPU"));
    pn_runtime_destroy(rt);
    setenv("PANTHEON_CPU", "fastest", 1);
    assert_null(runtime_try("path", folder, NULL, &err));
    assert_int_equal(err.status, PN_E_CONFIG);
    assert_non_null(strstr(err.message, "fastest"));
    assert_non_null(strstr(err.message, "c, "));
    unsetenv("PANTHEON_CPU");
}

static void *make_and_destroy(void *folder)
{
    for (int i = 0; i < 5; i++) {
        pn_runtime *rt = runtime_of("path", folder, NULL);
        assert_non_null(pn_runtime_find(rt, PN_KIND_QUANT, "test.good"));
        pn_runtime_destroy(rt);
    }
    return NULL;
}

static void many_runtimes(void **state)
{
    (void)state;
    char folder[PATH_MAX];
    pthread_t threads[4];
    fresh_folder(folder);
    copy_plugin("good", folder, NULL);
    copy_plugin("old_structs", folder, NULL);
    pn_runtime *a = runtime_of("path", folder, NULL), *b = runtime_of("path", folder, NULL);
    const pn_host *first = pn_registry_find(a, PN_KIND_QUANT, "test.good")->host;
    assert_ptr_not_equal(first, pn_registry_find(b, PN_KIND_QUANT, "test.good")->host);
    assert_ptr_equal(pn_host_runtime(first), a);
    pn_runtime_destroy(a);
    /* The plugin may have kept its table: it is there, and serves the next runtime. */
    assert_null(pn_host_runtime(first));
    void *memory = NULL;
    assert_int_equal(pn_host_alloc(first, 1, 8, &memory, NULL), PN_OK);
    assert_int_equal(pn_host_free(first, memory, NULL), PN_OK);
    assert_int_equal(pn_host_log(first, PN_LOG_WARN, "to nobody", NULL), PN_OK);
    a = runtime_of("path", folder, NULL);
    assert_ptr_equal(pn_registry_find(a, PN_KIND_QUANT, "test.good")->host, first);
    pn_runtime_destroy(b);
    pn_runtime_destroy(a);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, make_and_destroy, folder), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_refusal_is_reported),
        cmocka_unit_test(a_named_file_must_load),
        cmocka_unit_test(no_elf_file),
        cmocka_unit_test(damaged_elf_headers),
        cmocka_unit_test(any_damaged_byte),
        cmocka_unit_test(writable_by_others),
        cmocka_unit_test(owned_by_someone_else),
        cmocka_unit_test(search_order),
        cmocka_unit_test(the_current_folder_is_not_searched),
        cmocka_unit_test(one_file_is_loaded_once),
        cmocka_unit_test(only_so_files_in_name_order),
        cmocka_unit_test(nothing_to_load),
        cmocka_unit_test(newest_version_wins),
        cmocka_unit_test(older_version_steps_in),
        cmocka_unit_test(replaced_by_rename),
        cmocka_unit_test(versions_compare_by_number),
        cmocka_unit_test(a_name_taken_stops_the_load),
        cmocka_unit_test(a_pin_decides),
        cmocka_unit_test(older_structs_are_filled_with_zero),
        cmocka_unit_test(the_cpu_level_decides),
        cmocka_unit_test(many_runtimes),
    };
    return cmocka_run_group_tests(tests, loader_setup, loader_teardown);
}
