/* The named list behind a model file: an array of slots in file order, hashed by uthash over the bytes of their names.
 *
 * The hash is SipHash-1-3 (Aumasson and Bernstein 2012) with a key drawn at random per table, so that a file cannot be
 * made whose names all fall into one bucket.
 */
#include "file_table.h"

#include "alloc.h"

#include <sys/random.h>
#include <time.h>

static unsigned siphash(const uint64_t seed[2], const void *data, size_t size);

/* uthash calls these two; a failure to allocate sets `failed` in the function that adds. */
#define uthash_malloc(size) pn_calloc(1, size)
#define uthash_free(memory, size) pn_free(memory)
#define uthash_nonfatal_oom(slot) (failed = 1)
#undef HASH_NONFATAL_OOM
#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(keyptr, keylen, hashv) ((hashv) = siphash(table->seed, keyptr, keylen))
#include <uthash.h>

struct pn_slot {
    pn_entry entry;
    UT_hash_handle hh;
};

#define ROTL(x, n) ((x) << (n) | (x) >> (64 - (n)))

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = ROTL(v[1], 13) ^ v[0];
    v[0] = ROTL(v[0], 32);
    v[2] += v[3];
    v[3] = ROTL(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = ROTL(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = ROTL(v[1], 17) ^ v[2];
    v[2] = ROTL(v[2], 32);
}

static unsigned siphash(const uint64_t seed[2], const void *data, size_t size)
{
    uint64_t v[4] = { seed[0] ^ 0x736f6d6570736575u, seed[1] ^ 0x646f72616e646f6du, seed[0] ^ 0x6c7967656e657261u,
                      seed[1] ^ 0x7465646279746573u };
    const unsigned char *p = data;
    uint64_t word = 0;
    for (size_t left = size; left >= 8; left -= 8, p += 8) {
        memcpy(&word, p, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    word = 0;
    if (size % 8)
        memcpy(&word, p, size % 8);
    word ^= (uint64_t)size << 56;
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    word = v[0] ^ v[1] ^ v[2] ^ v[3];
    return (unsigned)(word ^ word >> 32);
}

static void draw_seed(pn_table *table)
{
    if (getrandom(table->seed, sizeof table->seed, GRND_NONBLOCK) == (ssize_t)sizeof table->seed)
        return;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    table->seed[0] = (uint64_t)now.tv_nsec * 0x9e3779b97f4a7c15u;
    table->seed[1] = (uint64_t)now.tv_sec ^ (uint64_t)(uintptr_t)table;
}

void *pn_table_find(const pn_table *table, pn_str key)
{
    struct pn_slot *slot = NULL;
    if (table->hash)
        HASH_FIND(hh, table->hash, key.data ? key.data : "", key.size, slot);
    return slot ? slot->entry.item : NULL;
}

int pn_table_add(pn_table *table, pn_str key, void *item)
{
    int failed = 0;
    if (!table->count)
        draw_seed(table);
    if (table->count == table->capacity) {
        size_t capacity = table->capacity ? table->capacity * 2 : 64;
        void *grown = pn_realloc(table->slots, capacity, sizeof *table->slots);
        if (!grown)
            return 0;
        table->slots = grown;
        table->capacity = capacity;
    }
    struct pn_slot *slot = pn_calloc(1, sizeof *slot);
    if (!slot)
        return 0;
    slot->entry = (pn_entry){ { key.data ? key.data : "", key.size }, item };
    HASH_ADD_KEYPTR(hh, table->hash, slot->entry.key.data, slot->entry.key.size, slot);
    if (failed) {
        pn_free(slot);
        return 0;
    }
    table->slots[table->count++] = slot;
    return 1;
}

const pn_entry *pn_table_at(const pn_table *table, size_t index)
{
    return index < table->count ? &table->slots[index]->entry : NULL;
}

void pn_table_free(pn_table *table)
{
    HASH_CLEAR(hh, table->hash);
    for (size_t i = 0; i < table->count; i++)
        pn_free(table->slots[i]);
    pn_free(table->slots);
    memset(table, 0, sizeof *table);
}
