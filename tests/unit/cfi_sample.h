/* .eh_frame written by hand, as a compiler would write it, for tests of the table and the unwinder.
 */
#ifndef PITVIPER_UNIT_CFI_SAMPLE_H
#define PITVIPER_UNIT_CFI_SAMPLE_H

#include "unit.h"
#include "unwind/unwind_table.h"

#include <elf.h>

enum { CFI_SAMPLE_ROOM = 4096 };

struct cfi_sample {
    uint8_t bytes[CFI_SAMPLE_ROOM];
    size_t length;
    size_t cie_offset;    /* of the newest CIE */
    uint16_t elf_machine; /* 0: EM_X86_64 */
};

static inline void cfi_sample_u32(struct cfi_sample *sample, uint32_t value)
{
    memcpy(sample->bytes + sample->length, &value, sizeof value);
    sample->length += sizeof value;
}

static inline void cfi_sample_put(struct cfi_sample *sample, const void *bytes, size_t length)
{
    assert_true(sample->length + length + 64 < sizeof sample->bytes);
    memcpy(sample->bytes + sample->length, bytes, length);
    sample->length += length;
}

static inline void cfi_sample_pad(struct cfi_sample *sample)
{
    while (sample->length % 8)
        sample->bytes[sample->length++] = 0; /* nop */
}

/* Fills in the length of the entry that starts there. */
static inline void cfi_sample_close(struct cfi_sample *sample, size_t start)
{
    cfi_sample_pad(sample);
    uint32_t length = (uint32_t)(sample->length - start - 4);
    memcpy(sample->bytes + start, &length, sizeof length);
}

/* `rest` is what follows the augmentation: factors, return column, one byte of augmentation data
 * (0: pointers are plain), instructions. */
static inline void cfi_sample_cie_of(struct cfi_sample *sample, const char *augmentation,
                                     const char *rest, size_t length)
{
    size_t start = sample->length;
    sample->cie_offset = start;
    cfi_sample_u32(sample, 0);
    cfi_sample_u32(sample, 0);
    cfi_sample_put(sample, "\x01", 1);
    cfi_sample_put(sample, augmentation, strlen(augmentation) + 1);
    cfi_sample_put(sample, rest, length);
    cfi_sample_close(sample, start);
}

/* x86-64: factors 1 and -8, return address in column 16 at CFA - 8, CFA = rsp + 8. `augmentation`
 * is "zR" or "zRS". */
static inline void cfi_sample_cie(struct cfi_sample *sample, const char *augmentation)
{
    cfi_sample_cie_of(sample, augmentation, "\x01\x78\x10\x01\x00\x0c\x07\x08\x90\x01", 10);
}

/* aarch64: factors 4 and -8, return address in column 30, CFA = sp. */
static inline void cfi_sample_cie_aarch64(struct cfi_sample *sample)
{
    sample->elf_machine = EM_AARCH64;
    cfi_sample_cie_of(sample, "zR", "\x04\x78\x1e\x01\x00\x0c\x1f\x00", 8);
}

/* A function with its instructions. */
static inline void cfi_sample_fde(struct cfi_sample *sample, uint64_t svma, uint64_t size,
                                  const void *instructions, size_t length)
{
    size_t start = sample->length;
    cfi_sample_u32(sample, 0);
    cfi_sample_u32(sample, (uint32_t)(sample->length - sample->cie_offset));
    cfi_sample_put(sample, &svma, sizeof svma);
    cfi_sample_put(sample, &size, sizeof size);
    cfi_sample_put(sample, "\x00", 1);
    cfi_sample_put(sample, instructions, length);
    cfi_sample_close(sample, start);
}

/* The same with a literal. */
#define CFI_SAMPLE_FDE(sample, svma, size, literal)                                                \
    cfi_sample_fde((sample), (svma), (size), "" literal, sizeof(literal) - 1)

static inline int cfi_sample_table(const struct cfi_sample *sample, uint64_t code_size,
                                   struct unwind_table *ret_table)
{
    uint8_t *copy = exact_copy(sample->bytes, sample->length);
    struct unwind_jit jit = {.data = copy, .size = sample->length, .code_size = code_size};
    uint16_t machine = sample->elf_machine ? sample->elf_machine : EM_X86_64;
    int error = unwind_table_init_jit(ret_table, machine, &jit);
    free(copy);
    return error;
}

/* push %rbp; mov %rsp,%rbp; …; pop %rbp; ret. At 0, 1, 4 and size - 1. */
#define CFI_SAMPLE_FRAME_POINTER                                                                   \
    "\x41\x0e\x10\x86\x02" /* +1: CFA = rsp + 16, rbp at CFA - 16 */                               \
    "\x43\x0d\x06"         /* +3: CFA = rbp + 16 */                                                \
    "\x5b\x0c\x07\x08"     /* +27: CFA = rsp + 8, and rbp still said to be at CFA - 16 */

#endif
