/* Every kernel of the CPU device on cases of random shapes and attributes, for what fixed cases do not think of.
 *
 * TANDEM_SHAPES_CASES is the number of cases of each kind (30, for some kinds more), TANDEM_SHAPES_SEED the seed of the
 * first one (1); the next ones' seeds follow it. A failure prints its seed: that seed and 1 case repeat it alone.
 * TANDEM_SHAPES_KIND runs one kind alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/checks.h"
#include "support/drawn_case.h"
#include "support/sanitized.h"

#if SANITIZED
#include <sanitizer/common_interface_defs.h>
#endif

enum { MOST_KINDS = 64 };

static drawn_case drawn;
static bool is_open; /* the case drawn last has not passed yet */

static uint64_t number_in(const char *variable, uint64_t otherwise)
{
    const char *given = getenv(variable);
    return given ? strtoull(given, NULL, 10) : otherwise;
}

/* Prints the case at exit, since a sanitizer, a signal or an assertion knows nothing of cases. */
static void say_what_failed(void)
{
    if (is_open)
        print_error("case \"%s\": %s, split %d, %d threads\n", drawn.name,
                    checked.kernel ? checked.kernel->name : "no kernel yet", checked.split, checked.threads);
}

static int end_kind(void **state)
{
    (void)state;
    say_what_failed();
    is_open = false;
    return 0;
}

static void check_kind(void **state)
{
    const drawn_kind *kind = *state;
    uint64_t seed = number_in("TANDEM_SHAPES_SEED", 1), cases = number_in("TANDEM_SHAPES_CASES", 0);
    const char *wanted_kind = getenv("TANDEM_SHAPES_KIND");
    if (wanted_kind && strcmp(wanted_kind, kind->name) != 0)
        skip();
    if (!cases)
        cases = (uint64_t)kind->times * (SANITIZED ? 8 : 30);
    int threads = tdi_cpu_enter_thread();
    for (uint64_t i = 0; i < cases; i++) {
        drawn_case_make(&drawn, kind, seed + i);
        if (!has_watched(drawn.c.op))
            continue;
        is_open = true;
        check_case(&drawn.c, (wanted){-1, ""});
        is_open = false;
    }
    tdi_cpu_leave_thread(threads);
}

int main(void)
{
    static const drawn_kind *const tables[] = {drawn_windows, drawn_linear, drawn_rows};
    struct CMUnitTest tests[MOST_KINDS];
    size_t count = 0;
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const drawn_kind *kind = tables[t]; kind->name && count < MOST_KINDS; kind++)
            tests[count++] = (struct CMUnitTest){kind->name, check_kind, NULL, end_kind, (void *)(uintptr_t)kind};
    print_message("seed %llu\n", (unsigned long long)number_in("TANDEM_SHAPES_SEED", 1));
#if SANITIZED
    __sanitizer_set_death_callback(say_what_failed);
#endif
    return _cmocka_run_group_tests("shapes", tests, count, NULL, NULL);
}
