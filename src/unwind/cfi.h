/* Call frame information as it is in files: the entries of .eh_frame and .debug_frame. */
#ifndef PITVIPER_UNWIND_CFI_H
#define PITVIPER_UNWIND_CFI_H

#include "base/cursor.h"

#include <stdbool.h>
#include <stdint.h>

/* What many functions have in common (a CIE). */
struct cfi_common {
    uint64_t code_factor;
    int64_t data_factor;
    uint64_t return_column; /* register number of the return address */
    uint8_t pointer_encoding;
    bool has_augmentation_data;
    bool is_signal;
    struct cursor instructions;
};

/* One section, walked from its start to its end, or asked for the entry at a place. */
struct cfi_section {
    struct cursor cursor; /* at the next entry; never failed */
    uint64_t svma;        /* of the section's first byte: addresses in it may be relative */
    bool is_debug_frame;
    bool ends_at_zero; /* an entry of length 0 is the end: the section's size is not known */
    /* The CIE that was read last, which the next function has as well, most of the time. */
    bool has_common;
    uint64_t common_place;
    struct cfi_common common;
};

/* One function (an FDE). */
struct cfi_function {
    uint64_t place; /* of its entry: bytes from the section's start */
    struct cfi_common common;
    uint64_t start_svma;
    uint64_t size; /* in bytes; start + size does not wrap */
    struct cursor instructions;
    uint8_t pointer_encoding;
};

/* 1 and a function, 0 at the end, -EBADMSG for one that can't be understood (call again to go on).
 */
int cfi_next(struct cfi_section *section, struct cfi_function *ret_function);

/* The function whose entry is at a place; false when there is none that can be understood. Does not
 * move the walk. */
bool cfi_at(struct cfi_section *section, uint64_t place, struct cfi_function *ret_function);

/* How many functions the rest of a section has, whether or not they can be understood. */
size_t cfi_count(struct cfi_section section);

/* A pointer in one of the encodings of .eh_frame. `svma` is that of the cursor's first byte. The
 * ones that would need the memory of a running process fail the cursor. */
uint64_t cfi_pointer(struct cursor *cursor, uint64_t svma, uint8_t encoding);

#endif
