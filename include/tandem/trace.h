/* trace.h - a timeline of what every thread does: ops by layer and kernel, meetings, input threads, waits.
 *
 *     td_trace_begin(context, 0);
 *     td_fit(model, ...);
 *     td_trace_end(context, "fit.json");   // for ui.perfetto.dev, or chrome://tracing */
#ifndef TANDEM_TRACE_H
#define TANDEM_TRACE_H

#include <stdint.h>
#include <tandem/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From here on the context's models note what they do. Of each thread the newest `events` are kept (0: 65536, at 32
 * bytes each). Without a trace nothing is noted and nothing costs. TD_INVALID_ARGUMENT while there is one already. */
TD_API td_status td_trace_begin(td_context *context, int64_t events);
/* Ends it and writes it to `path` as JSON in Chrome's trace event format, atomically; on failure a file already there
 * is untouched. TD_INVALID_ARGUMENT when none was begun. */
TD_API td_status td_trace_end(td_context *context, const char *path);

#ifdef __cplusplus
}
#endif
#endif
