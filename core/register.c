/* What plugins hand over in `init`: each struct is copied as far as its own size goes, checked, and kept. */
#include "alloc.h"
#include "runtime.h"

#include <errno.h>

#define NAME_MAX_BYTES 127      /* of identities */
#define ANSWER_MAX_BYTES 255    /* of what architectures and tokenizers answer to: the words of model files */

/* One registration under way. */
typedef struct intake {
    pn_runtime *rt;
    pn_plugin_rec *plugin;
    pn_reg *reg;
    pn_error *err;
    const char *word;           /* "quantization type" */
} intake;

const char *pn_kind_word(uint32_t kind)
{
    switch (kind) {
    case PN_KIND_FORMAT: return "format";
    case PN_KIND_QUANT: return "quantization type";
    case PN_KIND_PACKING: return "packing";
    case PN_KIND_KERNEL: return "kernel";
    case PN_KIND_OP: return "operation";
    case PN_KIND_ARCH: return "architecture";
    case PN_KIND_TOKENIZER: return "tokenizer";
    case PN_KIND_TEMPLATE: return "template";
    default: return "thing";
    }
}

/* Begin: a zeroed full-size copy of `item`. `least`: bytes of the struct in ABI 1.0 that a plugin must fill. */
static pn_status begin(intake *in, const pn_host *host, uint32_t kind, const void *item, size_t least, size_t full,
                       pn_error *err)
{
    uint32_t index, size;
    pn_status s = pn_host_registering(host, &in->rt, &index, err);
    if (s != PN_OK)
        return s;
    in->plugin = in->rt->plugins[index];
    in->err = err;
    in->word = pn_kind_word(kind);
    in->reg = NULL;
    if (!item)
        return pn_fail(err, PN_E_ARGUMENT, "registering a %s: the struct is NULL", in->word);
    memcpy(&size, item, sizeof size);
    if (size < least)
        return pn_fail(
            err, PN_E_ABI,
            "registering a %s: struct_size is %u; wanted: at least %zu. Set it to sizeof and build the plugin"
            " with this Pantheon's headers",
            in->word, (unsigned)size, least);
    pn_reg *r = pn_calloc(1, sizeof *r);
    if (!r)
        return pn_fail(err, PN_E_NOMEM, "registering a %s: no memory", in->word);
    memcpy(&r->item, item, size < full ? size : full);
    uint32_t ours = (uint32_t)full;
    memcpy(&r->item, &ours, sizeof ours);
    r->e.kind = kind;
    r->e.plugin = index;
    r->e.item = &r->item;
    r->e.host = host;
    r->quant = r->packing = "";
    in->reg = r;
    return PN_OK;
}

static pn_status drop(intake *in, pn_status s)
{
    pn_free(in->reg);
    return s;
}

PN_PRINTF(3, 4) static pn_status bad(intake *in, const char *field, const char *format, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    return pn_fail(in->err, PN_E_ARGUMENT, "registering %s '%.130s': field %s %s", in->word,
                   in->reg->e.name ? in->reg->e.name : "?", field, text);
}

static pn_status required(intake *in, const char *field, int there)
{
    return there ? PN_OK : bad(in, field, "is NULL; wanted: a function");
}

/* Identities appear in configurations and messages: no blanks, no '='. */
static pn_status check_identity(intake *in, const char *field, const char *name)
{
    size_t n = name ? strlen(name) : 0;
    if (n < 1 || n > NAME_MAX_BYTES)
        return bad(in, field, "has %zu bytes; wanted: 1 to %d", n, NAME_MAX_BYTES);
    for (size_t i = 0; i < n; i++)
        if (!((name[i] >= 'a' && name[i] <= 'z') || (name[i] >= 'A' && name[i] <= 'Z') ||
              (name[i] >= '0' && name[i] <= '9') || strchr("._-+", name[i])))
            return bad(in, field, "is '%.130s'; wanted: letters, digits, '.', '_', '-', '+'", name);
    return PN_OK;
}

