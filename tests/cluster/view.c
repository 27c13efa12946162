/* Quorums, and what may follow a view, as tables. Sets of tasks are written as bits: 0x5 is tasks 0 and 2. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/view.h"

static tdi_view make_view(tdi_task_set members, tdi_task_set witnesses, tdi_task_set voters, tdi_task_set strangers)
{
    tdi_view view = {.generation = 3, .order = 64, .since = 3, .step = 7, .donor = tdi_lowest_task(members)};
    view.members = members;
    view.witnesses = witnesses;
    view.voters = voters;
    view.strangers = strangers;
    for (int t = 0; t < TDI_VIEW_TASKS; t++)
        view.incarnation[t] = tdi_has_task(members | witnesses | strangers, t) ? 10 : 0;
    return view;
}

static const struct quorum_case {
    const char *what;
    tdi_task_set members, witnesses, voters, strangers, answered, gone;
    bool is_one;
} quorums[] = {
    {"all", 0x7, 0, 0x7, 0, 0x7, 0, true},
    {"two of three", 0x7, 0, 0x7, 0, 0x6, 0, true},
    {"one of three", 0x7, 0, 0x7, 0, 0x1, 0, false},
    {"one of three, the others proved gone", 0x7, 0, 0x7, 0, 0x4, 0x3, true},
    {"one of three, one of the others proved gone", 0x7, 0, 0x7, 0, 0x4, 0x1, false},
    {"the lower of two", 0x3, 0, 0x3, 0, 0x1, 0, true},
    {"the higher of two", 0x3, 0, 0x3, 0, 0x2, 0, false},
    {"the higher of two, with a witness", 0x3, 0x4, 0x7, 0, 0x6, 0, true},
    {"the higher of two, the lower proved gone", 0x3, 0, 0x3, 0, 0x2, 0x1, true},
    {"half of four with the lowest", 0xf, 0, 0xf, 0, 0x9, 0, true},
    {"half of four without it", 0xf, 0, 0xf, 0, 0x6, 0, false},
    {"half of four without it, the others proved gone", 0xf, 0, 0xf, 0, 0x6, 0x9, true},
    {"three of four killed at once", 0xf, 0, 0xf, 0, 0x8, 0x7, true},
    {"half of those left is none", 0xf, 0, 0xf, 0, 0x4, 0x3, false},
    {"a guest's answer is no vote", 0x7, 0, 0x3, 0, 0x6, 0, false},
    {"the lowest of two, a guest silent", 0x7, 0, 0x3, 0, 0x1, 0, true},
    {"without the lowest, a guest silent", 0x7, 0, 0x3, 0, 0x2, 0x1, false},
    {"without the lowest, with the guest", 0x7, 0, 0x3, 0, 0x6, 0x1, true},
    {"a guest alone, all voters gone", 0x3, 0, 0x1, 0, 0x2, 0x1, true},
    {"a guest alone, and a stranger may live", 0x3, 0, 0x1, 0x4, 0x2, 0x1, false},
    {"a guest alone, the stranger gone too", 0x3, 0, 0x1, 0x4, 0x2, 0x5, true},
    {"a voter alone, and a stranger may live", 0x3, 0, 0x3, 0x4, 0x2, 0x1, true},
    {"nobody", 0x3, 0, 0x3, 0, 0, 0x3, false},
    {"answers of others do not count", 0x7, 0, 0x7, 0, 0xf8, 0, false},
};

static void quorums_are_those_of_the_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof quorums / sizeof *quorums; i++) {
        const struct quorum_case *c = &quorums[i];
        tdi_view view = make_view(c->members, c->witnesses, c->voters, c->strangers);
        if (tdi_view_has_quorum(&view, c->answered, c->gone) != c->is_one)
            fail_msg("%s: expected %s", c->what, c->is_one ? "a quorum" : "none");
    }
}

/* Of all sets of answers by living processes, any two that are quorums share one, whatever each of them believes about
 * who is gone, as long as that is true. */
static void quorums_share_a_living_voter(void **state)
{
    (void)state;
    tdi_view view = make_view(0x1f, 0, 0x1f, 0);
    for (tdi_task_set dead = 0; dead < 32; dead++)
        for (tdi_task_set one = 1; one < 32; one++)
            for (tdi_task_set other = 1; other < 32; other++) {
                if ((one | other) & dead || one & other)
                    continue;
                assert_false(tdi_view_has_quorum(&view, one, dead) && tdi_view_has_quorum(&view, other, dead));
            }
}

static void first_views_want_everyone(void **state)
{
    (void)state;
    assert_true(tdi_view_may_begin(0x7, 0x7, 0, false));
    assert_false(tdi_view_may_begin(0x7, 0x3, 0, false));
    assert_true(tdi_view_may_begin(0x7, 0x3, 0x4, false));
    assert_true(tdi_view_may_begin(0x7, 0x3, 0, true)); /* by the user's word */
    assert_false(tdi_view_may_begin(0x7, 0x4, 0, true));
    assert_false(tdi_view_may_begin(0x7, 0, 0x7, false));
}

