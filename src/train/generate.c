/* generate.c - td_generate: a model of characters continues a text.
 *
 * The window holds the characters seen last, from its begin on. What stands behind the newest is 0 and does not matter:
 * a model that was taught each character's next one by its position's scores cannot look ahead. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/utf8.h"
#include "train/epoch_run.h"

typedef struct candidate {
    double score; /* the logarithm of its probability, up to a constant */
    int number;
} candidate;

typedef struct writer {
    const td_generate_args *args;
    td_model *model;
    uint32_t *alphabet; /* [count] */
    int count;
    int64_t window, rows, classes;
    float *x, *scores; /* [rows, window], alike in all rows; [rows, window, classes] */
    int64_t seen;      /* characters in the window */
    bool steps;        /* each character is shown once, and states remember it */
    candidate *ranked; /* [count] */
    tdi_random random;
} writer;

/* ---- the alphabet ---- */

static td_status take_alphabet(writer *w, tdi_error *error)
{
    const char *recipe = w->args->recipe ? w->args->recipe : w->model->recipe;
    w->count = td_recipe_characters(recipe, NULL, 0);
    if (!w->count)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "model \"%s\" knows no characters: it writes once td_fit has trained it on text (file.txt)",
                        w->model->architecture->name);
    w->alphabet = malloc((size_t)w->count * sizeof *w->alphabet);
    w->ranked = malloc((size_t)w->count * sizeof *w->ranked);
    if (!w->alphabet || !w->ranked)
        return tdi_no_memory(error);
    td_recipe_characters(recipe, w->alphabet, w->count);
    for (int i = 0; i < w->count; i++)
        if (w->alphabet[i] >= TDI_CHARACTERS)
            return tdi_fail(error, TD_BAD_FILE, "model \"%s\": its character %d cannot be: %u",
                            w->model->architecture->name, i, w->alphabet[i]);
    return TD_OK;
}

/* The character's index in the alphabet; -1: it is not there. */
static int number_of(const writer *w, uint32_t character)
{
    for (int i = 0; i < w->count; i++)
        if (w->alphabet[i] == character)
            return i;
    return -1;
}

/* ---- the model ---- */

static td_status check_model(const writer *w, tdi_error *error)
{
    const td_model *model = w->model;
    const td_shape *x = &model->architecture->inputs[0]->shape, *y = &model->architecture->outputs[0]->shape;
    char seen[2][TDI_SHAPE_TEXT];
    bool one = model->architecture->n_inputs == 1 && model->architecture->n_outputs == 1;
    if (!one || x->rank != 1 || y->rank != 2 || y->dim[0] != x->dim[0] || y->dim[1] < w->count)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "model \"%s\": %d inputs, the first %s, and %d outputs, the first %s; characters [window] and "
                        "each one's next, scores [window, %d], were expected",
                        model->architecture->name, model->architecture->n_inputs, tdi_shape_text(x, seen[0]),
                        model->architecture->n_outputs, tdi_shape_text(y, seen[1]), w->count);
    tdi_loss_kind loss = model->compiled.outputs[0].loss.kind;
    if (loss == TDI_LOSS_SPARSE_CATEGORICAL || loss == TDI_LOSS_CATEGORICAL)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT,
                    "model \"%s\": its loss is no categorical cross-entropy, so that its scores choose no character; "
                    "compile it with one",
                    model->architecture->name);
}

static td_status take_model(writer *w, tdi_error *error)
{
    const td_model *model = w->model;
    TDI_TRY(check_model(w, error));
    w->window = model->architecture->inputs[0]->shape.dim[0];
    w->classes = model->architecture->outputs[0]->shape.dim[1];
    w->rows = tdi_model_is_stateful(model) ? tdi_model_batch_size(model, 0) : 1;
    w->steps = tdi_model_is_stateful(model) && w->window == 1;
    w->x = calloc((size_t)(w->rows * w->window), sizeof *w->x);
    w->scores = malloc((size_t)(w->rows * w->window * w->classes) * sizeof *w->scores);
    return w->x && w->scores ? TD_OK : tdi_no_memory(error);
}

static td_status put(const writer *w, const char *text, tdi_error *error)
{
    FILE *output = w->args->output;
    if (fputs(text, output) != EOF && fflush(output) == 0)
        return TD_OK;
    return tdi_fail(error, TD_IO, "the text cannot be written: %s", strerror(errno));
}

/* ---- reading ---- */

static void put_in_window(writer *w, int number)
{
    if (w->seen == w->window)
        memmove(w->x, w->x + 1, (size_t)--w->seen * sizeof *w->x);
    w->x[w->seen++] = (float)number;
    for (int64_t row = 1; row < w->rows; row++)
        memcpy(w->x + row * w->window, w->x, (size_t)w->window * sizeof *w->x);
}

static td_status look(writer *w)
{
    if (!w->steps)
        td_reset_states(w->model);
    return td_predict_on_batch(w->model, w->rows, w->x, w->scores);
}

/* Shows characters to the model; the scores are those behind the last one. */
static td_status see(writer *w, int number, bool last)
{
    put_in_window(w, number);
    return w->steps || last ? look(w) : TD_OK;
}

/* An empty prompt becomes the begin of a line. */
static const char *prompt_of(const writer *w, char begin[TDI_UTF8_SIZE])
{
    if (w->args->prompt && *w->args->prompt)
        return w->args->prompt;
    tdi_utf8_encode(number_of(w, '\n') >= 0 ? '\n' : w->alphabet[0], begin);
    return begin;
}

