/* tuning_cache.c - the table of answers, and which of them hold.
 *
 * Why: a promise of the library is that the same configuration on the same machine gives the same bits. Kernels differ
 * in their last bits, so the same question must get the same answer, in this process and in later ones, although no two
 * contests time alike.
 *
 * Rules:
 * - A sure answer is final. It is never asked again.
 * - An unsure answer holds for this process. The next one asks again: a sure answer then takes its place, another
 * unsure one adds its times to it, and the choice stays. With the TDI_OFTEN_ENOUGH-th the least times of all decide,
 * and that is final.
 * - An answer is unsure when too many rounds were disturbed, or when a candidate was faster than the preferred one.
 * - Where bfloat16 is at stake (`lasting`) more than last bits differ: the first answer is final, sure or not.
 * - In a backup every answer is final: a resumed run chooses as the run before, and where that was not timed
 *   (`untimed`) nothing is.
 *
 * Limits: the table is searched from front to end; it holds some hundred answers, and is asked when plans are made. */
#include "tune/tuning_cache.h"

#include <string.h>

tdi_tuning_cache *tdi_tuning_cache_create(void)
{
    tdi_tuning_cache *cache = calloc(1, sizeof *cache);
    if (!cache)
        return NULL;
    cache->arena = tdi_arena_create();
    if (!cache->arena) {
        free(cache);
        return NULL;
    }
    return cache;
}

void tdi_tuning_cache_free(tdi_tuning_cache *cache)
{
    if (!cache)
        return;
    tdi_vec_free(&cache->all);
    tdi_arena_free(cache->arena);
    free(cache);
}

static tdi_tuned *at_key(const tdi_tuning_cache *cache, const char *machine, const char *key)
{
    for (int i = 0; i < cache->all.count; i++) {
        tdi_tuned *tuned = cache->all.at[i];
        if (strcmp(tuned->key, key) == 0 && strcmp(tuned->machine, machine) == 0)
            return tuned;
    }
    return NULL;
}

tdi_tuned *tdi_tuning_cache_find(const tdi_tuning_cache *cache, const tdi_tuned *question)
{
    tdi_tuned *found = at_key(cache, question->machine, question->key);
    if (!found || found->count != question->count)
        return NULL;
    for (int i = 0; i < found->count; i++)
        if (strcmp(found->candidates[i].name, question->candidates[i].name) != 0)
            return NULL;
    return found;
}

tdi_tuned *tdi_tuning_cache_put(tdi_tuning_cache *cache, const tdi_tuned *tuned)
{
    tdi_tuned copy = *tuned;
    copy.machine = tdi_strdup(cache->arena, tuned->machine);
    copy.key = tdi_strdup(cache->arena, tuned->key);
    bool complete = copy.machine && copy.key;
    for (int i = 0; i < copy.count; i++) {
        copy.candidates[i].name = tdi_strdup(cache->arena, tuned->candidates[i].name);
        complete = complete && copy.candidates[i].name;
    }
    if (!complete)
        return NULL;
    tdi_tuned *kept = at_key(cache, copy.machine, copy.key);
    if (!kept) {
        kept = TDI_NEW(cache->arena, tdi_tuned);
        if (!kept || !tdi_push(&cache->all, kept))
            return NULL;
    }
    *kept = copy;
    return kept;
}

bool tdi_tuned_is_final(const tdi_tuned *tuned)
{
    return tuned->lasting || !tuned->unsure || tuned->unsure >= TDI_OFTEN_ENOUGH;
}

bool tdi_tuning_cache_holds(const tdi_tuning_cache *cache, const tdi_tuned *question, const tdi_tuned *found)
{
    return cache->untimed || (found && (found->measured || question->lasting || tdi_tuned_is_final(found)));
}

/* The file does not have `preferred` and `worth_it`: they are the question's. */
static void add_unsure(tdi_tuned *before, const tdi_tuned *measured)
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
        before->chosen = tdi_tuned_fastest(before);
}

tdi_tuned *tdi_tuning_cache_record(tdi_tuning_cache *cache, const tdi_tuned *measured)
{
    tdi_tuned tuned = *measured, *before = tdi_tuning_cache_find(cache, measured);
    bool against_preferred = tuned.worth_it > 0 && tuned.chosen != tuned.preferred;
    tuned.measured = true;
    tuned.unsure = tuned.unsure || against_preferred;
    cache->changed = true;
    if (!before || !tuned.unsure)
        return tdi_tuning_cache_put(cache, &tuned);
    add_unsure(before, &tuned);
    return before;
}

int tdi_tuned_fastest(const tdi_tuned *tuned)
{
    const double more_than_noise = 0.97;
    const tdi_candidate *all = tuned->candidates;
    int best = 0;
    for (int i = 1; i < tuned->count; i++)
        if (all[i].us < more_than_noise * all[best].us)
            best = i;
    if (tuned->worth_it > 0 && all[best].us >= tuned->worth_it * all[tuned->preferred].us)
        best = tuned->preferred;
    return best;
}

void tdi_tuned_print(const tdi_tuned *tuned, FILE *out)
{
    fprintf(out, "%s:",
            !tuned->measured            ? "timed before"
            : tdi_tuned_is_final(tuned) ? "timed"
                                        : "timed, and again by the next run");
    for (int i = 0; i < tuned->count; i++)
        fprintf(out, "%s %s %.4g us", i ? "," : "", tuned->candidates[i].name, tuned->candidates[i].us);
    fprintf(out, "\n");
}
