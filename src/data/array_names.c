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

/* Adds the arrays of "x0=a,x1=b,y=c": inputs, of which there must be one, and then targets, which are left out unless
 * `targets`. */
static td_status add_features(const char *features, bool targets, tdi_add_array *add, void *to, tdi_error *error)
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

static void note_weights(tdi_source *source, const char *name)
{
    char sentence[400];
    snprintf(sentence, sizeof sentence,
             "the losses are weighted by its array %.64s (--sample-weight names another, or \"none\")", name);
    add_note(source, sentence);
}

void tdi_unused_add(tdi_unused *unused, const char *name)
{
    enum { MOST_NAMED = 8 };
    size_t length = strlen(unused->names);
    if (unused->count++ > unused->named || unused->named == MOST_NAMED ||
        length + strlen(name) + 3 > sizeof unused->names)
        return;
    snprintf(unused->names + length, sizeof unused->names - length, "%s%s", length ? ", " : "", name);
    unused->named++;
}

void tdi_note_unused(tdi_source *source, const tdi_unused *unused, const char *what, const char *advice)
{
    char sentence[sizeof unused->names + 256], others[32] = "";
    if (!unused->count)
        return;
    if (unused->count > unused->named)
        snprintf(others, sizeof others, "%s%d more", unused->named ? ", and " : "", unused->count - unused->named);
    snprintf(sentence, sizeof sentence, "%s%d of its %s %s not used: %s%s (%s)", unused->more ? "at least " : "",
             unused->count, what, unused->count == 1 ? "is" : "are", unused->names, others, advice);
    add_note(source, sentence);
}

void tdi_note_unused_arrays(tdi_source *source, const tdi_unused *unused)
{
    tdi_note_unused(source, unused, "arrays", "--features and --sample-weight name arrays");
}

/* ---- the usual names ---- */

static bool has(const tdi_named_arrays *arrays, const char *name)
{
    return arrays->has(arrays->of, name);
}

const char *tdi_arrays_part(const tdi_named_arrays *arrays)
{
    bool val = !has(arrays, "x_test") && has(arrays, "x_val");
    return arrays->args->role != TD_TEST ? "train" : val ? "val" : "test";
}

/* Adds a role's arrays: x_train, else x, else x0, x1, ... */
static td_status add_usual(const tdi_named_arrays *arrays, tdi_column_role role, tdi_error *error)
{
    static const char *const stems[] = {"x", "y", "sample_weight"};
    char name[32];
    snprintf(name, sizeof name, "%s_%s", stems[role], tdi_arrays_part(arrays));
    if (has(arrays, name))
        return arrays->add(arrays->of, role, name, error);
    if (has(arrays, stems[role]))
        return arrays->add(arrays->of, role, stems[role], error);
    for (int i = 0; snprintf(name, sizeof name, "%s%d", stems[role], i), has(arrays, name); i++)
        TDI_TRY(arrays->add(arrays->of, role, name, error));
    return TD_OK;
}

/* Beside x_test, a sample_weight without "_test" is that of x_train. */
static td_status find_weights(const tdi_named_arrays *arrays, tdi_error *error)
{
    tdi_source *source = arrays->source;
    const char *part = tdi_arrays_part(arrays);
    bool of_train = strchr(source->columns[0].name, '_') && strcmp(part, "train") != 0;
    char name[32];
    snprintf(name, sizeof name, "sample_weight_%s", part);
    if (!source->n_y || (of_train && !has(arrays, name)))
        return TD_OK;
    TDI_TRY(add_usual(arrays, TDI_WEIGHT, error));
    for (int i = 0; i < source->n_w; i++)
        note_weights(source, source->columns[source->n_x + source->n_y + i].name);
    return TD_OK;
}

static td_status add_inputs_and_targets(const tdi_named_arrays *arrays, tdi_error *error)
{
    bool targets = arrays->args->targets != TD_NO;
    if (arrays->args->features)
        return add_features(arrays->args->features, targets, arrays->add, arrays->of, error);
    TDI_TRY(add_usual(arrays, TDI_X, error));
    return targets && arrays->source->n_x ? add_usual(arrays, TDI_Y, error) : TD_OK;
}

td_status tdi_add_arrays(const tdi_named_arrays *arrays, tdi_error *error)
{
    const td_open_args *args = arrays->args;
    const char *weights = tdi_named_weights(args);
    TDI_TRY(add_inputs_and_targets(arrays, error));
    if (weights && arrays->source->n_x)
        return tdi_add_weights(weights, arrays->add, arrays->of, error);
    return args->targets != TD_NO && !args->sample_weight ? find_weights(arrays, error) : TD_OK;
}

/* ---- arrays that are not used ---- */

/* The part that an array's name ends in, "_test"; NULL: none. */
static const char *part_of(const char *name)
{
    static const char *const parts[] = {"_train", "_test", "_val"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (tdi_ends_in(name, parts[i]))
            return parts[i];
    return NULL;
}

static bool is_of_another_part(const tdi_source *source, const char *name)
{
    const char *used = part_of(source->columns[0].name), *part = part_of(name);
    return used && (part ? part != used : strcmp(name, "sample_weight") == 0);
}

/* Is it one of the words "a,b" or "x=a,y=/b"? */
static bool is_word(const char *words, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = words; at && (at = strstr(at, name)); at++) {
        const char *begin = at;
        while (begin > words && begin[-1] == '/')
            begin--;
        if ((begin == words || strchr(",=", begin[-1])) && (at[length] == '\0' || at[length] == ','))
            return true;
    }
    return false;
}

void tdi_unused_array(const tdi_named_arrays *arrays, const char *name, tdi_unused *unused)
{
    const td_open_args *args = arrays->args;
    const char *slash = strrchr(name, '/'), *own = slash ? slash + 1 : name;
    bool answer = *own == 'y' || strncmp(own, "sample_weight", 13) == 0 || is_word(args->features, name) ||
                  is_word(args->sample_weight, name);
    if (!is_of_another_part(arrays->source, name) && !(answer && args->targets == TD_NO))
        tdi_unused_add(unused, name);
}
