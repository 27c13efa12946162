/* error.h - a status for the program, a sentence for the person. */
#ifndef TDI_BASE_ERROR_H
#define TDI_BASE_ERROR_H

#include <tandem/status.h>

/* The first failure and its sentence; zero-initialised means none. */
typedef struct tdi_error {
    td_status status;
    char message[1024];
} tdi_error;

/* None yet: what a call that takes no time has time for, as zeroing the sentence's room is not. */
static inline void tdi_error_init(tdi_error *error)
{
    error->status = TD_OK;
    error->message[0] = '\0';
}

/* Keeps the failure, unless one is kept already, and returns `status`. The sentence says what, where, expected, seen
 * and what to try; it ends without a newline. `error` may be NULL. */
__attribute__((format(printf, 3, 4))) td_status tdi_fail(tdi_error *error, td_status status, const char *format, ...);
td_status tdi_no_memory(tdi_error *error);

/* Puts "`prefix`: " before the sentence of a failed `error`. */
__attribute__((format(printf, 2, 3))) void tdi_error_prefix(tdi_error *error, const char *format, ...);

/* `TDI_TRY(call);` returns the call's status when it is not TD_OK. */
#define TDI_TRY(call)                                                                                                  \
    do {                                                                                                               \
        td_status tdi_try_status_ = (call);                                                                            \
        if (tdi_try_status_ != TD_OK)                                                                                  \
            return tdi_try_status_;                                                                                    \
    } while (0)

#endif
