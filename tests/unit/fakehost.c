/* A host for plugins under test; see fakehost.h. */
#include "fakehost.h"

#include <dlfcn.h>
#include <stdlib.h>

static fake_host *of(const pn_host *host)
{
    return host->context;
}

static int fails(fake_host *f)
{
    f->allocations++;
    return f->fail_at && --f->fail_at == 0;
}

static pn_status take(const pn_host *host, size_t count, size_t size, void **out, pn_error *err)
{
    void *p;
    if (fails(of(host)) || !(p = calloc(count ? count : 1, size ? size : 1)))
        return pn_fail(err, PN_E_NOMEM, "out of memory");
    of(host)->live++;
    *out = p;
    return PN_OK;
}

static pn_status resize(const pn_host *host, size_t count, size_t size, void **inout, pn_error *err)
{
    void *p;
    int first = !*inout;
    if (fails(of(host)) || !(p = reallocarray(*inout, count ? count : 1, size ? size : 1)))
        return pn_fail(err, PN_E_NOMEM, "out of memory");
    of(host)->live += first;
    *inout = p;
    return PN_OK;
}

static pn_status give(const pn_host *host, void *memory, pn_error *err)
{
    (void)err;
    of(host)->live -= memory != NULL;
    free(memory);
    return PN_OK;
}

static pn_status say(const pn_host *host, uint32_t level, const char *message, pn_error *err)
{
    fake_host *f = of(host);
    (void)err;
    f->warnings += level == PN_LOG_WARN;
    snprintf(f->log, sizeof f->log, "%s", message);
    return PN_OK;
}

static pn_status file_role(const pn_host *host, pn_file *file, const char *role, pn_role_value *out, pn_error *err)
{
    fake_host *f = of(host);
    size_t i;
    (void)file;
    (void)err;
    out->present = 0;
    snprintf(out->key, sizeof out->key, "the.%s", role);
    for (i = 0; i < f->n_roles; i++)
        if (!strcmp(f->roles[i].role, role)) {
            out->present = 1;
            out->value = f->roles[i].value;
        }
    return PN_OK;
}

static pn_status take_tokenizer(const pn_host *host, const pn_tokenizer_type *t, pn_error *err)
{
    (void)err;
    of(host)->tokenizer = *t;
    return PN_OK;
}

static pn_status take_template(const pn_host *host, const pn_template_type *t, pn_error *err)
{
    (void)err;
    of(host)->template_type = *t;
    return PN_OK;
}

void fake_init(fake_host *f)
{
    memset(f, 0, sizeof *f);
    f->host.struct_size = sizeof f->host;
    f->host.abi_major = PN_ABI_MAJOR;
    f->host.abi_minor = PN_ABI_MINOR;
    f->host.context = f;
    f->host.alloc = take;
    f->host.resize = resize;
    f->host.free = give;
    f->host.log = say;
    f->host.file_role = file_role;
    f->host.register_tokenizer = take_tokenizer;
    f->host.register_template = take_template;
}

void fake_load(fake_host *f, const char *name)
{
    const char *build = getenv("PN_BUILD");
    char path[4096];
    const pn_plugin *plugin;
    void *handle;
    pn_error err = { 0 };
    snprintf(path, sizeof path, "%s/plugins/%s.so", build ? build : "build", name);
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    plugin = handle ? dlsym(handle, PN_PLUGIN_SYMBOL) : NULL;
    if (!plugin || plugin->init(&f->host, &err)) {
        fprintf(stderr, "%s cannot be loaded: %s\n", path, handle ? err.message : dlerror());
        exit(1);
    }
}

void fake_set(fake_host *f, const char *role, pn_value value)
{
    size_t i;
    for (i = 0; i < f->n_roles && strcmp(f->roles[i].role, role); i++)
        ;
    if (i == FAKE_ROLES)
        abort();
    f->n_roles += i == f->n_roles;
    f->roles[i].role = role;
    f->roles[i].value = value;
}

void fake_unset(fake_host *f, const char *role)
{
    size_t i;
    for (i = 0; i < f->n_roles; i++)
        if (!strcmp(f->roles[i].role, role)) {
            f->roles[i] = f->roles[--f->n_roles];
            return;
        }
}

pn_value fake_int(int64_t i)
{
    pn_value v = { .type = PN_T_I64 };
    v.as.i = i;
    return v;
}

pn_value fake_string(const char *text)
{
    pn_value v = { .type = PN_T_STRING };
    v.as.s = pn_str_from(text);
    return v;
}

pn_value fake_strings(const pn_str *items, size_t n)
{
    pn_value v = { .type = PN_T_ARRAY, .item_type = PN_T_STRING, .count = n };
    v.as.items = items;
    return v;
}

pn_value fake_ints(const int32_t *items, size_t n)
{
    pn_value v = { .type = PN_T_ARRAY, .item_type = PN_T_I32, .count = n };
    v.as.items = items;
    return v;
}

pn_file *fake_file(fake_host *f)
{
    return (pn_file *)f;
}
