/* The recorder's side of formats/sample_landmarks.h: the deep stacks of one process' threads, as
 * they were found last. A sample that leaves out a part of its stack gets its functions from here;
 * a thread that copies much is told what is known. */
#ifndef PITVIPER_RECORD_KNOWN_STACKS_H
#define PITVIPER_RECORD_KNOWN_STACKS_H

#include "formats/sample_landmarks.h"
#include "record/ring_record.h"
#include "unwind/unwind.h"

struct known_stacks {
    struct known_tables *all; /* NULL: none yet; owned */
};

void known_stacks_done(struct known_stacks *stacks);

/* Takes what stands behind the copy of the stack off it, for a record with SAMPLE_STACK_KNOWN;
 * before it is unwound. */
struct sample_known_stack known_stacks_take(struct ring_record_sample *sample);

/* Where frames that were unwound and known ones come together. */
struct known_joint {
    const struct known_stack *stack; /* NULL: nowhere */
    size_t unwound, known;           /* frames of both that are the same */
};

/* Puts the frames behind the unwound ones that the record has left out. When they are not found,
 * *end is UNWIND_BROKEN, and the thread is told to copy all again. */
struct known_joint known_stacks_join(struct known_stacks *stacks, struct sample_ring *ring,
                                     const struct ring_record *record,
                                     struct sample_known_stack known, struct unwind_frames *frames,
                                     enum unwind_end *end);

/* Tells the thread of a sample what was found, if that is of use. The frames are complete. */
void known_stacks_tell(struct known_stacks *stacks, struct sample_ring *ring,
                       const struct ring_record *record, const struct unwind_frames *frames,
                       struct known_joint joint);

#endif
