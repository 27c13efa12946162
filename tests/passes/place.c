/* How lanes cut what they share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "passes/passes.h"

/* A lane reads as depth, without a meeting, what it made as columns, and updates as rows what it read as depth. */
static void rows_columns_and_depth_are_cut_alike(void **state)
{
    (void)state;
    for (int lanes = 2; lanes <= 9; lanes++)
        for (int64_t extent = 0; extent <= 1200; extent++)
            for (int lane = 0; lane < lanes; lane++) {
                int64_t begin[3], end[3];
                const tdi_split splits[3] = {TDI_ROWS, TDI_COLUMNS, TDI_DEPTH};
                for (int i = 0; i < 3; i++)
                    tdi_range(splits[i], extent, lane, lanes, &begin[i], &end[i]);
                assert_true(begin[1] == begin[0] && begin[2] == begin[0]);
                assert_true(end[1] == end[0] && end[2] == end[0]);
            }
}

static void shares_are_all_of_it_in_order(void **state)
{
    (void)state;
    for (int lanes = 1; lanes <= 9; lanes++)
        for (int64_t extent = 0; extent <= 1200; extent++) {
            int64_t at = 0, begin, end;
            for (int lane = 0; lane < lanes; lane++, at = end) {
                tdi_range(TDI_COLUMNS, extent, lane, lanes, &begin, &end);
                assert_true(begin == at && end >= begin);
            }
            assert_true(at == extent);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_columns_and_depth_are_cut_alike),
        cmocka_unit_test(shares_are_all_of_it_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
