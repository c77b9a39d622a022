/* `pantheon plugins`: every plugin found, what it brings, which kernels would be used here, what was refused and why */
#include "tool.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char HELP[] =
    "usage: pantheon plugins [--json] [OPTIONS]\n\n"
    "Lists every plugin that was found: id, version, what it registers, its kernels with the one that would be used "
    "here\n"
    "(marked *), ties, pins, refused files with reasons, and the folders searched.\n\n"
    "      --json           the same as JSON\n"
    "  -c, --config FILE    plugins and settings from an INI file\n"
    "      --set S.K=V      set a configuration value, e.g. plugins.load=./mine.so\n"
    "  -v, --verbose        say more while plugins are looked for\n\n"
    "Searched in this order: files of [plugins] load; folders of [plugins] path, of PANTHEON_PLUGIN_PATH (separated "
    "by\n"
    "colons), ~/.local/lib/pantheon, the installed folder, the folders beside library and program. Never the current\n"
    "folder, unless it is named.\n";

enum { OPT_JSON = TOOL_FIRST };

static const char *kind_word(uint32_t kind)
{
    static const char *const words[] = {
        "?", "format", "type", "packing", "kernel", "operation", "architecture", "tokenizer", "template",
    };
    return kind < sizeof words / sizeof *words ? words[kind] : "?";
}

static const char *state_word(uint32_t state)
{
    return state == PN_PLUGIN_LOADED ? "loaded" : state == PN_PLUGIN_REFUSED ? "refused" : "replaced";
}

static const char *mode_word(uint32_t precision)
{
    return precision == PN_FAST ? "fast" : precision == PN_EXACT ? "exact" : "";
}

/* All names that an architecture or tokenizer answers to; others have one. */
static uint32_t names_of(const pn_registration *r, const char *const **names)
{
    if (r->kind == PN_KIND_ARCH) {
        *names = ((const pn_arch *)r->item)->names;
        return ((const pn_arch *)r->item)->n_names;
    }
    if (r->kind == PN_KIND_TOKENIZER) {
        *names = ((const pn_tokenizer_type *)r->item)->names;
        return ((const pn_tokenizer_type *)r->item)->n_names;
    }
    *names = &r->name;
    return 1;
}

