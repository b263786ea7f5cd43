/* A program that has functions of its own with names of the C library's, and shows them to the
 * libraries it is linked with (-rdynamic). None of them is called by anybody. */
int puts(const char *);
int usleep(unsigned);
long recv(int, void *, unsigned long, int);

int nanosleep(int number)
{
    puts("nanosleep");
    return number;
}

long recvfrom(const char *text)
{
    puts(text);
    return 0;
}

int main(void)
{
    char byte;
    usleep(1000);
    recv(-1, &byte, 1, 0);
    puts("ok");
    return 0;
}
