/* Code that nobody described: hand-written kernels of numeric, crypto and codec libraries, _init,
 * trampolines and whatever else was generated. Where its caller is, it must know itself: it will
 * return. So the way from an address to a `ret` is followed, and what the instructions do to the
 * stack pointer, and to the registers that calls keep, says where the return address is and where
 * the caller's registers are:
 *
 *     loop:  vfmadd231pd …             CFA = rsp + 0x40     rbx at CFA - 0x40   r12 at CFA - 0x38
 *            dec   %rax                       the same, at every address up to here
 *            jne   loop                not taken: all loops end
 *            mov   (%rsp), %rbx
 *            mov   0x8(%rsp), %r12
 *            add   $0x38, %rsp         CFA = rsp + 0x40     rbx, r12: as they are
 *            ret                       CFA = rsp + 8
 *
 * Any way to a `ret` will do, since all must agree. A conditional jump is first taken to be none;
 * the other way is kept for the case that this one leads nowhere: into bytes that are no code, into
 * a circle, to an indirect jump. Calls are stepped over. No instruction is looked at twice: the
 * second time could only say the same.
 *
 * Some calls never return, and what stands behind them is another function, which has a `ret` of
 * its own. Two things tell: at a call the stack pointer is a multiple of 16, and so is the CFA (the
 * ABI wants it); and a function gives the kept registers back. Internal functions of hand-written
 * code do as they like, so one of the two alone makes a way doubtful, to be taken when there is no
 * better one. Both, or nops behind such a call, make it wrong. And no call returns to an endbr64:
 * that is for indirect jumps.
 *
 * A jump out of the code, or through a word of the global offset table, is the last call of a
 * function, which returns in its place. A jump to code that has a table needs to be followed no
 * further: the table says where that code has the return address, and so where we have it. A jump
 * by a register goes on if that was loaded from a variable, and the memory can be read. libffi's
 * callbacks need both:
 *
 *     sub   $0x10, %rsp               one of these for each callback, in a page of its own
 *     mov   %r10, (%rsp)
 *     mov   0xfed(%rip), %r10         from the next page, which is filled when it is made
 *     mov   %r10, 0x8(%rsp)
 *     mov   0xfe9(%rip), %r10
 *     jmp   *%r10                     leads to:
 *     mov   0x8(%rsp), %r10
 *     add   $0x10, %rsp
 *     jmp   ffi_closure_unix64        described: CFA = rsp + 8 */
#include "unwind/unwind_machine.h"
#include "unwind/x86_state.h"

#include <string.h>

enum {
    WORD = 8,
    MOST_INSTRUCTIONS = 8192, /* of a question: kernels are unrolled to thousands */
    VISITED_BITS = 14,
    MOST_PENDING = 1024,
    MOST_STATES = 32,
};

static const uint8_t DWARF_OF[X86_REGISTERS] = {0, 2, 1,  3,  7,  6,  4,  5,
                                                8, 9, 10, 11, 12, 13, 14, 15};
static const uint8_t KEPT[] = {X86_RBX, X86_RBP, X86_R12, X86_R13, X86_R14, X86_R15};

/* The other way at a branch. */
struct pending {
    uint64_t address;
    size_t state; /* which one */
};

struct search {
    const struct code_source *source;
    uint64_t start_address;
    const uint8_t *code; /* at hand: `code_bytes` from `code_address` on */
    uint64_t code_address;
    size_t code_bytes;
    unsigned instructions;                /* looked at so far */
    uint32_t visited[1 << VISITED_BITS];  /* distance from the start, + 1, in 32 bits; 0: free */
    struct pending pending[MOST_PENDING]; /* the newest is tried first */
    size_t pending_count;
    struct x86_state states[MOST_STATES]; /* of the pending ones; one may serve several */
    size_t state_count;
    struct unwind_rule second_best;
    bool has_second_best;
};

/* --- instructions ----------------------------------------------------------------------------- */

