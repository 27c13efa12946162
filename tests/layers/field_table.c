/* field_table.c - the tables of fields against the configurations that Keras writes: every key, in order, with its
 * default.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "golden.h"
#include "layers/layer.h"
#include "layers/optimizers.h"

static void check_initializer(const td_initializer *initializer, const json_t *json)
{
    const char *class_name = json_string_value(json_object_get(json, "class_name"));
    assert_string_equal(tdi_initializer_class(initializer->kind), class_name);
    assert_int_equal(initializer->seed, 0);
}

static void check_size(const td_size *size, const json_t *json)
{
    assert_int_equal(size->height, json_integer_value(json_array_get(json, 0)));
    assert_int_equal(size->width, json_integer_value(json_array_get(json, 1)));
}

static void check_sides(const td_sides *sides, const json_t *json)
{
    json_t *mine = json_pack("[[i, i], [i, i]]", sides->top, sides->bottom, sides->left, sides->right);
    assert_true(json_equal(mine, json));
    json_decref(mine);
}

/* A batch_shape has a null in front. */
static void check_shape(const td_shape *shape, const json_t *json)
{
    size_t skip = json_is_null(json_array_get(json, 0)) ? 1 : 0;
    assert_int_equal(shape->rank, json_array_size(json) - skip);
    for (int i = 0; i < shape->rank; i++)
        assert_int_equal(shape->dim[i], json_integer_value(json_array_get(json, (size_t)i + skip)));
}

static void check_fixed(const char *text, const json_t *json)
{
    json_t *known = json_loads(text, JSON_DECODE_ANY, NULL);
    assert_non_null(known);
    assert_true(json_equal(known, json));
    json_decref(known);
}

static void check_value(const tdi_field *field, const void *args, const json_t *json)
{
    const void *value = (const char *)args + field->offset;
    switch (field->kind) {
    case TDI_FIELD_INT:
        assert_int_equal(*(const int *)value, json_integer_value(json));
        break;
    case TDI_FIELD_INT64:
        assert_int_equal(*(const int64_t *)value, json_integer_value(json));
        break;
    case TDI_FIELD_FLOAT:
        assert_true(*(const float *)value == (float)json_real_value(json));
        break;
    case TDI_FIELD_OPTIONAL:
        assert_true(((const td_optional *)value)->is_set);
        assert_true(((const td_optional *)value)->value == (float)json_real_value(json));
        break;
    case TDI_FIELD_IF_SET:
        assert_true(json_is_null(json) && !((const td_optional *)value)->is_set);
        break;
    case TDI_FIELD_NULLABLE:
        assert_true(json_is_null(json) && *(const float *)value == 0);
        break;
    case TDI_FIELD_COUNT:
        assert_true(json_is_null(json) && *(const int *)value == 0);
        break;
    case TDI_FIELD_CHOICE:
        assert_int_equal(*(const td_choice *)value, json_is_true(json) ? TD_YES : TD_NO);
        break;
    case TDI_FIELD_SIZE:
        check_size(value, json);
        break;
    case TDI_FIELD_SIDES:
        check_sides(value, json);
        break;
    case TDI_FIELD_SHAPE:
        check_shape(value, json);
        break;
    case TDI_FIELD_ACTIVATION:
        assert_string_equal(tdi_activation_name((int)*(const td_activation *)value), json_string_value(json));
        break;
    case TDI_FIELD_PADDING:
        assert_string_equal(*(const td_padding *)value == TD_SAME ? "same" : "valid", json_string_value(json));
        break;
    case TDI_FIELD_INTERPOLATION:
        assert_string_equal(*(const td_interpolation *)value == TD_BILINEAR ? "bilinear" : "nearest",
                            json_string_value(json));
        break;
    case TDI_FIELD_WORD: /* the first is the default */
        assert_int_equal(*(const unsigned *)value, 0);
        assert_true(strncmp(field->text, json_is_null(json) ? "null" : json_string_value(json), 4) == 0);
        break;
    case TDI_FIELD_INITIALIZER:
        check_initializer(value, json);
        break;
    case TDI_FIELD_CLASS:
        assert_true(json_is_null(json) && !((const td_optional *)value)->is_set);
        break;
    case TDI_FIELD_REGULARIZER:
        assert_true(json_is_null(json) && ((const td_regularizer *)value)->l1 == 0);
        break;
    case TDI_FIELD_SEED:
        assert_true(json_is_null(json) && *(const int64_t *)value == 0);
        break;
    case TDI_FIELD_FIXED:
        check_fixed(field->text, json);
        break;
    case TDI_FIELD_IGNORED: /* of Keras 2 */
    case TDI_FIELD_END:
        fail();
    }
}

static void check_table(const tdi_field *fields, const void *args, const char *golden)
{
    json_t *config = json_loads(golden, 0, NULL);
    const char *key;
    json_t *json;
    assert_non_null(config);
    json_object_foreach(config, key, json)
    {
        assert_string_equal(fields->key, key);
        check_value(fields, args, json);
        fields++;
    }
    while (fields->kind == TDI_FIELD_IGNORED)
        fields++;
    assert_int_equal(fields->kind, TDI_FIELD_END);
    json_decref(config);
}

/* Layers made as the script makes them; each test frees its context. */
static void check_layer(td_context *context, td_tensor *tensor, const char *golden)
{
    assert_string_equal(td_error(context), "");
    const tdi_layer *layer = tensor->site->layer;
    assert_ptr_equal(tdi_layer_type_find(layer->type->class_name), layer->type);
    check_table(layer->type->fields, layer->args, golden);
}