static td_status next_of_prompt(const writer *w, const char **at, int position, int *number, tdi_error *error)
{
    uint32_t character;
    char bytes[TDI_UTF8_SIZE];
    int taken = tdi_utf8_decode(*at, strlen(*at), &character);
    if (!taken)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "prompt: character %d, byte 0x%02x, is no UTF-8", position,
                        (unsigned char)**at);
    tdi_utf8_encode(character, bytes);
    *at += taken;
    *number = number_of(w, character);
    if (*number >= 0)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT,
                    "prompt: character %d, U+%04X%s%s%s, is none of the %d that the model was trained on; leave it out",
                    position, character, character < ' ' ? "" : " '", character < ' ' ? "" : bytes,
                    character < ' ' ? "" : "'", w->count);
}

/* Checks the whole prompt before the model sees any of it. */
static td_status read_prompt(writer *w, tdi_error *error)
{
    char begin[TDI_UTF8_SIZE];
    const char *prompt = prompt_of(w, begin);
    int number = 0, position = 0;
    for (const char *at = prompt; *at; position++)
        TDI_TRY(next_of_prompt(w, &at, position, &number, error));
    if (w->args->echo == TD_YES)
        TDI_TRY(put(w, prompt, error));
    td_reset_states(w->model);
    if (!*prompt) /* a line's begin that is U+0000 */
        return see(w, 0, true);
    for (const char *at = prompt; *at;) {
        next_of_prompt(w, &at, 0, &number, error);
        TDI_TRY(see(w, number, !*at));
    }
    return TD_OK;
}

/* ---- writing ---- */

/* Orders by likelihood; equals by their index. */
static int by_score(const void *a, const void *b)
{
    const candidate *one = a, *other = b;
    if (one->score != other->score)
        return one->score < other->score ? 1 : -1;
    return one->number - other->number;
}

static td_status rank(writer *w, tdi_error *error)
{
    const float *scores = w->scores + (w->seen - 1) * w->classes;
    bool logits = w->model->compiled.outputs[0].loss.from_logits, good = true;
    for (int i = 0; i < w->count; i++) {
        w->ranked[i] = (candidate){logits ? (double)scores[i] : log((double)scores[i]), i};
        good = good && !isnan(w->ranked[i].score);
    }
    qsort(w->ranked, (size_t)w->count, sizeof *w->ranked, by_score);
    if (good && isfinite(w->ranked[0].score))
        return TD_OK;
    return tdi_fail(error, TD_NOT_FINITE, "model \"%s\": its scores of the next character are not finite numbers",
                    w->model->architecture->name);
}

/* Draws a character with probabilities ~ exp(score / temperature). */
static int choose(writer *w)
{
    double temperature = w->args->temperature.is_set ? (double)w->args->temperature.value : 1;
    int among = w->args->top_k && w->args->top_k < w->count ? w->args->top_k : w->count;
    const candidate *ranked = w->ranked;
    double sum = 0, before = 0;
    if (temperature == 0)
        return ranked[0].number;
    for (int i = 0; i < among; i++)
        sum += exp((ranked[i].score - ranked[0].score) / temperature);
    double at = sum * tdi_random_uniform(&w->random);
    for (int i = 0; i < among; i++) {
        before += exp((ranked[i].score - ranked[0].score) / temperature);
        if (at < before)
            return ranked[i].number;
    }
    return ranked[0].number;
}

static td_status write_on(writer *w, tdi_error *error)
{
    char bytes[TDI_UTF8_SIZE];
    for (int64_t i = 0; i < w->args->length; i++) {
        if (atomic_load(&w->model->context->stop))
            return TD_STOPPED;
        TDI_TRY(rank(w, error));
        int number = choose(w);
        tdi_utf8_encode(w->alphabet[number], bytes);
        TDI_TRY(put(w, bytes, error));
        TDI_TRY(see(w, number, i + 1 < w->args->length));
    }
    return TD_OK;
}

static td_status check_arguments(const td_generate_args *args, tdi_error *error)
{
    if (args->guard)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "td_generate takes three arguments; give the rest by name");
    if (args->length < 0 || args->top_k < 0)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "length is %lld and top_k %d; neither can be negative",
                        (long long)args->length, args->top_k);
    if (args->temperature.is_set && !(args->temperature.value >= 0 && isfinite(args->temperature.value)))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "temperature: %g; a finite number of at least 0 was expected",
                        (double)args->temperature.value);
    return args->output ? TD_OK : tdi_fail(error, TD_INVALID_ARGUMENT, "output: a FILE to write to was expected");
}

static td_status generate(writer *w, tdi_error *error)
{
    uint64_t seed = w->args->seed ? w->args->seed : w->model->state->seed;
    tdi_context_heed_stops(w->model->context);
    TDI_TRY(check_arguments(w->args, error));
    TDI_TRY(take_alphabet(w, error));
    TDI_TRY(take_model(w, error));
    w->random = tdi_random_create(seed, 0);
    TDI_TRY(read_prompt(w, error));
    return write_on(w, error);
}

td_status td_generate_(const td_generate_args *args)
{
    writer w = {.args = args, .model = args->model};
    tdi_error error = {0};
    td_status status = w.model ? generate(&w, &error) : TD_INVALID_ARGUMENT;
    free(w.alphabet);
    free(w.ranked);
    free(w.x);
    free(w.scores);
    return w.model ? tdi_report(w.model, &args->at, status, &error) : status;
}
