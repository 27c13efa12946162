/* Whose shards are whose, and which rows they have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "comm/deal.h"

enum { MOST = 8 };

static const struct dealt {
    const char *what;
    int processes;
    tdi_deal_member members[MOST];
    int shards; /* 0: their own */
    int first_shard[MOST + 1];
    int64_t rows;
    int64_t first_row[2 * MOST + 1];
} deals[] = {
    {"one process, a shard a device", 1, {{2, 2}}, 0, {0, 2}, 33, {0, 16, 33}},
    {"three devices have three times the rows of one", 2, {{1, 1}, {3, 3}}, 0, {0, 1, 4}, 32, {0, 8, 16, 24, 32}},
    {"... as a single shard too", 2, {{1, 1}, {3, 1}}, 0, {0, 1, 2}, 32, {0, 8, 32}},
    {"two shards of three devices", 2, {{3, 2}, {1, 1}}, 0, {0, 2, 3}, 16, {0, 4, 12, 16}},
    {"1 + 2 + 3", 3, {{1, 1}, {2, 2}, {3, 3}}, 0, {0, 1, 3, 6}, 256, {0, 42, 85, 128, 170, 213, 256}},
    {"fewer rows than shards", 3, {{1, 1}, {1, 1}, {1, 1}}, 0, {0, 1, 2, 3}, 1, {0, 0, 0, 1}},
    {"no rows", 2, {{1, 1}, {1, 1}}, 0, {0, 1, 2}, 0, {0, 0, 0}},
    {"fixed shards", 2, {{1, 1}, {1, 1}}, 4, {0, 2, 4}, 10, {0, 2, 5, 7, 10}},
    {"fixed shards that do not divide", 3, {{1, 9}, {1, 0}, {1, 1}}, 8, {0, 3, 6, 8}, 8, {0, 1, 2, 3, 4, 5, 6, 7, 8}},
    {"fixed shards by devices", 2, {{3, 1}, {1, 1}}, 8, {0, 6, 8}, 8, {0, 1, 2, 3, 4, 5, 6, 7, 8}},
    {"fewer fixed shards than processes", 3, {{1, 1}, {1, 1}, {1, 1}}, 2, {0, 1, 2, 2}, 8, {0, 4, 8}},
    {"one fixed shard", 2, {{2, 2}, {2, 2}}, 1, {0, 1, 1}, 8, {0, 8}},
};

static void check(const struct dealt *want)
{
    tdi_deal *deal;
    tdi_error error = {0};
    int self = want->processes - 1;
    if (tdi_deal_create(want->members, want->processes, self, want->shards, &deal, &error) != TD_OK)
        fail_msg("%s: %s", want->what, error.message);
    assert_int_equal(deal->self, self);
    assert_int_equal(deal->processes, want->processes);
    assert_int_equal(deal->shards, want->first_shard[want->processes]);
    assert_memory_equal(deal->first_shard, want->first_shard, sizeof(int) * (size_t)(want->processes + 1));
    for (int s = 0; s <= deal->shards; s++)
        if (tdi_deal_row(deal, want->rows, s) != want->first_row[s])
            fail_msg("%s: shard %d begins at row %lld", want->what, s, (long long)tdi_deal_row(deal, want->rows, s));
    for (int s = 0; s < deal->shards; s++) {
        int owner = tdi_deal_owner(deal, s);
        assert_true(deal->first_shard[owner] <= s && s < deal->first_shard[owner + 1]);
    }
    tdi_deal_free(deal);
}

static void shards_are_dealt_in_a_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof deals / sizeof *deals; i++)
        check(&deals[i]);
}

static void check_refused(tdi_deal_member member, int processes, int self, const char *sentence)
{
    tdi_deal *deal = (tdi_deal *)1;
    tdi_error error = {0};
    tdi_deal_member members[2] = {{1, 1}, member};
    assert_int_equal(tdi_deal_create(members, processes, self, 0, &deal, &error), TD_INVALID_ARGUMENT);
    assert_null(deal);
    if (!strstr(error.message, sentence))
        fail_msg("\"%s\" does not say \"%s\"", error.message, sentence);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    check_refused((tdi_deal_member){0, 1}, 2, 0, "process 1: expected at least 1 device, got 0");
    check_refused((tdi_deal_member){2, 3}, 2, 0, "process 1: expected 1 to 2 shards, one a device at most, got 3");
    check_refused((tdi_deal_member){2, 0}, 2, 0, "got 0");
    check_refused((tdi_deal_member){INT32_MAX, 1}, 2, 0, "more than 2147483647 devices");
    check_refused((tdi_deal_member){1, 1}, 0, 0, "0 processes");
    check_refused((tdi_deal_member){1, 1}, 2, 2, "number 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shards_are_dealt_in_a_row),
                                       cmocka_unit_test(what_cannot_be_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
