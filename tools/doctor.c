/* doctor.c - `tandem doctor`: reports what this machine offers. */
#include <stdio.h>

#include "options.h"
#include "session.h"

static int run(const struct options *options)
{
    struct session session = {0};
    int status = session_open(options, &session);
    if (status == TOOL_DONE && td_doctor(session.context, stdout) != TD_OK)
        status = session_failed(&session);
    session_close(&session);
    return status;
}

const struct command doctor_command = {"doctor",
                                       NULL,
                                       "what this machine offers, and what is missing", /* */
                                       "Prints what training can use here: the processor's features, the cores this "
                                       "process may use, the libraries found, and "
                                       "what each of them would give.\v"
                                       "Examples:\n"
                                       "\n"
                                       "  Before asking why something is slow:\n"
                                       "    tandem doctor\n"
                                       "\n"
                                       "  What one core would see:\n"
                                       "    taskset -c 0 tandem doctor\n",
                                       NULL,
                                       run};
