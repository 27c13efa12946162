/* mistakes.c - collects sentences about a configuration. */
#include "cluster/mistakes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SENTENCE = 900 };

void tdi_mistake(tdi_mistakes *mistakes, const char *format, ...)
{
    char sentence[SENTENCE];
    size_t used = 0;
    if (mistakes->source && *mistakes->source)
        used = (size_t)snprintf(sentence, sizeof sentence / 2, "%.400s: ", mistakes->source);
    va_list args;
    va_start(args, format);
    vsnprintf(sentence + used, sizeof sentence - used, format, args);
    va_end(args);
    char *copy = strdup(td_printable(sentence));
    if (copy && tdi_push(&mistakes->list, copy))
        return;
    free(copy);
    mistakes->no_memory = true;
}

void tdi_mistakes_free(tdi_mistakes *mistakes)
{
    for (int i = 0; i < mistakes->list.count; i++)
        free(mistakes->list.at[i]);
    tdi_vec_free(&mistakes->list);
}

td_status tdi_mistakes_fail(const tdi_mistakes *mistakes, tdi_error *error)
{
    int others = mistakes->list.count - 1;
    if (mistakes->no_memory)
        return tdi_no_memory(error);
    if (others < 0)
        return TD_OK;
    if (others == 0)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s", mistakes->list.at[0]);
    return tdi_fail(error, TD_INVALID_ARGUMENT, "%s (and %d more: `tandem doctor --cluster` lists them)",
                    mistakes->list.at[0], others);
}

tdi_word tdi_word_of(const char *text)
{
    tdi_word word;
    snprintf(word.text, sizeof word.text, "%.60s%s", text, strlen(text) > 60 ? "..." : "");
    return word;
}
