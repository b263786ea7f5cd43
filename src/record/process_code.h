/* What code a process has mapped, as far as it is known, and how to unwind it. */
#ifndef PITVIPER_RECORD_PROCESS_CODE_H
#define PITVIPER_RECORD_PROCESS_CODE_H

#include "record/process.h"

/* What was mapped at that time, as the process or the kernel wrote it. */
void process_code_list(struct process *process, uint64_t time_ns, struct maps_text text);

/* Reads the list again, if there can be anything new in it. Otherwise it is wanted later. */
void process_code_refresh(struct process *process);

/* For the unwinder, whose context is the process. */
bool process_code_find(void *data, uint64_t avma, struct unwind_code *ret_code);

#endif