static pn_status check_answer(intake *in, const char *name)
{
    size_t n = name ? strlen(name) : 0;
    if (n < 1 || n > ANSWER_MAX_BYTES)
        return bad(in, "names", "has an entry of %zu bytes; wanted: 1 to %d", n, ANSWER_MAX_BYTES);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)name[i] < 32 || name[i] == 127)
            return bad(in, "names", "has an entry with control characters");
    return PN_OK;
}

static int answers(const pn_reg *r, const char *name)
{
    for (uint32_t i = 0; i < r->n_names; i++)
        if (!strcmp(r->names[i], name))
            return 1;
    return 0;
}

/* Will (or did) a plugin of this id take part? */
static int takes_part(const pn_runtime *rt, const char *id)
{
    for (size_t i = 0; i < rt->n_plugins; i++) {
        const pn_plugin_rec *p = rt->plugins[i];
        if (p->id && !strcmp(p->id, id) && (i == 0 || p->descriptor) && p->state != PN_PLUGIN_REFUSED)
            return 1;
    }
    return 0;
}

/* Does another registration hold the name, with no pin to decide? */
static pn_status check_taken(intake *in, const char *name)
{
    char key[ANSWER_MAX_BYTES + 32];
    pn_runtime *rt = in->rt;
    for (size_t i = 0; i < rt->n_regs; i++) {
        const pn_reg *r = rt->regs[i];
        if (r->e.kind != in->reg->e.kind || !answers(r, name))
            continue;
        if (r->e.plugin == in->reg->e.plugin) {
            if (r->e.kind == PN_KIND_PACKING)
                continue;       /* one per CPU level */
            return pn_fail(in->err, PN_E_ARGUMENT,
                           "registering %s '%s': this plugin has registered it already; wanted: once", in->word, name);
        }
        const pn_plugin_rec *other = rt->plugins[r->e.plugin];
        const char *pin = pn_registry_pin(rt, r->e.kind, name, key, sizeof key);
        if (pin && takes_part(rt, pin))
            continue;
        pn_error local = {0}, *err = in->err ? in->err : &local;
        pn_fail(err, PN_E_CONFLICT,
                "two plugins bring %s '%s': %s (%s) and %s (%s)%s%s%s. Take one away, or decide in the"
                " configuration: %s = %s",
                in->word, name, other->id, other->path[0] ? other->path : "built in", in->plugin->id,
                in->plugin->path[0] ? in->plugin->path : "built in", pin ? "; the pin names " : "", pin ? pin : "",
                pin ? ", which is not loaded" : "", key, other->id);
        /* Kept apart, since init may forget to pass the failure on. */
        if (!rt->conflict && !(rt->conflict = pn_strdup(err->message)))
            return pn_fail(in->err, PN_E_NOMEM, "registering %s '%s': no memory", in->word, name);
        return PN_E_CONFLICT;
    }
    return PN_OK;
}

/* Everything is checked: keep it. Consumes in->reg. */
static pn_status finish(intake *in)
{
    pn_reg *r = in->reg;
    pn_status s = PN_OK;
    if (!r->names) {
        r->names = &r->e.name;
        r->n_names = 1;
    }
    r->e.usable = (r->cpu_features & ~in->rt->cpu) == 0;
    for (uint32_t i = 0; s == PN_OK && i < r->n_names; i++)
        s = check_taken(in, r->names[i]);
    if (s == PN_OK)
        s = pn_grow((void **)&in->rt->regs, in->rt->n_regs, &in->rt->cap_regs, sizeof *in->rt->regs, in->err);
    if (s != PN_OK)
        return drop(in, s);
    in->rt->regs[in->rt->n_regs++] = r;
    return PN_OK;
}

#define END_OF(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))
/* Each step only when those before went well. */
#define STEP(call)          \
    do {                    \
        if (s == PN_OK)     \
            s = (call);     \
    } while (0)

