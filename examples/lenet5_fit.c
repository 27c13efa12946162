/* lenet5_fit.c - LeNet-5 built layer by layer, trained on MNIST by td_fit, saved as a file that Keras opens.
 *
 *     lenet5_fit [EPOCHS [STEPS_PER_EPOCH [OUTPUT.keras]]]          5 epochs of all steps, to lenet5.keras */
#include <stdio.h>
#include <stdlib.h>
#include <tandem/tandem.h>

int main(int argc, char **argv)
{
    int epochs = argc > 1 ? atoi(argv[1]) : 5;
    int steps = argc > 2 ? atoi(argv[2]) : 0; /* 0: as many as the data gives */
    const char *output = argc > 3 ? argv[3] : "lenet5.keras";

    td_context *ctx = td_context_create(NULL);
    td_tensor *x = td_input(ctx, TD_SHAPE(28, 28, 1));
    td_tensor *y = td_conv2d(x, 6, 5, .activation = TD_TANH, .padding = TD_SAME);
    y = td_average_pooling2d(y, 2);
    y = td_conv2d(y, 16, 5, .activation = TD_TANH);
    y = td_average_pooling2d(y, 2);
    y = td_flatten(y);
    y = td_dense(y, 120, .activation = TD_TANH);
    y = td_dense(y, 84, .activation = TD_TANH);
    y = td_dense(y, 10);

    td_model *lenet = td_model_create(x, y, .name = "lenet5");
    td_compile(lenet, .optimizer = td_adam(.learning_rate = 1e-3f),
               .loss = TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, .metrics = TD_METRICS(TD_ACCURACY),
               .strategy = td_mirrored("cpu:0,cpu:1"));
    td_fit(lenet, td_mnist("train"), .epochs = epochs, .steps_per_epoch = steps, .batch_size = 64,
           .validation = td_mnist("test"), .progress = stdout);
    td_save(lenet, output);

    int failed = td_failed(ctx);
    if (failed)
        fprintf(stderr, "%s\n", td_error(ctx));
    td_context_free(ctx);
    return failed;
}
