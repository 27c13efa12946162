/* char_lstm.c - a character LSTM learns a text and continues it, each character from those before it.
 *
 *     char_lstm TEXT.txt [EPOCHS [STEPS_PER_EPOCH [OUTPUT.keras [CHARACTERS]]]]
 *
 * 10 epochs of all steps, to char_lstm.keras; then 600 characters. */
#include <stdio.h>
#include <stdlib.h>
#include <tandem/tandem.h>

enum { WINDOW = 100, UNITS = 256 };

static td_model *writer(td_context *ctx, int characters)
{
    td_tensor *x = td_input(ctx, TD_SHAPE(WINDOW), .dtype = TD_INT32);
    td_tensor *y = td_lstm(td_embedding(x, characters, 64), UNITS, .return_sequences = TD_YES);
    td_model *model = td_model_create(x, td_dense(y, characters), .name = "char_lstm", .seed = 1);
    td_compile(model, .optimizer = td_adam(.learning_rate = 4e-3f),
               .loss = TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, .metrics = TD_METRICS(TD_ACCURACY));
    return model;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: char_lstm TEXT.txt [EPOCHS [STEPS_PER_EPOCH [OUTPUT.keras [CHARACTERS]]]]\n");
        return 2;
    }
    td_context *ctx = td_context_create(NULL);
    td_data *text = td_open(argv[1], .window = WINDOW);
    if (td_data_error(text)) {
        fprintf(stderr, "%s\n", td_data_error(text));
        return 1;
    }
    td_model *model = writer(ctx, td_recipe_characters(td_data_recipe(text), NULL, 0));
    td_fit(model, text, .epochs = argc > 2 ? atoi(argv[2]) : 10, .steps_per_epoch = argc > 3 ? atoi(argv[3]) : 0,
           .batch_size = 64, .progress = stdout);
    td_save(model, argc > 4 ? argv[4] : "char_lstm.keras");
    if (!td_failed(ctx))
        td_generate(model, NULL, argc > 5 ? atoi(argv[5]) : 600, .temperature = TD_SET(0.7f), .output = stdout);
    putchar('\n');

    int failed = td_failed(ctx);
    if (failed)
        fprintf(stderr, "%s\n", td_error(ctx));
    td_context_free(ctx);
    return failed;
}