/* Where an instruction leads. */
enum flow { FLOW_ON, FLOW_CALL, FLOW_JUMP, FLOW_POINTER, FLOW_BRANCH, FLOW_RETURN, FLOW_NOWHERE };

static enum flow flow_of_ff(const struct x86_instruction *instruction)
{
    switch (instruction->reg & 7) {
    case 2:
        return FLOW_CALL;
    case 4: /* through a word at a distance from rip: the offset table's */
        return instruction->is_rip_relative ? FLOW_RETURN : FLOW_POINTER;
    case 3:
    case 5:
        return FLOW_NOWHERE;
    default:
        return FLOW_ON;
    }
}

static enum flow flow_of(const struct x86_instruction *instruction)
{
    uint8_t opcode = instruction->opcode;
    if (instruction->is_vector)
        return FLOW_ON;
    if (instruction->map == X86_MAP_0F)
        return (opcode & 0xf0) == 0x80                              ? FLOW_BRANCH
               : opcode == 0x0b || opcode == 0xb9 || opcode == 0xff ? FLOW_NOWHERE /* ud2 */
                                                                    : FLOW_ON;
    if (instruction->map != X86_MAP_ONE)
        return FLOW_ON;
    if ((opcode & 0xf0) == 0x70 || (opcode & 0xfc) == 0xe0)
        return FLOW_BRANCH;
    switch (opcode) {
    case 0xe8:
        return FLOW_CALL;
    case 0xe9:
    case 0xeb:
        return FLOW_JUMP;
    case 0xc2:
    case 0xc3:
        return FLOW_RETURN;
    case 0xff:
        return flow_of_ff(instruction);
    case 0xca: /* far returns, int3, int1, iret, hlt */
    case 0xcb:
    case 0xcc:
    case 0xcf:
    case 0xf1:
    case 0xf4:
        return FLOW_NOWHERE;
    default:
        return FLOW_ON;
    }
}

/* How many bytes there are from an address on, at *ret_code. */
static size_t code_at(struct search *search, uint64_t address, const uint8_t **ret_code)
{
    uint64_t offset = address - search->code_address;
    if (offset >= search->code_bytes || search->code_bytes - offset < X86_LENGTH_MOST) {
        size_t before = 0,
               bytes = search->source->read(search->source->context, address, ret_code, &before);
        search->code_bytes = bytes ? before + bytes : 0;
        search->code_address = address - before;
        search->code = bytes ? *ret_code - before : NULL;
        return bytes;
    }
    *ret_code = search->code + offset;
    return search->code_bytes - (size_t)offset;
}

/* The place of an address among those that were visited, or a free one. */
static uint32_t *visit_of(struct search *search, uint64_t address)
{
    uint32_t mark = (uint32_t)(address - search->start_address) + 1;
    size_t mask = ((size_t)1 << VISITED_BITS) - 1, slot = mark * 0x9e3779b1u >> (32 - VISITED_BITS);
    while (search->visited[slot] && search->visited[slot] != mark)
        slot = (slot + 1) & mask;
    return &search->visited[slot];
}

/* Whether this is the first time here, and there is time for it. */
static bool visit(struct search *search, uint64_t address)
{
    uint32_t *visited = visit_of(search, address);
    if (*visited || search->instructions >= MOST_INSTRUCTIONS)
        return false;
    *visited = (uint32_t)(address - search->start_address) + 1;
    search->instructions++;
    return true;
}

/* In long kernels nothing changes from branch to branch: the state is that of the one before. */
static void try_later(struct search *search, uint64_t address, const struct x86_state *state)
{
    size_t last = search->state_count - 1;
    if (*visit_of(search, address) || search->pending_count == MOST_PENDING)
        return;
    if (!search->state_count || memcmp(&search->states[last], state, sizeof *state) != 0) {
        if (search->state_count == MOST_STATES)
            return;
        last = search->state_count++;
        search->states[last] = *state;
    }
    search->pending[search->pending_count++] = (struct pending){.address = address, .state = last};
}