pn_status pn_register_format(const pn_host *host, const pn_format *format, pn_error *err)
{
    intake in;
    pn_status s = begin(&in, host, PN_KIND_FORMAT, format, END_OF(pn_format, role), sizeof *format, err);
    if (s != PN_OK)
        return s;
    const pn_format *f = &in.reg->item.format;
    in.reg->e.name = f->name;
    s = check_identity(&in, "name", f->name);
    STEP(required(&in, "probe", f->probe != NULL));
    STEP(required(&in, "open", f->open != NULL));
    STEP(required(&in, "role", f->role != NULL));
    return s == PN_OK ? finish(&in) : drop(&in, s);
}

static pn_status check_quant(intake *in, const pn_quant *q)
{
    for (const char *c = q->name; *c; c++)
        if (*c >= 'A' && *c <= 'Z')
            return bad(in, "name", "is not in lower case");
    if (q->block_elems < 1)
        return bad(in, "block_elems", "is 0; wanted: at least 1");
    if (q->block_bytes < 1)
        return bad(in, "block_bytes", "is 0; wanted: at least 1");
    if (!q->dequantize)
        return required(in, "dequantize", 0);
    if (q->n_side && !q->side_suffixes)
        return bad(in, "side_suffixes", "is NULL although n_side is %u", (unsigned)q->n_side);
    for (uint32_t i = 0; i < q->n_side; i++)
        if (!q->side_suffixes[i] || !*q->side_suffixes[i])
            return bad(in, "side_suffixes", "has an empty entry %u", (unsigned)i);
    return PN_OK;
}

pn_status pn_register_quant(const pn_host *host, const pn_quant *quant, pn_error *err)
{
    intake in;
    pn_status s = begin(&in, host, PN_KIND_QUANT, quant, END_OF(pn_quant, dequantize), sizeof *quant, err);
    if (s != PN_OK)
        return s;
    in.reg->e.name = in.reg->item.quant.name;
    s = check_identity(&in, "name", in.reg->e.name);
    STEP(check_quant(&in, &in.reg->item.quant));
    return s == PN_OK ? finish(&in) : drop(&in, s);
}

pn_status pn_register_packing(const pn_host *host, const pn_packing *packing, pn_error *err)
{
    intake in;
    pn_status s = begin(&in, host, PN_KIND_PACKING, packing, END_OF(pn_packing, pack), sizeof *packing, err);
    if (s != PN_OK)
        return s;
    const pn_packing *p = &in.reg->item.packing;
    in.reg->e.name = p->name;
    in.reg->score = p->score;
    in.reg->precision = p->precision;
    in.reg->cpu_features = p->cpu_features;
    s = check_identity(&in, "name", p->name);
    if (s == PN_OK && p->precision != PN_EXACT && p->precision != PN_FAST)
        s = bad(&in, "precision", "is %u; wanted: %d (exact) or %d (fast)", (unsigned)p->precision, PN_EXACT, PN_FAST);
    if (s == PN_OK && p->score < 0)
        s = bad(&in, "score", "is %d; wanted: 0 or more", (int)p->score);
    STEP(required(&in, "column_bytes", p->column_bytes != NULL));
    STEP(required(&in, "pack", p->pack != NULL));
    return s == PN_OK ? finish(&in) : drop(&in, s);
}

pn_status pn_register_kernel(const pn_host *host, const pn_kernel *kernel, pn_error *err)
{
    intake in;
    pn_status s = begin(&in, host, PN_KIND_KERNEL, kernel, END_OF(pn_kernel, matmul), sizeof *kernel, err);
    if (s != PN_OK)
        return s;
    const pn_kernel *k = &in.reg->item.kernel;
    in.reg->e.name = k->name;
    in.reg->score = k->score;
    in.reg->cpu_features = k->cpu_features;
    s = check_identity(&in, "name", k->name);
    STEP(check_identity(&in, "quant", k->quant));
    STEP(check_identity(&in, "packing", k->packing));
    in.reg->quant = k->quant;
    in.reg->packing = k->packing;
    if (s == PN_OK && k->score < 0)
        s = bad(&in, "score", "is %d; wanted: 0 or more", (int)k->score);
    if (s == PN_OK && k->row_tile < 1)
        s = bad(&in, "row_tile", "is 0; wanted: at least 1");
    STEP(required(&in, "matmul", k->matmul != NULL));
    return s == PN_OK ? finish(&in) : drop(&in, s);
}

