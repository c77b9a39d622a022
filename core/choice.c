/* Which kernel and which packing: mode, then pins, then the highest score that runs here. */
#include "alloc.h"
#include "runtime.h"

const pn_reg *pn_registry_packing(const pn_runtime *rt, const char *name)
{
    const pn_reg *best = NULL;
    for (size_t i = 0; i < rt->n_regs; i++) {
        const pn_reg *r = rt->regs[i];
        if (r->e.kind == PN_KIND_PACKING && r->n_active && r->e.usable && !strcmp(r->e.name, name) &&
            (!best || r->score > best->score))
            best = r;
    }
    return best;
}

/* Why a kernel cannot serve the type (and this weight, unless NULL) in a mode; NULL when it can. */
static const char *unfit(const pn_runtime *rt, const pn_reg *r, const pn_quant *type, const pn_qweight *weight,
                         uint32_t precision)
{
    const pn_kernel *k = &r->item.kernel;
    const pn_reg *packing = pn_registry_packing(rt, k->packing);
    if (strcmp(k->quant, type->name) != 0)
        return "it is for another type";
    if (!r->e.usable)
        return "the CPU (or PANTHEON_CPU) lacks a feature that it needs";
    if (!packing)
        return "its packing is not loaded, or needs a CPU feature that is absent";
    if ((type->flags & PN_QUANT_FLOAT) && strcmp(k->packing, "f32") != 0)
        return "the type's activations stay float in every mode";
    if (packing->item.packing.precision != precision)
        return precision == PN_EXACT ? "it is for fast activations" : "it is for exact activations";
    if (weight && !packing->item.packing.column_bytes((size_t)weight->cols))
        return "its packing cannot hold so long a column";
    if (weight && k->accepts && !k->accepts(weight))
        return "it does not accept this weight";
    return NULL;
}

static const char *pinned_kernel(const pn_runtime *rt, const pn_quant *type)
{
    const char *name = pn_config_text(rt->config, "kernels", type->name);
    return name && *name ? name : NULL;
}

static const pn_reg *kernel_named(const pn_runtime *rt, const char *name)
{
    for (size_t i = 0; i < rt->n_regs; i++)
        if (rt->regs[i]->e.kind == PN_KIND_KERNEL && rt->regs[i]->n_active && !strcmp(rt->regs[i]->e.name, name))
            return rt->regs[i];
    return NULL;
}

/* The best by score; the first registered among equals. *rival: one with the same score, or NULL. */
static const pn_reg *best_kernel(const pn_runtime *rt, const pn_quant *type, const pn_qweight *weight,
                                 uint32_t precision, const pn_reg **rival)
{
    const pn_reg *best = NULL;
    *rival = NULL;
    for (size_t i = 0; i < rt->n_regs; i++) {
        const pn_reg *r = rt->regs[i];
        if (r->e.kind != PN_KIND_KERNEL || !r->n_active || r->score <= 0 || unfit(rt, r, type, weight, precision))
            continue;
        if (!best || r->score > best->score) {
            best = r;
            *rival = NULL;
        } else if (r->score == best->score && !*rival) {
            *rival = r;
        }
    }
    return best;
}

/* A pin that cannot be obeyed on this machine is an error; one of another mode, or refusing this one weight, is passed
 * over and said. */
static pn_status obey_pin(const pn_runtime *rt, const pn_quant *type, const pn_qweight *weight, uint32_t precision,
                          const pn_reg **out, const char **passed_over, pn_error *err)
{
    const char *name = pinned_kernel(rt, type), *why;
    const pn_reg *r = name ? kernel_named(rt, name) : NULL;
    *out = NULL;
    *passed_over = NULL;
    if (!name)
        return PN_OK;
    if (!r)
        return pn_fail(err, PN_E_CONFIG,
                       "[kernels] %s = %s: no such kernel is loaded; pantheon plugins lists those that are", type->name,
                       name);
    if (strcmp(r->item.kernel.quant, type->name) != 0)
        return pn_fail(err, PN_E_CONFIG, "[kernels] %s = %s: that kernel is for type %s", type->name, name,
                       r->item.kernel.quant);
    if (!r->e.usable) {
        char names[256];
        return pn_fail(err, PN_E_CPU, "[kernels] %s = %s: that kernel needs %s, which the CPU (or PANTHEON_CPU) lacks",
                       type->name, name, pn_cpu_names(r->cpu_features & ~rt->cpu, names, sizeof names));
    }
    why = unfit(rt, r, type, weight, precision);
    if (why && precision == PN_FAST && !unfit(rt, r, type, weight, PN_EXACT))
        why = NULL;             /* more exact than asked for is no harm */
    *passed_over = why;
    *out = why ? NULL : r;
    return PN_OK;
}

