/* Opens models: finds the architecture that a file names and lets it write the plan. */
#include "model.h"

#include "alloc.h"
#include "file.h"
#include "registry.h"

#include <inttypes.h>

/* The architecture plugin reads parameters and writes the plan. */
static pn_status build(pn_model *m, const pn_reg_entry *e, const char *name, pn_error *err)
{
    const pn_arch *arch = e->item;
    void *params = NULL;
    pn_status st = arch->configure(e->host, m->file, name, &params, err);
    if (!st) st = pn_plan_create(m->runtime, m->file, &m->plan, err);
    if (!st) st = arch->build(e->host, m->plan, params, err);
    if (params && arch->release) arch->release(e->host, params);
    return st ? st : pn_plan_finish(m->plan, err);
}

/* Ids must have a row in every embedding. */
static int32_t embedding_rows(const pn_plan *p)
{
    uint64_t least = INT32_MAX;
    for (uint32_t i = 0; i < p->n_nodes; i++)
        if (p->nodes[i].kind == PN_OP_EMBED && p->weights[p->nodes[i].weights[0]].q.rows < least)
            least = p->weights[p->nodes[i].weights[0]].q.rows;
    return (int32_t)least;
}

static pn_status fill(pn_model *m, pn_error *err)
{
    pn_role_value v = {.struct_size = sizeof v};
    const char *name = NULL, *path = pn_file_path(m->file);
    int64_t context = 0;
    pn_status st = pn_file_role(m->file, PN_ROLE_ARCHITECTURE, &v, err);
    if (st) return st;
    if (!v.present || v.value.type != PN_T_STRING)
        return pn_fail(err, PN_E_FORMAT, "%s: the file does not say which architecture it is for (key '%s')", path,
                       v.key);
    m->arch = pn_strndup(v.value.as.s.data, v.value.as.s.size);
    if (!m->arch) return pn_fail(err, PN_E_NOMEM, "no memory for a model");
    const pn_reg_entry *e = pn_registry_arch(m->runtime, v.value.as.s, &name);
    if (!e) {
        pn_registry_missing(m->runtime, PN_KIND_ARCH, v.value.as.s, err);
        return pn_error_wrap(err, "%s", path);
    }
    v = (pn_role_value){.struct_size = sizeof v};
    if ((st = pn_file_role(m->file, PN_ROLE_CONTEXT_LENGTH, &v, err))) return st;
    if (v.present && (!pn_value_int(&v.value, &context) || context < 1 || context > INT32_MAX))
        return pn_fail(err, PN_E_FORMAT, "%s: '%s' is no context length (1 to %" PRId32 " is possible)", path, v.key,
                       INT32_MAX);
    m->context = (int32_t)context;
    if ((st = build(m, e, name, err))) return st;
    m->vocab = (int32_t)m->plan->values[m->plan->output].width;
    m->n_tokens = embedding_rows(m->plan);
    return pn_file_prepare(m->file, err);
}

static pn_status make(pn_runtime *rt, pn_file *file, int owns, pn_model **out, pn_error *err)
{
    pn_error own; /* plugins are promised one */
    pn_model *m = pn_calloc(1, sizeof *m);
    err = err ? err : &own;
    if (!m) {
        if (owns) pn_file_destroy(file);
        return pn_fail(err, PN_E_NOMEM, "no memory for a model");
    }
    m->runtime = rt;
    m->file = file;
    m->owns_file = owns;
    pn_status st = fill(m, err);
    if (st) pn_model_destroy(m);
    else *out = m;
    return st;
}

pn_status pn_model_from_file(pn_runtime *rt, pn_file *file, pn_model **out, pn_error *err)
{
    if (!rt || !file || !out) return pn_fail(err, PN_E_ARGUMENT, "pn_model_from_file: an argument is NULL");
    return make(rt, file, 0, out, err);
}

pn_status pn_model_open(pn_runtime *rt, const char *path, pn_model **out, pn_error *err)
{
    pn_file *file = NULL;
    if (!rt || !out) return pn_fail(err, PN_E_ARGUMENT, "pn_model_open: an argument is NULL");
    if (!path) path = pn_config_text(pn_runtime_config(rt), "model", "path");
    if (!path || !*path)
        return pn_fail(err, PN_E_ARGUMENT, "no model file is named: give a path, or set [model] path in an INI file");
    pn_status st = pn_file_open(rt, path, &file, err);
    return st ? st : make(rt, file, 1, out, err);
}

void pn_model_destroy(pn_model *m)
{
    if (!m) return;
    pn_plan_destroy(m->plan);
    if (m->owns_file) pn_file_destroy(m->file);
    pn_free(m->arch);
    pn_free(m);
}

pn_file *pn_model_file(pn_model *m)
{
    return m->file;
}
int32_t pn_model_vocab(const pn_model *m)
{
    return m->vocab;
}
int32_t pn_model_context(const pn_model *m)
{
    return m->context;
}
const char *pn_model_arch(const pn_model *m)
{
    return m->arch;
}
uint64_t pn_model_weight_bytes(const pn_model *m)
{
    return pn_plan_weight_bytes(m->plan);
}
double pn_model_multiply_adds(const pn_model *m, uint64_t tokens, uint64_t outputs)
{
    return pn_plan_multiply_adds(m->plan, tokens, outputs);
}
size_t pn_model_describe(const pn_model *m, char *text, size_t capacity)
{
    return pn_plan_describe(m->plan, text, capacity);
}
