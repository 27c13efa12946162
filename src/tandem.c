/* tandem.c - the composition root: which devices exist. */
#include <tandem/tandem.h>

#include "base/context.h"
#include "cpu/cpu.h"
#include "device/device.h"
#include "link/ucx.h"
#include "tune/tuning_cache_file.h"

const tdi_device_interface *const tdi_device_interfaces[] = {&tdi_cpu_device, NULL};

td_status td_doctor(td_context *context, FILE *out)
{
    if (!context)
        return TD_INVALID_ARGUMENT;
    if (!out)
        return tdi_fail(&context->error, TD_INVALID_ARGUMENT, "td_doctor: a FILE to write to was expected");
    fprintf(out, "tandem %s\n", td_version());
    for (const tdi_device_interface *const *i = tdi_device_interfaces; *i; i++)
        (*i)->describe(out);
    tdi_ucx_describe(out);
    tdi_tuning_cache_describe(out);
    return fflush(out) == 0 ? TD_OK : tdi_fail(&context->error, TD_IO, "the report could not be written");
}
