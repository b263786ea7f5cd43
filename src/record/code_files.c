/* A file is known by its path and inode: after an upgrade the path means another file. */
#include "record/code_files.h"

#include <stdio.h>
#include <string.h>

void code_files_init(struct code_files *files, const char *cache)
{
    *files = (struct code_files){.search = {.buildid_dir = cache}};
}

void code_files_done(struct code_files *files)
{
    for (size_t i = 0; i < files->items.count; i++)
        native_close(files->items.items[i]->native);
    vector_done(&files->items);
    hashtable_done(&files->by_path);
    arena_done(&files->arena);
}

static struct code_file *add(struct code_files *files, const struct maps_mapping *mapping,
                             uint64_t hash, int32_t pid)
{
    struct code_file *file = arena_alloc(&files->arena, sizeof *file);
    if (!file || vector_push(&files->items, file) < 0)
        return NULL;
    file->path = arena_copy(&files->arena, mapping->path, strlen(mapping->path));
    file->inode = mapping->inode;
    if (!file->path || hashtable_add(&files->by_path, hash, files->items.count - 1) < 0)
        return NULL;
    char root[32];
    snprintf(root, sizeof root, "/proc/%d/root", (int)pid);
    struct native_wanted wanted = {.path = file->path, .root = root};
    /* What has no name any more can't be opened, and something else may have the name now. */
    if (mapping->is_deleted || native_open(&files->search, &wanted, &file->native) < 0)
        file->native = NULL;
    return file;
}

struct code_file *code_files_get(struct code_files *files, const struct maps_mapping *mapping,
                                 int32_t pid)
{
    if (mapping->path[0] != '[' && !mapping->inode)
        return NULL;
    uint64_t hash = hash_bytes(mapping->path, strlen(mapping->path));
    struct hashtable_probe probe = hashtable_probe(&files->by_path, hash);
    uint64_t number;
    while (hashtable_next(&probe, &number)) {
        struct code_file *file = files->items.items[number];
        if (file->inode == mapping->inode && strcmp(file->path, mapping->path) == 0)
            return file;
    }
    return add(files, mapping, hash, pid);
}

bool code_file_function(struct code_file *file, uint64_t svma, struct cfi_range *ret_range)
{
    struct unwind_table *table = file->native ? native_unwind_table(file->native) : NULL;
    return table && unwind_table_function(table, svma, ret_range);
}

size_t code_file_parts(struct code_file *file, const char *name, struct cfi_range *ranges,
                       size_t capacity)
{
    size_t count = 0, length = strlen(name);
    const struct elf_object *objects[2] = {0};
    if (file->native) {
        objects[0] = native_object(file->native);
        objects[1] = native_debug(file->native);
    }
    for (size_t i = 0; i < 2; i++) {
        struct elf_symbols symbols;
        struct elf_symbol symbol;
        if (!objects[i] || !elf_symbols_init(&symbols, &objects[i]->elf, SHT_SYMTAB))
            continue;
        while (count < capacity && elf_symbols_next(&symbols, &symbol) == 1) {
            if (symbol.size && strncmp(symbol.name, name, length) == 0 &&
                symbol.name[length] == '.')
                ranges[count++] = (struct cfi_range){.start_svma = symbol.svma,
                                                     .end_svma = symbol.svma + symbol.size};
        }
    }
    return count;
}
