/* CPython 3.13 turns a call of a class that is made often, `C()`, into an instruction of its own
 * (CALL_ALLOC_AND_ENTER_INIT), which allocates the object and runs C.__init__ inside the caller's
 * evaluator. Unlike every other such shortcut, and unlike 3.14, it does not ask whether a hook is
 * installed, so __init__ vanishes from profiles: ours and CPython's own.
 *
 * The shortcut is only taken for classes that allocate in the usual way, tp_alloc ==
 * PyType_GenericAlloc. So classes get a tp_alloc of ours, which calls PyType_GenericAlloc and
 * nothing else: the shortcut is not taken, and nothing else changes.
 *
 *     when                                        which classes
 *     trampolines are switched on                 all there are: they may use the shortcut already,
 *                                                 and PyType_Modified ends that
 *     a function named __init__ is called         the class of its first argument
 *     trampolines are switched off                all get back what they had
 *
 * A new class's first call goes the long way, through the hook, and that is early enough. A
 * subclass inherits the __init__ of its base, so such functions always take the cold path, which
 * has a short way for them. Classes whose __init__ is a function of another name stay unnoticed.
 *
 * PyType_Modified uses up one of the 1000 versions that a class has. After SPARING_ROUNDS times on
 * and off classes are left as they are, with our tp_alloc. */
#include "interp/class_calls.h"

#include "interp/layout.h"

#include <stdint.h>
#include <string.h>

enum { ONLY_MINOR = 13, SPARING_ROUNDS = 50 };

enum { FLAG_IMMUTABLE = 1 << 8, FLAG_HEAP = 1 << 9 };

typedef struct py_object *allocator(struct py_object *type, ptrdiff_t items);

static struct py_object *allocate(struct py_object *type, ptrdiff_t items)
{
    return ((allocator *)py.generic_alloc)(type, items);
}

static void **allocator_of(struct py_object *type)
{
    return (void **)((char *)type + LAYOUT_3_13_TYPE_ALLOC);
}

/* Whether 3.13 would take the shortcut for a class, apart from its tp_alloc. */
static bool may_use_shortcut(struct py_object *type)
{
    unsigned long flags;
    memcpy(&flags, (char *)type + LAYOUT_3_13_TYPE_FLAGS, sizeof flags);
    return layout_pointer(type, LAYOUT_3_13_OBJECT_TYPE) == py.type_type && flags & FLAG_HEAP &&
           !(flags & FLAG_IMMUTABLE) &&
           layout_pointer(type, LAYOUT_3_13_TYPE_NEW) ==
               layout_pointer(py.object_type, LAYOUT_3_13_TYPE_NEW);
}

static void take_shortcut_away(struct py_object *type)
{
    if (*allocator_of(type) != py.generic_alloc || !may_use_shortcut(type))
        return;
    *(allocator **)allocator_of(type) = allocate;
    py.type_modified(type);
}

static void give_shortcut_back(struct py_object *type)
{
    if (*(allocator **)allocator_of(type) == allocate)
        *allocator_of(type) = py.generic_alloc;
}

static int visit(struct py_object *object, void *what)
{
    if (layout_pointer(object, LAYOUT_3_13_OBJECT_TYPE) == py.type_type)
        (*(void (**)(struct py_object *))what)(object);
    return 1; /* go on */
}

static void for_each_class(void (*what)(struct py_object *))
{
    py.visit_objects(visit, &what);
}

static bool is_possible(void)
{
    return py.minor == ONLY_MINOR && py.visit_objects && py.type_modified && py.generic_alloc &&
           py.object_type && py.type_type;
}

/* Without an argument, the place of the first one in a frame holds whatever was there before. */
bool class_calls_concern(struct py_object *code)
{
    if (!is_possible() || *layout_int(code, LAYOUT_3_13_CODE_ARGCOUNT) < 1)
        return false;
    ptrdiff_t length;
    const char *name = py.unicode_utf8(layout_pointer(code, LAYOUT_3_13_CODE_NAME), &length);
    if (!name) {
        py.err_clear();
        return false;
    }
    return strcmp(name, "__init__") == 0;
}

void class_calls_note(struct py_object *self)
{
    if (self)
        take_shortcut_away(layout_pointer(self, LAYOUT_3_13_OBJECT_TYPE));
}

void class_calls_start(void)
{
    if (is_possible())
        for_each_class(take_shortcut_away);
}

void class_calls_stop(void)
{
    static int rounds;
    if (is_possible() && rounds++ < SPARING_ROUNDS)
        for_each_class(give_shortcut_back);
}
