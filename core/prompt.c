/* Prompts: from messages to tokens, by a template plugin or by the role strings of [prompt].
 *
 * A renderer gives pieces of text, each markup (its own) or plain (a user's). Control tokens are looked for in markup
 * alone. The text between two of them, markup and plain together, is tokenized as one, because words of both may join;
 * it is tokenized without control tokens, so nothing that a user writes can become one. */
#include "alloc.h"
#include "registry.h"
#include "tokenizer.h"

typedef struct marker {
    char *text;
    size_t size;
    int32_t id;
} marker;

struct pn_prompt {
    const pn_tokenizer *tokenizer;
    const pn_template_type *type;   /* NULL: role strings */
    const pn_host *host;            /* the template plugin's table */
    pn_str source;                  /* the file's template text */
    const char *system;             /* [prompt] system, "" = none */
    const char *strings[3][2];      /* prefix and suffix by role, in the order of `roles` */
    marker *markers;                /* the vocabulary's control tokens */
    size_t n_markers;
    uint8_t begins[256];            /* does a control token's text begin with this byte? */
    int32_t end;                    /* token that ends an assistant's turn, -1 = unknown */
};

static const char *const roles[3] = { "system", "user", "assistant" };

/* ---- rendered text ----------------------------------------------------------------------------------------------- */

typedef struct piece {
    size_t end;                 /* in the text; it begins where the one before ends */
    int markup;
} piece;

typedef struct rendering {
    char *text;
    size_t size, room;
    piece *pieces;              /* neighbours differ in kind */
    size_t n_pieces, pieces_room;
} rendering;

static pn_status grow(void **memory, size_t *room, size_t want, size_t size, pn_error *err)
{
    void *p;
    if (want <= *room)
        return PN_OK;
    want += want / 2 + 64;
    p = pn_realloc(*memory, want, size);
    if (!p)
        return pn_fail(err, PN_E_NOMEM, "no memory for a prompt of %zu bytes", want);
    *memory = p;
    *room = want;
    return PN_OK;
}

static pn_status collect(void *arg, int32_t markup, const char *text, size_t size, pn_error *err)
{
    rendering *r = arg;
    pn_status s;
    if (!size)
        return PN_OK;
    if (size > SIZE_MAX / 4 - r->size)
        return pn_fail(err, PN_E_NOMEM, "a prompt of more than %zu bytes", r->size);
    s = grow((void **)&r->text, &r->room, r->size + size, 1, err);
    if (!s)
        s = grow((void **)&r->pieces, &r->pieces_room, r->n_pieces + 1, sizeof *r->pieces, err);
    if (s)
        return s;
    memcpy(r->text + r->size, text, size);
    r->size += size;
    if (!r->n_pieces || r->pieces[r->n_pieces - 1].markup != (markup != 0))
        r->pieces[r->n_pieces++].markup = markup != 0;
    r->pieces[r->n_pieces - 1].end = r->size;
    return PN_OK;
}

static void rendering_free(rendering *r)
{
    pn_free(r->text);
    pn_free(r->pieces);
}

/* ---- control tokens in markup ------------------------------------------------------------------------------------ */

static pn_status add_marker(pn_prompt *p, size_t *room, int32_t id, pn_error *err)
{
    marker m = { NULL, 0, id };
    pn_status s = pn_tokenizer_decode(p->tokenizer, id, PN_DECODE_SPECIAL, NULL, 0, &m.size, err);
    if ((s && s != PN_E_FULL) || !m.size)
        return s;
    s = grow((void **)&p->markers, room, p->n_markers + 1, sizeof *p->markers, err);
    if (s)
        return s;
    m.text = pn_realloc(NULL, m.size, 1);
    if (!m.text)
        return pn_fail(err, PN_E_NOMEM, "no memory for the control tokens of a vocabulary");
    p->markers[p->n_markers++] = m;
    s = pn_tokenizer_decode(p->tokenizer, id, PN_DECODE_SPECIAL, m.text, m.size, &m.size, err);
    if (!s)
        p->begins[(uint8_t)m.text[0]] = 1;
    return s;
}

