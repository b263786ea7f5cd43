#include "export/export.h"

#include <string.h>

const struct export_format export_formats[] = {
    {.name = "folded",
     .summary = "one line per stack, as flamegraph.pl and its kin read it",
     .output = "-",
     .can_choose_weights = true,
     .write = export_folded},
    {.name = "speedscope",
     .summary = "speedscope's own, a profile per thread",
     .output = "profile.speedscope.json",
     .can_choose_weights = true,
     .write = export_speedscope},
    {.name = "firefox",
     .summary = "for profiler.firefox.com and samply load",
     .output = "profile.json.gz",
     .has_lines = true,
     .can_choose_weights = true,
     .write = export_firefox},
    {.name = "pprof",
     .summary = "pprof's protocol buffer",
     .output = "profile.pb.gz",
     .is_packed = true,
     .has_lines = true,
     .write = export_pprof},
    {.name = "svg",
     .summary = "a picture: the flame graph",
     .output = "profile.svg",
     .can_choose_weights = true,
     .write = export_svg},
    {.name = "callgrind",
     .summary = "for KCachegrind and callgrind_annotate",
     .output = "callgrind.out.pitviper",
     .has_lines = true,
     .write = export_callgrind},
    {.name = "html",
     .summary = "the page of pitviper view",
     .output = "profile.html",
     .is_whole = true,
     .write = export_html},
    {0}};

const struct export_format *export_format_find(const char *name)
{
    for (const struct export_format *format = export_formats; format->name; format++)
        if (strcmp(format->name, name) == 0)
            return format;
    return NULL;
}
