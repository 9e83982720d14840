/* main.c: the least program that links with an installed rlx: header and library must agree. */
#include <rlx/rlx.h>
#include <stdio.h>

int main(void)
{
    printf("header %d, library %u\n", RLX_VERSION, (unsigned)rlx_version());
    return rlx_version() == RLX_VERSION ? 0 : 1;
}