static pn_status find_markers(pn_prompt *p, pn_error *err)
{
    int32_t id, n = pn_tokenizer_get_info(p->tokenizer)->n_tokens;
    size_t room = 0;
    pn_status s = PN_OK;
    for (id = 0; !s && id < n; id++)
        if (pn_tokenizer_token_type(p->tokenizer, id) == PN_TOKEN_CONTROL)
            s = add_marker(p, &room, id, err);
    return s;
}

/* The longest control token that the text begins with, or NULL. */
static const marker *marker_at(const pn_prompt *p, const char *text, size_t size)
{
    const marker *best = NULL;
    size_t i;
    if (!p->begins[(uint8_t)text[0]])
        return NULL;
    for (i = 0; i < p->n_markers; i++) {
        const marker *m = &p->markers[i];
        if (m->size <= size && (!best || m->size > best->size) && !memcmp(m->text, text, m->size))
            best = m;
    }
    return best;
}

/* The first control token of a markup text, or -1. */
static int32_t first_marker(const pn_prompt *p, const char *text)
{
    size_t i, size = strlen(text);
    for (i = 0; i < size; i++) {
        const marker *m = marker_at(p, text + i, size - i);
        if (m)
            return m->id;
    }
    return -1;
}

/* ---- rendering to tokens ----------------------------------------------------------------------------------------- */

typedef struct output {
    const pn_prompt *p;
    pn_ids *ids;
    size_t from;                /* ids before are not ours */
    int continued;              /* what follows goes on after other text */
    int bos;                    /* begin with the start token */
} output;

static pn_status put_bos(output *o, int32_t next, pn_error *err)
{
    int32_t bos = pn_tokenizer_get_info(o->p->tokenizer)->bos;
    if (!o->bos || o->ids->count != o->from)
        return PN_OK;
    o->bos = 0;
    return next == bos ? PN_OK : pn_ids_push(o->ids, &bos, 1, err);
}

static pn_status put_text(output *o, const char *text, size_t size, pn_error *err)
{
    pn_status s;
    if (!size)
        return PN_OK;
    s = put_bos(o, -1, err);
    if (!s)
        s = pn_tokenizer_append(o->p->tokenizer, text, size, o->continued ? PN_ENCODE_CONTINUED : 0, o->ids, err);
    o->continued = 0;
    return s;
}

static pn_status put_marker(output *o, int32_t id, pn_error *err)
{
    pn_status s = put_bos(o, id, err);
    o->continued = 0;
    return s ? s : pn_ids_push(o->ids, &id, 1, err);
}

static pn_status tokenize(output *o, const rendering *r, pn_error *err)
{
    size_t i, at = 0, begin = 0;
    pn_status s = PN_OK;
    for (i = 0; i < r->n_pieces; i++) {
        size_t end = r->pieces[i].end;
        if (!r->pieces[i].markup)
            at = end;
        while (!s && at < end) {
            const marker *m = marker_at(o->p, r->text + at, end - at);
            if (!m) {
                at++;
                continue;
            }
            s = put_text(o, r->text + begin, at - begin, err);
            if (!s)
                s = put_marker(o, m->id, err);
            begin = at += m->size;
        }
        if (s)
            return s;
    }
    if (begin < r->size)
        s = put_text(o, r->text + begin, r->size - begin, err);
    return s ? s : put_bos(o, -1, err);
}

static int is_role(const pn_message *m, const char *role)
{
    return m->role.size == strlen(role) && !memcmp(m->role.data, role, m->role.size);
}

