/* How to get from a function to its caller, for every address of one object file: the call frame
 * information (.eh_frame, .debug_frame) of the file, run function by function as they are asked
 * for.
 *
 *     functions[]            rows[]             rules[]: each different one once, a few hundred
 *     0x1000 … 0x1020        +0     0           CFA = sp + 8       ra at CFA - 8
 *                            +1     1           CFA = sp + 16      ra at CFA - 8    bp at CFA - 16
 *                            +4     2           CFA = bp + 16      ra at CFA - 8    bp at CFA - 16
 *
 * Registers go by their DWARF numbers (x86-64: 3 = rbx, 6 = rbp, 7 = rsp; aarch64: 29 = fp, 30 =
 * lr, 31 = sp). A rule says where the registers of the caller are that the called function keeps;
 * others are lost. Nothing here knows a machine but the list of these registers. */
#ifndef PITVIPER_UNWIND_UNWIND_TABLE_H
#define PITVIPER_UNWIND_UNWIND_TABLE_H

#include "base/arena.h"
#include "base/hashtable.h"
#include "base/vector.h"
#include "elf/elf_object.h"
#include "unwind/cfi_object.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    UNWIND_SAVED_MOST = 12, /* registers kept across calls: 6 on x86-64, 11 on aarch64 */
    UNWIND_SECTIONS = 3,    /* .eh_frame, .debug_frame, the debug file's .debug_frame */
};

/* How the canonical frame address (the value of the stack pointer in the caller) is found. */
enum unwind_cfa {
    UNWIND_CFA_NONE,       /* not known: what the file says can't be followed */
    UNWIND_CFA_REGISTER,   /* register + offset */
    UNWIND_CFA_MEMORY,     /* the word at register + offset, + added */
    UNWIND_CFA_EXPRESSION, /* anything else: unwind/cfa_expression.h */
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
    int32_t cfa_added;  /* UNWIND_CFA_MEMORY */
    uint8_t cfa;        /* enum unwind_cfa */
    uint8_t cfa_number; /* of the register */
    uint8_t is_signal;  /* 1: a signal frame; its caller was interrupted, not calling */
    uint8_t place_count;
    uint8_t is_guess; /* 1: believed only if it leads up the stack to a place behind a call */
    uint8_t unused;   /* 0 */
    uint16_t expression_bytes;
    uint32_t restored;    /* bit n: register n is in `places` */
    uint32_t plain_bytes; /* not 0: the CFA is register + offset, and all words are below it, the
                             lowest one so many bytes; see unwind.c */
    const uint8_t *expression; /* UNWIND_CFA_EXPRESSION; as long as the table is */
    struct unwind_place return_address;
    struct unwind_place places[UNWIND_SAVED_MOST]; /* of those registers that are not UNWIND_SAME;
                                                      behind the last one, zeros */
};

#define UNWIND_NO_RULE UINT16_MAX

struct unwind_row {
    uint32_t delta; /* in bytes, from the function's start */
    uint16_t rule;  /* index into the table's `rules`, or UNWIND_NO_RULE */
};

/* A function whose program was run. */
struct unwind_function {
    uint64_t start_svma;
    uint64_t end_svma; /* not behind the start of the next one; of a damaged one: its start */
    size_t first_row, row_count;
};

/* One section, and what was made of it so far. */
struct unwind_section {
    bool is_open;      /* else it was not looked for yet, and all is 0 */
    bool is_by_header; /* the index is .eh_frame_hdr's, which need not be right */
    bool is_complete;  /* and has as many functions as the section; not known before a miss */
    struct cfi_bytes bytes;
    struct cfi_index index; /* `number` of an entry: that of its function, plus 1 */
    VECTOR(struct unwind_function) functions;
    VECTOR(struct unwind_row) rows;
};

struct unwind_machine;

struct unwind_table {
    const struct unwind_machine *machine;
    const struct elf_object *object, *debug; /* borrowed; NULL: none */
    struct cfi_code code;
    struct unwind_section sections[UNWIND_SECTIONS]; /* the first that has a function counts */
    struct arena arena;                              /* of the rules, which never move */
    VECTOR(const struct unwind_rule *) rules;        /* each different one once */
    struct hashtable rule_index;                     /* by their bytes */
    size_t damaged; /* frame descriptions that were met and left out: unreadable, or not to be
                       understood; a section that can't be read or decompressed counts as one */
};

/* Bytes of .eh_frame that are not in a file: what a jitdump's UNWINDING_INFO brings. */
struct unwind_jit {
    const uint8_t *data;      /* .eh_frame, then .eh_frame_hdr */
    size_t size;              /* of both */
    size_t eh_frame_hdr_size; /* how much of the end is .eh_frame_hdr; <= size */
    uint64_t code_size;       /* of the code it describes, in bytes */
};

/* The table of an object: .eh_frame, and .debug_frame for what the former does not cover (of the
 * debug file too, which may be NULL). Reads nothing yet: both files must stay open as long as the
 * table is used. 0, or -ENOTSUP for a machine that is not known; then there is nothing to release.
 */
int unwind_table_init(struct unwind_table *table, const struct elf_object *object,
                      const struct elf_object *debug);

/* The same for generated code; the code's first byte is svma 0. x86-64 and aarch64. The bytes are
 * copied. 0, -ENOTSUP or -ENOMEM. */
int unwind_table_init_jit(struct unwind_table *table, uint16_t elf_machine,
                          const struct unwind_jit *jit);
void unwind_table_done(struct unwind_table *table);

/* What a rule's plain_bytes should be. */
uint32_t unwind_rule_plain_bytes(const struct unwind_rule *rule);

/* The rule at an address, valid until unwind_table_done; NULL when the file says nothing about it,
 * or memory is short. */
const struct unwind_rule *unwind_table_find(struct unwind_table *table, uint64_t svma);

/* The function at an address, as far as nothing else starts in it. False where there is no rule. */
bool unwind_table_function(struct unwind_table *table, uint64_t svma, struct cfi_range *ret_range);

#endif
