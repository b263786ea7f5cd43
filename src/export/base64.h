/* Bytes as text of 64 characters, written as they come. */
#ifndef PITVIPER_EXPORT_BASE64_H
#define PITVIPER_EXPORT_BASE64_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct base64 {
    FILE *out;          /* borrowed */
    uint8_t waiting[3]; /* bytes that are no whole group yet … */
    size_t count;       /* … and how many */
};

void base64_init(struct base64 *base64, FILE *out);

/* 0, or the negative errno of a failed write. */
int base64_write(struct base64 *base64, const void *bytes, size_t length);

/* The last group, filled up with '='. */
int base64_end(struct base64 *base64);

#endif
