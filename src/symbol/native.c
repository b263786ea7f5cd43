/* Of the files of a recording most are only ever mapped; so nothing is read before it is needed:
 * the file when a sample is in it, its debug file and symbols for the first name, its frame
 * information for the first frame that is unwound, its debug information for the first line.
 *
 * The file at the path may not be the one that was recorded: packages are upgraded, and a path of a
 * container names something else here. The build-id decides; without one the path is trusted, as
 * perf does. */
#include "symbol/native.h"

#include "base/cleanup.h"
#include "elf/elf_symtab.h"
#include "symbol/vdso.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct native {
    const struct elf_debug_search *search; /* borrowed */
    struct elf_object *object;
    uint8_t *data;            /* of the object when it is in memory; owned */
    struct elf_object *debug; /* valid with `looked_for_debug`; NULL: there is none */
    struct elf_symtab symtab; /* valid with `has_symtab` */
    struct unwind_table unwind;
    struct code_rules code_rules;
    struct debug_info *info; /* NULL: there is none, or not tried */
    bool looked_for_debug, tried_symtab, has_symtab, tried_unwind, has_unwind, tried_info;
};

static bool is_right(const struct elf_object *object, const struct native_wanted *wanted)
{
    return !wanted->build_id_size ||
           elf_object_has_build_id(object, wanted->build_id, wanted->build_id_size);
}

/* Opens a file if it is the right one. */
static int open_right(const char *path, const struct native_wanted *wanted,
                      struct elf_object **ret_object)
{
    int error =
        strcmp(path, "[vdso]") == 0 ? vdso_open(ret_object) : elf_object_open(path, ret_object);
    if (error < 0 || is_right(*ret_object, wanted))
        return error;
    elf_object_close(*ret_object);
    *ret_object = NULL;
    return -ENOENT;
}

static int open_object(const struct elf_debug_search *search, const struct native_wanted *wanted,
                       struct elf_object **ret_object)
{
    char path[PATH_MAX];
    int error = -ENOENT;
    if (wanted->root && wanted->path[0] == '/' &&
        snprintf(path, sizeof path, "%s%s", wanted->root, wanted->path) < (int)sizeof path)
        error = open_right(path, wanted, ret_object);
    if (error < 0 && error != -ENOMEM && (wanted->path[0] == '/' || wanted->path[0] == '['))
        error = open_right(wanted->path, wanted, ret_object);
    if (error < 0 && error != -ENOMEM && wanted->build_id_size) {
        int cached =
            elf_debug_open_cached(search, wanted->build_id, wanted->build_id_size, ret_object);
        error = cached == -ENOENT ? error : cached;
    }
    return error;
}

int native_open(const struct elf_debug_search *search, const struct native_wanted *wanted,
                struct native **ret_native)
{
    struct native *native = calloc(1, sizeof *native);
    if (!native)
        return -ENOMEM;
    native->search = search;
    int error = open_object(search, wanted, &native->object);
    if (error < 0) {
        free(native);
        return error;
    }
    *ret_native = native;
    return 0;
}

int native_open_memory(const struct elf_debug_search *search, const char *path, uint8_t *data,
                       size_t length, struct native **ret_native)
{
    struct native *native = calloc(1, sizeof *native);
    int error = -ENOMEM;
    if (native)
        error = elf_object_open_memory(path, data, length, &native->object);
    if (error < 0) {
        free(native);
        free(data);
        return error;
    }
    native->search = search;
    native->data = data;
    *ret_native = native;
    return 0;
}

void native_close(struct native *native)
{
    if (!native)
        return;
    if (native->has_symtab)
        elf_symtab_done(&native->symtab);
    if (native->has_unwind)
        unwind_table_done(&native->unwind);
    code_rules_done(&native->code_rules);
    debug_info_close(native->info);
    elf_object_close(native->debug);
    elf_object_close(native->object);
    free(native->data);
    free(native);
}

const struct elf_object *native_object(const struct native *native)
{
    return native->object;
}

const struct elf_object *native_debug(struct native *native)
{
    if (!native->looked_for_debug &&
        elf_debug_open(native->search, native->object, &native->debug) < 0)
        native->debug = NULL;
    native->looked_for_debug = true;
    return native->debug;
}