static void tables_are_keras(void **state)
{
    (void)state;
    td_context *context = td_context_create(NULL);
    td_tensor *x = td_input(context, TD_SHAPE(8, 8, 3)), *v = td_input(context, TD_SHAPE(5));
    check_layer(context, x, golden_InputLayer);
    check_layer(context, td_dense(v, 7), golden_Dense);
    check_layer(context, td_conv2d(x, 7, 3), golden_Conv2D);
    check_layer(context, td_max_pooling2d(x), golden_MaxPooling2D);
    check_layer(context, td_average_pooling2d(x), golden_AveragePooling2D);
    check_layer(context, td_global_average_pooling2d(x), golden_GlobalAveragePooling2D);
    check_layer(context, td_flatten(x), golden_Flatten);
    check_layer(context, td_reshape(x, TD_SHAPE(24, -1)), golden_Reshape);
    check_layer(context, td_activation_layer(x, TD_LINEAR), golden_Activation);
    check_layer(context, td_dropout(x, 0.25f), golden_Dropout);
    check_layer(context, td_add(TD_TENSORS(x, x)), golden_Add);
    check_layer(context, td_concatenate(TD_TENSORS(x, x)), golden_Concatenate);
    check_layer(context, td_batch_normalization(x), golden_BatchNormalization);
    check_layer(context, td_lstm(td_input(context, TD_SHAPE(6, 5)), 7), golden_LSTM);
    check_layer(context, td_zero_padding2d(x, 0, .sides = TD_SIDES(1, 2, 3, 4)), golden_ZeroPadding2D);
    check_layer(context, td_relu(x), golden_ReLU);
    check_layer(context, td_softmax(x), golden_Softmax);
    check_layer(context, td_embedding(td_input(context, TD_SHAPE(5), .dtype = TD_INT32), 9, 4), golden_Embedding);
    check_layer(context, td_up_sampling2d(x), golden_UpSampling2D);
    check_layer(context, td_normalization(v), golden_Normalization);
    td_context_free(context);
}

static void check_optimizer(td_optimizer optimizer, const char *golden)
{
    const tdi_config_type *type = tdi_config_type_of(tdi_optimizer_types, optimizer.kind);
    tdi_fields_resolve(type->fields, &optimizer);
    check_table(type->fields, &optimizer, golden);
}

static void optimizer_tables_are_keras(void **state)
{
    (void)state;
    check_optimizer((td_optimizer){.kind = TD_OPTIMIZER_SGD}, golden_SGD);
    check_optimizer((td_optimizer){.kind = TD_OPTIMIZER_ADAM}, golden_Adam);
}

static void what_is_set_stays(void **state)
{
    (void)state;
    td_optimizer adam = td_adam(.beta_1 = TD_SET(0.0f), .amsgrad = TD_YES, .learning_rate = 0.5f);
    tdi_fields_resolve(tdi_config_type_of(tdi_optimizer_types, adam.kind)->fields, &adam);
    assert_true(adam.beta_1.value == 0 && adam.beta_2.value == 0.999f);
    assert_true(adam.amsgrad == TD_YES && adam.learning_rate == 0.5f);
    td_dense_args dense = {.use_bias = TD_NO, .kernel_initializer = {.kind = TD_RANDOM_UNIFORM, .b = 2}};
    tdi_fields_resolve(tdi_layer_type_dense.fields, &dense);
    assert_int_equal(dense.use_bias, TD_NO);
    assert_true(dense.kernel_initializer.a == 0 && dense.kernel_initializer.b == 2);
    dense.kernel_initializer = (td_initializer){.kind = TD_RANDOM_UNIFORM};
    tdi_fields_resolve(tdi_layer_type_dense.fields, &dense);
    assert_true(dense.kernel_initializer.a == -0.05f && dense.kernel_initializer.b == 0.05f);
    td_conv2d_args conv = {.kernel = {3, 2}, .strides = {2, 0}};
    tdi_fields_resolve(tdi_layer_type_conv2d.fields, &conv);
    assert_true(conv.strides.height == 2 && conv.strides.width == 1 && conv.kernel.width == 2);
}

static void zero_and_default(void **state)
{
    (void)state;
    const tdi_field *axis = tdi_layer_type_concatenate.fields, *units = tdi_layer_type_dense.fields;
    assert_true(tdi_field_zero_is_default(axis));
    assert_false(tdi_field_zero_is_default(units));
    assert_false(tdi_field_zero_is_default(tdi_layer_type_dropout.fields));
}

static void names_both_ways(void **state)
{
    (void)state;
    for (int i = 0; i < TD_ACTIVATION_COUNT; i++)
        assert_int_equal(tdi_activation_parse(tdi_activation_name(i)), i);
    for (int i = TD_ZEROS; i < TD_INITIALIZER_COUNT; i++)
        assert_int_equal(tdi_initializer_parse(tdi_initializer_class((td_initializer_kind)i)), i);
    assert_int_equal(tdi_activation_parse("swish"), TD_SILU);
    assert_int_equal(tdi_initializer_parse("he_normal"), TD_HE_NORMAL);
    assert_int_equal(tdi_activation_parse("sparsemax"), -1);
    assert_int_equal(tdi_initializer_parse("IdentityInitializer"), TD_IDENTITY);
    assert_int_equal(tdi_initializer_parse("STFT"), -1);
    assert_null(tdi_activation_name(-1));
    assert_null(tdi_activation_name(TD_ACTIVATION_COUNT));
    assert_null(tdi_initializer_class(TD_INIT_DEFAULT));
    assert_null(tdi_layer_type_find("Lambda"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_keras),  cmocka_unit_test(optimizer_tables_are_keras),
        cmocka_unit_test(what_is_set_stays), cmocka_unit_test(zero_and_default),
        cmocka_unit_test(names_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
