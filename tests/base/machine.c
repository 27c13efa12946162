/* Whether other processes have taken cores from this one. */
#define _GNU_SOURCE
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/machine.h"
#include "base/text.h"

static void keep_busy(double seconds)
{
    for (double end = tdi_seconds() + seconds; tdi_seconds() < end;)
        ;
}

/* One core for two, which both would have all the time. */
static void a_busy_process_is_noticed(void **state)
{
    (void)state;
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    pid_t child = fork();
    if (child == 0) {
        keep_busy(60);
        _exit(0);
    }
    assert_true(child > 0);
    tdi_watch watch = tdi_watch_begin();
    keep_busy(0.5);
    bool disturbed = tdi_watch_was_disturbed(&watch);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_true(disturbed);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

/* However busy the others are: who does not run is not interrupted. */
static void sleeping_is_no_disturbance(void **state)
{
    (void)state;
    tdi_watch watch = tdi_watch_begin();
    usleep(500000);
    assert_false(tdi_watch_was_disturbed(&watch));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_busy_process_is_noticed),
                                       cmocka_unit_test(sleeping_is_no_disturbance)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
