/* option_words.h - checks a command line against a table of options before argp parses it, because argp's own sentences
 * name neither the nearest option nor what is expected. */
#ifndef TOOL_OPTION_WORDS_H
#define TOOL_OPTION_WORDS_H

#include <stdbool.h>

#include "tool.h"

/* The words from the first argument on are another command and its options. */
bool tool_takes_command(const struct command *command);

/* TOOL_DONE when argp will accept every option in argv[1 ..], else TOOL_REFUSED after a sentence. */
int tool_check_words(const struct command *command, int argc, char **argv);

#endif
