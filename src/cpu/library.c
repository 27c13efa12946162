/* library.c - a build without oneDNN: no library to keep in check. */
#include "cpu/library.h"

#ifndef TANDEM_ONEDNN
int tdi_cpu_enter_thread(void)
{
    return 0;
}

void tdi_cpu_leave_thread(int state)
{
    (void)state;
}

void tdi_cpu_describe_library(FILE *out)
{
    fprintf(
        out,
        "oneDNN: absent; convolutions of many channels run in plain, slow loops (install libdnnl-dev, build again)\n");
}
#endif
