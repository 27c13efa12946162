/* char_lstm.c - a character LSTM learns a text and writes on: each character from those before it.
 *
 *     char_lstm TEXT.txt [EPOCHS [STEPS_PER_EPOCH [OUTPUT.keras]]]          10 epochs of all steps, to char_lstm.keras
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <tandem/tandem.h>

enum { WINDOW = 100, UNITS = 256, MOST = 4096, WRITTEN = 600 };

static td_model *writer(td_context *ctx, int characters)
{
    td_tensor *x = td_input(ctx, TD_SHAPE(WINDOW), .dtype = TD_INT32);
    td_tensor *y = td_lstm(td_embedding(x, characters, 64), UNITS, .return_sequences = TD_YES);
    td_model *model = td_model_create(x, td_dense(y, characters), .name = "char_lstm", .seed = 1);
    td_compile(model, .optimizer = td_adam(.learning_rate = 4e-3f),
               .loss = TD_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, .metrics = TD_METRICS(TD_ACCURACY));
    return model;
}

/* A class drawn from logits, sharpened a little. */
static int draw(const float *logits, int count)
{
    double share[MOST], sum = 0, largest = -INFINITY;
    for (int i = 0; i < count; i++)
        largest = fmax(largest, (double)logits[i]);
    for (int i = 0; i < count; i++)
        sum += share[i] = exp(((double)logits[i] - largest) / 0.7);
    double at = sum * rand() / RAND_MAX;
    for (int i = 0; i < count; i++)
        if ((at -= share[i]) <= 0)
            return i;
    return count - 1;
}

static void put_utf8(uint32_t c)
{
    int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    putchar(more ? (int)((0xf00u >> more & 0xff) | c >> 6 * more) : (int)c);
    while (more--)
        putchar((int)(0x80 | (c >> 6 * more & 0x3f)));
}

/* Goes on from the first window of the text: position `last` is the newest character's. */
static void write_on(td_context *ctx, td_model *model, td_data *text, const uint32_t *characters, int count)
{
    float window[WINDOW], *logits = malloc(sizeof *logits * WINDOW * (size_t)count);
    bool ready = logits && td_data_read(ctx, text, NULL, 1, window, NULL) == TD_OK;
    for (int i = 0; ready && i < WRITTEN; i++) {
        if (td_predict_on_batch(model, 1, window, logits) != TD_OK)
            break;
        int next = draw(logits + (WINDOW - 1) * count, count);
        put_utf8(characters[next]);
        for (int j = 1; j < WINDOW; j++)
            window[j - 1] = window[j];
        window[WINDOW - 1] = (float)next;
    }
    putchar('\n');
    free(logits);
}

int main(int argc, char **argv)
{
    static uint32_t characters[MOST];
    if (argc < 2) {
        fprintf(stderr, "usage: char_lstm TEXT.txt [EPOCHS [STEPS_PER_EPOCH [OUTPUT.keras]]]\n");
        return 2;
    }
    td_context *ctx = td_context_create(NULL);
    td_data *text = td_open(argv[1], .window = WINDOW);
    int count = td_recipe_characters(td_data_recipe(text), characters, MOST);
    if (td_data_error(text) || count > MOST) {
        fprintf(stderr, "%s\n", td_data_error(text) ? td_data_error(text) : "more than 4096 different characters");
        return 1;
    }
    td_model *model = writer(ctx, count);
    td_fit(model, td_data_retain(text), .epochs = argc > 2 ? atoi(argv[2]) : 10,
           .steps_per_epoch = argc > 3 ? atoi(argv[3]) : 0, .batch_size = 64, .progress = stdout);
    td_save(model, argc > 4 ? argv[4] : "char_lstm.keras");
    if (!td_failed(ctx))
        write_on(ctx, model, text, characters, count);
    td_data_release(text);

    int failed = td_failed(ctx);
    if (failed)
        fprintf(stderr, "%s\n", td_error(ctx));
    td_context_free(ctx);
    return failed;
}