/* Goes on with the newest of the pending ways; false when there is none. */
static bool try_other(struct search *search, uint64_t *ret_address, struct x86_state *ret_state)
{
    if (!search->pending_count)
        return false;
    const struct pending *pending = &search->pending[--search->pending_count];
    *ret_address = pending->address;
    *ret_state = search->states[pending->state];
    search->state_count = search->pending_count ? pending[-1].state + 1 : 0;
    return true;
}

/* --- rules ------------------------------------------------------------------------------------ */

static bool has_same_base(const struct x86_value *one, const struct x86_value *other)
{
    return one->symbol == other->symbol && one->depth == other->depth &&
           memcmp(one->offsets, other->offsets, one->depth * sizeof one->offsets[0]) == 0;
}

/* Where the caller's value of a kept register is. False when nobody knows. */
static bool place_of(const struct x86_state *state, uint8_t kept, struct unwind_place *ret_place)
{
    const struct x86_value *value = &state->registers[kept], *sp = &state->registers[X86_RSP];
    ret_place->kind = UNWIND_UNDEFINED;
    if (value->symbol >= X86_REGISTERS || value->offsets[value->depth])
        return false;
    if (value->depth == 0) {
        ret_place->kind = UNWIND_IS;
        ret_place->number = DWARF_OF[value->symbol];
        return true;
    }
    struct x86_value address = *value;
    address.depth--;
    int32_t offset = address.offsets[address.depth];
    if (address.symbol == X86_RSP && address.depth == 0 && offset < 0)
        return true; /* below the stack pointer: a place that no copy of the stack has */
    /* In the first instructions of a function, which pushes registers and takes them back by rbp,
     * nobody can tell whether that is the same place. */
    if (address.symbol != X86_RSP && x86_state_has_saved(state, kept))
        return true;
    if (has_same_base(&address, sp)) {
        ret_place->kind = UNWIND_AT_CFA;
        return !__builtin_sub_overflow(offset, sp->offsets[sp->depth], &offset) &&
               !__builtin_sub_overflow(offset, WORD, &ret_place->offset);
    }
    if (address.depth > 0)
        return false;
    ret_place->kind = UNWIND_AT;
    ret_place->number = DWARF_OF[address.symbol];
    ret_place->offset = offset;
    return true;
}

static bool put_cfa(const struct x86_value *sp, struct unwind_rule *rule)
{
    if (sp->symbol >= X86_REGISTERS || sp->depth > 1 ||
        (sp->symbol == X86_RSP && sp->depth == 0 && sp->offsets[0] < 0))
        return false;
    rule->cfa = sp->depth ? UNWIND_CFA_MEMORY : UNWIND_CFA_REGISTER;
    rule->cfa_number = DWARF_OF[sp->symbol];
    rule->cfa_offset = sp->offsets[0];
    return !__builtin_add_overflow(sp->offsets[sp->depth], WORD,
                                   sp->depth ? &rule->cfa_added : &rule->cfa_offset);
}

/* Whether the calls on the way were such as the ABI wants them. */
static bool is_aligned(const struct x86_state *state)
{
    const struct x86_value *sp = &state->registers[X86_RSP], *call_sp = &state->call_sp;
    if (!x86_value_is_known(call_sp) || !has_same_base(sp, call_sp))
        return true;
    int64_t bytes = (int64_t)sp->offsets[sp->depth] + WORD - call_sp->offsets[sp->depth];
    return bytes % (2 * WORD) == 0 && !state->is_askew;
}

enum verdict { WRONG, DOUBTFUL, RIGHT };

