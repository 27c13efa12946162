/* stop_signals.h - Ctrl-C, SIGTERM and SIGHUP (the terminal is gone): the first one ends training after the current
 * step, the second ends the process at once. */
#ifndef TOOL_STOP_SIGNALS_H
#define TOOL_STOP_SIGNALS_H

#include <tandem/context.h>

/* Makes signals ask `context` to stop, from now on. */
void stop_on_signals(td_context *context);

/* The signal that has come; 0: none. */
int stop_signal(void);
/* Who stopped it: "Ctrl-C", "SIGTERM" or "SIGHUP"; without a signal here another process of the group was stopped. */
const char *stop_name(void);

/* Repeats the request: a signal may have come just before td_fit began, which clears requests. */
void stop_again(void);

#endif
