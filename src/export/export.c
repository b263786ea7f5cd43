#include "export/export.h"

#include <string.h>

const struct export_format export_formats[] = {
    {.name = "folded",
     .summary = "one line per stack, as flamegraph.pl and its kin read it",
     .output = "-",
     .can_choose_weights = true,
     .write = export_folded},
    {0}};

const struct export_format *export_format_find(const char *name)
{
    for (const struct export_format *format = export_formats; format->name; format++)
        if (strcmp(format->name, name) == 0)
            return format;
    return NULL;
}
