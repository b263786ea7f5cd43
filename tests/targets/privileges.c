/* Says whether the loader takes this process for one with more rights than its user (setuid), which
 * is when it ignores LD_PRELOAD; and whether anything of ours is in it. */
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

int main(void)
{
    char line[4096];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof line, maps))
        found |= strstr(line, "/pitviper.so") != NULL;
    if (maps)
        fclose(maps);
    printf("%s, %s\n", getauxval(AT_SECURE) ? "secure" : "ordinary", found ? "ours" : "alone");
    return 4;
}
