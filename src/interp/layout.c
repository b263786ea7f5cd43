/* CPython 3.13 and later describe their structures to debuggers: _PyRuntime starts with a table of
 * offsets, _Py_DebugOffsets. It lacks fields that we need, so it cannot replace our table; but
 * where it has one, the two must agree. When they do not, this is a build that we have never seen
 * (a vendor's patch, a release candidate), and we refuse it.
 *
 * The table holds 64-bit numbers behind a cookie, the version and the kind of build:
 *
 *     "xdebugpy"  0x030d00f0  free_threaded  ...  thread: ... interp current_frame ...
 *                 frame: ... previous executable ...  code: ... filename name qualname ...
 *
 * Where each group starts differs by minor version; the order inside a group does not. co_extra is
 * not in it, but the bytecode is, which follows co_extra immediately. */
#include "interp/layout.h"

#include <string.h>

enum { FIRST_WITH_OFFSETS = 13 };

/* Positions in bytes from the cookie, of 3.13, 3.14 and 3.15. */
static const struct {
    uint16_t thread_interp;
    uint16_t frame_previous;
    uint16_t code_filename;
} PUBLISHED[] = {{176, 232, 280}, {200, 256, 320}, {200, 320, 384}};

struct py_frame *layout_current_frame(const struct layout *layout, struct py_thread *thread)
{
    void *found = layout_pointer(thread, layout->thread_frame);
    if (layout->thread_frame_in_cframe && found)
        found = layout_pointer(found, layout->cframe_frame);
    return found;
}

static uint64_t published(size_t position)
{
    uint64_t number;
    memcpy(&number, (const char *)py.runtime + position, sizeof number);
    return number;
}

const char *layout_check(const struct layout *layout, int minor)
{
    if (minor < FIRST_WITH_OFFSETS)
        return NULL;
    if (!py.runtime || memcmp(py.runtime, "xdebugpy", 8) != 0)
        return "this build does not describe its structures";
    if (published(8) >> 16 != (0x0300u | (unsigned)minor) || published(16) != 0)
        return "this build describes the structures of another version";
    size_t thread = PUBLISHED[minor - FIRST_WITH_OFFSETS].thread_interp;
    size_t frame = PUBLISHED[minor - FIRST_WITH_OFFSETS].frame_previous;
    size_t code = PUBLISHED[minor - FIRST_WITH_OFFSETS].code_filename;
    bool agrees =
        published(thread) == layout->thread_interpreter &&
        published(thread + 8) == layout->thread_frame &&
        published(frame) == layout->frame_previous && published(frame + 8) == layout->frame_code &&
        published(code) == layout->code_filename && published(code + 16) == layout->code_name &&
        published(code + 32) == layout->code_firstlineno &&
        published(code + 64) == layout->code_extra + sizeof(void *);
    return agrees ? NULL : "the structures of this build are not laid out as in the release";
}
