/* Where the call frame information of an object file is. */
#ifndef PITVIPER_UNWIND_CFI_OBJECT_H
#define PITVIPER_UNWIND_CFI_OBJECT_H

#include "elf/elf_object.h"
#include "unwind/cfi_index.h"

/* A section's bytes: those of the file, which must outlive this, or a copy. */
struct cfi_bytes {
    struct cfi_section section;
    uint8_t *owned; /* the copy, to be freed; NULL: there is none */
};

/* The executable segments. */
void cfi_object_code(const struct elf_object *object, struct cfi_code *ret_code);

/* .eh_frame_hdr; false when there is none that can be read. */
bool cfi_object_header(const struct elf_object *object, struct cfi_header *ret_header);

/* .eh_frame, and .debug_frame, decompressed if need be. 1; 0 when there is none; -EBADMSG or
 * -ENOTSUP when it can't be read; -ENOMEM. What is returned has to be released only after 1. */
int cfi_object_eh_frame(const struct elf_object *object, struct cfi_bytes *ret_bytes);
int cfi_object_debug_frame(const struct elf_object *object, struct cfi_bytes *ret_bytes);

/* A copy of bytes that will go away. 0 or -ENOMEM. */
int cfi_bytes_keep(struct cfi_bytes *bytes);
void cfi_bytes_done(struct cfi_bytes *bytes);

#endif
