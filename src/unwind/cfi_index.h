/* Which functions a section of call frame information describes, and where in it: what finds one of
 * a hundred thousand without reading the others. */
#ifndef PITVIPER_UNWIND_CFI_INDEX_H
#define PITVIPER_UNWIND_CFI_INDEX_H

#include "base/vector.h"
#include "unwind/cfi.h"

enum { CFI_CODE_RANGES = 16 };

struct cfi_range {
    uint64_t start_svma, end_svma;
};

/* Where an object has code. Functions elsewhere are remains of what the linker threw away. */
struct cfi_code {
    struct cfi_range ranges[CFI_CODE_RANGES];
    size_t count;
};

/* .eh_frame_hdr, from what follows the address of .eh_frame on. */
struct cfi_header {
    struct cursor cursor;
    uint64_t svma;          /* of its first byte: addresses count from there */
    uint64_t eh_frame_svma; /* of the section that it is about */
    uint8_t count_encoding, table_encoding;
};

struct cfi_index_entry {
    uint64_t start_svma;
    uint32_t place;  /* of its description: see cfi_at */
    uint32_t number; /* the owner's; 0 in a new entry */
};

/* A zeroed one is valid and empty. */
struct cfi_index {
    VECTOR(struct cfi_index_entry) entries; /* ascending by start_svma, which all differ */
};

/* Whether all of a function is code; one without a size is not. */
bool cfi_code_has(const struct cfi_code *code, const struct cfi_function *function);

/* The index as .eh_frame_hdr has it, which is believed: whoever uses an entry has to see whether
 * the description is one of a function that starts there. 0; -ENOTSUP when it is of another kind or
 * can't be right; -ENOMEM. Then the index is as it was. */
int cfi_index_by_header(struct cfi_index *index, const struct cfi_header *header,
                        const struct cfi_section *section);

/* The index of what is in the section, which is read from its start to its end: all functions in
 * the code; the last one of several with the same start. How many descriptions could not be read is
 * added to *damaged. 0, or -ENOMEM: then the index is as it was. */
int cfi_index_by_walk(struct cfi_index *index, struct cfi_section section,
                      const struct cfi_code *code, size_t *damaged);
void cfi_index_done(struct cfi_index *index);

/* The entry of the last function that starts at or before an address, or NULL. */
struct cfi_index_entry *cfi_index_find(const struct cfi_index *index, uint64_t svma);

/* Where the function behind an entry starts; UINT64_MAX behind the last one. */
uint64_t cfi_index_next_start(const struct cfi_index *index, const struct cfi_index_entry *entry);

#endif
