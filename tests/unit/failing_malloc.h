/* Memory that runs short on demand. Test programs are linked with --wrap for malloc, calloc and
 * realloc, so that every allocation of the code under test comes by here:
 *
 *     for (long n = 0;; n++) {
 *         failing_malloc_after(n);
 *         int result = do_something();
 *         if (!failing_malloc_stop())
 *             break;                            all of its allocations succeeded: n is too many
 *         assert_int_equal(result, -ENOMEM);
 *     }
 *
 * Sizes that no memory could hold fail always, as they do without a sanitizer. */
#ifndef PITVIPER_UNIT_FAILING_MALLOC_H
#define PITVIPER_UNIT_FAILING_MALLOC_H

#include <stdbool.h>

#define FAILING_MALLOC_NEVER (-1L)

/* Lets `successes` allocations succeed, the next one fail, and all behind it succeed again. */
void failing_malloc_after(long successes);

/* From now on nothing fails. Whether an allocation has failed since failing_malloc_after. */
bool failing_malloc_stop(void);

#endif
