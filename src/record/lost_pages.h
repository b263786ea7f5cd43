/* Pages of mapped files that somebody has taken away. */
#ifndef PITVIPER_RECORD_LOST_PAGES_H
#define PITVIPER_RECORD_LOST_PAGES_H

/* From now on such pages are full of zeros for this process, instead of the end of it (SIGBUS). */
void lost_pages_are_zeros(void);

#endif