static const struct elf_symtab *symtab_of(struct native *native)
{
    if (!native->tried_symtab)
        native->has_symtab =
            elf_symtab_init(&native->symtab, native->object, native_debug(native)) == 0;
    native->tried_symtab = true;
    return native->has_symtab ? &native->symtab : NULL;
}

bool native_has_symbols(struct native *native)
{
    const struct elf_symtab *symtab = symtab_of(native);
    return symtab && symtab->entries.count > 0;
}

bool native_find(struct native *native, uint64_t fileoff, struct symbol *ret_symbol)
{
    const struct elf_symtab *symtab = symtab_of(native);
    uint64_t svma, start;
    if (!symtab || !elf_object_svma_of(native->object, fileoff, &svma))
        return false;
    const struct elf_symtab_entry *entry = elf_symtab_find(symtab, svma);
    if (!entry)
        return false;
    if (!elf_object_fileoff_of(native->object, entry->svma, &start))
        start = fileoff - (svma - entry->svma);
    *ret_symbol = (struct symbol){.name = entry->name,
                                  .name_length = strlen(entry->name),
                                  .start = start,
                                  .size = entry->size};
    return true;
}

struct unwind_table *native_unwind_table(struct native *native)
{
    if (!native->tried_unwind)
        native->has_unwind =
            unwind_table_init(&native->unwind, native->object, native_debug(native)) == 0;
    native->tried_unwind = true;
    return native->has_unwind ? &native->unwind : NULL;
}

/* The file's executable bytes; struct code_source. */
static size_t read_code(void *data, uint64_t svma, const uint8_t **ret_code, size_t *ret_before)
{
    const struct elf_file *elf = &((struct native *)data)->object->elf;
    Elf64_Phdr segment;
    for (size_t i = 0; elf_file_segment(elf, i, &segment); i++) {
        if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X) || svma < segment.p_vaddr ||
            svma - segment.p_vaddr >= segment.p_filesz)
            continue;
        const uint8_t *code = elf_file_bytes(elf, segment.p_vaddr, segment.p_filesz);
        if (!code)
            return 0;
        *ret_before = svma - segment.p_vaddr;
        *ret_code = code + *ret_before;
        return segment.p_filesz - *ret_before;
    }
    return 0;
}

/* The same. */
static const struct unwind_rule *describe(void *data, uint64_t svma)
{
    struct unwind_table *table = native_unwind_table(data);
    return table ? unwind_table_find(table, svma) : NULL;
}

struct code_rules *native_code_rules(struct native *native)
{
    if (!native->code_rules.source.read)
        code_rules_init(
            &native->code_rules, native->object->elf.header.e_machine,
            (struct code_source){.read = read_code, .describe = describe, .context = native});
    return &native->code_rules;
}

bool native_bias(const struct native *native, const struct elf_mapping *mapping, uint64_t *ret_bias)
{
    return elf_object_bias(native->object, mapping, ret_bias);
}

static bool has_dwarf(const struct elf_object *object)
{
    Elf64_Shdr section;
    return object && (elf_file_section_named(&object->elf, ".debug_line", &section) ||
                      elf_file_section_named(&object->elf, ".zdebug_line", &section));
}

static const struct debug_info *info_of(struct native *native)
{
    if (native->tried_info)
        return native->info;
    native->tried_info = true;
    const struct elf_object *object = native->object;
    if (!has_dwarf(object))
        object = native_debug(native);
    int error = -ENOENT;
    if (has_dwarf(object))
        error = object->is_mapped
                    ? debug_info_open(object->path, &native->info)
                    : debug_info_open_memory(object->data, object->length, &native->info);
    if (error < 0)
        native->info = NULL;
    return native->info;
}

size_t native_places(struct native *native, uint64_t fileoff, struct debug_place *places,
                     size_t capacity)
{
    const struct debug_info *info = info_of(native);
    uint64_t svma;
    if (!info || !elf_object_svma_of(native->object, fileoff, &svma))
        return 0;
    return debug_info_find(info, svma, places, capacity);
}
