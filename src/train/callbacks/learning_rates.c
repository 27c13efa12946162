/* learning_rates.c - Keras's ReduceLROnPlateau and LearningRateScheduler. */
#include <math.h>
#include <stdlib.h>

#include "train/callbacks/monitor.h"

/* Says the next step's rate, scaled and warmed up. */
static void say_rate(td_training *training, const char *what, double rate)
{
    char line[192], product[64] = "";
    double factor = training->rate_factor;
    if (factor != 1)
        snprintf(product, sizeof product, " (%.9g times %.9g)", rate, factor);
    snprintf(line, sizeof line, "Epoch %d: %s learning rate to %.9g%s.", training->epoch + 1, what, rate * factor,
             product);
    td_training_say(training, line);
}

static td_callback *create(const td_callback_functions *functions, void *user, tdi_callback_check *check)
{
    td_callback *made = tdi_callback_checked(functions, user, check);
    if (made->error.status == TD_OK)
        made->sets_rate = true;
    return made;
}

/* ---- ReduceLROnPlateau ---- */

enum { MOST_PATIENCE = 1 << 24 }; /* a float holds every number up to here */

typedef struct plateau {
    td_reduce_lr_on_plateau_args args;
    tdi_monitor monitor;
    double factor;
    int patience, wait, cooldown;
} plateau;

static td_status plateau_check(const void *user, const td_training *training, bool open, tdi_error *error)
{
    const plateau *self = user;
    (void)error;
    tdi_monitor_check(&self->monitor, "ReduceLROnPlateau", training, true, open);
    return TD_OK;
}

static td_status plateau_begin(void *user, td_training *training)
{
    plateau *self = user;
    (void)training;
    self->monitor.has_best = false;
    self->wait = self->cooldown = 0;
    return TD_OK;
}

static td_status reduce(plateau *self, td_training *training)
{
    double rate = td_training_learning_rate(training), least = self->args.min_lr;
    if (!(rate > (double)(float)least))
        return TD_OK;
    rate = rate * self->factor > least ? rate * self->factor : least;
    self->cooldown = self->args.cooldown;
    self->wait = 0;
    if (self->args.verbose == TD_YES)
        say_rate(training, "ReduceLROnPlateau reducing", rate);
    return td_training_set_learning_rate(training, rate);
}

static td_status plateau_end(void *user, td_training *training, td_epoch *epoch)
{
    plateau *self = user;
    const double *value = tdi_monitor_value(&self->monitor, "ReduceLROnPlateau", training, &epoch->logs);
    if (!value)
        return TD_OK;
    if (self->cooldown > 0) {
        self->cooldown--;
        self->wait = 0;
    }
    if (tdi_monitor_keep(&self->monitor, *value))
        self->wait = 0;
    else if (self->cooldown == 0 && ++self->wait >= self->patience)
        return reduce(self, training);
    return TD_OK;
}

static void plateau_state(void *user, td_training *training, td_state *state)
{
    plateau *self = user;
    (void)training;
    tdi_monitor_state(&self->monitor, state);
    tdi_state_int(state, "wait", &self->wait);
    tdi_state_int(state, "cooldown", &self->cooldown);
}

td_callback *td_reduce_lr_on_plateau_(const td_reduce_lr_on_plateau_args *args)
{
    static const td_callback_functions functions = {.train_begin = plateau_begin,
                                                    .epoch_end = plateau_end,
                                                    .release = free,
                                                    .name = "ReduceLROnPlateau",
                                                    .state = plateau_state};
    double factor = args->factor.is_set ? args->factor.value : 0.1;
    if (!(factor > 0 && factor < 1))
        return tdi_callback_poison("td_reduce_lr_on_plateau", "factor: a number above 0 and below 1 was expected");
    float patience = args->patience.is_set ? args->patience.value : 10;
    if (!(patience >= 0 && patience <= MOST_PATIENCE) || args->cooldown < 0 || !(args->min_lr >= 0))
        return tdi_callback_poison("td_reduce_lr_on_plateau",
                                   "patience, cooldown and min_lr cannot be negative, nor patience above 16777216");
    if ((args->min_delta.is_set && !isfinite(args->min_delta.value)) || (unsigned)args->mode > TD_MAX)
        return tdi_callback_poison("td_reduce_lr_on_plateau",
                                   "min_delta: a finite number, and a td_monitor_mode, were expected");
    plateau *self = calloc(1, sizeof *self);
    if (!self)
        return tdi_callback_poison("td_reduce_lr_on_plateau", "out of memory");
    self->args = *args;
    self->factor = factor;
    self->patience = (int)patience;
    tdi_monitor_init(&self->monitor, args->monitor, args->mode, args->min_delta.is_set ? args->min_delta.value : 1e-4);
    return create(&functions, self, plateau_check);
}

/* ---- LearningRateScheduler ---- */

static td_status schedule_begin(void *user, td_training *training)
{
    const td_learning_rate_scheduler_args *self = user;
    double rate = self->schedule(self->user, training->epoch, td_training_learning_rate(training));
    if (self->verbose == TD_YES)
        say_rate(training, "LearningRateScheduler setting", rate);
    return td_training_set_learning_rate(training, rate);
}

td_callback *td_learning_rate_scheduler_(const td_learning_rate_scheduler_args *args)
{
    static const td_callback_functions functions = {
        .epoch_begin = schedule_begin, .release = free, .name = "LearningRateScheduler"};
    if (!args->schedule)
        return tdi_callback_poison("td_learning_rate_scheduler", "schedule is NULL");
    td_learning_rate_scheduler_args *self = malloc(sizeof *self);
    if (!self)
        return tdi_callback_poison("td_learning_rate_scheduler", "out of memory");
    *self = *args;
    return create(&functions, self, NULL);
}
