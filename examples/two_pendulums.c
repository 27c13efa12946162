/* two_pendulums.c - processes that each simulate pendulums of their own train one network in step.
 *
 *     tandem launch -n 2 -- build/examples/two_pendulums [STEPS [OUTPUT.keras]]      500 steps, to two_pendulums.keras
 *
 * On several hosts start it on each, with TF_CONFIG and TANDEM_SECRET_FILE set (docs/cluster.md). Every process brings
 * its own rows to each step; gradients are summed over all of them, so that all have the same weights all the time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tandem/cluster.h>
#include <tandem/tandem.h>

enum { STATE = 2, ROWS = 64 }; /* angle and speed, in radians and radians per second; rows of each process */

static const double gravity_over_length = 9.81, moment = 0.1 /* seconds */;

/* Where a pendulum of this state will be a moment later. */
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

static float uniform(unsigned *seed, float most)
{
    return most * (2 * (float)rand_r(seed) / (float)RAND_MAX - 1);
}

static void simulate(unsigned *seed, float x[ROWS][STATE], float y[ROWS][STATE])
{
    for (int row = 0; row < ROWS; row++) {
        x[row][0] = uniform(seed, 1.5f);
        x[row][1] = uniform(seed, 3);
        swing(x[row], y[row]);
    }
}

static td_model *make_network(td_context *context, td_cluster *cluster)
{
    td_tensor *in = td_input(context, TD_SHAPE(STATE));
    td_tensor *hidden = td_dense(td_dense(in, 32, .activation = TD_TANH), 32, .activation = TD_TANH);
    td_model *network = td_model_create(in, td_dense(hidden, STATE), .name = "pendulums");
    td_compile(network, .optimizer = td_adam(.learning_rate = 3e-3f), .loss = TD_MEAN_SQUARED_ERROR,
               .strategy = td_multi_worker(cluster, "cpu:0"));
    return network;
}

/* Called by a thread of the cluster's. */
static void tell(void *user, const td_cluster_event *event)
{
    (void)user;
    if (event->kind == TD_CLUSTER_LOST)
        fprintf(stderr, "after %.1f s: %s\n", event->seconds, event->sentence);
}

static void train(td_model *network, const td_cluster *cluster, int steps)
{
    static float x[ROWS][STATE], y[ROWS][STATE];
    unsigned seed = (unsigned)td_cluster_task(cluster) + 1; /* so that no two processes simulate the same */
    td_logs logs;
    for (int step = 1; step <= steps; step++) {
        simulate(&seed, x, y);
        if (td_train_on_batch(network, ROWS, x[0], y[0], &logs) != TD_OK)
            return;
        if (td_cluster_is_chief(cluster) && step % 100 == 0)
            printf("step %d: loss %.6f over the %d rows of all\n", step, logs.entry[0].value,
                   ROWS * td_cluster_size(cluster));
    }
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 500;
    const char *output = argc > 2 ? argv[2] : "two_pendulums.keras";
    td_context *context = td_context_create(NULL);
    td_cluster *cluster = td_cluster_open(context, .on_event = tell);
    if (cluster) {
        td_model *network = make_network(context, cluster);
        train(network, cluster, steps);
        if (!td_failed(context) && td_cluster_is_chief(cluster) && td_save(network, output) == TD_OK)
            printf("saved %s\n", output);
    }
    int failed = td_failed(context);
    if (failed)
        fprintf(stderr, "%s\n", td_error(context));
    td_cluster_close(cluster);
    td_context_free(context);
    return failed;
}
