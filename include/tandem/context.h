/* context.h - the context: owner of models and of the first failure.
 *
 * What a failed call gave, NULL or poison, may be passed on: other calls then fail with TD_INVALID_ARGUMENT, or give 0,
 * NULL or poison, and the context keeps the first failure's sentence.
 *
 * One thread at a time may use a context; different contexts are independent. There is no global state. */
#ifndef TANDEM_CONTEXT_H
#define TANDEM_CONTEXT_H

#include <tandem/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct td_context td_context;

typedef enum td_log_level { TD_LOG_INFO, TD_LOG_WARNING } td_log_level;
typedef void (*td_log_function)(void *user, td_log_level level, const char *line);

typedef struct td_context_options {
    td_log_function log; /* called from the thread that uses the context; NULL: silence */
    void *log_user;      /* borrowed until td_context_free */
} td_context_options;

/* Makes a context; `options` may be NULL and is copied. NULL only when memory is out. The caller frees it with
 * td_context_free, which frees every model and tensor made in it. */
TD_API td_context *td_context_create(const td_context_options *options);
TD_API void td_context_free(td_context *context);

/* The first failure since the context was made or last cleared: 1 or 0, its status, its sentence ("" when there is
 * none; borrowed until the next call with this context). */
TD_API int td_failed(const td_context *context);
TD_API td_status td_error_status(const td_context *context);
TD_API const char *td_error(const td_context *context);
TD_API void td_clear_error(td_context *context);

/* Asks the td_fit, td_evaluate, td_predict or td_generate under way to end with TD_STOPPED after the current step;
 * where the next step's samples are still being made, after those under way, one on each thread. May be called from any
 * thread and from a signal handler. The next of these calls clears the request as it begins. */
TD_API void td_request_stop(td_context *context);

/* The library's version, "0.1.0". */
TD_API const char *td_version(void);

#ifdef __cplusplus
}
#endif
#endif
