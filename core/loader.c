/* Finds plugins: which folders, which files in them, which of several versions, in which order `init` is called. */
#include "alloc.h"
#include "runtime.h"
#include "text.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef PN_PLUGINDIR
#define PN_PLUGINDIR "/usr/local/lib/pantheon"
#endif

static pn_status nomem(pn_error *err)
{
    return pn_fail(err, PN_E_NOMEM, "no memory while looking for plugins");
}

/* ---- folders ----------------------------------------------------------------------------------------------------- */

/* Remember a folder unless it is there already, by whatever name. */
static pn_status add_folder(pn_runtime *rt, const char *path, size_t size, const char *why, pn_error *err)
{
    struct stat st;
    pn_status s = pn_grow((void **)&rt->folders, rt->n_folders, &rt->cap_folders, sizeof *rt->folders, err);
    if (s != PN_OK)
        return s;
    pn_folder f = { .path = pn_strndup(path, size), .why = why };
    if (!f.path)
        return nomem(err);
    f.present = stat(f.path, &st) == 0 && S_ISDIR(st.st_mode);
    if (f.present) {
        f.dev = st.st_dev;
        f.ino = st.st_ino;
    }
    for (size_t i = 0; i < rt->n_folders; i++) {
        const pn_folder *g = &rt->folders[i];
        if (!strcmp(g->path, f.path) || (f.present && g->present && g->dev == f.dev && g->ino == f.ino)) {
            pn_free(f.path);
            return PN_OK;
        }
    }
    rt->folders[rt->n_folders++] = f;
    return PN_OK;
}

/* NAME beside the file `path` (a real path), if there is such a folder. */
static pn_status add_beside(pn_runtime *rt, const char *path, const char *name, const char *why, pn_error *err)
{
    char folder[PATH_MAX + 32];
    const char *slash = strrchr(path, '/');
    if (!slash)
        return PN_OK;
    struct stat st;
    int n = snprintf(folder, sizeof folder, "%.*s/%s", (int)(slash - path), path, name);
    if (n <= 0 || (size_t)n >= sizeof folder || stat(folder, &st) != 0 || !S_ISDIR(st.st_mode))
        return PN_OK;           /* nobody asked for it, so that it is absent is no news */
    return add_folder(rt, folder, (size_t)n, why, err);
}

/* Colon-separated. A relative element, or an empty one, would depend on the current folder, which is never searched. */
static pn_status add_variable(pn_runtime *rt, const char *text, pn_error *err)
{
    pn_status s = PN_OK;
    while (s == PN_OK && text && *text) {
        size_t n = strcspn(text, ":");
        if (n && text[0] == '/')
            s = add_folder(rt, text, n, "PANTHEON_PLUGIN_PATH", err);
        else if (n)
            pn_runtime_log(rt, PN_LOG_WARN,
                           "PANTHEON_PLUGIN_PATH: '%.*s' is passed over, for it is not an absolute path", (int)n, text);
        text += n + (text[n] == ':');
    }
    return s;
}

static pn_status add_home(pn_runtime *rt, pn_error *err)
{
    char folder[PATH_MAX], buffer[4096];
    const char *home = getenv("HOME");
    struct passwd pw, *found = NULL;
    if ((!home || *home != '/') && getpwuid_r(geteuid(), &pw, buffer, sizeof buffer, &found) == 0 && found)
        home = found->pw_dir;
    if (!home || *home != '/')
        return PN_OK;
    int n = snprintf(folder, sizeof folder, "%s/.local/lib/pantheon", home);
    return n > 0 && (size_t)n < sizeof folder ? add_folder(rt, folder, (size_t)n, "home folder", err) : PN_OK;
}

