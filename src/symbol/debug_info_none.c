/* Built without libdw: there are no lines and no inlined functions. */
#include "symbol/debug_info.h"

#include <errno.h>

int debug_info_open(const char *path, struct debug_info **ret_info)
{
    (void)path;
    (void)ret_info;
    return -ENOTSUP;
}

int debug_info_open_memory(const void *data, size_t length, struct debug_info **ret_info)
{
    (void)data;
    (void)length;
    (void)ret_info;
    return -ENOTSUP;
}

void debug_info_close(struct debug_info *info)
{
    (void)info;
}

size_t debug_info_find(const struct debug_info *info, uint64_t svma, struct debug_place *places,
                       size_t capacity)
{
    (void)info;
    (void)svma;
    if (capacity)
        places[0] = (struct debug_place){0};
    return capacity > 0;
}
