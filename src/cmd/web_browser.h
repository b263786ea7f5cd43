/* Showing a file in the user's browser. */
#ifndef PITVIPER_CMD_WEB_BROWSER_H
#define PITVIPER_CMD_WEB_BROWSER_H

#include <stdbool.h>

/* Whether there is a screen to show something on. */
bool web_browser_has_display(void);

/* Starts $BROWSER, or what the desktop opens files with, and lets it go: it neither holds the
 * terminal nor writes to it. False when it could not be started, or gave up within a moment. */
bool web_browser_open(const char *path);

#endif
