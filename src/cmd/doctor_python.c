/* Asks an interpreter what it is: by a few lines of Python that print one `key=value` per line, and
 * by the machine code of the file that its evaluator is in. */
#include "base/cleanup.h"
#include "base/file.h"
#include "cmd/doctor.h"
#include "cmd/subprocess.h"
#include "elf/frame_pointers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The evaluator's file is the one that /proc/self/maps calls libpython, or the program itself. */
static const char QUESTIONS[] =
    "import os, re, sys\n"
    "import sysconfig\n"
    "get = sysconfig.get_config_var\n"
    "flags = ' '.join(str(get(k) or '') for k in ('CFLAGS', 'PY_CFLAGS', 'PY_CORE_CFLAGS',\n"
    "                 'CONFIGURE_CFLAGS', 'PY_CFLAGS_NODIST', 'OPT'))\n"
    "binary = os.path.realpath('/proc/self/exe')\n"
    "for line in open('/proc/self/maps', errors='surrogateescape'):\n"
    "    path = line.rstrip('\\n').split(None, 5)[-1]\n"
    "    if os.path.basename(path).startswith('libpython'):\n"
    "        binary = path\n"
    "jit = getattr(sys, '_jit', None)\n"
    "levels = re.findall(r'(?:^|\\s)(-O\\S*)', flags)\n"
    "answers = dict(\n"
    "    executable=os.path.realpath('/proc/self/exe'), binary=binary,\n"
    "    implementation=sys.implementation.name,\n"
    "    version='.'.join(map(str, sys.version_info[:3])),\n"
    "    major=sys.version_info[0], minor=sys.version_info[1], machine=os.uname().machine,\n"
    "    trampoline=int(bool(get('PY_HAVE_PERF_TRAMPOLINE') or get('HAVE_PERF_TRAMPOLINE'))),\n"
    "    flag=int('no-omit-frame-pointer' in flags),\n"
    "    optimisation=levels[-1] if levels else '',\n"
    "    debug=int(hasattr(sys, 'gettotalrefcount')),\n"
    "    free_threaded=int(bool(get('Py_GIL_DISABLED'))),\n"
    "    jit=int(bool(jit and jit.is_available())))\n"
    "for key, value in answers.items():\n"
    "    print('%s=%s' % (key, value))\n";

/* The value of `key=` in the answers, copied; "" when it is not there. */
static const char *answer(struct arena *arena, const char *answers, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = answers; line;
         line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (strncmp(line, key, length) == 0 && line[length] == '=') {
            const char *value = line + length + 1;
            const char *copy = arena_copy(arena, value, strcspn(value, "\n"));
            return copy ? copy : "";
        }
    }
    return "";
}

static bool flag(struct arena *arena, const char *answers, const char *key)
{
    return strcmp(answer(arena, answers, key), "1") == 0;
}

static void look_at_binary(struct doctor_python *python)
{
    CLEANUP(file_done) struct file file;
    struct elf_file elf;
    if (file_read(python->binary, &file) < 0 ||
        elf_file_open(&elf, python->binary, file.data, file.length) < 0)
        return;
    struct frame_pointers count = frame_pointers_count(&elf);
    python->frames_known = count.functions > 0;
    python->frame_pointers = frame_pointers_are_kept(count);
}

int doctor_ask_python(struct arena *arena, const char *command, struct doctor_python *ret_python,
                      const char **ret_problem)
{
    *ret_python = (struct doctor_python){0};
    char *argv[] = {(char *)command, "-I", "-c", (char *)QUESTIONS, NULL};
    struct subprocess_output output;
    int error = subprocess_ask(argv, &output);
    CLEANUP(cleanup_free) char *answers = output.text;
    if (error < 0) {
        *ret_problem = error == -ENOENT ? "there is no such program" : "it can't be run";
        return error;
    }
    ret_python->version = answer(arena, answers, "version");
    if (output.status != 0 || !*ret_python->version) {
        *ret_problem = "it does not answer like a Python 3 interpreter";
        return -EINVAL;
    }
    ret_python->executable = answer(arena, answers, "executable");
    ret_python->binary = answer(arena, answers, "binary");
    ret_python->implementation = answer(arena, answers, "implementation");
    ret_python->machine = answer(arena, answers, "machine");
    ret_python->optimisation = answer(arena, answers, "optimisation");
    ret_python->major = (unsigned)atoi(answer(arena, answers, "major"));
    ret_python->minor = (unsigned)atoi(answer(arena, answers, "minor"));
    ret_python->has_trampoline = flag(arena, answers, "trampoline");
    ret_python->flag_in_build = flag(arena, answers, "flag");
    ret_python->debug_build = flag(arena, answers, "debug");
    ret_python->free_threaded = flag(arena, answers, "free_threaded");
    ret_python->jit_available = flag(arena, answers, "jit");
    look_at_binary(ret_python);
    return 0;
}

const char *doctor_unsupported(const struct doctor_python *python)
{
    if (strcmp(python->implementation, "cpython") != 0)
        return "it is not CPython";
    if (python->major != 3 || python->minor < 9 || python->minor > 15)
        return "only CPython 3.9 to 3.15 are known";
    if (strcmp(python->machine, "x86_64") != 0)
        return "only x86-64 is supported so far";
    if (python->free_threaded)
        return "it is a free-threaded build";
    if (python->debug_build)
        return "it is a debug build, whose structures are laid out differently";
    return NULL;
}
