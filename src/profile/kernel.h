/* The kernel's part of a recording: where it and its modules were, and their symbols. */
#ifndef PITVIPER_PROFILE_KERNEL_H
#define PITVIPER_PROFILE_KERNEL_H

#include "profile/modules.h"
#include "profile/regions.h"
#include "symbol/kallsyms.h"

struct kernel {
    struct modules *modules;               /* borrowed */
    const struct profile_options *options; /* borrowed */
    const char *buildid_dir;               /* borrowed; may be NULL */
    struct regions regions;
    struct kallsyms kallsyms; /* valid when `is_tried` */
    bool is_tried;
    uint64_t moved; /* recorded address - address in kallsyms, modulo 2^64: another boot's KASLR */
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