static const struct follow_case {
    const char *what;
    tdi_task_set members, voters, strangers;  /* of the view */
    tdi_task_set next, answered, gone;        /* members of the next */
    tdi_task_set next_voters, next_strangers; /* expected */
    bool may;
} follows[] = {
    {"nobody is lost", 0x7, 0x7, 0, 0x7, 0x7, 0, 0x7, 0, true},
    {"one is proved gone", 0x7, 0x7, 0, 0x3, 0x3, 0x4, 0x3, 0, true},
    {"one is silent", 0x7, 0x7, 0, 0x3, 0x3, 0, 0x3, 0x4, true},
    {"one joins: a guest", 0x3, 0x3, 0, 0x7, 0x3, 0, 0x3, 0, true},
    {"the guest gets a vote when all have answered", 0x7, 0x3, 0, 0x7, 0x7, 0, 0x7, 0, true},
    {"the guest gets none while one has not", 0x7, 0x3, 0, 0x7, 0x3, 0, 0x3, 0, true},
    {"the guest gets none while there is a stranger", 0x7, 0x3, 0x8, 0x7, 0x7, 0, 0x3, 0x8, true},
    {"the stranger is proved gone", 0x7, 0x3, 0x8, 0x7, 0x7, 0x8, 0x7, 0, true},
    {"a guest alone, after all voters", 0x7, 0x3, 0, 0x4, 0x4, 0x3, 0x4, 0, true},
    {"a guest alone, and a voter may live", 0x7, 0x3, 0, 0x4, 0x4, 0x1, 0, 0x2, false},
    {"nobody", 0x7, 0x7, 0, 0, 0x7, 0, 0, 0x7, false},
};

static void views_follow_as_in_the_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof follows / sizeof *follows; i++) {
        const struct follow_case *c = &follows[i];
        tdi_view view = make_view(c->members, 0, c->voters, c->strangers), next = make_view(c->next, 0, 0, 0);
        if (tdi_view_follow(&view, c->answered, c->gone, &next) != c->may)
            fail_msg("%s: expected that it %s be", c->what, c->may ? "may" : "must not");
        if (next.voters != c->next_voters || next.strangers != c->next_strangers)
            fail_msg("%s: voters 0x%llx, strangers 0x%llx", c->what, (unsigned long long)next.voters,
                     (unsigned long long)next.strangers);
    }
}

static void who_comes_back_is_another(void **state)
{
    (void)state;
    tdi_view view = make_view(0x3, 0, 0x3, 0), next = make_view(0x3, 0, 0, 0);
    next.incarnation[1] = 11;
    assert_true(tdi_view_follow(&view, 0x1, 0x2, &next));
    assert_int_equal(next.voters, 0x1);
    assert_int_equal(next.strangers, 0);
}

static void members_hear_each_other(void **state)
{
    (void)state;
    tdi_task_set hears[TDI_VIEW_TASKS];
    for (int t = 0; t < TDI_VIEW_TASKS; t++)
        hears[t] = ~(tdi_task_set)0;
    assert_int_equal(tdi_view_connected(0x1f, hears), 0x1f);
    hears[1] &= ~tdi_task_bit(3); /* one way: the later goes */
    assert_int_equal(tdi_view_connected(0x1f, hears), 0x17);
    hears[1] &= ~(tdi_task_bit(2) | tdi_task_bit(4)); /* the one that three others miss goes */
    assert_int_equal(tdi_view_connected(0x1f, hears), 0x1d);
    hears[0] = 1; /* and so does a leader that hears nobody */
    assert_int_equal(tdi_view_connected(0x1f, hears), 0x1c);
    assert_int_equal(tdi_view_connected(0, hears), 0);
}

static void views_that_cannot_be_are_seen(void **state)
{
    (void)state;
    tdi_view view = make_view(0x3, 0x4, 0x7, 0x8), bad;
    assert_true(tdi_view_is_sound(&view));
    bad = view;
    bad.generation = 0;
    assert_false(tdi_view_is_sound(&bad));
    bad = view;
    bad.since = 4;
    assert_false(tdi_view_is_sound(&bad));
    bad = view;
    bad.voters = 0x17;
    assert_false(tdi_view_is_sound(&bad));
    bad = view;
    bad.voters = 0;
    assert_false(tdi_view_is_sound(&bad));
    bad = view;
    bad.strangers = 0x4;
    assert_false(tdi_view_is_sound(&bad));
    bad = view;
    bad.witnesses = 0x6;
    assert_false(tdi_view_is_sound(&bad));
    bad = view;
    bad.donor = 2;
    assert_false(tdi_view_is_sound(&bad));
    bad = view;
    bad.donor = TDI_NO_TASK;
    assert_false(tdi_view_is_sound(&bad));
    bad = view;
    bad.incarnation[1] = 0;
    assert_false(tdi_view_is_sound(&bad));
    bad = view;
    bad.incarnation[9] = 1;
    assert_false(tdi_view_is_sound(&bad));
}

static void sets_are_walked_in_order(void **state)
{
    (void)state;
    tdi_task_set set = 1 | tdi_task_bit(5) | tdi_task_bit(63);
    int seen[4], count = 0;
    for (int t = tdi_lowest_task(set); t >= 0; t = tdi_next_task(set, t))
        seen[count++] = t;
    assert_int_equal(count, 3);
    assert_true(seen[0] == 0 && seen[1] == 5 && seen[2] == 63);
    assert_int_equal(tdi_lowest_task(0), TDI_NO_TASK);
    assert_false(tdi_has_task(set, TDI_NO_TASK));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quorums_are_those_of_the_table), cmocka_unit_test(quorums_share_a_living_voter),
        cmocka_unit_test(first_views_want_everyone),      cmocka_unit_test(views_follow_as_in_the_table),
        cmocka_unit_test(who_comes_back_is_another),      cmocka_unit_test(members_hear_each_other),
        cmocka_unit_test(views_that_cannot_be_are_seen),  cmocka_unit_test(sets_are_walked_in_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
