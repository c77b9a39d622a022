/* Chat template plugin "chatml": <|im_start|>ROLE newline CONTENT <|im_end|> newline, for every message.
 *
 * Model files carry such templates as Jinja text. When a conversation begins without a system message, many of them put
 * in one of their own; it is read off the text, where it stands as a literal. */
#include <pantheon/plugin.h>

#define BEGIN "<|im_start|>"
#define END "<|im_end|>"
#define SYSTEM BEGIN "system"

#define LENGTH(literal) (sizeof literal - 1)

/* First place of `what` in text[from ..], or SIZE_MAX. */
static size_t find(pn_str text, size_t from, const char *what, size_t size)
{
    size_t i;
    for (i = from; size <= text.size && i <= text.size - size; i++)
        if (text.data[i] == what[0] && !memcmp(text.data + i, what, size))
            return i;
    return SIZE_MAX;
}

static int32_t recognise(const char *source, size_t size)
{
    pn_str text = { source, size };
    if (find(text, 0, BEGIN, LENGTH(BEGIN)) == SIZE_MAX || find(text, 0, END, LENGTH(END)) == SIZE_MAX)
        return 0;
    return 80;
}

/* ---- the default system message -------------------------------------------------------------------------------- */

/* The character at text[*at], with the escapes of a Jinja string undone when it stands in quotes; advances *at. */
static char next_char(pn_str text, size_t *at, char quote)
{
    char c = text.data[(*at)++];
    if (c != '\\' || !quote || *at == text.size)
        return c;
    c = text.data[(*at)++];
    return c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
}

static int is_jinja(pn_str text, size_t at)
{
    return text.data[at] == '{' && at + 1 < text.size && (text.data[at + 1] == '{' || text.data[at + 1] == '%');
}

/* The message that begins after `at`, where SYSTEM ended, written to out (may be NULL) without escapes; *size its
 * length. 0: no literal stands here, but an expression. `quote`: the string's quote, or 0 for text outside of {{ }}. */
static int literal(pn_str text, size_t at, char quote, char *out, size_t *size)
{
    size_t n = 0;
    if (at == text.size || next_char(text, &at, quote) != '\n')
        return 0;
    while (at < text.size) {
        char c = text.data[at];
        if (c == END[0] && text.size - at >= LENGTH(END) && !memcmp(text.data + at, END, LENGTH(END))) {
            *size = n;
            return 1;
        }
        if (quote ? c == quote : is_jinja(text, at))
            return 0;
        c = next_char(text, &at, quote);
        if (out)
            out[n] = c;
        n++;
    }
    return 0;
}

/* Where the default message's literal begins, or SIZE_MAX when the template has none. */
static size_t find_default(pn_str text, char *quote, size_t *size)
{
    size_t at = 0;
    while ((at = find(text, at, SYSTEM, LENGTH(SYSTEM))) != SIZE_MAX) {
        char before = at ? text.data[at - 1] : 0;
        at += LENGTH(SYSTEM);
        *quote = before == '\'' || before == '"' ? before : 0;
        if (literal(text, at, *quote, NULL, size))
            return at;
    }
    return SIZE_MAX;
}

/* ---- rendering ------------------------------------------------------------------------------------------------- */

typedef struct writer {
    pn_template_emit emit;
    void *arg;
    pn_error *err;
    pn_status status;           /* the first failure; after it nothing is written */
} writer;

static void put(writer *w, int markup, const char *text, size_t size)
{
    if (!w->status && size)
        w->status = w->emit(w->arg, markup, text, size, w->err);
}

static void put_message(writer *w, pn_str role, pn_str content)
{
    put(w, 1, BEGIN, LENGTH(BEGIN));
    put(w, 0, role.data, role.size);
    put(w, 1, "\n", 1);
    put(w, 0, content.data, content.size);
    put(w, 1, END "\n", LENGTH(END "\n"));
}

static void put_default(const pn_host *host, writer *w, pn_str source)
{
    char quote = 0;
    size_t size = 0, at = find_default(source, &quote, &size);
    void *text = NULL;
    if (w->status || at == SIZE_MAX)
        return;
    w->status = pn_host_alloc(host, size + 1, 1, &text, w->err);
    if (w->status)
        return;
    literal(source, at, quote, text, &size);
    put_message(w, pn_str_from("system"), (pn_str){ text, size });
    pn_host_free(host, text, NULL);
}

static int is_system(const pn_message *m)
{
    return m->role.size == 6 && !memcmp(m->role.data, "system", 6);
}

/* A newer host's messages may be longer than this header's. */
static const pn_message *message_at(const pn_message *messages, size_t stride, size_t i)
{
    return (const pn_message *)(const void *)((const char *)messages + i * stride);
}

static pn_status render(const pn_host *host, pn_str source, const pn_message *messages, size_t stride,
                        size_t n_messages, size_t first, int32_t add_generation, pn_template_emit emit, void *arg,
                        pn_error *err)
{
    writer w = { emit, arg, err, PN_OK };
    size_t i;
    if (first == 0 && n_messages && !is_system(&messages[0]))
        put_default(host, &w, source);
    for (i = first; i < n_messages; i++)
        put_message(&w, message_at(messages, stride, i)->role, message_at(messages, stride, i)->content);
    if (add_generation)
        put(&w, 1, BEGIN "assistant\n", LENGTH(BEGIN "assistant\n"));
    return w.status;
}

static const pn_template_type type = {
    .struct_size = sizeof type,
    .name = "chatml",
    .summary = "ChatML: " BEGIN "ROLE, content, " END,
    .recognise = recognise,
    .render = render,
    .end_of_turn = END,
};

static pn_status start(const pn_host *host, pn_error *err)
{
    return pn_host_register_template(host, &type, err);
}

PN_PLUGIN("org.pantheon.chatml", "0.1.0", "MIT", "ChatML chat template", 0, start)
