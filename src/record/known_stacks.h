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

/* Where frames that were unwound and known ones come together. Valid until something is told. */
struct known_joint {
    const struct known_stack *stack; /* NULL: nowhere */
    size_t unwound, known;           /* frames of both that are the same */
    size_t left;                     /* known frames behind that */
    uint32_t version;                /* of the stack: all with the same one are the same */
};

/* Looks for the frames that the record has left out, which belong behind the unwound ones; what was
 * unwound behind the joint is taken off. When they are not found, *end is UNWIND_BROKEN, and the
 * thread is told to copy all again. */
struct known_joint known_stacks_join(struct known_stacks *stacks, struct sample_ring *ring,
                                     const struct ring_record *record,
                                     struct sample_known_stack known, struct unwind_frames *frames,
                                     enum unwind_end *end);

/* Puts known frames behind those that `frames` has, until there are `count`. */
void known_stacks_append(struct known_joint joint, struct unwind_frames *frames, size_t count);

/* Tells the thread of a sample what was found, if that is of use. The frames are complete, or will
 * be: those behind the joint are appended when they are not there. */
void known_stacks_tell(struct known_stacks *stacks, struct sample_ring *ring,
                       const struct ring_record *record, struct unwind_frames *frames,
                       struct known_joint joint);

#endif
