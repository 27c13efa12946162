/* contest.c - a contest: held once, by turns of which the best counts, without those who are hopeless; and what a
 * failure and a long wait leave behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "tune/contest.h"

enum { CANDIDATES = 3, ROUNDS = 2, MOST_RUNS = 16 };

/* Candidates whose times are given: run r of candidate i takes seconds[i][r], the last one given from then on. */
static struct {
    double seconds[CANDIDATES][MOST_RUNS];
    int runs[CANDIDATES], begun, ended;
    td_status begin, run;
    double sleep;
} played;

static int infos;

static void count_line(void *user, td_log_level level, const char *line)
{
    (void)user, (void)line;
    infos += level == TD_LOG_INFO;
}

static td_status begin(tdi_contest *contest, tdi_error *error)
{
    (void)contest, (void)error;
    played.begun++;
    return played.begin;
}

static td_status run(tdi_contest *contest, int candidate, double *seconds, tdi_error *error)
{
    (void)contest, (void)error;
    const double *given = played.seconds[candidate];
    int at = played.runs[candidate]++;
    while (at > 0 && given[at] <= 0)
        at--;
    *seconds = given[at];
    for (double until = tdi_seconds() + played.sleep; tdi_seconds() < until;)
        ;
    return played.run;
}

static void end(tdi_contest *contest)
{
    (void)contest;
    played.ended++;
}

static td_status ask(tdi_tuning_cache *cache, td_context *context, const char *key, const tdi_tuned **answer)
{
    tdi_tuned question = {.machine = "here",
                          .key = key,
                          .count = CANDIDATES,
                          .candidates = {{.name = "a"}, {.name = "b"}, {.name = "c"}}};
    tdi_contest contest = {.rounds = ROUNDS, .hopeless = 1.5, .begin = begin, .run = run, .end = end};
    tdi_error error = {0};
    return tdi_contest_answer(cache, context, &question, &contest, answer, &error);
}

static void play(double a, double b, double c)
{
    memset(&played, 0, sizeof played);
    played.seconds[0][0] = a;
    played.seconds[1][0] = b;
    played.seconds[2][0] = c;
}

/* The best of all rounds counts; the same question has the same answer without another contest. */
static void the_fastest_is_found_once(void **state)
{
    (void)state;
    const tdi_tuned *first, *again;
    tdi_tuning_cache *cache = tdi_tuning_cache_create();
    play(3e-3, 2e-3, 2.5e-3);
    played.seconds[2][1] = 1e-3;
    assert_int_equal(ask(cache, NULL, "which", &first), TD_OK);
    assert_int_equal(first->chosen, 2);
    assert_true(first->used && first->measured && cache->changed);
    assert_float_equal(first->candidates[1].us, 2000, 1e-3);
    assert_float_equal(first->candidates[2].us, 1000, 1e-3);
    play(1e-3, 2e-3, 3e-3);
    assert_int_equal(ask(cache, NULL, "which", &again), TD_OK);
    assert_ptr_equal(again, first);
    assert_int_equal(played.begun, 0);
    tdi_tuning_cache_free(cache);
}

/* Once a round was undisturbed, who took 1.5 times the best's time in it sits out the others. */
static void the_hopeless_sit_out(void **state)
{
    (void)state;
    const tdi_tuned *answer;
    tdi_tuning_cache *cache = tdi_tuning_cache_create();
    play(1e-3, 1.4e-3, 1.6e-3);
    assert_int_equal(ask(cache, NULL, "which", &answer), TD_OK);
    assert_int_equal(played.runs[0], played.runs[1]);
    assert_true(played.runs[0] >= ROUNDS && played.runs[0] <= 2 * ROUNDS);
    assert_true(answer->unsure || played.runs[2] < played.runs[0]);
    tdi_tuning_cache_free(cache);
}

static void a_failure_leaves_nothing(void **state)
{
    (void)state;
    const tdi_tuned *answer;
    tdi_tuning_cache *cache = tdi_tuning_cache_create();
    for (int i = 0; i < 2; i++) {
        play(1e-3, 1e-3, 1e-3);
        *(i ? &played.run : &played.begin) = TD_NO_MEMORY;
        assert_int_equal(ask(cache, NULL, "which", &answer), TD_NO_MEMORY);
        assert_null(answer);
        assert_int_equal(played.begun, 1);
        assert_int_equal(played.ended, 1);
    }
    assert_int_equal(cache->all.count, 0);
    tdi_tuning_cache_free(cache);
}

/* Where nothing may be timed nothing is, and what the cache has is taken all the same. */
static void an_untimed_cache_holds_no_contest(void **state)
{
    (void)state;
    const tdi_tuned *answer;
    tdi_tuning_cache *cache = tdi_tuning_cache_create();
    play(1e-3, 2e-3, 3e-3);
    assert_int_equal(ask(cache, NULL, "known", &answer), TD_OK);
    cache->untimed = true;
    play(1e-3, 2e-3, 3e-3);
    assert_int_equal(ask(cache, NULL, "new", &answer), TD_OK);
    assert_null(answer);
    assert_int_equal(ask(cache, NULL, "known", &answer), TD_OK);
    assert_int_equal(answer->chosen, 0);
    assert_int_equal(played.begun, 0);
    tdi_tuning_cache_free(cache);
}

/* A long wait is explained, once. */
static void a_long_wait_is_explained(void **state)
{
    (void)state;
    const tdi_tuned *answer;
    td_context *context = td_context_create(&(td_context_options){.log = count_line});
    tdi_tuning_cache *cache = tdi_tuning_cache_create();
    infos = 0;
    play(1e-3, 2e-3, 3e-3);
    assert_int_equal(ask(cache, context, "first", &answer), TD_OK);
    assert_int_equal(infos, 0);
    cache->seconds = 0.999;
    played.sleep = 2e-3;
    assert_int_equal(ask(cache, context, "second", &answer), TD_OK);
    assert_int_equal(infos, 1);
    assert_int_equal(ask(cache, context, "third", &answer), TD_OK);
    assert_int_equal(infos, 1);
    tdi_tuning_cache_free(cache);
    td_context_free(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fastest_is_found_once), cmocka_unit_test(the_hopeless_sit_out),
        cmocka_unit_test(a_failure_leaves_nothing), cmocka_unit_test(an_untimed_cache_holds_no_contest),
        cmocka_unit_test(a_long_wait_is_explained)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
