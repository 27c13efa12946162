/* tuning_cache.c - the table of choices. */
#include "tune/tuning_cache.h"

#include <string.h>

tdi_choices *tdi_choices_create(void)
{
    tdi_choices *choices = calloc(1, sizeof *choices);
    if (!choices)
        return NULL;
    choices->arena = tdi_arena_create();
    if (!choices->arena) {
        free(choices);
        return NULL;
    }
    return choices;
}

void tdi_choices_free(tdi_choices *choices)
{
    if (!choices)
        return;
    tdi_vec_free(&choices->all);
    tdi_arena_free(choices->arena);
    free(choices);
}

static tdi_choice *at_key(const tdi_choices *choices, const char *machine, const char *key)
{
    for (int i = 0; i < choices->all.count; i++) {
        tdi_choice *choice = choices->all.at[i];
        if (strcmp(choice->key, key) == 0 && strcmp(choice->machine, machine) == 0)
            return choice;
    }
    return NULL;
}

static bool is_between(const tdi_choice *choice, int count, const char *const *names)
{
    if (choice->count != count)
        return false;
    for (int i = 0; i < count; i++)
        if (strcmp(choice->candidates[i].name, names[i]) != 0)
            return false;
    return true;
}

tdi_choice *tdi_choices_find(const tdi_choices *choices, const char *machine, const char *key, int count,
                             const char *const *names)
{
    tdi_choice *choice = at_key(choices, machine, key);
    return choice && is_between(choice, count, names) ? choice : NULL;
}

tdi_choice *tdi_choices_keep(tdi_choices *choices, const tdi_choice *choice)
{
    tdi_choice copy = *choice;
    copy.machine = tdi_strdup(choices->arena, choice->machine);
    copy.key = tdi_strdup(choices->arena, choice->key);
    bool complete = copy.machine && copy.key;
    for (int i = 0; i < copy.count; i++) {
        copy.candidates[i].name = tdi_strdup(choices->arena, choice->candidates[i].name);
        complete = complete && copy.candidates[i].name;
    }
    if (!complete)
        return NULL;
    tdi_choice *kept = at_key(choices, copy.machine, copy.key);
    if (!kept) {
        kept = TDI_NEW(choices->arena, tdi_choice);
        if (!kept || !tdi_push(&choices->all, kept))
            return NULL;
    }
    *kept = copy;
    return kept;
}

bool tdi_choice_is_last_word(const tdi_choice *choice)
{
    return !choice->unsure || choice->unsure >= TDI_OFTEN_ENOUGH;
}

bool tdi_choice_stands(const tdi_choices *choices, const tdi_choice *asked, const tdi_choice *found)
{
    return choices->untimed || (found && (found->measured || asked->lasting || tdi_choice_is_last_word(found)));
}

static void add_unsure(tdi_choice *before, const tdi_choice *measured)
{
    before->measured = true;
    if (!before->unsure)
        return;
    for (int i = 0; i < before->count; i++)
        if (measured->candidates[i].us < before->candidates[i].us)
            before->candidates[i].us = measured->candidates[i].us;
    before->preferred = measured->preferred;
    before->worth_it = measured->worth_it;
    if (++before->unsure == TDI_OFTEN_ENOUGH)
        before->chosen = tdi_fastest(before);
}

/* What slows cores down for some seconds, or parts them, on the host of a virtual machine is not seen from inside. */
static bool is_unsure(const tdi_choice *measured)
{
    return measured->unsure || (measured->worth_it > 0 && measured->chosen != measured->preferred);
}

tdi_choice *tdi_choices_settle(tdi_choices *choices, const tdi_choice *measured)
{
    const char *names[TDI_MAX_CANDIDATES];
    for (int i = 0; i < measured->count; i++)
        names[i] = measured->candidates[i].name;
    tdi_choice *before = tdi_choices_find(choices, measured->machine, measured->key, measured->count, names);
    tdi_choice settled = *measured;
    settled.unsure = is_unsure(measured);
    choices->changed = true;
    if (!before || !settled.unsure)
        return tdi_choices_keep(choices, &settled);
    add_unsure(before, &settled);
    return before;
}

void tdi_choices_spend(tdi_choices *choices, td_context *context, double seconds)
{
    const double patience = 1;
    double before = choices->seconds;
    choices->seconds += seconds;
    if (before < patience && choices->seconds >= patience)
        tdi_log(context, TD_LOG_INFO,
                "finding out which kernels are fastest here takes seconds, of large steps minutes; once, for they are "
                "remembered");
}

int tdi_fastest(const tdi_choice *choice)
{
    const double more_than_noise = 0.97;
    const tdi_candidate *all = choice->candidates;
    int best = 0;
    for (int i = 1; i < choice->count; i++)
        if (all[i].us < more_than_noise * all[best].us)
            best = i;
    if (choice->worth_it > 0 && all[best].us >= choice->worth_it * all[choice->preferred].us)
        best = choice->preferred;
    return best;
}