static pn_status pick(const pn_runtime *rt, const pn_quant *type, const pn_qweight *weight, uint32_t precision,
                      const pn_reg **out, const pn_reg **rival, char *why, size_t capacity, pn_error *err)
{
    const char *passed_over;
    char pin[320] = "";
    pn_status s = obey_pin(rt, type, weight, precision, out, &passed_over, err);
    *rival = NULL;
    if (s != PN_OK)
        return s;
    if (*out) {
        snprintf(why, capacity, "pinned by [kernels] %s", type->name);
        return PN_OK;
    }
    if (passed_over)
        snprintf(pin, sizeof pin, "; the pinned %.100s is passed over: %s", pinned_kernel(rt, type), passed_over);
    int fell_back = 0;
    *out = best_kernel(rt, type, weight, precision, rival);
    if (!*out && precision == PN_FAST) {
        *out = best_kernel(rt, type, weight, PN_EXACT, rival);
        fell_back = *out != NULL;
    }
    if (!*out)
        snprintf(why, capacity, "no kernel fits: dequantized row by row%s", pin);
    else
        snprintf(why, capacity, "score %d%s%s%s%s%s", (int)(*out)->score,
                 fell_back ? ", exact as there is no fast one" : "", *rival ? ", registered before " : "",
                 *rival ? (*rival)->e.name : "", *rival ? " of the same score" : "", pin);
    return PN_OK;
}

pn_status pn_registry_pick_kernel(const pn_runtime *rt, const pn_qweight *weight, uint32_t precision,
                                  const pn_kernel **kernel, const pn_packing **packing, char *why, size_t capacity,
                                  pn_error *err)
{
    char text[512];
    const pn_reg *r, *rival;
    uint32_t mode = weight->type->flags & PN_QUANT_FLOAT ? PN_EXACT : precision;
    pn_status s = pick(rt, weight->type, weight, mode, &r, &rival, text, sizeof text, err);
    if (s != PN_OK)
        return s;
    if (why && capacity)
        snprintf(why, capacity, "%s", text);
    *kernel = r ? &r->item.kernel : NULL;
    *packing = r ? &pn_registry_packing(rt, r->packing)->item.packing : NULL;
    return PN_OK;
}

/* ---- what is shown of it ----------------------------------------------------------------------------------------- */

static pn_status settle_packing(const pn_runtime *rt, pn_reg *r, pn_error *err)
{
    const pn_reg *best = pn_registry_packing(rt, r->e.name);
    r->chosen = r == best;
    if (r != best && best && r->e.usable && r->n_active && r->score == best->score)
        return pn_reg_note(r, err, "same score as another '%s' of %s, which was registered first", r->e.name,
                           rt->plugins[best->e.plugin]->id);
    return PN_OK;
}

static pn_status settle_type(pn_runtime *rt, const pn_quant *type, pn_error *err)
{
    const pn_reg *r, *rival;
    char why[512];
    pn_error local = {0};
    uint32_t mode = type->flags & PN_QUANT_FLOAT ? PN_EXACT : rt->precision;
    pn_status s = pick(rt, type, NULL, mode, &r, &rival, why, sizeof why, &local);
    if (s != PN_OK) {           /* only an error once the type is used */
        pn_runtime_log(rt, PN_LOG_WARN, "%s", local.message);
        return PN_OK;
    }
    if (strstr(why, "passed over"))
        pn_runtime_log(rt, PN_LOG_WARN, "type %s: %s", type->name, why);
    for (size_t i = 0; i < rt->n_regs; i++) {
        pn_reg *k = rt->regs[i];
        if (k == r) {
            k->chosen = 1;
            if ((rival || pinned_kernel(rt, type)) && (s = pn_reg_note(k, err, "%s", why)) != PN_OK)
                return s;
        } else if (k == rival &&
                   (s = pn_reg_note(k, err, "same score as %s, which was registered first", r->e.name)) != PN_OK) {
            return s;
        }
    }
    return PN_OK;
}

pn_status pn_choice_settle(pn_runtime *rt, pn_error *err)
{
    const pn_reg_entry *e;
    pn_status s = PN_OK;
    for (size_t i = 0; s == PN_OK && i < rt->n_regs; i++) {
        pn_reg *r = rt->regs[i];
        if (r->e.kind == PN_KIND_PACKING)
            s = settle_packing(rt, r, err);
        else if (r->e.kind != PN_KIND_KERNEL)
            r->chosen = r->n_active > 0;
    }
    for (size_t i = 0; s == PN_OK && i < rt->n_regs; i++) {
        pn_reg *r = rt->regs[i];
        if (r->e.kind != PN_KIND_KERNEL)
            continue;
        const pn_reg *p = pn_registry_packing(rt, r->packing);
        r->precision = p ? p->item.packing.precision : 0;
        if (!p)
            s = pn_reg_note(r, err, "packing '%s' is not loaded, or needs a CPU feature that is absent", r->packing);
        if (s == PN_OK && !pn_registry_find(rt, PN_KIND_QUANT, r->quant))
            s = pn_reg_note(r, err, "type '%s' is not loaded", r->quant);
        if (s == PN_OK && r->score == 0)
            s = pn_reg_note(r, err, "score 0: only when pinned");
    }
    for (size_t i = 0; s == PN_OK && (e = pn_registry_at(rt, PN_KIND_QUANT, i)); i++)
        s = settle_type(rt, e->item, err);
    return s;
}
