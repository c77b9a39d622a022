/* A list of named things in file order that is also looked up by name: metadata values and tensors of a model file. */
#ifndef PN_FILE_TABLE_H
#define PN_FILE_TABLE_H

#include <pantheon/pantheon.h>

typedef struct pn_entry {
    pn_str key;                 /* any bytes; the memory is not the table's */
    void *item;                 /* likewise */
} pn_entry;

struct pn_slot;

/* Start zeroed. Adding is for one thread at a time; looking up for many at once. */
typedef struct pn_table {
    struct pn_slot **slots;     /* in the order they were added */
    size_t count, capacity;
    struct pn_slot *hash;
    uint64_t seed[2];           /* of the hash: names come from hostile files, which must not choose their buckets */
} pn_table;

/* The item, or NULL. */
void *pn_table_find(const pn_table *table, pn_str key);
/* 0 when there is no memory; the table is then as before. The key must not be there yet. */
int pn_table_add(pn_table *table, pn_str key, void *item);
/* Number `index`, or NULL past the end. */
const pn_entry *pn_table_at(const pn_table *table, size_t index);
void pn_table_free(pn_table *table);

#endif
