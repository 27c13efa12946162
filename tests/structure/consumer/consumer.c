/* consumer.c - a user's program: builds a model, so that most of the library is linked. */
#include <stdio.h>
#include <tandem/tandem.h>

int main(void)
{
    td_context *context = td_context_create(NULL);
    td_tensor *x = td_input(context, TD_SHAPE(4));
    td_model *model = td_model_create(x, td_dense(x, 2), .seed = 1);
    if (td_failed(context) || !model)
        return fprintf(stderr, "%s\n", td_error(context)), 1;
    printf("tandem %s, %d weights\n", td_version(), td_weight_count(model));
    td_context_free(context);
    return 0;
}
