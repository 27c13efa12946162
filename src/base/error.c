/* error.c - keeping the first failure. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

td_status tdi_fail(tdi_error *error, td_status status, const char *format, ...)
{
    if (!error || error->status != TD_OK)
        return status;
    va_list args;
    va_start(args, format);
    error->status = status;
    vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    td_printable(error->message);
    return status;
}

td_status tdi_no_memory(tdi_error *error)
{
    return tdi_fail(error, TD_NO_MEMORY, "out of memory");
}

void tdi_error_prefix(tdi_error *error, const char *format, ...)
{
    if (!error || error->status == TD_OK)
        return;
    char prefixed[sizeof error->message];
    va_list args;
    va_start(args, format);
    int used = vsnprintf(prefixed, sizeof prefixed - 3, format, args);
    va_end(args);
    if (used < 0 || (size_t)used >= sizeof prefixed - 3)
        return;
    snprintf(prefixed + used, sizeof prefixed - (size_t)used, ": %.*s", (int)sizeof prefixed - used - 3,
             error->message);
    memcpy(error->message, td_printable(prefixed), sizeof prefixed);
}

const char *td_status_name(td_status status)
{
    static const char *const names[] = {
        "ok",       "invalid argument", "unsupported", "out of memory", "input/output error",
        "bad file", "not found",        "not finite",  "stopped",       "internal error"};
    return (unsigned)status < sizeof names / sizeof *names ? names[status] : "unknown status";
}
