/* JSON, written as it goes, without a tree in memory.
 *
 *     json_begin_object(&json, NULL);
 *     json_number(&json, "samples", 12);
 *     json_begin_array(&json, "rows");
 *     json_string(&json, NULL, name, length);
 *     json_end_array(&json);
 *     json_end_object(&json);
 *
 * `key` is the member's name inside an object, NULL inside an array and at the top. Commas and
 * indentation are added here. There is one value at the top. Texts may hold any bytes: what is not
 * UTF-8 becomes U+FFFD. Write errors stay in the FILE: check ferror() at the end. */
#ifndef PITVIPER_BASE_JSON_H
#define PITVIPER_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *out;
    unsigned depth;
    bool needs_comma;
    bool is_compact;
};

void json_init(struct json *json, FILE *out);

/* The same without spaces and line ends, for what only programs read. */
void json_init_compact(struct json *json, FILE *out);

void json_begin_object(struct json *json, const char *key);
void json_end_object(struct json *json);
void json_begin_array(struct json *json, const char *key);
void json_end_array(struct json *json);

void json_string(struct json *json, const char *key, const char *bytes, size_t length);
void json_text(struct json *json, const char *key, const char *text); /* NULL becomes null */
void json_number(struct json *json, const char *key, uint64_t value);
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);
void json_raw(struct json *json, const char *key, const char *text); /* JSON as it is: "-1" */

/* value / 1,000,000, exactly: nanoseconds as milliseconds. */
void json_millionths(struct json *json, const char *key, uint64_t value);

/* An address as a string, "0x7f12…": JSON numbers are exact only up to 2^53. */
void json_address(struct json *json, const char *key, uint64_t value);

#endif
