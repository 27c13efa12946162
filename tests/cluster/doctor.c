/* The public calls: the report's status, and arguments that cannot be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/tandem.h>

static td_context *context;
static FILE *report;

static void says(const char *sentence)
{
    assert_non_null(strstr(td_error(context), sentence));
    td_clear_error(context);
}

static void the_environment_is_reported(void **state)
{
    (void)state;
    clearenv();
    assert_int_equal(td_doctor_cluster(context, NULL, 0, report), TD_INVALID_ARGUMENT);
    says("the description of the cluster has 1 mistake");
    setenv("TF_CONFIG", "{\"cluster\": {\"worker\": [\"127.0.0.1:1\"]}, \"task\": {\"type\": \"worker\"}}", 1);
    assert_int_equal(td_doctor_cluster(context, NULL, 0, report), TD_OK);
    assert_int_equal(td_failed(context), 0);
}

static void texts_are_checked(void **state)
{
    (void)state;
    assert_int_equal(
        td_cluster_check(context, "{\"cluster\": {\"worker\": [\"a:1\"]}, \"task\": {\"type\": \"worker\"}}"), TD_OK);
    assert_int_equal(td_cluster_check(context, "{}"), TD_INVALID_ARGUMENT);
    says("no \"cluster\": this would train alone");
    assert_int_equal(td_cluster_check(context, ""), TD_INVALID_ARGUMENT);
    says("the text is not JSON: ");
}

static void arguments_that_cannot_be_are_refused(void **state)
{
    (void)state;
    const char *const files[] = {"/nowhere/a"};
    assert_int_equal(td_doctor_cluster(NULL, NULL, 0, report), TD_INVALID_ARGUMENT);
    assert_int_equal(td_cluster_check(NULL, "{}"), TD_INVALID_ARGUMENT);
    assert_int_equal(td_doctor_cluster(context, NULL, 0, NULL), TD_INVALID_ARGUMENT);
    says("a FILE to write to and 0 paths were expected");
    assert_int_equal(td_doctor_cluster(context, NULL, 2, report), TD_INVALID_ARGUMENT);
    says("2 paths were expected");
    assert_int_equal(td_doctor_cluster(context, files, -1, report), TD_INVALID_ARGUMENT);
    says("td_doctor_cluster");
    assert_int_equal(td_cluster_check(context, NULL), TD_INVALID_ARGUMENT);
    says("the text of TF_CONFIG was expected");
    assert_int_equal(td_doctor_cluster(context, files, 1, report), TD_INVALID_ARGUMENT);
    says("has 1 mistake");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_environment_is_reported),
                                       cmocka_unit_test(texts_are_checked),
                                       cmocka_unit_test(arguments_that_cannot_be_are_refused)};
    context = td_context_create(NULL);
    report = fopen("/dev/null", "w");
    int failed = context && report ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
    td_context_free(context);
    return failed;
}
