/* array_names.c - inputs, targets and weights by the names of a file's arrays, and notes on those that nobody uses. */
#include "data/array_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static td_status add_word(char *word, bool targets, bool *any_y, tdi_add_array *add, void *to, tdi_error *error)
{
    char *name = strchr(word, '=');
    bool target = *word == 'y';
    if (!name || !name[1] || (!target && (*word != 'x' || *any_y)))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "features: expected x=ARRAY (or x0, x1, ...) and then y=ARRAY, got \"%s\"", word);
    *any_y = target;
    return target && !targets ? TD_OK : add(to, target ? TDI_Y : TDI_X, name + 1, error);
}

td_status tdi_add_features(const char *features, bool targets, tdi_add_array *add, void *to, tdi_error *error)
{
    char *copy = strdup(features), *rest = copy;
    bool any_y = false;
    td_status status = copy ? TD_OK : tdi_no_memory(error);
    if (copy && *copy == 'y')
        status = tdi_fail(error, TD_INVALID_ARGUMENT, "features: none is x");
    for (char *word; status == TD_OK && (word = strsep(&rest, ","));)
        status = add_word(word, targets, &any_y, add, to, error);
    free(copy);
    return status;
}

td_status tdi_add_weights(const char *names, tdi_add_array *add, void *to, tdi_error *error)
{
    char *copy = strdup(names), *rest = copy;
    td_status status = copy ? TD_OK : tdi_no_memory(error);
    for (char *name; status == TD_OK && (name = strsep(&rest, ","));)
        status = add(to, TDI_WEIGHT, name, error);
    free(copy);
    return status;
}

static bool is_none(const char *names)
{
    return names && strcmp(names, "none") == 0;
}

const char *tdi_named_weights(const td_open_args *args)
{
    return args->targets == TD_NO || is_none(args->sample_weight) ? NULL : args->sample_weight;
}

bool tdi_finds_weights(const td_open_args *args)
{
    return args->targets != TD_NO && !args->sample_weight;
}

char *tdi_features_and_weights(const char *features, const char *weights)
{
    tdi_text text = {0};
    const char *names = weights;
    tdi_text_add(&text, features);
    for (int i = 0; names; i++) {
        const char *end = strchr(names, ',');
        char number[16] = "";
        if (i || end)
            snprintf(number, sizeof number, "%d", i);
        tdi_text_format(&text, ",w%s=%.*s", number, end ? (int)(end - names) : (int)strlen(names), names);
        names = end ? end + 1 : NULL;
    }
    if (text.failed)
        tdi_text_free(&text);
    return text.chars;
}

/* ---- notes ---- */

static void add_note(tdi_source *source, const char *sentence)
{
    size_t length = strlen(source->note);
    snprintf(source->note + length, sizeof source->note - length, "%s%s%s", length ? "; " : source->name,
             length ? "" : ": ", sentence);
}

void tdi_note_weights(tdi_source *source, const char *name)
{
    char sentence[400];
    snprintf(sentence, sizeof sentence,
             "the losses are weighted by its array %.64s (--sample-weight names another, or \"none\")", name);
    add_note(source, sentence);
}

void tdi_unused_array(tdi_unused_arrays *unused, const char *name)
{
    size_t length = strlen(unused->names);
    if (length + 80 < sizeof unused->names)
        snprintf(unused->names + length, sizeof unused->names - length, "%s%.64s", length ? ", " : "", name);
    else if (length && unused->names[length - 1] != '.')
        snprintf(unused->names + length, sizeof unused->names - length, ", ...");
    unused->count++;
}

void tdi_note_unused(tdi_source *source, const tdi_unused_arrays *unused)
{
    char sentence[sizeof unused->names + 128];
    if (!unused->count)
        return;
    snprintf(sentence, sizeof sentence, "%d of its arrays %s not used: %s (--features and --sample-weight name arrays)",
             unused->count, unused->count == 1 ? "is" : "are", unused->names);
    add_note(source, sentence);
}