static pn_status render_strings(const pn_prompt *p, const pn_message *messages, size_t n, size_t first,
                                int add_generation, rendering *r, pn_error *err)
{
    size_t i;
    pn_status s = PN_OK;
    for (i = first; !s && i < n; i++) {
        const pn_message *m = &messages[i];
        int k = 0;
        while (k < 3 && !is_role(m, roles[k]))
            k++;
        if (k == 3)
            return pn_fail(err, PN_E_ARGUMENT, "a message of role \"%.*s\": [prompt] has system, user and assistant",
                           (int)(m->role.size < 80 ? m->role.size : 80), m->role.data ? m->role.data : "");
        s = collect(r, 1, p->strings[k][0], strlen(p->strings[k][0]), err);
        if (!s)
            s = collect(r, 0, m->content.data, m->content.size, err);
        if (!s)
            s = collect(r, 1, p->strings[k][1], strlen(p->strings[k][1]), err);
    }
    if (!s && add_generation)
        s = collect(r, 1, p->strings[2][0], strlen(p->strings[2][0]), err);
    return s;
}

static pn_status render(const pn_prompt *p, const pn_message *messages, size_t n, size_t first, int add_generation,
                        rendering *r, pn_error *err)
{
    if (p->type)
        return p->type->render(p->host, p->source, messages, sizeof *messages, n, first, add_generation, collect, r,
                               err);
    return render_strings(p, messages, n, first, add_generation, r, err);
}

pn_status pn_prompt_render(const pn_prompt *p, const pn_message *messages, size_t n, size_t first, int add_generation,
                           pn_ids *out, pn_error *err)
{
    const pn_tokenizer_info *info = pn_tokenizer_get_info(p->tokenizer);
    rendering r = { 0 };
    output o = { p, out, out->count, first > 0, first == 0 && info->add_bos && info->bos >= 0 };
    pn_message *with_system = NULL;
    pn_error own;
    pn_status s;
    err = err ? err : &own;
    if (first > n)
        return pn_fail(err, PN_E_ARGUMENT, "message %zu was asked for, but there are %zu", first, n);
    if (first == 0 && n && *p->system && !is_role(&messages[0], "system")) {
        with_system = pn_calloc(n + 1, sizeof *with_system);
        if (!with_system)
            return pn_fail(err, PN_E_NOMEM, "no memory for %zu messages", n + 1);
        with_system[0] = (pn_message){ pn_str_from("system"), pn_str_from(p->system) };
        memcpy(with_system + 1, messages, n * sizeof *messages);
        messages = with_system;
        n++;
    }
    s = render(p, messages, n, first, add_generation, &r, err);
    if (!s)
        s = tokenize(&o, &r, err);
    if (s)
        out->count = o.from;
    rendering_free(&r);
    pn_free(with_system);
    return s;
}

int pn_prompt_ends(const pn_prompt *p, int32_t id)
{
    return pn_tokenizer_ends(p->tokenizer, id) || (id >= 0 && id == p->end);
}

const char *pn_prompt_name(const pn_prompt *p)
{
    return p->type ? p->type->name : "role strings";
}

/* ---- choosing the template --------------------------------------------------------------------------------------- */

/* Role strings, if any is given. */
static int take_strings(pn_prompt *p, const pn_config *config)
{
    static const char *const keys[3][2] = { { "system_prefix", "system_suffix" },
                                            { "user_prefix", "user_suffix" },
                                            { "assistant_prefix", "assistant_suffix" } };
    int any = 0, k, side;
    for (k = 0; k < 3; k++)
        for (side = 0; side < 2; side++) {
            const char *text = pn_config_text(config, "prompt", keys[k][side]);
            p->strings[k][side] = text ? text : "";
            any |= *p->strings[k][side] != 0;
        }
    return any;
}

/* The names of the templates that are loaded: "a, b". */
static const char *loaded_names(const pn_runtime *rt, char *text, size_t capacity)
{
    const pn_reg_entry *e;
    size_t i, n = 0;
    snprintf(text, capacity, "none is loaded");
    for (i = 0; (e = pn_registry_at(rt, PN_KIND_TEMPLATE, i)) && n < capacity; i++) {
        int k = snprintf(text + n, capacity - n, "%s%s", n ? ", " : "loaded: ", e->name);
        n += k > 0 ? (size_t)k : 0;
    }
    return text;
}

