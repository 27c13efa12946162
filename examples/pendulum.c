/* pendulum.c - a network learns where a pendulum will be a moment later. Samples come from a simulation in the program,
 * not from a file. Training samples are measured with noise, which is drawn anew each epoch.
 *
 *     pendulum [EPOCHS [OUTPUT.keras]]          10 epochs, to pendulum.keras */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tandem/tandem.h>

enum { STATE = 2, TRAINED = 8192, KEPT = 1024 }; /* angle and speed, in radians and radians per second */

static const double gravity_over_length = 9.81, moment = 0.1 /* seconds */, noise = 0.01;

/* A draw from [0, 1) that depends on `number` alone (SplitMix64). */
static double uniform(uint64_t number)
{
    uint64_t mixed = number * UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((mixed ^ mixed >> 31) >> 11) * 0x1p-53;
}

static void swing(const float *from, float *to)
{
    enum { PIECES = 100 };
    double angle = (double)from[0], speed = (double)from[1], piece = moment / PIECES;
    for (int i = 0; i < PIECES; i++) {
        speed -= gravity_over_length * sin(angle) * piece;
        angle += speed * piece;
    }
    to[0] = (float)angle;
    to[1] = (float)speed;
}

/* Makes sample number `sample`: a pendulum released at a random place. */
static td_status simulate(void *user, int64_t sample, void *const *x, void *const *y)
{
    uint64_t draw = 2 * (uint64_t)(sample + *(const int64_t *)user);
    float state[STATE] = {(float)(3 * uniform(draw) - 1.5), (float)(6 * uniform(draw + 1) - 3)};
    for (int i = 0; x[0] && i < STATE; i++)
        ((float *)x[0])[i] = state[i];
    if (y[0])
        swing(state, y[0]);
    return TD_OK;
}

static td_status measure(void *user, const td_map_sample *sample)
{
    (void)user;
    float *to = sample->to_x[0];
    for (int i = 0; i < STATE; i++) {
        double error = sample->training ? noise * (2 * uniform(sample->key + (uint64_t)i) - 1) : 0;
        to[i] = sample->x[0][i] + (float)error;
    }
    return TD_OK;
}

static td_data *pendulums(int64_t *first, int64_t samples)
{
    td_data *data =
        td_generator(TD_SHAPE(STATE), .y_shape = TD_SHAPE(STATE), .read = simulate, .samples = samples, .user = first);
    return td_map(data, .function = measure, .random = TD_YES);
}

int main(int argc, char **argv)
{
    int64_t first = 0, behind = TRAINED;
    td_logs logs = {0};
    td_context *ctx = td_context_create(NULL);
    td_tensor *x = td_input(ctx, TD_SHAPE(STATE));
    td_tensor *y = td_dense(td_dense(x, 32, .activation = TD_TANH), 32, .activation = TD_TANH);
    td_model *model = td_model_create(x, td_dense(y, STATE), .name = "pendulum", .seed = 1);
    td_compile(model, .optimizer = td_adam(.learning_rate = 3e-3f), .loss = TD_MEAN_SQUARED_ERROR);
    td_fit(model, pendulums(&first, TRAINED), .epochs = argc > 1 ? atoi(argv[1]) : 10,
           .validation = pendulums(&behind, KEPT), .progress = stdout);
    td_evaluate(model, pendulums(&behind, KEPT), &logs);
    td_save(model, argc > 2 ? argv[2] : "pendulum.keras");

    int failed = td_failed(ctx);
    if (failed)
        fprintf(stderr, "%s\n", td_error(ctx));
    else
        printf("Root mean squared error of the next angle and speed: %.4f\n", sqrt(logs.entry[0].value));
    td_context_free(ctx);
    return failed;
}