/* The rule, when what the stack pointer points to is the return address now. */
static enum verdict rule_of(const struct x86_state *state, struct unwind_rule *ret_rule)
{
    const struct x86_value *sp = &state->registers[X86_RSP];
    bool is_odd = !is_aligned(state), has_lost = false;
    memset(ret_rule, 0, sizeof *ret_rule);
    if (!put_cfa(sp, ret_rule) || x86_state_has_stored(state, sp))
        return WRONG;
    ret_rule->return_address = (struct unwind_place){.kind = UNWIND_AT_CFA, .offset = -WORD};
    for (size_t i = 0; i < sizeof KEPT; i++) {
        struct unwind_place *place = &ret_rule->places[ret_rule->place_count];
        uint8_t number = DWARF_OF[KEPT[i]];
        if (x86_value_is_start(&state->registers[KEPT[i]], KEPT[i]))
            continue;
        has_lost |= !place_of(state, KEPT[i], place);
        place->target = number;
        ret_rule->place_count++;
        ret_rule->restored |= 1u << number;
    }
    if (is_odd && (has_lost || state->has_passed_padding))
        return WRONG;
    return is_odd || has_lost ? DOUBTFUL : RIGHT;
}

/* Whether the search is over. */
static bool take_return(struct search *search, const struct x86_state *state,
                        struct unwind_rule *ret_rule)
{
    enum verdict verdict = rule_of(state, ret_rule);
    if (verdict == DOUBTFUL && !search->has_second_best) {
        search->second_best = *ret_rule;
        search->has_second_best = true;
    }
    return verdict == RIGHT;
}

/* --- ways ------------------------------------------------------------------------------------- */

static bool is_endbr(const struct x86_instruction *instruction)
{
    return !instruction->is_vector && instruction->map == X86_MAP_0F &&
           instruction->opcode == 0x1e && instruction->prefix == 0xf3;
}

/* A call, if it comes back to what is next. An instruction that does nothing fills the room up to
 * another function, or to a loop. */
static bool pass_call(struct search *search, uint64_t next_address, struct x86_state *state)
{
    struct x86_instruction next;
    const uint8_t *code = NULL;
    size_t bytes = code_at(search, next_address, &code);
    if (!x86_decode(code, bytes, &next) || is_endbr(&next))
        return false;
    x86_state_call(state);
    state->has_passed_padding |= x86_is_padding(&next);
    return true;
}

/* A distance from the next instruction as one from the start, where every one is the same. */
static void relate_to_start(const struct search *search, uint64_t next_address,
                            struct x86_instruction *instruction)
{
    int64_t distance = (int64_t)(next_address - search->start_address);
    if (!instruction->is_rip_relative ||
        __builtin_add_overflow(distance, instruction->displacement, &instruction->displacement))
        return;
    instruction->base = X86_START;
    instruction->is_plain_address = true;
}

/* Where a jump by a register or through memory leads. */
static bool find_target(struct search *search, const struct x86_state *state,
                        const struct x86_instruction *instruction, uint64_t *ret_address)
{
    const struct code_source *source = search->source;
    struct x86_value value = x86_state_operand(state, instruction);
    uint64_t word = search->start_address;
    if (value.symbol != X86_START)
        return false;
    for (unsigned i = 0; i < value.depth; i++) {
        word += (uint64_t)(int64_t)value.offsets[i];
        if (!source->read_word || !source->read_word(source->context, word, &word))
            return false;
    }
    *ret_address = word + (uint64_t)(int64_t)value.offsets[value.depth];
    const uint8_t *code;
    return code_at(search, *ret_address, &code) > 0;
}

static uint8_t number_of_dwarf(uint8_t dwarf)
{
    uint8_t number = 0;
    while (number < X86_REGISTERS && DWARF_OF[number] != dwarf)
        number++;
    return number;
}

static struct x86_value value_of(const struct x86_state *state, const struct unwind_place *place,
                                 struct x86_value cfa)
{
    uint8_t base = number_of_dwarf(place->number);
    bool from_cfa = place->kind == UNWIND_AT_CFA || place->kind == UNWIND_IS_CFA;
    struct x86_value value = from_cfa ? cfa : state->registers[base];
    if (place->kind == UNWIND_UNDEFINED || base == X86_REGISTERS)
        return (struct x86_value){.symbol = X86_UNKNOWN};
    value = x86_value_sum(value, place->offset);
    return place->kind == UNWIND_AT_CFA || place->kind == UNWIND_AT ? x86_state_load(state, value)
                                                                    : value;
}

