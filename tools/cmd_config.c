/* `pantheon config`: shows what is configured and where each value came from, or checks a configuration. */
#include "tool.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <unistd.h>

static const char HELP[] =
    "usage: pantheon config show [-c FILE.ini] [--set section.key=value]... [OPTIONS]\n"
    "       pantheon config check -c FILE.ini [--set section.key=value]...\n"
    "       pantheon config keys\n\n"
    "show prints every value in effect and where it came from: FILE:LINE, the command line, the model file, or the\n"
    "built-in default. The command line goes before the INI file, the INI file before the model, the model before "
    "defaults.\n"
    "The model file is asked when [model] path names one that can be opened.\n"
    "check reads the file with all that it includes and says OK, or what is wrong (status 1).\n"
    "keys explains every key.\n\n"
    "  -c, --config FILE    read this INI file\n"
    "  --set SECTION.KEY=V  set one value; may be repeated\n"
    "  -t, --threads N      set runtime.threads\n"
    "  --ini                show: print an INI file, with the origins in comments; what it says is what was shown\n"
    "  --json               show: print JSON\n"
    "  --no-model           show: do not ask the model file\n"
    "  -v                   say more on standard error\n"
    "  -h, --help           print this\n";

enum { CONFIG_JSON = TOOL_FIRST, CONFIG_INI, CONFIG_NO_MODEL };

typedef struct config_options {
    const char *action;
    bool json, ini, no_model;
} config_options;

/* ---- a value as INI text ---------------------------------------------------------------------------------------- */

