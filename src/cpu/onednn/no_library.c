/* no_library.c - the same answers in a build without oneDNN. */
#include "cpu/onednn/library.h"

#ifndef TANDEM_ONEDNN
int tdi_cpu_enter_thread(void)
{
    return 0;
}

void tdi_cpu_leave_thread(int state)
{
    (void)state;
}

const char *tdi_cpu_library_name(char *text, size_t size)
{
    snprintf(text, size, "no oneDNN");
    return text;
}

const char *tdi_cpu_library_no_bfloat16(void)
{
    return "this build of Tandem has no oneDNN";
}

bool tdi_cpu_library_has_amx(void)
{
    return false;
}

void tdi_cpu_describe_library(FILE *out)
{
    fprintf(out, "oneDNN: absent; Tandem's own kernels compute everything, bfloat16 in float32 (for bfloat16 install "
                 "libdnnl-dev, build again)\n");
}
#endif
