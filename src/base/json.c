#include "base/json.h"

#include "base/text.h"

#include <inttypes.h>
#include <string.h>

enum { INDENT = 2 };

void json_init(struct json *json, FILE *out)
{
    *json = (struct json){.out = out};
}

void json_init_compact(struct json *json, FILE *out)
{
    *json = (struct json){.out = out, .is_compact = true};
}

static void print_string(FILE *out, const char *bytes, size_t length)
{
    fputc('"', out);
    while (length) {
        size_t size = text_utf8_length(bytes, length);
        unsigned char first = (unsigned char)bytes[0];
        if (!size) {
            fputs("\\ufffd", out);
            size = 1;
        } else if (first == '"' || first == '\\') {
            fprintf(out, "\\%c", first);
        } else if (first < 0x20 || first == 0x7f) {
            fprintf(out, "\\u%04x", first);
        } else {
            fwrite(bytes, 1, size, out);
        }
        bytes += size;
        length -= size;
    }
    fputc('"', out);
}

static void new_line(struct json *json)
{
    if (!json->is_compact)
        fprintf(json->out, "\n%*s", (int)(json->depth * INDENT), "");
}

/* What comes before every value: the comma behind the last one, a line of its own, the key. */
static void begin_value(struct json *json, const char *key)
{
    if (json->needs_comma)
        fputc(',', json->out);
    if (json->depth)
        new_line(json);
    if (key) {
        print_string(json->out, key, strlen(key));
        fputs(json->is_compact ? ":" : ": ", json->out);
    }
    json->needs_comma = true;
}

static void begin_group(struct json *json, const char *key, char bracket)
{
    begin_value(json, key);
    fputc(bracket, json->out);
    json->depth++;
    json->needs_comma = false;
}

static void end_group(struct json *json, char bracket)
{
    json->depth--;
    if (json->needs_comma)
        new_line(json);
    fputc(bracket, json->out);
    json->needs_comma = true;
    if (!json->depth)
        fputc('\n', json->out);
}

void json_begin_object(struct json *json, const char *key)
{
    begin_group(json, key, '{');
}

void json_end_object(struct json *json)
{
    end_group(json, '}');
}

void json_begin_array(struct json *json, const char *key)
{
    begin_group(json, key, '[');
}

void json_end_array(struct json *json)
{
    end_group(json, ']');
}

void json_string(struct json *json, const char *key, const char *bytes, size_t length)
{
    begin_value(json, key);
    print_string(json->out, bytes, length);
}

void json_text(struct json *json, const char *key, const char *text)
{
    if (text)
        json_string(json, key, text, strlen(text));
    else
        json_null(json, key);
}

void json_number(struct json *json, const char *key, uint64_t value)
{
    begin_value(json, key);
    fprintf(json->out, "%" PRIu64, value);
}

void json_raw(struct json *json, const char *key, const char *text)
{
    begin_value(json, key);
    fputs(text, json->out);
}

void json_null(struct json *json, const char *key)
{
    json_raw(json, key, "null");
}

void json_millionths(struct json *json, const char *key, uint64_t value)
{
    begin_value(json, key);
    fprintf(json->out, "%" PRIu64 ".%06u", value / 1000000, (unsigned)(value % 1000000));
}

void json_bool(struct json *json, const char *key, bool value)
{
    begin_value(json, key);
    fputs(value ? "true" : "false", json->out);
}

void json_address(struct json *json, const char *key, uint64_t value)
{
    begin_value(json, key);
    fprintf(json->out, "\"0x%" PRIx64 "\"", value);
}
