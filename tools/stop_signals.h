/* stop_signals.h - Ctrl-C and SIGTERM while a model trains: the first ends the training after its current step, a
 * second ends the process at once. */
#ifndef TOOL_STOP_SIGNALS_H
#define TOOL_STOP_SIGNALS_H

#include <tandem/context.h>

/* From here on signals ask `context` to stop. */
void stop_on_signals(td_context *context);

/* The signal that has asked to stop; 0: none. */
int stop_signal(void);
const char *stop_name(void); /* "Ctrl-C" or "SIGTERM" */

/* Asks again: a signal may have come just before td_fit began and cleared the request. */
void stop_again(void);

#endif