static pn_status choose_template(pn_runtime *rt, pn_file *file, pn_prompt *p, pn_error *err)
{
    const char *name = pn_config_text(pn_runtime_config(rt), "prompt", "template");
    const pn_reg_entry *e, *best = NULL, *likely = NULL;
    int32_t score, best_score = 0;
    char names[256];
    size_t i;
    if (name && *name) {
        best = pn_registry_find(rt, PN_KIND_TEMPLATE, name);
        if (!best)
            return pn_fail(err, PN_E_NOT_FOUND, "[prompt] template = %s: there is no such chat template (%s)", name,
                           loaded_names(rt, names, sizeof names));
    }
    for (i = 0; !best && p->source.size && (e = pn_registry_at(rt, PN_KIND_TEMPLATE, i)); i++) {
        const pn_template_type *t = e->item;
        score = t->recognise ? t->recognise(p->source.data, p->source.size) : 0;
        if (score > best_score) {
            likely = e;
            best_score = score;
        }
    }
    best = best ? best : likely;
    if (!best)
        return pn_fail(err, PN_E_UNSUPPORTED,
                       "%s %s; name one with [prompt] template (%s) or give the strings around each message with "
                       "[prompt] user_prefix, user_suffix, assistant_prefix and so on",
                       pn_file_path(file),
                       p->source.size ? "has a chat template that is none of those loaded" : "has no chat template",
                       loaded_names(rt, names, sizeof names));
    p->type = best->item;
    p->host = best->host;
    if (!p->type->render)
        return pn_fail(err, PN_E_ABI, "the plugin of chat template %s lacks render", p->type->name);
    return PN_OK;
}

/* The token that ends an assistant's turn: the template's marker, or the first control token after the content. */
static void find_end(pn_runtime *rt, pn_prompt *p)
{
    const char *text = p->type ? p->type->end_of_turn : p->strings[2][1];
    const uint32_t flags = PN_ENCODE_SPECIAL | PN_ENCODE_CONTINUED;
    int32_t ids[1];
    size_t n = 0;
    p->end = text ? first_marker(p, text) : -1;
    if (!p->type || !text || p->end >= 0)
        return;
    /* A file may hold it as a token of another kind. */
    if (!pn_tokenizer_encode(p->tokenizer, text, strlen(text), flags, ids, 1, &n, NULL) && n == 1)
        p->end = ids[0];
    else
        pn_runtime_log(rt, PN_LOG_WARN, "the vocabulary has no token %s of chat template %s: the end of an answer may "
                       "go unnoticed", text, p->type->name);
}

pn_status pn_prompt_create(pn_runtime *rt, pn_file *file, const pn_tokenizer *tokenizer, pn_prompt **out, pn_error *err)
{
    const pn_config *config = pn_runtime_config(rt);
    pn_role_value source = { .struct_size = sizeof source };
    pn_prompt *p = pn_calloc(1, sizeof *p);
    pn_error own;
    pn_status s;
    err = err ? err : &own;
    if (!p)
        return pn_fail(err, PN_E_NOMEM, "no memory for a prompt");
    p->tokenizer = tokenizer;
    p->system = pn_config_text(config, "prompt", "system");
    p->system = p->system ? p->system : "";
    s = pn_file_role(file, PN_ROLE_CHAT_TEMPLATE, &source, err);
    if (!s && source.present && source.value.type == PN_T_STRING)
        p->source = source.value.as.s;
    if (!s && !take_strings(p, config))
        s = choose_template(rt, file, p, err);
    if (!s)
        s = find_markers(p, err);
    if (s) {
        pn_prompt_destroy(p);
        return s;
    }
    find_end(rt, p);
    *out = p;
    return PN_OK;
}

void pn_prompt_destroy(pn_prompt *p)
{
    size_t i;
    if (!p)
        return;
    for (i = 0; i < p->n_markers; i++)
        pn_free(p->markers[i].text);
    pn_free(p->markers);
    pn_free(p);
}
