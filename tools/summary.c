/* summary.c - `tandem summary`: prints Keras's table of layers. */
#include <stdio.h>

#include "options.h"
#include "session.h"

static int run(const struct options *options)
{
    struct session session = {0};
    int status = session_load(options, &session);
    if (status == TOOL_DONE && td_summary(session.model, stdout) != TD_OK)
        status = session_failed(&session);
    session_close(&session);
    return status;
}

const struct command summary_command = {
    "summary",
    "MODEL.keras",
    "the layers, shapes and parameters of a model", /* */
    "Prints the table of layers that Keras prints: each layer, the shape of its output, how many parameters it has.\v"
    "Examples:\n"
    "\n"
    "  What is in a file from a colleague:\n"
    "    tandem summary colleague.keras\n"
    "\n"
    "  How many parameters LeNet-5 has:\n"
    "    tandem new lenet5 && tandem summary lenet5.keras\n",
    NULL,
    run};
