/* Code of a process that is in no file, or in none that can be read: its bytes come from the
 * process itself, as long as it runs. And code in files that jumps through pointers of the process.
 */
#ifndef PITVIPER_RECORD_GENERATED_CODE_H
#define PITVIPER_RECORD_GENERATED_CODE_H

#include "unwind/code_rules.h"

enum { GENERATED_CODE_WINDOW = 4096 + 64 };

struct process;

struct generated_code {
    struct code_rules rules;
    const struct process *process; /* that has it; borrowed */
    uint64_t window_avma;          /* what was read last: `window_bytes` from here on */
    size_t window_bytes;
    uint8_t window[GENERATED_CODE_WINDOW];
};

void generated_code_init(struct generated_code *code, const struct process *process);
void generated_code_done(struct generated_code *code);

/* Before questions that others may lie far ahead of: code is made all the time, so bytes are read
 * anew. Rules stay. */
void generated_code_refresh(struct generated_code *code);

/* Whether an address is in a trampoline of CPython's -X perf, or of ours. */
bool generated_code_is_trampoline(struct generated_code *code, uint64_t avma);

#endif
