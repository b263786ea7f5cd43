/* Landmarks: what makes samples of deep stacks cheap.
 *
 * Most of a deep stack is in one sample as it was in the one before, and copying and unwinding it
 * again would cost more than everything else. So the recorder tells a thread what it has found on
 * its stack: at which places the return addresses of its C functions stand, and which. The thread
 * looks whether they still stand there, the outermost function's first, and copies only what lies
 * before the last one that does:
 *
 *     | changed since then, copied        | margin | the same return addresses: left out |
 *     ^ stack pointer                     ^ innermost landmark that still holds           ^ end
 *
 * Where all return addresses up to some function are the same, in the same places, its callers are:
 * so the recorder takes these from what it has. The margin is copied, too. In a part of the stack
 * that is in use but not written to, as a large buffer may be, there can be return addresses of
 * functions that have ended. Then what is unwound does not come to a place that both know, and the
 * recorder takes its landmarks back.
 *
 * Tables of landmarks stand behind the data of a ring. They are the recorder's; a thread finds its
 * own by its number in the ring's header. There is memory behind a table only if it has an owner:
 * others must not be touched, since a full disk would be the end of who does. */
#ifndef PITVIPER_FORMATS_SAMPLE_LANDMARKS_H
#define PITVIPER_FORMATS_SAMPLE_LANDMARKS_H

#include "formats/sample_ring.h"

/* Less is not worth it. */
enum { SAMPLE_LANDMARKS_LEAST_BYTES = 48 << 10, SAMPLE_LANDMARKS_MARGIN_BYTES = 8 << 10 };

enum { SAMPLE_LANDMARKS_MOST = 8190 };

struct sample_landmark {
    uint32_t depth; /* bytes from the place of a return address to the end of the stack */
    uint32_t word;  /* the lower half of that address */
};

struct sample_landmarks {
    _Atomic uint32_t version; /* odd: is being written; 0: never was */
    uint32_t count;
    uint64_t end_avma;                                   /* of the stack */
    struct sample_landmark marks[SAMPLE_LANDMARKS_MOST]; /* outermost first */
};

/* Behind a copy with SAMPLE_STACK_KNOWN. */
struct sample_known_stack {
    uint64_t version; /* of the landmarks */
    uint64_t count;   /* how many of them held */
};

/* The thread's part: the landmarks of thread `tid` that hold for the stack from `stack_avma` to
 * `end_avma`, which can be read. Returns where the copy may end; `end_avma` when all of it is
 * needed. Fit for signal handlers. */
uint64_t sample_landmarks_check(const struct sample_ring *ring, uint32_t tid, uint64_t stack_avma,
                                uint64_t end_avma, struct sample_known_stack *ret_known);

/* The recorder's part: gives table `number` to a thread, with these landmarks. The version is even,
 * and another one each time. False when there is no room for the table on the disk. */
bool sample_landmarks_publish(struct sample_ring *ring, size_t number, uint32_t tid,
                              uint32_t version, uint64_t end_avma,
                              const struct sample_landmark *marks, size_t count);

#endif
