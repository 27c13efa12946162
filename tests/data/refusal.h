/* refusal.h - data that must be refused. */
#ifndef TEST_DATA_REFUSAL_H
#define TEST_DATA_REFUSAL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <tandem/tandem.h>

/* The sentence holds `word`; the data are released. */
static inline void expect_refusal(td_data *data, const char *word)
{
    assert_non_null(td_data_error(data));
    if (!strstr(td_data_error(data), word))
        fail_msg("\"%s\" lacks \"%s\"", td_data_error(data), word);
    td_data_release(data);
}

#endif
