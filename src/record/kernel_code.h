/* The kernel that the recorded programs run on: whether this user may sample it, and where its code
 * is, for readers that look for names. */
#ifndef PITVIPER_RECORD_KERNEL_CODE_H
#define PITVIPER_RECORD_KERNEL_CODE_H

#include "base/vector.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kernel_module {
    uint64_t start_avma, end_avma;
    char name[64]; /* in brackets: "[nf_nat]" */
};

/* A zeroed one is valid and knows nothing. */
struct kernel_code {
    uint64_t start_avma, end_avma; /* both 0: this user may not see the kernel's addresses */
    uint8_t build_id[20];
    uint8_t build_id_size; /* 0: not known */
    VECTOR(struct kernel_module) modules;
};

/* Whether perf events may interrupt the kernel, and tell where (kernel.perf_event_paranoid). */
bool kernel_code_is_allowed(void);

/* Reads what can be known. 0 or -ENOMEM; then there is nothing to release. */
int kernel_code_init(struct kernel_code *code);
void kernel_code_done(struct kernel_code *code);

/* Takes the text of /proc/modules apart: 1 and the next module whose address can be seen, 0 at the
 * end. *at moves on. */
int kernel_code_next_module(const char **at, const char *end, struct kernel_module *ret_module);

#endif
