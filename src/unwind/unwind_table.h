/* How to get from a function to its caller, for every address of one object file: the call frame
 * information (.eh_frame, .debug_frame) of the file, run once and kept as a flat sorted table.
 *
 *     starts[]  rule_of[]          rules[]: each different one once, a few hundred
 *     0x1000        0              CFA = sp + 8           ra at CFA - 8
 *     0x1001        1              CFA = sp + 16          ra at CFA - 8    bp at CFA - 16
 *     0x1004        2              CFA = bp + 16          ra at CFA - 8    bp at CFA - 16
 *     0x1020      NONE             between functions
 *
 * Registers go by their DWARF numbers (x86-64: 3 = rbx, 6 = rbp, 7 = rsp; aarch64: 29 = fp, 30 =
 * lr, 31 = sp). A rule says where the registers of the caller are that the called function keeps;
 * others are lost. Nothing here knows a machine but the list of these registers. */
#ifndef PITVIPER_UNWIND_UNWIND_TABLE_H
#define PITVIPER_UNWIND_UNWIND_TABLE_H

#include "base/vector.h"
#include "elf/elf_object.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    UNWIND_SAVED_MOST = 12, /* registers kept across calls: 6 on x86-64, 11 on aarch64 */
};

/* How the canonical frame address (the value of the stack pointer in the caller) is found. */
enum unwind_cfa {
    UNWIND_CFA_NONE,     /* not known: what the file says can't be followed */
    UNWIND_CFA_REGISTER, /* register + offset */
    UNWIND_CFA_MEMORY,   /* the word at register + offset, + added */
    UNWIND_CFA_PLT,      /* register + offset, and 8 more from byte `added` of a 16-byte entry on */
};

/* Where a register of the caller is. */
enum unwind_place_kind {
    UNWIND_SAME,      /* where it was: not changed */
    UNWIND_UNDEFINED, /* lost; for the return address: there is no caller */
    UNWIND_AT_CFA,    /* in memory at CFA + offset */
    UNWIND_IS_CFA,    /* its value is CFA + offset */
    UNWIND_AT,        /* in memory at register + offset */
    UNWIND_IS,        /* its value is register + offset */
};

struct unwind_place {
    int32_t offset;
    uint8_t kind;   /* enum unwind_place_kind */
    uint8_t number; /* of the register that UNWIND_AT and UNWIND_IS start from */
    uint8_t target; /* the register that is found there; 0 for the return address */
    uint8_t unused; /* 0: rules are compared as bytes */
};

struct unwind_rule {
    int32_t cfa_offset;
    int32_t cfa_added;  /* UNWIND_CFA_MEMORY, UNWIND_CFA_PLT */
    uint8_t cfa;        /* enum unwind_cfa */
    uint8_t cfa_number; /* of the register */
    uint8_t is_signal;  /* 1: a signal frame; its caller was interrupted, not calling */
    uint8_t place_count;
    uint32_t restored;    /* bit n: register n is in `places` */
    uint32_t plain_bytes; /* not 0: the CFA is register + offset, and all words are below it, the
                             lowest one so many bytes; see unwind.c */
    struct unwind_place return_address;
    struct unwind_place places[UNWIND_SAVED_MOST]; /* of those registers that are not UNWIND_SAME;
                                                      behind the last one, zeros */
};

#define UNWIND_NO_RULE UINT16_MAX

struct unwind_table {
    uint64_t base_svma; /* `starts` count from here */
    uint64_t end_svma;  /* behind the last row */
    uint32_t *starts;   /* ascending, different; owned */
    uint16_t *rule_of;  /* per row: index into `rules`, or UNWIND_NO_RULE; owned */
    size_t row_count;
    VECTOR(struct unwind_rule) rules;
    size_t damaged; /* frame descriptions that were left out: unreadable, or not to be understood */
};

/* Bytes of .eh_frame that are not in a file: what a jitdump's UNWINDING_INFO brings. */
struct unwind_jit {
    const uint8_t *data;      /* .eh_frame, then .eh_frame_hdr */
    size_t size;              /* of both */
    size_t eh_frame_hdr_size; /* how much of the end is .eh_frame_hdr; <= size */
    uint64_t code_size;       /* of the code it describes, in bytes */
};

/* The table of an object: .eh_frame, and .debug_frame for what the former does not cover (of the
 * debug file too, which may be NULL). Both may be closed afterwards. 0, -ENOMEM, or -ENOTSUP for a
 * machine that is not known. A file without frame information gives an empty table. On failure
 * there is nothing to release. */
int unwind_table_init(struct unwind_table *table, const struct elf_object *object,
                      const struct elf_object *debug);

/* The same for generated code; the code's first byte is svma 0. x86-64 and aarch64. */
int unwind_table_init_jit(struct unwind_table *table, uint16_t elf_machine,
                          const struct unwind_jit *jit);
void unwind_table_done(struct unwind_table *table);

/* The rule at an address, or NULL when the table says nothing about it. */
const struct unwind_rule *unwind_table_find(const struct unwind_table *table, uint64_t svma);

#endif
