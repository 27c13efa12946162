/* tandem.c - the composition root: which devices exist. */
#include <tandem/tandem.h>

#include "cpu/cpu.h"
#include "device/device.h"
#include "dist/choice_file.h"
#include "dist/runtime.h"

const tdi_device_interface *const tdi_device_interfaces[] = {&tdi_cpu_device, NULL};

static td_status explain(td_model *model, int64_t batch_size, FILE *out,
                         td_status (*print)(tdi_runtime *runtime, int64_t batch, FILE *out, tdi_error *error))
{
    tdi_runtime *runtime;
    tdi_error *error = &model->context->error;
    if (batch_size < 0)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "batch_size: %lld; at least 1 was expected", (long long)batch_size);
    TDI_TRY(tdi_runtime_of(model, &runtime, error));
    TDI_TRY(print(runtime, tdi_model_batch_size(model, batch_size), out, error));
    return fflush(out) == 0 ? TD_OK : tdi_fail(error, TD_IO, "the report could not be written");
}

td_status td_explain(td_model *model, int64_t batch_size, FILE *out)
{
    return explain(model, batch_size, out, tdi_runtime_explain);
}

td_status td_explain_json(td_model *model, int64_t batch_size, FILE *out)
{
    return explain(model, batch_size, out, tdi_runtime_explain_json);
}

td_status td_doctor(td_context *context, FILE *out)
{
    fprintf(out, "tandem %s\n", td_version());
    for (const tdi_device_interface *const *i = tdi_device_interfaces; *i; i++)
        (*i)->describe(out);
    tdi_choices_describe(out);
    return fflush(out) == 0 ? TD_OK : tdi_fail(&context->error, TD_IO, "the report could not be written");
}
