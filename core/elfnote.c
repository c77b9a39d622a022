/* Reads the ELF header and the plugin note of a file that is still only data: every offset is checked against its
 * size. */
#include "elfnote.h"
#include "alloc.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <unistd.h>

/* Bounds of what a real plugin holds; beyond them a file only wants our memory. */
#define MAX_PHDRS 256
#define MAX_NOTES (1u << 20)

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#define MACHINE_NAME "x86-64"
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#define MACHINE_NAME "aarch64"
#elif defined(__riscv)
#define MACHINE EM_RISCV
#define MACHINE_NAME "riscv"
#elif defined(__s390x__)
#define MACHINE EM_S390
#define MACHINE_NAME "s390x"
#elif defined(__powerpc64__)
#define MACHINE EM_PPC64
#define MACHINE_NAME "ppc64"
#elif defined(__i386__)
#define MACHINE EM_386
#define MACHINE_NAME "x86"
#elif defined(__arm__)
#define MACHINE EM_ARM
#define MACHINE_NAME "arm"
#else
#define MACHINE EM_NONE         /* not checked here: dlopen will */
#define MACHINE_NAME "this machine"
#endif

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ELF_DATA ELFDATA2LSB
#else
#define ELF_DATA ELFDATA2MSB
#endif
#define ELF_CLASS (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)

static pn_status read_at(int fd, void *out, size_t n, uint64_t offset, const char *path, pn_error *err)
{
    size_t done = 0;
    while (done < n) {
        ssize_t got = pread(fd, (char *)out + done, n - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            int e = got < 0 ? errno : 0;
            pn_fail(err, PN_E_IO, "%s: reading %zu bytes at byte %llu: %s", path, n, (unsigned long long)offset,
                    e ? strerror(e) : "the file became shorter");
            if (err)
                err->os_errno = e;
            return PN_E_IO;
        }
        done += (size_t)got;
    }
    return PN_OK;
}

int pn_plugin_id_ok(const char *id, size_t size)
{
    if (size < 1 || size > PN_PLUGIN_ID_MAX)
        return 0;
    for (size_t i = 0; i < size; i++) {
        char c = id[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
              c == '-'))
            return 0;
    }
    return 1;
}

static pn_status bad_elf(pn_error *err, const char *path, const char *found, const char *wanted)
{
    return pn_fail(err, PN_E_FORMAT, "%s: %s; wanted: %s. Build the plugin on this kind of machine with -shared",
                   path, found, wanted);
}

static pn_status check_header(const ElfW(Ehdr) *h, uint64_t size, const char *path, pn_error *err)
{
    char found[96];
    if (h->e_ident[EI_CLASS] != ELF_CLASS) {
        snprintf(found, sizeof found, "ELF class %d", h->e_ident[EI_CLASS]);
        return bad_elf(err, path, found, ELF_CLASS == ELFCLASS64 ? "2 (64 bits)" : "1 (32 bits)");
    }
    if (h->e_ident[EI_DATA] != ELF_DATA) {
        snprintf(found, sizeof found, "ELF byte order %d", h->e_ident[EI_DATA]);
        return bad_elf(err, path, found, ELF_DATA == ELFDATA2LSB ? "1 (little-endian)" : "2 (big-endian)");
    }
    if (h->e_ident[EI_VERSION] != EV_CURRENT || h->e_version != EV_CURRENT)
        return bad_elf(err, path, "unknown ELF version", "1");
    if (MACHINE != EM_NONE && h->e_machine != MACHINE) {
        snprintf(found, sizeof found, "built for machine %u", (unsigned)h->e_machine);
        return bad_elf(err, path, found, MACHINE_NAME);
    }
    if (h->e_type != ET_DYN) {
        snprintf(found, sizeof found, "ELF type %u", (unsigned)h->e_type);
        return bad_elf(err, path, found, "3 (shared object)");
    }
    if (h->e_phentsize != sizeof(ElfW(Phdr)) || h->e_phnum < 1 || h->e_phnum > MAX_PHDRS) {
        snprintf(found, sizeof found, "%u program headers of %u bytes", (unsigned)h->e_phnum, (unsigned)h->e_phentsize);
        return bad_elf(err, path, found, "1 to 256 of the usual size");
    }
    if (h->e_phoff > size || size - h->e_phoff < (uint64_t)h->e_phnum * sizeof(ElfW(Phdr)))
        return bad_elf(err, path, "program headers beyond the end of the file", "a whole file");
    return PN_OK;
}

/* One note entry at notes[*at]: name, desc. 0 = no more whole entries. */
static int next_note(const unsigned char *notes, size_t size, size_t align, size_t *at, uint32_t *type,
                     const unsigned char **name, size_t *name_size, const unsigned char **desc, size_t *desc_size)
{
    uint32_t head[3];
    size_t p = *at;
    if (size - p < sizeof head)
        return 0;
    memcpy(head, notes + p, sizeof head);
    p += sizeof head;
    if (head[0] > size - p)
        return 0;
    *name = notes + p;
    *name_size = head[0];
    p += head[0];
    p = (p + align - 1) & ~(align - 1);
    if (p > size || head[1] > size - p)
        return 0;
    *desc = notes + p;
    *desc_size = head[1];
    p += head[1];
    p = (p + align - 1) & ~(align - 1);
    *at = p < size ? p : size;
    *type = head[2];
    return 1;
}