/* If a table has the address that was jumped to, all is done at once that it says will happen up to
 * the return. */
static bool pass_described(const struct search *search, uint64_t address, struct x86_state *state)
{
    const struct code_source *source = search->source;
    const struct unwind_rule *rule =
        source->describe ? source->describe(source->context, address) : NULL;
    if (!rule || rule->is_signal || rule->cfa != UNWIND_CFA_REGISTER ||
        rule->return_address.kind != UNWIND_AT_CFA || rule->return_address.offset != -WORD)
        return false;
    struct x86_state after = *state;
    struct x86_value cfa =
        x86_value_sum(state->registers[number_of_dwarf(rule->cfa_number)], rule->cfa_offset);
    for (unsigned i = 0; i < rule->place_count; i++)
        after.registers[number_of_dwarf(rule->places[i].target)] =
            value_of(state, &rule->places[i], cfa);
    after.registers[X86_RSP] = x86_value_sum(cfa, -WORD);
    *state = after;
    return true;
}

/* Follows one way to its end. Whether that is a return that can be believed. `is_target`: a jump
 * leads here. */
static bool follow(struct search *search, uint64_t address, bool is_target, struct x86_state *state,
                   struct unwind_rule *ret_rule)
{
    struct x86_instruction instruction;
    const uint8_t *code = NULL;
    while (visit(search, address)) {
        if (is_target && pass_described(search, address, state))
            return take_return(search, state, ret_rule);
        size_t bytes = code_at(search, address, &code);
        if (is_target && !bytes)
            return take_return(search, state, ret_rule);
        is_target = false;
        if (!x86_decode(code, bytes, &instruction))
            return false;
        uint64_t next = address + instruction.length;
        relate_to_start(search, next, &instruction);
        uint64_t target = next + (uint64_t)instruction.immediate;
        address = next;
        switch (flow_of(&instruction)) {
        case FLOW_ON:
            if (!x86_state_step(state, &instruction))
                return false;
            break;
        case FLOW_CALL:
            if (!pass_call(search, next, state))
                return false;
            break;
        case FLOW_BRANCH:
            try_later(search, target, state);
            break;
        case FLOW_JUMP:
            address = target;
            is_target = true;
            break;
        case FLOW_POINTER:
            if (!find_target(search, state, &instruction, &address))
                return false;
            is_target = true;
            break;
        case FLOW_RETURN:
            return take_return(search, state, ret_rule);
        case FLOW_NOWHERE:
            return false;
        }
    }
    return false;
}

bool unwind_follow_x86_64(const struct code_source *source, uint64_t address, bool is_caller,
                          struct unwind_rule *ret_rule)
{
    struct search search = {.source = source, .start_address = address};
    struct x86_state state;
    x86_state_init(&state);
    if (is_caller && !pass_call(&search, address, &state))
        return false;
    bool is_target = false;
    do {
        if (follow(&search, address, is_target, &state, ret_rule))
            return true;
        is_target = true;
    } while (try_other(&search, &address, &state));
    *ret_rule = search.second_best;
    return search.has_second_best;
}

/* `e8` and a distance, or `ff`, with ModRM.reg 2 and as many bytes as there are up to here. */
bool unwind_is_behind_call_x86_64(const uint8_t *end, size_t before)
{
    enum { DIRECT_BYTES = 5, LEAST_BYTES = 2, MOST_BYTES = 7 };
    struct x86_instruction instruction;
    if (before >= DIRECT_BYTES && end[-DIRECT_BYTES] == 0xe8)
        return true;
    for (size_t bytes = LEAST_BYTES; bytes <= MOST_BYTES && bytes <= before; bytes++)
        if (*(end - bytes) == 0xff && x86_decode(end - bytes, bytes, &instruction) &&
            instruction.length == bytes && flow_of(&instruction) == FLOW_CALL)
            return true;
    return false;
}
