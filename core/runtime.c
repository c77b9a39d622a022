/* The runtime: made from a configuration, holds plugins and registry, answers questions about both. */
#include "runtime.h"
#include "alloc.h"
#include "config.h"
#include "cpu.h"

#include <stdlib.h>

void pn_runtime_log(const pn_runtime *rt, uint32_t level, const char *format, ...)
{
    char text[4096];
    va_list ap;
    if (!rt->log)
        return;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    rt->log(rt->log_arg, level, text);
}

static pn_status take_config(pn_runtime *rt, const pn_config *config, pn_error *err)
{
    pn_status s = config ? pn_config_clone(config, &rt->config, err) : pn_config_create(&rt->config, err);
    if (s != PN_OK)
        return s;
    const char *mode = pn_config_text(rt->config, "runtime", "activations");
    rt->precision = mode && !strcmp(mode, "fast") ? PN_FAST : PN_EXACT;
    return PN_OK;
}

static pn_status take_cpu(pn_runtime *rt, pn_error *err)
{
    const char *level = getenv("PANTHEON_CPU");
    uint64_t have = pn_cpu_detect();
    return pn_cpu_lower(have, level, &rt->cpu, err);
}

pn_status pn_runtime_create(const pn_config *config, const pn_runtime_options *options, pn_runtime **out, pn_error *err)
{
    pn_runtime_options o = PN_OPTIONS_INIT(pn_runtime_options);
    pn_runtime *rt = pn_calloc(1, sizeof *rt);
    if (!rt)
        return pn_fail(err, PN_E_NOMEM, "no memory for a runtime");
    if (options)
        memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
    rt->log = o.log;
    rt->log_arg = o.log_arg;
    pn_status s = take_config(rt, config, err);
    if (s == PN_OK)
        s = take_cpu(rt, err);
    if (s == PN_OK)
        s = pn_loader_run(rt, err);
    if (s == PN_OK)
        s = pn_registry_settle(rt, err);
    if (s != PN_OK) {
        pn_runtime_destroy(rt);
        return s;
    }
    *out = rt;
    return PN_OK;
}

void pn_runtime_destroy(pn_runtime *rt)
{
    if (!rt)
        return;
    pn_registry_free(rt);
    for (size_t i = 0; i < rt->n_plugins; i++) {
        pn_plugin_rec *p = rt->plugins[i];
        pn_host_close(p->host);
        pn_free(p->path);
        pn_free(p->id);
        pn_free(p->version);
        pn_free(p->licence);
        pn_free(p->summary);
        pn_free(p->reason);
        pn_free(p);
    }
    pn_free(rt->plugins);
    for (size_t i = 0; i < rt->n_folders; i++)
        pn_free(rt->folders[i].path);
    pn_free(rt->folders);
    pn_free(rt->conflict);
    pn_config_destroy(rt->config);
    pn_free(rt);
}

const pn_config *pn_runtime_config(const pn_runtime *rt)
{
    return rt->config;
}

uint64_t pn_runtime_cpu(const pn_runtime *rt)
{
    return rt->cpu;
}

/* Fill a caller's struct as far as its struct_size goes. */
static pn_status give(void *out, uint32_t room, const void *from, size_t size, const char *what, pn_error *err)
{
    if (room < 2 * sizeof(uint32_t))
        return pn_fail(err, PN_E_ARGUMENT, "%s: struct_size is %u; set it to sizeof", what, (unsigned)room);
    memcpy(out, from, room < size ? room : size);
    memcpy(out, &room, sizeof room);
    return PN_OK;
}

static const char *text_or_empty(const char *text)
{
    return text ? text : "";
}

pn_status pn_runtime_plugin(const pn_runtime *rt, size_t index, pn_plugin_report *out, pn_error *err)
{
    if (index >= rt->n_plugins)
        return pn_fail(err, PN_E_RANGE, "there is no plugin %zu; there are %zu", index, rt->n_plugins);
    const pn_plugin_rec *p = rt->plugins[index];
    pn_plugin_report r = {
        .state = p->state,
        .path = text_or_empty(p->path),
        .id = text_or_empty(p->id),
        .version = text_or_empty(p->version),
        .licence = text_or_empty(p->licence),
        .summary = text_or_empty(p->summary),
        .reason = text_or_empty(p->reason),
    };
    return give(out, out->struct_size, &r, sizeof r, "pn_plugin_report", err);
}

pn_status pn_runtime_registration(const pn_runtime *rt, size_t index, pn_registration *out, pn_error *err)
{
    if (index >= rt->n_regs)
        return pn_fail(err, PN_E_RANGE, "there is no registration %zu; there are %zu", index, rt->n_regs);
    const pn_reg *g = rt->regs[index];
    pn_registration r = {
        .kind = g->e.kind,
        .plugin = g->e.plugin,
        .score = g->score,
        .usable = g->e.usable ? 1u : 0u,
        .chosen = g->chosen ? 1u : 0u,
        .name = g->e.name,
        .quant = g->quant,
        .packing = g->packing,
        .precision = g->precision,
        .cpu_features = g->cpu_features,
        .note = text_or_empty(g->note),
        .item = g->e.item,
    };
    return give(out, out->struct_size, &r, sizeof r, "pn_registration", err);
}

const void *pn_runtime_find(const pn_runtime *rt, uint32_t kind, const char *name)
{
    const pn_reg_entry *e =
        kind == PN_KIND_ARCH ? pn_registry_arch(rt, pn_str_from(name), NULL) : pn_registry_find(rt, kind, name);
    return e ? e->item : NULL;
}

const char *pn_runtime_folder(const pn_runtime *rt, size_t index, const char **why, int *present)
{
    if (index >= rt->n_folders)
        return NULL;
    if (why)
        *why = rt->folders[index].why;
    if (present)
        *present = rt->folders[index].present;
    return rt->folders[index].path;
}