static void safe(const char *text)
{
    tool_print_safe(stdout, text, strlen(text), false);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void print_registration(const pn_registration *r)
{
    char cpu[256];
    const char *const *names;
    uint32_t n = names_of(r, &names);
    int ranked = r->kind == PN_KIND_KERNEL || r->kind == PN_KIND_PACKING;
    printf("  %c %-13s", ranked && r->chosen ? '*' : ' ', kind_word(r->kind));
    for (uint32_t i = 0; i < n; i++) {
        fputs(i ? ", " : "", stdout);
        safe(names[i]);
    }
    if (r->kind == PN_KIND_KERNEL)
        printf(": type %s, packing %s%s%s", r->quant, r->packing, r->precision ? ", " : "", mode_word(r->precision));
    else if (r->kind == PN_KIND_PACKING)
        printf(": %s", mode_word(r->precision));
    if (ranked)
        printf(", score %d", (int)r->score);
    if (r->cpu_features)
        printf(", %s %s", r->usable ? "uses" : "NOT USABLE HERE: needs",
               pn_cpu_names(r->cpu_features, cpu, sizeof cpu));
    if (*r->note) {
        fputs(" (", stdout);
        safe(r->note);
        putchar(')');
    }
    putchar('\n');
}

static void print_plugin(const pn_runtime *rt, uint32_t index, const pn_plugin_report *p)
{
    pn_registration r = { .struct_size = sizeof r };
    safe(p->id);
    putchar(' ');
    safe(p->version);
    fputs(" - ", stdout);
    safe(p->summary);
    fputs(" [", stdout);
    safe(p->licence);
    fputs("]\n", stdout);
    if (*p->path) {
        fputs("    ", stdout);
        safe(p->path);
        putchar('\n');
    }
    for (size_t i = 0; pn_runtime_registration(rt, i, &r, NULL) == PN_OK; i++)
        if (r.plugin == index)
            print_registration(&r);
    putchar('\n');
}

static void print_rest(const pn_runtime *rt, uint32_t state, const char *title)
{
    pn_plugin_report p = { .struct_size = sizeof p };
    int any = 0;
    for (size_t i = 0; pn_runtime_plugin(rt, i, &p, NULL) == PN_OK; i++) {
        if (p.state != state)
            continue;
        if (!any++)
            printf("%s:\n", title);
        fputs("  ", stdout);
        safe(p.reason);
        putchar('\n');
    }
    if (any)
        putchar('\n');
}

static void print_text(const pn_runtime *rt)
{
    char cpu[256];
    const char *path, *why, *level = getenv("PANTHEON_CPU");
    int present;
    pn_plugin_report p = { .struct_size = sizeof p };
    for (size_t i = 0; pn_runtime_plugin(rt, i, &p, NULL) == PN_OK; i++)
        if (p.state == PN_PLUGIN_LOADED)
            print_plugin(rt, (uint32_t)i, &p);
    print_rest(rt, PN_PLUGIN_REFUSED, "refused");
    print_rest(rt, PN_PLUGIN_REPLACED, "replaced");
    pn_cpu_names(pn_runtime_cpu(rt), cpu, sizeof cpu);
    printf("CPU features in use: %s%s%s%s\n", *cpu ? cpu : "none", level && *level ? " (PANTHEON_CPU=" : "",
           level && *level ? level : "", level && *level ? ")" : "");
    printf("* marks the kernel and packing used here with [runtime] activations = %s\n",
           pn_config_text(pn_runtime_config(rt), "runtime", "activations"));
    printf("searched, in this order:\n");
    for (size_t i = 0; (path = pn_config_item(pn_runtime_config(rt), "plugins", "load", i)); i++) {
        fputs("  ", stdout);
        safe(path);
        fputs(" (file of [plugins] load)\n", stdout);
    }
    for (size_t i = 0; (path = pn_runtime_folder(rt, i, &why, &present)); i++) {
        fputs("  ", stdout);
        safe(path);
        printf(" (%s%s)\n", why, present ? "" : "; absent");
    }
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void field(const char *before, const char *name, const char *text)
{
    printf("%s\"%s\":", before, name);
    tool_json_string(stdout, text, strlen(text));
}

static void json_registration(const pn_registration *r)
{
    char cpu[256];
    const char *const *names;
    uint32_t n = names_of(r, &names);
    field("{", "kind", kind_word(r->kind));
    field(",", "name", r->name);
    fputs(",\"names\":[", stdout);
    for (uint32_t i = 0; i < n; i++) {
        fputs(i ? "," : "", stdout);
        tool_json_string(stdout, names[i], strlen(names[i]));
    }
    putchar(']');
    if (r->kind == PN_KIND_KERNEL) {
        field(",", "type", r->quant);
        field(",", "packing", r->packing);
    }
    if (r->kind == PN_KIND_KERNEL || r->kind == PN_KIND_PACKING) {
        field(",", "activations", mode_word(r->precision));
        printf(",\"score\":%d", (int)r->score);
        field(",", "cpu", pn_cpu_names(r->cpu_features, cpu, sizeof cpu));
    }
    printf(",\"usable\":%s,\"chosen\":%s", r->usable ? "true" : "false", r->chosen ? "true" : "false");
    field(",", "note", r->note);
    putchar('}');
}

static void json_plugin(const pn_runtime *rt, uint32_t index, const pn_plugin_report *p)
{
    pn_registration r = { .struct_size = sizeof r };
    int any = 0;
    field("{", "state", state_word(p->state));
    field(",", "path", p->path);
    field(",", "id", p->id);
    field(",", "version", p->version);
    field(",", "licence", p->licence);
    field(",", "summary", p->summary);
    field(",", "reason", p->reason);
    fputs(",\"registrations\":[", stdout);
    for (size_t i = 0; pn_runtime_registration(rt, i, &r, NULL) == PN_OK; i++)
        if (r.plugin == index) {
            fputs(any++ ? ",\n    " : "\n    ", stdout);
            json_registration(&r);
        }
    fputs("]}", stdout);
}

static void print_json(const pn_runtime *rt)
{
    char cpu[256];
    const char *path, *why;
    int present;
    pn_plugin_report p = { .struct_size = sizeof p };
    field("{", "version", pn_version());
    field(",", "cpu", pn_cpu_names(pn_runtime_cpu(rt), cpu, sizeof cpu));
    field(",", "activations", pn_config_text(pn_runtime_config(rt), "runtime", "activations"));
    fputs(",\n \"folders\":[", stdout);
    for (size_t i = 0; (path = pn_runtime_folder(rt, i, &why, &present)); i++) {
        field(i ? ",\n  {" : "\n  {", "path", path);
        field(",", "why", why);
        printf(",\"present\":%s}", present ? "true" : "false");
    }
    fputs("],\n \"plugins\":[", stdout);
    for (size_t i = 0; pn_runtime_plugin(rt, i, &p, NULL) == PN_OK; i++) {
        fputs(i ? ",\n  " : "\n  ", stdout);
        json_plugin(rt, (uint32_t)i, &p);
    }
    fputs("]}\n", stdout);
}

int cmd_plugins(int argc, char **argv)
{
    static const struct option longs[] = { TOOL_LONG_OPTIONS, { "json", no_argument, NULL, OPT_JSON }, { 0 } };
    tool_setup s;
    bool json = false;
    int c, status = tool_setup_begin(&s);
    optind = 1;
    while (!status && (c = getopt_long(argc, argv, TOOL_OPTIONS, longs, NULL)) != -1) {
        if (c == 'h') {
            fputs(HELP, stdout);
            tool_setup_end(&s);
            return tool_finish();
        }
        if (c == OPT_JSON) {
            json = true;
        } else {
            int handled = tool_option(&s, "plugins", c, optarg);
            status = handled == -1 ? 0 : handled ? handled : 2;
        }
    }
    if (!status && optind < argc)
        status = tool_usage("plugins", "takes no argument, but '%s' was given", argv[optind]);
    if (!status)
        status = tool_setup_runtime(&s);
    if (!status) {
        if (json)
            print_json(s.runtime);
        else
            print_text(s.runtime);
    }
    tool_setup_end(&s);
    return status ? status : tool_finish();
}