static pn_status find_folders(pn_runtime *rt, pn_error *err)
{
    char program[PATH_MAX];
    const char *item;
    Dl_info library;
    pn_status s = PN_OK;

    for (size_t i = 0; s == PN_OK && (item = pn_config_item(rt->config, "plugins", "path", i)); i++)
        if (*item)
            s = add_folder(rt, item, strlen(item), "[plugins] path", err);
    if (s == PN_OK)
        s = add_variable(rt, secure_getenv("PANTHEON_PLUGIN_PATH"), err);
    if (s == PN_OK)
        s = add_home(rt, err);
    if (s == PN_OK)
        s = add_folder(rt, PN_PLUGINDIR, strlen(PN_PLUGINDIR), "installed folder", err);

    /* /proc leads to the real file, whatever links and PATH led to it. */
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    char *lib = dladdr((void *)(uintptr_t)pn_runtime_create, &library) && library.dli_fname
                    ? realpath(library.dli_fname, NULL)
                    : NULL;
    if (s == PN_OK && lib)      /* an installed tree that was moved, or staged under DESTDIR */
        s = add_beside(rt, lib, "pantheon", "installed with the library", err);
    if (s == PN_OK && n > 0) {
        program[n] = 0;
        s = add_beside(rt, program, "plugins", "beside the program", err);
    }
    if (s == PN_OK && lib)      /* a build tree used by an embedder */
        s = add_beside(rt, lib, "plugins", "beside the library", err);
    free(lib);
    return s;
}

void pn_runtime_folders_text(const pn_runtime *rt, char *text, size_t capacity)
{
    pn_text t = { text, capacity, 0 };
    if (capacity)
        text[0] = 0;
    for (size_t i = 0; i < rt->n_folders; i++)
        pn_text_add(&t, "%s%s%s", i ? ", " : "", rt->folders[i].path, rt->folders[i].present ? "" : " (absent)");
}

/* ---- candidates -------------------------------------------------------------------------------------------------- */

static pn_status new_record(pn_runtime *rt, const char *path, pn_plugin_rec **out, pn_error *err)
{
    pn_status s = pn_grow((void **)&rt->plugins, rt->n_plugins, &rt->cap_plugins, sizeof *rt->plugins, err);
    if (s != PN_OK)
        return s;
    pn_plugin_rec *rec = pn_calloc(1, sizeof *rec);
    if (!rec || !(rec->path = pn_strdup(path))) {
        pn_free(rec);
        return nomem(err);
    }
    rt->plugins[rt->n_plugins++] = rec;
    *out = rec;
    return PN_OK;
}

/* Same file under another name: nothing new. */
static int seen_before(const pn_runtime *rt, const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return 0;
    for (size_t i = 0; i < rt->n_plugins; i++)
        if (rt->plugins[i]->ino == st.st_ino && rt->plugins[i]->dev == st.st_dev && rt->plugins[i]->ino)
            return 1;
    return 0;
}

/* Keep a refusal; PN_OK unless it must stop everything. */
static pn_status refuse(pn_runtime *rt, pn_plugin_rec *rec, pn_status status, const pn_error *why, pn_error *err)
{
    if (status == PN_E_NOMEM || rec->named) {
        if (err)
            *err = *why;
        return status;
    }
    rec->state = PN_PLUGIN_REFUSED;
    rec->status = status;
    pn_free(rec->reason);
    rec->reason = pn_strdup(why->message);
    if (!rec->reason)
        return nomem(err);
    pn_runtime_log(rt, PN_LOG_INFO, "plugin refused: %s", rec->reason);
    return PN_OK;
}

