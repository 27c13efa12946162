/* Every kernel of the CPU device on fixed cases: the ops' own, and larger ones where a vector loop has several paths.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifdef TANDEM_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

#include "cpu/checks.h"
#include "cpu/cpu.h"
#include "cpu/large.h"
#include "support/op_case.h"
#include "support/sanitized.h"

/* Whether this CPU is slower in bfloat16 than in float32, so that plans avoid bfloat16. */
static bool has_no_bfloat16(void)
{
    tdi_device *device = NULL;
    tdi_error error = {0};
    assert_int_equal(tdi_cpu_device.open(0, 1, &device, &error), TD_OK);
    bool none = device->no_bfloat16;
    device->close(device);
    return none;
}

static void small_cases(void **state)
{
    (void)state;
    if (tdi_cpu_best_isa() < TDI_CPU_AVX512)
        print_message("this CPU lacks AVX-%d: kernels for it are not checked\n",
                      tdi_cpu_best_isa() < TDI_CPU_AVX2 ? 2 : 512);
    int threads = tdi_cpu_enter_thread();
    for (int i = 0; op_case_at(i); i++) {
        if (!has_watched(op_case_at(i)->op))
            continue;
        check_case(op_case_at(i), (wanted){-1, ""});
        check_case(op_case_at(i), (wanted){19, ""});
        check_case(op_case_at(i), (wanted){27, ""});
    }
    tdi_cpu_leave_thread(threads);
}

/* Each case must be taken by a kernel of every instruction set; a product also by one in bfloat16, where the CPU is
 * faster in it. */
static void large_ones(void **state)
{
    (void)state;
    bool narrow = !has_no_bfloat16();
    int threads = tdi_cpu_enter_thread();
    for (const op_case *c = large_cases; c->op; c++) {
        if (!has_watched(c->op))
            continue;
        takers taken = check_case(c, (wanted){-1, ""});
        for (tdi_cpu_isa isa = TDI_CPU_BASELINE; isa <= tdi_cpu_best_isa(); isa++)
            if (!taken.of[isa])
                fail_msg("no kernel of instruction set %d takes case \"%s\" of %s", isa, c->name, c->op->name);
        if (c->op->multiplies && narrow && !taken.narrowed)
            fail_msg("no bfloat16 kernel takes case \"%s\" of %s", c->name, c->op->name);
    }
    tdi_cpu_leave_thread(threads);
}

#ifdef TANDEM_ONEDNN
static int refusals = -1; /* -1: refuse nothing */

/* Stands between the kernels and oneDNN, and acts as if memory were out. */
dnnl_status_t dnnl_sgemm(char transa, char transb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k, float alpha,
                         const float *a, dnnl_dim_t lda, const float *b, dnnl_dim_t ldb, float beta, float *c,
                         dnnl_dim_t ldc)
{
    static dnnl_status_t (*library)(char, char, dnnl_dim_t, dnnl_dim_t, dnnl_dim_t, float, const float *, dnnl_dim_t,
                                    const float *, dnnl_dim_t, float, float *, dnnl_dim_t);
    if (refusals >= 0)
        return refusals++, dnnl_out_of_memory;
    if (!library)
        *(void **)&library = dlsym(RTLD_NEXT, "dnnl_sgemm");
    return library(transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

static void the_library_lacks_memory(void **state)
{
    (void)state;
    if (SANITIZED_THREADS)
        skip();
    int threads = tdi_cpu_enter_thread();
    refusals = 0;
    for (const op_case *c = large_cases; c->op; c++)
        if (c->op->multiplies || c->op == &tdi_op_matmul_update)
            check_case(c, (wanted){-1, "onednn"});
    assert_true(refusals > 0);
    refusals = -1;
    tdi_cpu_leave_thread(threads);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef TANDEM_ONEDNN
        cmocka_unit_test(the_library_lacks_memory),
#endif
        cmocka_unit_test(small_cases), cmocka_unit_test(large_ones)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
