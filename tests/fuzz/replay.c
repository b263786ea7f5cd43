/* Runs a fuzz harness on files instead of generated input: every argument is a file or a folder of
 * files. This is how the corpora take part in the ordinary test run, with any compiler. */
#include "base/cleanup.h"
#include "base/file.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    CLEANUP(file_done) struct file file;
    int error = file_read(path, &file);
    if (error < 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(-error));
        return -1;
    }
    /* A copy of exactly the right size lets the sanitizer see a read one byte past the end. */
    CLEANUP(cleanup_free) uint8_t *exact = malloc(file.length ? file.length : 1);
    if (!exact)
        return -1;
    memcpy(exact, file.data, file.length);
    LLVMFuzzerTestOneInput(exact, file.length);
    return 0;
}

static int replay_folder(DIR *folder, const char *path)
{
    int files = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] == '.')
            continue;
        char file[PATH_MAX];
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        if (replay_file(file) < 0)
            return -1;
        files++;
    }
    return files;
}

int main(int argc, char **argv)
{
    int files = 0;
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        int replayed = folder ? replay_folder(folder, argv[i]) : replay_file(argv[i]) + 1;
        if (folder)
            closedir(folder);
        if (replayed <= 0)
            return 1;
        files += replayed;
    }
    printf("%d files replayed\n", files);
    return files ? 0 : 1;
}