static pn_status add_file(pn_runtime *rt, const char *path, int named, pn_error *err)
{
    pn_plugin_rec *rec = NULL;
    pn_error why = {0};
    struct stat st;
    if (seen_before(rt, path))
        return PN_OK;
    pn_status s = new_record(rt, path, &rec, err);
    if (s != PN_OK)
        return s;
    rec->named = named;
    if (stat(path, &st) == 0) { /* also of a refused file, so that it is reported once */
        rec->dev = st.st_dev;
        rec->ino = st.st_ino;
    }
    s = pn_image_load(path, rt->cpu, rec, &why);
    if (s == PN_OK)
        return PN_OK;
    if (named)
        pn_error_wrap(&why, "plugin named by [plugins] load");
    return refuse(rt, rec, s, &why, err);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names ending in .so of a folder, sorted; hidden ones (files half written) are left out. */
static pn_status list_folder(const char *folder, char ***names, size_t *count, pn_error *err)
{
    size_t capacity = 0;
    struct dirent *e;
    pn_status s = PN_OK;
    DIR *dir = opendir(folder);
    if (!dir) {
        s = pn_fail(err, PN_E_IO, "%s: the plugin folder cannot be read: %s", folder, strerror(errno));
        return s;
    }
    while (s == PN_OK && (e = readdir(dir))) {
        size_t n = strlen(e->d_name);
        if (n < 4 || e->d_name[0] == '.' || strcmp(e->d_name + n - 3, ".so") != 0)
            continue;
        if ((s = pn_grow((void **)names, *count, &capacity, sizeof **names, err)) != PN_OK)
            break;
        if (!((*names)[*count] = pn_strdup(e->d_name)))
            s = nomem(err);
        else
            ++*count;
    }
    closedir(dir);
    if (*count)
        qsort(*names, *count, sizeof **names, by_name);
    return s;
}

static pn_status scan_folder(pn_runtime *rt, const char *folder, pn_error *err)
{
    char **names = NULL;
    size_t count = 0;
    pn_error why = {0};
    pn_status s = list_folder(folder, &names, &count, &why);
    if (s == PN_E_IO) {
        pn_runtime_log(rt, PN_LOG_WARN, "%s", why.message);
        s = PN_OK;
    } else if (s != PN_OK && err) {
        *err = why;
    }
    for (size_t i = 0; s == PN_OK && i < count; i++) {
        size_t n = strlen(folder) + strlen(names[i]) + 2;
        char *path = pn_calloc(n, 1);
        if (!path) {
            s = nomem(err);
            break;
        }
        snprintf(path, n, "%s/%s", folder, names[i]);
        s = add_file(rt, path, 0, err);
        pn_free(path);
    }
    for (size_t i = 0; i < count; i++)
        pn_free(names[i]);
    pn_free(names);
    return s;
}

/* ---- versions and init ------------------------------------------------------------------------------------------- */

/* The undecided record of this id with the newest version; the first found among equals. */
static size_t newest(const pn_runtime *rt, const char *id)
{
    size_t best = 0;
    for (size_t i = 1; i < rt->n_plugins; i++) {
        const pn_plugin_rec *r = rt->plugins[i];
        if (r->state == 0 && r->descriptor && !strcmp(r->id, id) &&
            (!best || pn_version_compare(r->version, rt->plugins[best]->version) > 0))
            best = i;
    }
    return best;
}

static pn_status replace_others(pn_runtime *rt, const pn_plugin_rec *winner, pn_error *err)
{
    for (size_t i = 1; i < rt->n_plugins; i++) {
        pn_plugin_rec *r = rt->plugins[i];
        char text[2 * PATH_MAX];
        if (r == winner || r->state != 0 || !r->descriptor || strcmp(r->id, winner->id) != 0)
            continue;
        int same = pn_version_compare(r->version, winner->version) == 0;
        snprintf(text, sizeof text, "%s: version %s of %s gives way to version %s in %s%s", r->path, r->version, r->id,
                 winner->version, winner->path, same ? ", which was found first" : "");
        r->state = PN_PLUGIN_REPLACED;
        if (!(r->reason = pn_strdup(text)))
            return nomem(err);
        /* The user asked for that very file: say so aloud. */
        pn_runtime_log(rt, r->named ? PN_LOG_WARN : PN_LOG_DEBUG, "%s", text);
    }
    return PN_OK;
}

/* Call init of plugin `index`; what it registered is undone when it fails. */
static pn_status start_plugin(pn_runtime *rt, size_t index, pn_error *why)
{
    pn_plugin_rec *rec = rt->plugins[index];
    size_t before = rt->n_regs;
    pn_status s = pn_host_open(rt, (uint32_t)index, rec->descriptor, &rec->host, why);
    if (s != PN_OK)
        return s;
    memset(why, 0, sizeof *why);
    pn_host_begin_init(rec->host);
    s = rec->descriptor ? rec->descriptor->init(rec->host, why) : pn_builtin_register(rec->host, why);
    pn_host_end_init(rec->host);
    if (s == PN_OK)
        return PN_OK;
    pn_registry_truncate(rt, before);
    pn_host_close(rec->host);
    rec->host = NULL;
    why->message[sizeof why->message - 1] = 0;
    if (!why->message[0])
        pn_fail(why, s, "it returned status %d (%s) without saying why", (int)s, pn_status_name(s));
    why->status = s;
    pn_error_wrap(why, "%s: init of %s %s failed", rec->path[0] ? rec->path : "core", rec->id, rec->version);
    return s;
}

/* Plugins in the order found; of each id the newest whose init succeeds. */
static pn_status start_all(pn_runtime *rt, pn_error *err)
{
    for (size_t i = 1; i < rt->n_plugins; i++) {
        size_t w;
        while (rt->plugins[i]->state == 0 && (w = newest(rt, rt->plugins[i]->id))) {
            pn_error why = {0};
            pn_plugin_rec *rec = rt->plugins[w];
            pn_status s = start_plugin(rt, w, &why);
            if (rt->conflict)           /* guessing who was meant would change results: a pin decides */
                return pn_fail(err, PN_E_CONFLICT, "%s", rt->conflict);
            if (s != PN_OK) {
                if ((s = refuse(rt, rec, s, &why, err)) != PN_OK)
                    return s;
                continue;
            }
            rec->state = PN_PLUGIN_LOADED;
            pn_runtime_log(rt, PN_LOG_DEBUG, "plugin loaded: %s %s (%s)", rec->id, rec->version, rec->path);
            if ((s = replace_others(rt, rec, err)) != PN_OK)
                return s;
        }
    }
    return PN_OK;
}

static pn_status start_core(pn_runtime *rt, pn_error *err)
{
    pn_plugin_rec *core = NULL;
    pn_error why = {0};
    pn_status s = new_record(rt, "", &core, err);
    if (s != PN_OK)
        return s;
    core->id = pn_strdup("org.pantheon.core");
    core->version = pn_strdup(pn_version());
    core->licence = pn_strdup("MIT");
    core->summary = pn_strdup("what the core itself brings");
    if (!core->id || !core->version || !core->licence || !core->summary)
        return nomem(err);
    s = start_plugin(rt, 0, &why);
    if (s != PN_OK) {
        if (err)
            *err = why;
        return s;
    }
    core->state = PN_PLUGIN_LOADED;
    return PN_OK;
}

/* An empty registry helps nobody: say at once where plugins were looked for and what was wrong with those found. */
static pn_status check_any(const pn_runtime *rt, pn_error *err)
{
    char folders[2048], reasons[1900];
    pn_text t = { reasons, sizeof reasons, 0 };
    size_t refused = 0;
    reasons[0] = 0;
    for (size_t i = 1; i < rt->n_plugins; i++) {
        if (rt->plugins[i]->state == PN_PLUGIN_LOADED)
            return PN_OK;
        if (rt->plugins[i]->state == PN_PLUGIN_REFUSED && refused++ < 8)
            pn_text_add(&t, "\n  refused: %s", rt->plugins[i]->reason);
    }
    if (refused > 8)
        pn_text_add(&t, "\n  and %zu more", refused - 8);
    pn_runtime_folders_text(rt, folders, sizeof folders);
    return pn_fail(err, PN_E_NOT_FOUND,
                   "no plugin could be loaded; searched: %s. Name a folder of plugins by PANTHEON_PLUGIN_PATH or"
                   " [plugins] path%s",
                   folders, reasons);
}

pn_status pn_loader_run(pn_runtime *rt, pn_error *err)
{
    const char *item;
    pn_status s = find_folders(rt, err);
    if (s == PN_OK)
        s = start_core(rt, err);
    for (size_t i = 0; s == PN_OK && (item = pn_config_item(rt->config, "plugins", "load", i)); i++)
        if (*item)
            s = add_file(rt, item, 1, err);
    for (size_t i = 0; s == PN_OK && i < rt->n_folders; i++)
        if (rt->folders[i].present)
            s = scan_folder(rt, rt->folders[i].path, err);
    if (s == PN_OK)
        s = start_all(rt, err);
    return s == PN_OK ? check_any(rt, err) : s;
}
