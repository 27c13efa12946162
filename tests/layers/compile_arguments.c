/* compile_arguments.c - names of losses, metrics and optimizers, the targets' shapes, what an optimizer is checked for.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "layers/metrics.h"
#include "layers/optimizers.h"

static void loss_names(void **state)
{
    (void)state;
    static const char *const aliases[][2] = {{"mse", "MeanSquaredError"},
                                             {"MSE", "MeanSquaredError"},
                                             {"bce", "BinaryCrossentropy"},
                                             {"binary_crossentropy", "BinaryCrossentropy"},
                                             {"categorical_crossentropy", "CategoricalCrossentropy"},
                                             {"sparse_categorical_crossentropy", "SparseCategoricalCrossentropy"}};
    for (tdi_loss_kind kind = TDI_LOSS_SPARSE_CATEGORICAL; kind < TDI_LOSS_KINDS; kind++)
        assert_int_equal(tdi_loss_parse(tdi_loss_class(kind)), kind);
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        assert_string_equal(tdi_loss_class(tdi_loss_parse(aliases[i][0])), aliases[i][1]);
    assert_int_equal(tdi_loss_parse("Poisson"), TDI_LOSS_NONE);
    assert_null(tdi_loss_class(TDI_LOSS_NONE));
}

static void public_losses(void **state)
{
    (void)state;
    for (td_loss loss = TD_SPARSE_CATEGORICAL_CROSSENTROPY; loss < TD_LOSS_COUNT; loss++)
        assert_int_not_equal(tdi_loss_from_public(loss).kind, TDI_LOSS_NONE);
    tdi_loss loss = tdi_loss_from_public(TD_BINARY_CROSSENTROPY_FROM_LOGITS);
    assert_true(loss.kind == TDI_LOSS_BINARY && loss.from_logits);
    loss = tdi_loss_from_public(TD_CATEGORICAL_CROSSENTROPY);
    assert_true(loss.kind == TDI_LOSS_CATEGORICAL && !loss.from_logits);
    assert_int_equal(tdi_loss_from_public(TD_LOSS_NONE).kind, TDI_LOSS_NONE);
}

static void target_shapes(void **state)
{
    (void)state;
    td_shape prediction = TD_SHAPE(4, 10), scalar = TD_SHAPE(10);
    tdi_loss sparse = {.kind = TDI_LOSS_SPARSE_CATEGORICAL}, mse = {.kind = TDI_LOSS_MSE};
    assert_true(tdi_loss_wants_classes(&sparse) && !tdi_loss_wants_classes(&mse));
    td_shape target = tdi_loss_target_shape(&sparse, &prediction);
    assert_true(target.rank == 1 && target.dim[0] == 4);
    assert_int_equal(tdi_loss_target_shape(&sparse, &scalar).rank, 0);
    target = tdi_loss_target_shape(&mse, &prediction);
    assert_true(target.rank == 2 && target.dim[1] == 10);
}

static void metric_names(void **state)
{
    (void)state;
    for (int kind = TD_METRIC_ACCURACY; kind < TD_METRIC_COUNT; kind++) {
        const tdi_metric_type *type = tdi_metric_type_of((td_metric_kind)kind);
        td_metric plain = {.kind = (td_metric_kind)kind}, named = {.kind = (td_metric_kind)kind, .name = "mine"};
        assert_int_equal(tdi_metric_parse(tdi_metric_name(&plain)), kind);
        assert_string_equal(tdi_metric_name(&named), "mine");
        if (type->class_name)
            assert_int_equal(tdi_metric_parse(type->class_name), kind);
    }
    assert_int_equal(tdi_metric_parse("acc"), TD_METRIC_ACCURACY);
    assert_int_equal(tdi_metric_parse("MAE"), TD_METRIC_MEAN_ABSOLUTE_ERROR);
    assert_int_equal(tdi_metric_parse("SpecificityAtSensitivity"), TD_METRIC_END);
}

static td_optimizer resolved(td_optimizer optimizer)
{
    tdi_fields_resolve(tdi_config_type_of(tdi_optimizer_types, optimizer.kind)->fields, &optimizer);
    return optimizer;
}

static void optimizer_slots(void **state)
{
    (void)state;
    td_optimizer sgd = resolved(td_sgd()), momentum = resolved(td_sgd(.momentum = 0.9f));
    td_optimizer adam = resolved(td_adam()), amsgrad = resolved(td_adam(.amsgrad = TD_YES));
    assert_int_equal(tdi_optimizer_slots(&sgd), 0);
    assert_int_equal(tdi_optimizer_slots(&momentum), 1);
    assert_int_equal(tdi_optimizer_slots(&adam), 2);
    assert_int_equal(tdi_optimizer_slots(&amsgrad), 3);
    td_optimizer more = resolved(td_adam(.use_ema = TD_YES, .gradient_accumulation_steps = 2));
    assert_int_equal(tdi_optimizer_slots(&more), 4);
    assert_int_equal(tdi_optimizer_update_slots(&more), 2);
    assert_int_equal(tdi_optimizer_average_slot(&more), 2);
    assert_int_equal(tdi_optimizer_accumulator_slot(&more), 3);
    assert_int_equal(tdi_optimizer_average_slot(&adam), -1);
    assert_int_equal(tdi_optimizer_accumulator_slot(&adam), -1);
    assert_int_equal(tdi_config_type_find(tdi_optimizer_types, "Adam")->kind, TD_OPTIMIZER_ADAM);
    assert_int_equal(tdi_config_type_find(tdi_optimizer_types, "sgd")->kind, TD_OPTIMIZER_SGD);
    assert_null(tdi_config_type_find(tdi_optimizer_types, "Lion"));
}

static void check_refused(td_optimizer optimizer, const char *sentence)
{
    tdi_error error = {0};
    assert_int_equal(tdi_optimizer_check(&optimizer, &error), TD_INVALID_ARGUMENT);
    if (!strstr(error.message, sentence))
        fail_msg("\"%s\" is not in \"%s\"", sentence, error.message);
}

static void optimizer_checks(void **state)
{
    (void)state;
    td_optimizer sgd = resolved(td_sgd()), adam = resolved(td_adam(.epsilon = TD_SET(0.0f)));
    assert_int_equal(tdi_optimizer_check(&sgd, NULL), TD_OK);
    assert_int_equal(tdi_optimizer_check(&adam, NULL), TD_OK);
    check_refused(resolved(td_sgd(.learning_rate = -1)), "learning_rate is -1");
    check_refused(resolved(td_sgd(.learning_rate = NAN)), "learning_rate is");
    check_refused(resolved(td_sgd(.momentum = 1.5f)), "momentum is 1.5 and must be in [0, 1]");
    check_refused(resolved(td_sgd(.weight_decay = -0.1f)), "weight_decay is -0.1");
    check_refused(resolved(td_adam(.clipvalue = -1)), "clipvalue is -1");
    check_refused(resolved(td_adam(.beta_1 = TD_SET(1.0f))), "beta_1 is 1 and must be at least 0 and below 1");
    check_refused(resolved(td_adam(.beta_2 = TD_SET(-1.0f))), "beta_2 is -1");
    check_refused(resolved(td_adam(.epsilon = TD_SET(-1.0f))), "epsilon is -1");
    check_refused(resolved(td_sgd(.clipnorm = -1)), "clipnorm is -1");
    check_refused(resolved(td_sgd(.global_clipnorm = INFINITY)), "global_clipnorm is inf");
    check_refused(resolved(td_sgd(.clipnorm = 1, .clipvalue = 2)), "only one of them");
    check_refused(resolved(td_sgd(.gradient_accumulation_steps = 1)), "gradient_accumulation_steps is 1");
    check_refused(resolved(td_sgd(.loss_scale_factor = -2)), "loss_scale_factor is -2");
    check_refused(resolved(td_sgd(.use_ema = TD_YES, .ema_momentum = TD_SET(1.5f))), "ema_momentum is 1.5");
    check_refused(resolved(td_sgd(.ema_overwrite_frequency = -3)), "ema_overwrite_frequency is -3");
    check_refused((td_optimizer){0}, "there is none of number 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loss_names),   cmocka_unit_test(public_losses),   cmocka_unit_test(target_shapes),
        cmocka_unit_test(metric_names), cmocka_unit_test(optimizer_slots), cmocka_unit_test(optimizer_checks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
