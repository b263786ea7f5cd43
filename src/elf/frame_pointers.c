/* A function that keeps a frame pointer starts like this, perhaps after an endbr64:
 *
 *     55          push %rbp
 *     48 89 e5    mov  %rsp,%rbp
 *
 * Compilers may put a few instructions before that, to return early without a frame, so the pair is
 * looked for in the first bytes of the function rather than at its very start. Small functions say
 * nothing: they may be nothing but a jump. */
#include "elf/frame_pointers.h"

#include <string.h>

enum { LEAST_FUNCTION_BYTES = 64, PROLOGUE_BYTES = 32 };

static const uint8_t SET_UP[] = {0x55, 0x48, 0x89, 0xe5};

struct frame_pointers frame_pointers_count(const struct elf_file *elf)
{
    struct frame_pointers count = {0};
    struct elf_symbols symbols;
    struct elf_symbol symbol;
    if (elf->header.e_machine != EM_X86_64 || !elf_symbols_init(&symbols, elf, SHT_DYNSYM))
        return count;
    while (elf_symbols_next(&symbols, &symbol)) {
        if (symbol.type != STT_FUNC || symbol.size < LEAST_FUNCTION_BYTES)
            continue;
        const uint8_t *code = elf_file_bytes(elf, symbol.svma, PROLOGUE_BYTES);
        if (!code)
            continue;
        count.functions++;
        count.kept += memmem(code, PROLOGUE_BYTES, SET_UP, sizeof SET_UP) != NULL;
    }
    return count;
}