/* Characters that an INI cannot hold as they are, or that would do something to a terminal. */
static bool needs_escape(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x061c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

/* Print `text` so that an INI file gives it back; returns the columns that it takes. */
static int print_value(FILE *out, const char *text)
{
    size_t size = strlen(text);
    bool escapes = false, quotes = false, single;
    int columns = 0;
    for (size_t i = 0; i < size;) {
        uint32_t c = 0;
        int n = tool_utf8_next(text + i, size - i, &c);
        escapes = escapes || n <= 0 || needs_escape(c);
        quotes = quotes || c == '\\';
        i += n > 0 ? (size_t)n : n < 0 ? (size_t)-n : size - i;
    }
    quotes = quotes || !size || *text == '"' || *text == '\'' || *text == ' ' || text[size - 1] == ' ';
    if (!escapes && !quotes) {
        fwrite(text, 1, size, out);
        for (size_t i = 0; i < size; i++) columns += (text[i] & 0xc0) != 0x80;
        return columns;
    }
    single = !escapes && size && !strchr(text, '\'');
    fputc(single ? '\'' : '"', out);
    for (size_t i = 0; i < size;) {
        uint32_t c = 0;
        int n = tool_utf8_next(text + i, size - i, &c);
        if (n <= 0) { /* a configuration holds valid UTF-8 alone */
            columns += fprintf(out, "\\ufffd");
            i += n < 0 ? (size_t)-n : size - i;
            continue;
        }
        if (single) columns += (int)fwrite(text + i, 1, (size_t)n, out) > 0;
        else if (c == '\n' || c == '\t' || c == '\r')
            columns += fprintf(out, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
        else if (c == '"' || c == '\\') columns += fprintf(out, "\\%c", (int)c);
        else if (needs_escape(c)) columns += fprintf(out, "\\u%04x", (unsigned)c);
        else columns += (int)fwrite(text + i, 1, (size_t)n, out) > 0;
        i += (size_t)n;
    }
    fputc(single ? '\'' : '"', out);
    return columns + 2;
}

/* ---- show ------------------------------------------------------------------------------------------------------- */

static const char *const ORIGINS[] = {"default", "model", "ini", "command"};

static bool entry_at(const pn_config *config, size_t i, pn_config_entry *e)
{
    *e = PN_OPTIONS_INIT(pn_config_entry);
    return pn_config_entry_at(config, i, e, NULL) == PN_OK;
}

/* Was the section of entry `index` begun by an earlier entry? */
static bool seen(const pn_config *config, size_t index, const char *section)
{
    pn_config_entry e;
    for (size_t i = 0; i < index && entry_at(config, i, &e); i++)
        if (strcmp(e.section, section) == 0) return true;
    return false;
}

static void show_entry(const pn_config_entry *e, int width, bool ini, const char **source)
{
    int columns;
    if (ini) {
        if (!*source || strcmp(*source, e->source) != 0) {
            printf("; ");
            tool_print_safe(stdout, e->source, strlen(e->source), false);
            putchar('\n');
        }
        *source = e->source;
        printf("%-*s = ", width, e->key);
        print_value(stdout, e->value);
        putchar('\n');
        return;
    }
    printf("  %-*s = ", width, e->key);
    columns = print_value(stdout, e->value);
    printf("%*s  ", columns < 28 ? 28 - columns : 0, "");
    tool_print_safe(stdout, e->source, strlen(e->source), false);
    putchar('\n');
}

/* Sections in the order of their first key, each once. */
static void show_text(const pn_config *config, bool ini)
{
    pn_config_entry e, f;
    for (size_t i = 0; entry_at(config, i, &e); i++) {
        int width = 0;
        const char *source = NULL;
        if (seen(config, i, e.section)) continue;
        printf("%s[%s]\n", i ? "\n" : "", e.section);
        for (size_t j = i; entry_at(config, j, &f); j++)
            if (strcmp(e.section, f.section) == 0 && (int)strlen(f.key) > width) width = (int)strlen(f.key);
        for (size_t j = i; entry_at(config, j, &f); j++)
            if (strcmp(e.section, f.section) == 0) show_entry(&f, width < 32 ? width : 32, ini, &source);
    }
}

static void show_json(const pn_config *config)
{
    pn_config_entry e;
    printf("{\"values\": [");
    for (size_t i = 0; entry_at(config, i, &e); i++) {
        printf("%s\n  {\"section\": ", i ? "," : "");
        tool_json_string(stdout, e.section, strlen(e.section));
        printf(", \"key\": ");
        tool_json_string(stdout, e.key, strlen(e.key));
        printf(", \"value\": ");
        tool_json_string(stdout, e.value, strlen(e.value));
        printf(", \"origin\": \"%s\", \"source\": ", ORIGINS[e.origin < 4 ? e.origin : 0]);
        tool_json_string(stdout, e.source, strlen(e.source));
        printf("}");
    }
    printf("\n]}\n");
}

/* ---- what the model says ---------------------------------------------------------------------------------------- */

static void from_model(pn_config *config, pn_file *file, const char *role, const char *name)
{
    char text[1024];
    pn_role_value v = {.struct_size = (uint32_t)sizeof v};
    pn_error err = {0};
    if (pn_file_role(file, role, &v, &err) != PN_OK || !v.present) return;
    switch (v.value.type) {
    case PN_T_STRING:
        if (v.value.as.s.size >= sizeof text) return;
        snprintf(text, sizeof text, "%.*s", (int)v.value.as.s.size, v.value.as.s.data);
        break;
    case PN_T_BOOL: snprintf(text, sizeof text, "%s", v.value.as.u ? "true" : "false"); break;
    case PN_T_U8:
    case PN_T_U16:
    case PN_T_U32:
    case PN_T_U64:
        /* The number that a session takes when nobody chose one. */
        snprintf(text, sizeof text, "%d", v.value.as.u < 4096 ? (int)v.value.as.u : 4096);
        break;
    default: return;
    }
    if (pn_config_set_origin(config, name, text, PN_ORIGIN_MODEL, &err) != PN_OK)
        tool_say("the model's %s is passed over: %s", role, err.message);
}

/* Values of the model file into the configuration; a file that cannot be asked is only mentioned. */
static void ask_model(tool_setup *setup)
{
    const char *path = pn_config_text(setup->config, "model", "path");
    pn_error err = {0};
    pn_runtime *runtime = NULL;
    pn_file *file = NULL;
    if (!path || !*path) return;
    if (pn_runtime_create(setup->config, NULL, &runtime, &err) != PN_OK ||
        pn_file_open(runtime, path, &file, &err) != PN_OK) {
        tool_say("the model file is not asked, so values from it show as defaults: %s", err.message);
    } else {
        from_model(setup->config, file, PN_ROLE_NAME, "model.name");
        from_model(setup->config, file, PN_ROLE_CONTEXT_LENGTH, "runtime.context");
        from_model(setup->config, file, PN_ROLE_PRE_TOKENIZER, "tokenizer.pre");
        from_model(setup->config, file, PN_ROLE_ADD_BOS, "tokenizer.add_bos");
    }
    pn_file_destroy(file);
    pn_runtime_destroy(runtime);
}

/* ---- check, keys ------------------------------------------------------------------------------------------------ */

/* What the configuration names but is not there: worth saying, no error of the configuration. */
static void note_absent(const pn_config *config)
{
    pn_config_entry e;
    for (size_t i = 0; entry_at(config, i, &e); i++) {
        bool path =
            (strcmp(e.section, "model") == 0 && strcmp(e.key, "path") == 0) || strcmp(e.section, "plugins") == 0;
        if (path && *e.value && access(e.value, F_OK) != 0)
            tool_say("note: %s: [%s] %s: %s: %s", e.source, e.section, e.key, e.value, strerror(errno));
    }
}

static int check(tool_setup *setup)
{
    int status;
    if (!setup->ini) return tool_usage("config", "check: -c FILE.ini is wanted");
    status = tool_setup_config(setup);
    if (status) return 1;
    note_absent(setup->config);
    tool_print_safe(stdout, setup->ini, strlen(setup->ini), false);
    printf(": OK\n");
    return 0;
}

static void keys(void)
{
    pn_config_key k = PN_OPTIONS_INIT(pn_config_key);
    const char *section = "";
    char name[64];
    for (size_t i = 0; pn_config_key_at(i, &k, NULL) == PN_OK; i++) {
        if (strcmp(section, k.section) != 0) printf("%s[%s]\n", i ? "\n" : "", k.section);
        section = k.section;
        snprintf(name, sizeof name, "%s%s", k.key, k.rest);
        printf("  %-18s %s%s%s\n", name, k.help, *k.fallback ? "; default: " : "", k.fallback);
    }
    printf("\nin any section, or before the first\n"
           "  include            another INI file, read at this place (path)\n");
}

static int act(tool_setup *setup, const config_options *o)
{
    int status;
    if (strcmp(o->action, "check") == 0) return check(setup);
    if (strcmp(o->action, "keys") == 0) {
        keys();
        return 0;
    }
    if (o->json && o->ini) return tool_usage("config", "--json and --ini are two forms; one is wanted");
    status = tool_setup_config(setup);
    if (status) return status;
    if (!o->no_model) ask_model(setup);
    if (o->json) show_json(setup->config);
    else show_text(setup->config, o->ini);
    return 0;
}

static int parse(tool_setup *setup, config_options *o, int argc, char **argv)
{
    static const struct option table[] = {TOOL_LONG_OPTIONS,
                                          {"json", no_argument, NULL, CONFIG_JSON},
                                          {"ini", no_argument, NULL, CONFIG_INI},
                                          {"no-model", no_argument, NULL, CONFIG_NO_MODEL},
                                          {0}};
    static const char *const names[] = {"show", "check", "keys"};
    int c;
    while ((c = getopt_long(argc, argv, TOOL_OPTIONS, table, NULL)) != -1) {
        int status = tool_option(setup, "config", c, optarg);
        if (status == -1) continue;
        if (status) return status;
        switch (c) {
        case 'h': printf("%s", HELP); return tool_finish() ? 1 : -1;
        case CONFIG_JSON: o->json = true; break;
        case CONFIG_INI: o->ini = true; break;
        case CONFIG_NO_MODEL: o->no_model = true; break;
        default: return tool_usage("config", "option not understood");
        }
    }
    if (optind >= argc) return tool_usage("config", "show, check or keys is wanted");
    o->action = argv[optind++];
    if (optind < argc) return tool_usage("config", "'%s' is not expected; a file is given with -c", argv[optind]);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(o->action, names[i]) == 0) return 0;
    const char *near = tool_nearest(o->action, names, sizeof names / sizeof *names);
    return near ? tool_usage("config", "'%s' is not known; did you mean '%s'?", o->action, near)
                : tool_usage("config", "'%s' is not known; show, check or keys is wanted", o->action);
}

int cmd_config(int argc, char **argv)
{
    tool_setup setup;
    config_options o = {0};
    int status = tool_setup_begin(&setup);
    if (!status) status = parse(&setup, &o, argc, argv);
    if (!status) status = act(&setup, &o);
    tool_setup_end(&setup);
    if (status == -1) return 0;
    return tool_finish() ? 1 : status;
}
