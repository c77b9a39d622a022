/* Text as it comes: repairing UTF-8, and what the patterns see of it. */
#include "bpe.h"

size_t bpe_utf8_decode(const char *text, size_t size, uint32_t *cp)
{
    const uint8_t *p = (const uint8_t *)text;
    static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t n, i;
    uint32_t c = p[0];
    if (c < 0x80) {
        *cp = c;
        return 1;
    }
    n = c >= 0xf0 && c < 0xf8 ? 4 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xc0 && c < 0xe0 ? 2 : 0;
    if (!n || n > size)
        return 0;
    c &= 0x7fu >> n;
    for (i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3f);
    }
    if (c < least[n] || c > 0x10ffff)
        return 0;
    *cp = c;
    return n;
}

size_t bpe_utf8_encode(uint32_t cp, char *out)
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xc0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3f));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xe0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3f));
        out[2] = (char)(0x80 | (cp & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3f));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3f));
    out[3] = (char)(0x80 | (cp & 0x3f));
    return 4;
}

/* Ill-formed bytes, surrogates and non-ASCII characters of a text. */
static void count(const char *text, size_t size, size_t *bad, size_t *surrogates, size_t *wide)
{
    size_t i = 0;
    *bad = *surrogates = *wide = 0;
    while (i < size) {
        uint32_t cp;
        size_t n;
        if ((uint8_t)text[i] < 0x80) {
            i++;
            continue;
        }
        n = bpe_utf8_decode(text + i, size - i, &cp);
        *wide += 1;
        *bad += !n;
        *surrogates += n == 3 && cp >= 0xd800 && cp < 0xe000;
        i += n ? n : 1;
    }
}

/* out has room for size + 2 * bad bytes. */
static void repair(const char *text, size_t size, char *out)
{
    size_t i = 0;
    while (i < size) {
        uint32_t cp;
        size_t n = bpe_utf8_decode(text + i, size - i, &cp);
        if (n) {
            memcpy(out, text + i, n);
            out += n;
            i += n;
        } else {
            memcpy(out, "\xef\xbf\xbd", 3);
            out += 3;
            i++;
        }
    }
}

/* A surrogate, which no pattern may see, looks like U+E000: neither letter, digit nor space. */
static void hide_surrogates(char *text, size_t size)
{
    size_t i;
    for (i = 0; i + 2 < size; i++)
        if ((uint8_t)text[i] == 0xed && (uint8_t)text[i + 1] >= 0xa0)
            memcpy(text + i, "\xee\x80\x80", 3);
}

pn_status bpe_text_clean(const pn_host *host, const char *text, size_t size, int nfc, bpe_text *out, pn_error *err)
{
    size_t bad, surrogates, wide;
    pn_status s = PN_OK;
    memset(out, 0, sizeof *out);
    out->bytes = out->shadow = text;
    out->size = size;
    count(text, size, &bad, &surrogates, &wide);
    if (bad) {
        s = pn_host_alloc(host, size + 2 * bad, 1, &out->owned[0], err);
        if (s)
            return s;
        repair(text, size, out->owned[0]);
        out->bytes = out->shadow = out->owned[0];
        out->size = size + 2 * bad;
    }
    if (nfc && wide) {
        char *composed;
        s = bpe_nfc(host, out->bytes, out->size, &composed, &out->size, err);
        if (s)
            return s;
        pn_host_free(host, out->owned[0], NULL);
        out->owned[0] = composed;
        out->bytes = out->shadow = composed;
    }
    if (surrogates) {
        s = pn_host_alloc(host, out->size, 1, &out->owned[1], err);
        if (s)
            return s;
        memcpy(out->owned[1], out->bytes, out->size);
        hide_surrogates(out->owned[1], out->size);
        out->shadow = out->owned[1];
    }
    return s;
}

void bpe_text_free(const pn_host *host, bpe_text *text)
{
    pn_host_free(host, text->owned[0], NULL);
    pn_host_free(host, text->owned[1], NULL);
    text->owned[0] = text->owned[1] = NULL;
}
