/* new.c - `tandem new`: writes a predefined model with fresh weights. */
#include <stdio.h>
#include <string.h>

#include "nearest_word.h"
#include "options.h"
#include "output_path.h"
#include "session.h"

enum { ARCHITECTURES = 6 };

static const char *const architectures[ARCHITECTURES] = {"mlp", "lenet5", "cifar", "resnet20", "lstm", "char_lstm"};

static int check_architecture(const char *name)
{
    for (int i = 0; i < ARCHITECTURES; i++)
        if (strcmp(name, architectures[i]) == 0)
            return TOOL_DONE;
    const char *near = nearest_word(name, architectures, ARCHITECTURES);
    return tool_refuse("expected mlp, lenet5, cifar, resnet20, lstm or char_lstm, got '%s'; try tandem new %s", name,
                       near ? near : "mlp");
}

static int check_zero_gamma(const struct options *options)
{
    if (!options->zero_gamma || strcmp(options->argument, "resnet20") == 0)
        return TOOL_DONE;
    return tool_refuse("--zero-gamma: %s has no residual blocks; it goes with resnet20", options->argument);
}

static int check_sizes(const struct options *options)
{
    bool lstm = strcmp(options->argument, "lstm") == 0;
    if (lstm || (!options->steps && !options->outputs))
        return TOOL_DONE;
    return tool_refuse("--%s: the sizes of %s are fixed; it goes with lstm, as in tandem new lstm --shape 50x8",
                       options->steps ? "shape" : "outputs", options->argument);
}

static bool reads_text(const struct options *options)
{
    return strcmp(options->argument, "char_lstm") == 0;
}

static int check_text(const struct options *options)
{
    if (reads_text(options) && !options->text)
        return tool_refuse("--text: expected the text whose characters the model is to know, got none; try tandem new "
                           "char_lstm --text book.txt");
    if (reads_text(options) || (!options->text && !options->window))
        return TOOL_DONE;
    return tool_refuse("--%s: %s reads no text; it goes with char_lstm, as in tandem new char_lstm --text book.txt",
                       options->text ? "text" : "window", options->argument);
}

static int count_characters(const struct options *options, int *characters)
{
    td_data *data;
    int status =
        session_data(options, &(struct request){.option = "text", .path = options->text, .role = TD_TRAIN}, &data);
    if (status != TOOL_DONE)
        return status;
    *characters = td_recipe_characters(td_data_recipe(data), NULL, 0);
    td_data_release(data);
    return *characters ? TOOL_DONE : tool_refuse("--text: expected a text, FILE.txt, got '%s'", options->text);
}

static td_model *make(const struct options *options, td_context *context, int characters)
{
    uint64_t seed = (uint64_t)options->seed;
    if (reads_text(options))
        return td_new_char_lstm(context, characters, options->window, seed);
    if (strcmp(options->argument, "lstm") == 0)
        return td_new_lstm(context, options->steps, options->per_step, options->outputs, seed);
    if (options->zero_gamma)
        return td_new_resnet20(context, TD_YES, seed);
    return td_new(context, options->argument, seed);
}

static int create(const struct options *options, struct session *session, const char *path)
{
    int characters = 0, status = reads_text(options) ? count_characters(options, &characters) : TOOL_DONE;
    if (status == TOOL_DONE)
        status = session_open(options, session);
    if (status != TOOL_DONE)
        return status;
    session->model = make(options, session->context, characters);
    if (!session->model || td_save(session->model, path) != TD_OK)
        return session_failed(session);
    if (!options->quiet)
        printf("Saved %s: %lld parameters.\n", path, (long long)td_parameter_count(session->model, NULL));
    return TOOL_DONE;
}

static int run(const struct options *options)
{
    struct session session = {0};
    char path[OUTPUT_SIZE];
    int status = check_architecture(options->argument);
    if (status == TOOL_DONE)
        status = check_sizes(options);
    if (status == TOOL_DONE)
        status = check_zero_gamma(options);
    if (status == TOOL_DONE)
        status = check_text(options);
    if (status == TOOL_DONE)
        status = output_path(options->output, options->argument, ".keras", ".keras", path);
    if (status == TOOL_DONE)
        status = create(options, &session, path);
    session_close(&session);
    return status;
}

static const struct argp_option options[] = {
    {"output", KEY_OUTPUT, "F.keras", 0, "Where the model goes (default: NAME.keras, here)", 0},
    {"shape", KEY_SHAPE, "TxN", 0, "lstm: T steps of N numbers (default: 50x8)", 0},
    {"outputs", KEY_OUTPUTS, "N", 0, "lstm: forecast N numbers (default: 1)", 0},
    {"text", KEY_TEXT, "FILE.txt", 0, "char_lstm: the text whose characters it is to know", 0},
    {"window", KEY_WINDOW, "T", 0, "char_lstm: see T characters at a time (default: 100)", 0},
    {"zero-gamma", KEY_ZERO_GAMMA, NULL, 0,
     "resnet20: let each residual block begin as its shortcut: its last batch normalization has a gamma of 0", 0},
    {"seed", KEY_SEED, "N", 0, "Fix the initial weights (default: another model each time)", 0},
    {"quiet", KEY_QUIET, NULL, 0, "Print nothing", 0},
    OPTIONS_END};

const struct command new_command = {
    "new",
    "mlp|lenet5|cifar|resnet20|lstm|char_lstm",
    "a ready-made model to begin with", /* */
    "Writes a model with fresh weights, compiled with Adam (resnet20: with SGD, momentum 0.9, a rate of 0.1): "
    "something "
    "to train before you have a model of your own. "
    "The classifiers, and what writes, have sparse categorical cross-entropy from logits and accuracy, the forecaster "
    "mean squared error.\n\n"
    "  mlp        784-256-256-10, ReLU, for 28x28 grey images (MNIST)\n"
    "  lenet5     LeNet-5 with tanh, for 28x28 grey images (MNIST)\n"
    "  cifar      convolutions 32-64-64, for 32x32 colour images (CIFAR-10)\n"
    "  resnet20   ResNet-20 (He et al.), for 32x32 colour images (CIFAR-10)\n"
    "  lstm       an LSTM of 128 units, from series [T, N] to what comes next\n"
    "  char_lstm  an embedding and an LSTM of 256 units, from a text's characters to each one's next\v"
    "Examples:\n"
    "\n"
    "  From nothing to a trained network:\n"
    "    tandem new mlp && tandem fit mlp.keras --train mnist/ --epochs 2\n"
    "\n"
    "  The same initial weights every time:\n"
    "    tandem new lenet5 --seed 7 --output start.keras\n"
    "\n"
    "  A residual network for CIFAR-10:\n"
    "    tandem new resnet20 --zero-gamma\n"
    "    tandem fit resnet20.keras --train 'cifar10/train-*' \\\n"
    "      --validation-split 5000 --cache memory --augment flip,crop=4 \\\n"
    "      --batch-size 128 --epochs 14 --reduce-lr 2\n"
    "\n"
    "  A forecaster of 2 numbers from 24 steps of 5, x [samples, 24, 5]:\n"
    "    tandem new lstm --shape 24x5 --outputs 2\n"
    "    tandem fit lstm.keras --train series.npz --epochs 20\n"
    "\n"
    "  What writes as a book does:\n"
    "    tandem new char_lstm --text book.txt\n"
    "    tandem fit char_lstm.keras --train book.txt --batch-size 64 --epochs 10\n"
    "    tandem generate char_lstm-trained.keras --temperature 0.7\n",
    options,
    run};
