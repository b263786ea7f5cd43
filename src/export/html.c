/* The viewer's page as one of the formats: what `pitviper view` writes, without opening it. */
#include "base/cleanup.h"
#include "export/export.h"
#include "export/viewer_page.h"

#include <errno.h>

int export_html(const struct export_view *view, FILE *out)
{
    CLEANUP(cleanup_free) char *title = viewer_page_title(view->settings.source, NULL);
    if (!title)
        return -ENOMEM;
    struct viewer_page page = {.title = title, .profile = view->profile, .sources = true};
    int error = viewer_page_write(out, &page);
    return error == -ENOMEM ? error : 0; /* write errors stay in the FILE, as with all formats */
}
