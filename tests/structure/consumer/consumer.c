/* consumer.c - a user's program: trains a model, so that the library is linked with what it needs. */
#include <stdio.h>
#include <tandem/tandem.h>

int main(void)
{
    td_context *context = td_context_create(NULL);
    td_tensor *x = td_input(context, TD_SHAPE(4));
    td_model *model = td_model_create(x, td_dense(x, 1), .seed = 1);
    td_compile(model, .optimizer = td_sgd(.learning_rate = 0.1f), .loss = TD_MEAN_SQUARED_ERROR);
    td_train_on_batch(model, 1, (float[]){1, 2, 3, 4}, (float[]){5}, NULL);
    if (td_failed(context) || !model)
        return fprintf(stderr, "%s\n", td_error(context)), 1;
    printf("tandem %s, %d weights\n", td_version(), td_weight_count(model));
    td_context_free(context);
    return 0;
}
