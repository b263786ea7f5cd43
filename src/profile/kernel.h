/* The kernel's part of a recording: where it and its modules were, and their symbols. */
#ifndef PITVIPER_PROFILE_KERNEL_H
#define PITVIPER_PROFILE_KERNEL_H

#include "profile/modules.h"
#include "profile/regions.h"
#include "symbol/kallsyms.h"

/* One list of symbols, read when it is needed first. */
struct kernel_symbols {
    struct kallsyms kallsyms;
    bool is_tried;
    uint64_t moved; /* recorded address - address in kallsyms, modulo 2^64: another boot's KASLR */
};

struct kernel {
    struct modules *modules;               /* borrowed */
    const struct profile_options *options; /* borrowed */
    const char *buildid_dir;               /* borrowed; may be NULL */
    struct regions regions;
    struct kernel_symbols live; /* of the running kernel, or of the file that the options name */
    struct kernel_symbols copy; /* in perf's cache */
    bool is_known_kernel;       /* the recorded build-id was looked for; the next two are valid */
    bool runs_here;             /* as far as can be told */
    bool has_build_id;
    bool is_hidden;    /* a symbol was looked for in a list that shows no addresses to this user */
    char build_id[41]; /* hexadecimal */
    uint32_t core;     /* module: the kernel itself */
    uint64_t reference_avma; /* of the symbol that is named in the kernel's mapping; 0: none is */
    char reference_name[64];
};

void kernel_init(struct kernel *kernel, struct modules *modules,
                 const struct profile_options *options, const char *buildid_dir);
void kernel_done(struct kernel *kernel);

/* Notes a mapping of the kernel (pid -1). 0 or -ENOMEM. */
int kernel_map(struct kernel *kernel, const struct perfdata_record *record);

/* The module of an address and, if there is one (true), its symbol. */
bool kernel_find(struct kernel *kernel, uint64_t avma, uint32_t *ret_module,
                 struct symbol *ret_symbol);

#endif