pn_status pn_register_op(const pn_host *host, const pn_op *op, pn_error *err)
{
    intake in;
    pn_status s = begin(&in, host, PN_KIND_OP, op, END_OF(pn_op, run), sizeof *op, err);
    if (s != PN_OK)
        return s;
    const pn_op *o = &in.reg->item.op;
    in.reg->e.name = o->name;
    s = check_identity(&in, "name", o->name);
    if (s == PN_OK && o->axis != PN_AXIS_TOKENS && o->axis != PN_AXIS_UNITS)
        s = bad(&in, "axis", "is %u; wanted: %d (tokens) or %d (units)", (unsigned)o->axis, PN_AXIS_TOKENS,
                PN_AXIS_UNITS);
    STEP(required(&in, "shape", o->shape != NULL));
    STEP(required(&in, "units", o->axis != PN_AXIS_UNITS || o->units != NULL));
    STEP(required(&in, "run", o->run != NULL));
    return s == PN_OK ? finish(&in) : drop(&in, s);
}

static pn_status check_names(intake *in, const char *const *names, uint32_t n)
{
    pn_status s = PN_OK;
    if (n < 1 || !names)
        return bad(in, "names", "is empty; wanted: what it answers to");
    in->reg->e.name = names[0];
    in->reg->names = names;
    in->reg->n_names = n;
    for (uint32_t i = 0; s == PN_OK && i < n; i++) {
        s = check_answer(in, names[i]);
        for (uint32_t k = 0; s == PN_OK && k < i; k++)
            if (!strcmp(names[i], names[k]))
                s = bad(in, "names", "has '%s' twice", names[i]);
    }
    return s;
}

pn_status pn_register_arch(const pn_host *host, const pn_arch *arch, pn_error *err)
{
    intake in;
    pn_status s = begin(&in, host, PN_KIND_ARCH, arch, END_OF(pn_arch, release), sizeof *arch, err);
    if (s != PN_OK)
        return s;
    const pn_arch *a = &in.reg->item.arch;
    s = check_names(&in, a->names, a->n_names);
    STEP(required(&in, "configure", a->configure != NULL));
    STEP(required(&in, "build", a->build != NULL));
    STEP(required(&in, "release", a->release != NULL));
    return s == PN_OK ? finish(&in) : drop(&in, s);
}

pn_status pn_register_tokenizer(const pn_host *host, const pn_tokenizer_type *tokenizer, pn_error *err)
{
    intake in;
    pn_status s =
        begin(&in, host, PN_KIND_TOKENIZER, tokenizer, END_OF(pn_tokenizer_type, token_type), sizeof *tokenizer, err);
    if (s != PN_OK)
        return s;
    const pn_tokenizer_type *t = &in.reg->item.tokenizer;
    s = check_names(&in, t->names, t->n_names);
    STEP(required(&in, "open", t->open != NULL));
    STEP(required(&in, "close", t->close != NULL));
    STEP(required(&in, "info", t->info != NULL));
    STEP(required(&in, "encode", t->encode != NULL));
    STEP(required(&in, "decode", t->decode != NULL));
    STEP(required(&in, "token_type", t->token_type != NULL));
    return s == PN_OK ? finish(&in) : drop(&in, s);
}

pn_status pn_register_template(const pn_host *host, const pn_template_type *type, pn_error *err)
{
    intake in;
    pn_status s = begin(&in, host, PN_KIND_TEMPLATE, type, END_OF(pn_template_type, render), sizeof *type, err);
    if (s != PN_OK)
        return s;
    const pn_template_type *t = &in.reg->item.tmpl;
    in.reg->e.name = t->name;
    s = check_identity(&in, "name", t->name);
    STEP(required(&in, "recognise", t->recognise != NULL));
    STEP(required(&in, "render", t->render != NULL));
    return s == PN_OK ? finish(&in) : drop(&in, s);
}
