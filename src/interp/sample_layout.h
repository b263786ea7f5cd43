/* Where the fields lie that the sampler reads in a signal handler, per minor version: more of the
 * frame than interp/layout.h knows, and what tells the line and the names of a code object.
 *
 * A frame that is being run is found in five ways:
 *
 *     3.9    thread -> frame -> frame ...                     each is a call of the evaluator
 *     3.10   the same, and thread -> cframe -> cframe ...     one for each frame
 *     3.11   thread -> cframe -> frame -> frame ...           is_entry: on to the next cframe
 *     3.12   thread -> cframe -> frame -> shim -> frame ...   a shim ends a call
 *     3.13   thread -> frame -> shim -> frame ...             the same, and later
 *
 * A call of the evaluator has its cframe or shim among its variables on the C stack. */
#ifndef PITVIPER_INTERP_SAMPLE_LAYOUT_H
#define PITVIPER_INTERP_SAMPLE_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

/* Offsets in bytes; 0 where there is no such field. */
struct sample_layout {
    uint16_t thread_frame;       /* the innermost frame; or 0: it is in the cframe */
    uint16_t thread_cframe;      /* _PyCFrame */
    uint16_t thread_id;          /* the thread's pthread_t */
    uint8_t interpreter_threads; /* PyInterpreterState: its newest one; later ones publish it */
    uint8_t cframe_frame;        /* its innermost frame, where threads do not have it */
    uint8_t cframe_previous;
    uint16_t frame_previous;
    uint16_t frame_code;
    uint8_t frame_code_tags;    /* mask */
    uint16_t frame_offset;      /* int: the instruction as an offset ... */
    uint8_t frame_offset_unit;  /* ... in so many bytes; or 0: see frame_instruction */
    uint16_t frame_instruction; /* pointer to it */
    uint16_t frame_is_entry;    /* bool, 3.11 */
    uint16_t frame_owner;       /* char; 3.12 and later: FRAME_OWNER_SHIM marks a shim */
    uint8_t code_flags;         /* int */
    uint16_t code_first_line;   /* int */
    uint16_t code_file;
    uint16_t code_name;
    uint16_t code_lines;        /* bytes */
    uint16_t code_bytes;        /* bytes object; or 0: see code_instructions */
    uint16_t code_instructions; /* the first of them, in the object itself */
    uint8_t text_ascii;         /* str: characters of a compact ASCII one ... */
    uint8_t text_other;         /* ... and of another compact one */
};

enum {
    FRAME_OWNER_SHIM = 3,
    OBJECT_TYPE = 8,
    CODE_IS_GENERATOR = 0x20 | 0x80 | 0x200, /* flags: one, a coroutine, or both */
    CODE_UNITS = 16, /* 3.11 and later: how many units of 2 bytes the instructions take */
    TEXT_LENGTH = 16,
    TEXT_STATE = 32, /* a byte: 3 bits of kind from bit 2 on, compact, ascii */
    BYTES_LENGTH = 16,
    BYTES_DATA = 32,
};

/* NULL for versions that nobody has looked at. */
const struct sample_layout *sample_layout_of(int minor);

#endif
