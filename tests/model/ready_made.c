/* ready_made.c - ResNet-20 has the paper's size, learns, and with zero gammas its blocks begin as their shortcuts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <tandem/tandem.h>

enum { SAMPLES = 16, PIXELS = 32 * 32 * 3 };

/* Counted by hand: convolutions 432 + 6 x 2304 + 4608 + 5 x 9216 + 18432 + 5 x 36864, shortcuts 512 + 2048, gammas and
 * betas 1568, the dense layer 650; as many moving statistics as gammas and betas. */
static void resnet20_has_its_size(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = td_new(context, "resnet20", 1);
    int64_t trainable;
    assert_int_equal(td_parameter_count(model, &trainable), 272474 + 1568);
    assert_int_equal(trainable, 272474);
    td_optimizer optimizer = td_model_optimizer(model);
    assert_int_equal(optimizer.kind, TD_OPTIMIZER_SGD);
    assert_float_equal(optimizer.momentum, 0.9f, 0);
    td_context_free(context);
}

/* How many gammas hold nothing but `value`. */
static int gammas_of(td_model *model, float value)
{
    int count = 0;
    float gamma[64];
    for (int i = 0; i < td_weight_count(model); i++) {
        td_weight_info info;
        assert_int_equal(td_weight(model, i, &info), TD_OK);
        if (strcmp(info.name, "gamma") != 0)
            continue;
        int64_t alike = 0;
        assert_int_equal(td_get_weight(model, i, gamma, (size_t)info.shape.dim[0]), TD_OK);
        for (int64_t c = 0; c < info.shape.dim[0]; c++)
            alike += gamma[c] == value;
        count += alike == info.shape.dim[0];
    }
    return count;
}

static void one_gamma_a_block_is_zero(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_model *model = td_new_resnet20(context, TD_YES, 1);
    assert_int_equal(gammas_of(model, 0), 9);
    assert_int_equal(gammas_of(model, 1), 12); /* the stem's, each block's first, two shortcuts' */
    td_model *plain = td_new_resnet20(context, TD_DEFAULT, 1);
    assert_int_equal(gammas_of(plain, 0), 0);
    assert_int_equal(gammas_of(plain, 1), 21);
    td_context_free(context);
}

/* With zero gammas the first block's convolutions are without effect, whatever their weights; with ones they are not.
 */
static void blocks_begin_as_shortcuts(void **state)
{
    (void)state;
    static float kernel[3 * 3 * 16 * 16], x[PIXELS];
    for (int i = 0; i < PIXELS; i++)
        x[i] = (float)(i % 7) / 7;
    for (int i = 0; i < 3 * 3 * 16 * 16; i++)
        kernel[i] = (float)(i % 5 - 2) / 8;
    td_context *context = td_context_create(NULL);
    for (int zero = 0; zero < 2; zero++) {
        float before[10], after[10];
        td_model *model = td_new_resnet20(context, zero ? TD_YES : TD_NO, 1);
        assert_int_equal(td_predict_on_batch(model, 1, x, before), TD_OK);
        assert_int_equal(td_set_weight(model, 5, kernel, 3 * 3 * 16 * 16), TD_OK); /* behind the stem's five */
        assert_int_equal(td_predict_on_batch(model, 1, x, after), TD_OK);
        assert_int_equal(memcmp(before, after, sizeof before) == 0, zero);
    }
    td_context_free(context);
}

static void it_learns(void **state)
{
    (void)state;
    static float x[SAMPLES * PIXELS], y[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) {
        y[i] = (float)(i % 10);
        for (int p = 0; p < PIXELS; p++)
            x[i * PIXELS + p] = (float)((p * (i + 3) >> 4) % 11) / 11;
    }
    td_context *context = td_context_create(NULL);
    td_model *model = td_new_resnet20(context, TD_YES, 1);
    td_logs first, last;
    assert_int_equal(td_train_on_batch(model, SAMPLES, x, y, &first), TD_OK);
    for (int step = 0; step < 20; step++)
        assert_int_equal(td_train_on_batch(model, SAMPLES, x, y, &last), TD_OK);
    assert_true(last.entry[0].value < 0.5 * first.entry[0].value);
    td_context_free(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(resnet20_has_its_size),
                                       cmocka_unit_test(one_gamma_a_block_is_zero),
                                       cmocka_unit_test(blocks_begin_as_shortcuts), cmocka_unit_test(it_learns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