/* Look for our note in one PT_NOTE segment; *found counts them. */
static pn_status scan_notes(const unsigned char *notes, size_t size, size_t align, const char *path, pn_elfnote *out,
                            int *found, pn_error *err)
{
    const unsigned char *name, *desc;
    size_t name_size, desc_size, at = 0;
    uint32_t type;
    while (next_note(notes, size, align, &at, &type, &name, &name_size, &desc, &desc_size)) {
        if (name_size != sizeof PN_NOTE_NAME || memcmp(name, PN_NOTE_NAME, name_size) != 0 || type != PN_NOTE_TYPE)
            continue;
        const unsigned char *id = desc + 4, *end = desc_size > 4 ? memchr(id, 0, desc_size - 4) : NULL;
        if (!end || !pn_plugin_id_ok((const char *)id, (size_t)(end - id)))
            return pn_fail(err, PN_E_ABI,
                           "%s: its plugin note is malformed (%zu bytes, no id of 1 to %d letters, digits,"
                           " '.', '_', '-'); define the plugin by PN_PLUGIN",
                           path, desc_size, PN_PLUGIN_ID_MAX);
        if ((*found)++)
            return pn_fail(err, PN_E_ABI, "%s: it holds more than one plugin note; PN_PLUGIN is used once per plugin",
                           path);
        memcpy(&out->abi_major, desc, 2);
        memcpy(&out->abi_minor, desc + 2, 2);
        memcpy(out->id, id, (size_t)(end - id) + 1);
    }
    return PN_OK;
}

static pn_status scan_segment(int fd, const ElfW(Phdr) * ph, const char *path, pn_elfnote *out, int *found,
                              pn_error *err)
{
    if (ph->p_filesz > MAX_NOTES)
        return bad_elf(err, path, "a note segment of more than 1 MiB", "at most that");
    unsigned char *notes = pn_calloc((size_t)ph->p_filesz, 1);
    if (!notes)
        return pn_fail(err, PN_E_NOMEM, "%s: no memory for %llu bytes of notes", path,
                       (unsigned long long)ph->p_filesz);
    pn_status st = read_at(fd, notes, (size_t)ph->p_filesz, ph->p_offset, path, err);
    if (st == PN_OK)
        st = scan_notes(notes, (size_t)ph->p_filesz, ph->p_align == 8 ? 8 : 4, path, out, found, err);
    pn_free(notes);
    return st;
}

pn_status pn_elfnote_read(int fd, uint64_t size, const char *path, pn_elfnote *out, pn_error *err)
{
    ElfW(Ehdr) h;
    pn_elfnote note;
    int found = 0;
    pn_status st;

    memset(&note, 0, sizeof note);
    if (size >= SELFMAG && (st = read_at(fd, &h, SELFMAG, 0, path, err)) != PN_OK)
        return st;
    if (size < SELFMAG || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0) {
        char text[64];
        snprintf(text, sizeof text, "not an ELF file (%llu bytes)", (unsigned long long)size);
        return bad_elf(err, path, text, "a shared object");
    }
    if (size < sizeof h)
        return bad_elf(err, path, "an ELF header cut short", "a whole shared object");
    if ((st = read_at(fd, &h, sizeof h, 0, path, err)) != PN_OK || (st = check_header(&h, size, path, err)) != PN_OK)
        return st;

    ElfW(Phdr) *ph = pn_calloc(h.e_phnum, sizeof *ph);
    if (!ph)
        return pn_fail(err, PN_E_NOMEM, "%s: no memory for %u program headers", path, (unsigned)h.e_phnum);
    st = read_at(fd, ph, h.e_phnum * sizeof *ph, h.e_phoff, path, err);
    for (size_t i = 0; st == PN_OK && i < h.e_phnum; i++) {
        /* A loader maps these parts and faults on what a cut file lacks. */
        if ((ph[i].p_type == PT_LOAD || ph[i].p_type == PT_NOTE) &&
            (ph[i].p_offset > size || ph[i].p_filesz > size - ph[i].p_offset))
            st = bad_elf(err, path, "the file is cut short: a segment ends beyond it", "the whole file");
        else if (ph[i].p_type == PT_NOTE)
            st = scan_segment(fd, &ph[i], path, &note, &found, err);
    }
    pn_free(ph);
    if (st != PN_OK)
        return st;
    if (!found)
        return pn_fail(err, PN_E_ABI,
                       "%s: it has no '%s' note, so it is no Pantheon plugin; a plugin defines itself by PN_PLUGIN"
                       " of <pantheon/plugin.h>",
                       path, PN_NOTE_SECTION);
    *out = note;
    return PN_OK;
}
