/* generate.c - `tandem generate`: writes text by a model that was trained on text. */
#include <signal.h>
#include <stdio.h>

#include "options.h"
#include "session.h"
#include "stop_signals.h"

enum { LENGTH = 500 };

static int write_text(const struct options *options, const struct session *session)
{
    stop_on_signals(session->context);
    signal(SIGPIPE, SIG_DFL); /* without a reader the text is not needed */
    td_status status = td_generate_(&(td_generate_args){.model = session->model,
                                                        .prompt = options->prompt,
                                                        .length = options->length ? options->length : LENGTH,
                                                        .output = stdout,
                                                        .temperature = options->temperature,
                                                        .top_k = (int)options->top_k,
                                                        .seed = (uint64_t)options->seed,
                                                        .echo = options->prompt && !options->quiet ? TD_YES : TD_NO});
    if (status != TD_OK && status != TD_STOPPED)
        return session_refused(session);
    putchar('\n');
    return status == TD_STOPPED ? 128 + stop_signal() : TOOL_DONE;
}

static int run(const struct options *options)
{
    struct session session = {0};
    int status = session_load(options, &session);
    if (status == TOOL_DONE)
        status = session_compile(options, &session, TO_PREDICT);
    if (status == TOOL_DONE)
        status = write_text(options, &session);
    session_close(&session);
    return status;
}

static const struct argp_option options[] = {
    OPTION_GROUP("Text:", 1),
    {"prompt", KEY_PROMPT, "TEXT", 0, "What the text begins with (default: a line's begin)", 0},
    {"length", KEY_LENGTH, "N", 0, "Write N characters (default: 500)", 0},
    {"temperature", KEY_TEMPERATURE, "F", 0,
     "Below 1 the likelier characters become likelier still, above less so; 0: the likeliest always (default: 1)", 0},
    {"top-k", KEY_TOP_K, "K", 0, "Choose among the K likeliest characters (default: among all)", 0},
    {"seed", KEY_SEED, "N", 0, "Fix what is chosen by chance (default: another text each time)", 0},
    OPTION_GROUP("Work:", 2),
    OPTION_WEIGHTS,
    OPTION_DEVICES,
    OPTION_PRECISION,
    {"quiet", KEY_QUIET, NULL, 0, "Write what comes behind the prompt, without it", 0},
    OPTIONS_END};

const struct command generate_command = {
    "generate",
    "MODEL.keras",
    "text, by a model that was trained on text", /* */
    "Writes text character by character, as MODEL.keras makes it, to standard output: each character is chosen by "
    "chance from the model's scores of what comes next. The model was trained by tandem fit on a text file, whose "
    "characters its file remembers; the prompt is made of these. It sees as many characters as its input has, of a "
    "longer text the last; one that is stateful and takes one at a time remembers.\v"
    "Examples:\n"
    "\n"
    "  A scene, carefully:\n"
    "    tandem generate shakespeare.keras --prompt 'ROMEO:' --temperature 0.7\n"
    "\n"
    "  The same text every time, a page of it into a file:\n"
    "    tandem generate shakespeare.keras --length 3000 --seed 7 > page.txt\n",
    options,
    run};
