/* Weights packed into oneDNN's layouts of bfloat16 pairs, against oneDNN's own reorder: the bits must be the same, also
 * of the zeros behind the last row and column. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifdef TANDEM_ONEDNN
#include "base/arena.h"
#include "base/bfloat16.h"
#include "cpu/onednn/pack_onednn.h"
#include "cpu/vector_loops.h"

typedef struct layout_case {
    dnnl_format_tag_t tag;
    int rank;
    dnnl_dims_t extent; /* out, in, height, width; or depth, columns */
    dnnl_dims_t stride; /* strides of the plain matrix */
} layout_case;

static void describe(tdi_md *md, const layout_case *c, dnnl_data_type_t type, bool plain)
{
    if (plain)
        assert_int_equal(tdi_md_create(md, c->rank, c->extent, type, c->stride), dnnl_success);
#if DNNL_VERSION_MAJOR >= 3
    else
        assert_int_equal(dnnl_memory_desc_create_with_tag(md, c->rank, c->extent, type, c->tag), dnnl_success);
#else
    else
        assert_int_equal(dnnl_memory_desc_init_by_tag(md, c->rank, c->extent, type, c->tag), dnnl_success);
#endif
}

/* Reorders in float32, which oneDNN can do on every CPU. */
static void reorder(tdi_md_view from_md, void *from, tdi_md_view to_md, void *to)
{
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_memory_t memory[2];
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t primitive;
    assert_int_equal(dnnl_engine_create(&engine, dnnl_cpu, 0), dnnl_success);
    assert_int_equal(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags), dnnl_success);
    assert_int_equal(dnnl_memory_create(&memory[0], from_md, engine, from), dnnl_success);
    assert_int_equal(dnnl_memory_create(&memory[1], to_md, engine, to), dnnl_success);
    assert_int_equal(dnnl_reorder_primitive_desc_create(&pd, from_md, engine, to_md, engine, NULL), dnnl_success);
    assert_int_equal(dnnl_primitive_create(&primitive, pd), dnnl_success);
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, memory[0]}, {DNNL_ARG_TO, memory[1]}};
    assert_int_equal(dnnl_primitive_execute(primitive, stream, 2, arguments), dnnl_success);
    dnnl_stream_wait(stream);
    dnnl_primitive_destroy(primitive);
    dnnl_primitive_desc_destroy(pd);
    dnnl_memory_destroy(memory[0]);
    dnnl_memory_destroy(memory[1]);
    dnnl_stream_destroy(stream);
    dnnl_engine_destroy(engine);
}

static float *made_up(const layout_case *c)
{
    int64_t elements = 1;
    for (int i = 0; i < c->rank; i++)
        elements *= c->extent[i];
    float *x = tdi_buffer_create((size_t)elements * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < elements; i++)
        x[i] = (float)(i * 7919 % 100003 - 50001) / 3.0f;
    return x;
}

static void check(const layout_case *c)
{
    tdi_md plain = {0}, wide = {0}, packed = {0};
    describe(&plain, c, dnnl_f32, true);
    describe(&wide, c, dnnl_f32, false);
    describe(&packed, c, dnnl_bf16, false);
    size_t elements = dnnl_memory_desc_get_size(TDI_MD_VIEW(packed)) / sizeof(tdi_bfloat16);
    float *x = made_up(c), *expected = tdi_buffer_create(elements * sizeof *expected);
    tdi_bfloat16 *seen = tdi_buffer_create(elements * sizeof *seen);
    assert_true(expected && seen);
    memset(seen, 0x7b, elements * sizeof *seen); /* shows what is not written */
    tdi_packing *packing = tdi_onednn_packing(TDI_MD_VIEW(plain), TDI_MD_VIEW(packed));
    assert_non_null(packing);
    tdi_cpu_vector_loops()->pack(packing, x, seen);
    reorder(TDI_MD_VIEW(plain), x, TDI_MD_VIEW(wide), expected);
    for (size_t i = 0; i < elements; i++)
        assert_int_equal(seen[i], tdi_narrow(expected[i]));
    free(packing);
    tdi_buffer_free(seen);
    tdi_buffer_free(expected);
    tdi_buffer_free(x);
    tdi_md_destroy(&packed);
    tdi_md_destroy(&wide);
    tdi_md_destroy(&plain);
}

/* Filters, [h, w, in, out] in memory, as convolutions forwards and backwards want them; matrices as products do. */
static void packs_as_the_library_does(void **unused)
{
    static const layout_case cases[] = {
        {dnnl_AcdB64a2b, 4, {128, 32, 3, 3}, {1, 128, 3 * 32 * 128, 32 * 128}},
        {dnnl_AcdB48a2b, 4, {64, 48, 1, 1}, {1, 64, 64 * 48, 64 * 48}},
        {dnnl_AcdB16b64a2b, 4, {64, 48, 3, 1}, {1, 64, 64 * 48, 64 * 48}},
        {dnnl_ABcd8a16b2a, 4, {48, 32, 3, 2}, {1, 48, 2 * 32 * 48, 32 * 48}},
        {dnnl_BAcd8a16b2a, 4, {32, 16, 1, 1}, {1, 32, 32 * 16, 32 * 16}},
        {dnnl_BA16a64b2a, 2, {64, 96}, {96, 1}},
        {dnnl_BA16a32b2a, 2, {48, 32}, {1, 48}},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&cases[i]);
}

/* Layouts without pairs, and extents that do not fill a run, are left to oneDNN. */
static void leaves_the_rest(void **unused)
{
    static const layout_case cases[] = {
        {dnnl_ABcd16b16a, 4, {32, 32, 1, 1}, {1, 32, 32 * 32, 32 * 32}},
        {dnnl_AcdB64a2b, 4, {64, 3, 7, 7}, {1, 64, 7 * 3 * 64, 3 * 64}},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tdi_md plain = {0}, packed = {0};
        describe(&plain, &cases[i], dnnl_f32, true);
        describe(&packed, &cases[i], dnnl_bf16, false);
        assert_null(tdi_onednn_packing(TDI_MD_VIEW(plain), TDI_MD_VIEW(packed)));
        tdi_md_destroy(&packed);
        tdi_md_destroy(&plain);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(packs_as_the_library_does), cmocka_unit_test(leaves_the_rest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
    return 77; /* tells CTest that the test was skipped */
}
#endif
