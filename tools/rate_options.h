/* rate_options.h - learning rates that change during training: --schedule and --learning-rate-scheduler. */
#ifndef TOOL_RATE_OPTIONS_H
#define TOOL_RATE_OPTIONS_H

#include <stdbool.h>
#include <tandem/tandem.h>

enum { MOST_RATES = 32 };

/* "cosine_decay,decay_steps=1000": a schedule by its snake-case name, with arguments by Keras's names. */
struct rate_schedule {
    td_schedule schedule;    /* kind NONE: there is none; its lists are below */
    bool initial_rate_given; /* by initial_learning_rate; else --learning-rate gives it */
    int64_t boundaries[MOST_RATES];
    float values[MOST_RATES];
};

/* "10=0.01,20=0.001": the rate from epoch 10 on, counted from 0, and so on. */
struct epoch_rates {
    int count;
    struct {
        int64_t epoch;
        double rate;
    } at[MOST_RATES];
};

/* Both parsers return an exit status and print a sentence when it is not TOOL_DONE. */
int read_schedule(const char *text, struct rate_schedule *schedule);
int read_epoch_rates(const char *text, struct epoch_rates *rates);

/* The snake-case name, "cosine_decay". */
const char *schedule_name(td_schedule_kind kind);

/* The function for td_learning_rate_scheduler; `user` is a struct epoch_rates. */
double epoch_rate(void *user, int epoch, double rate);
/* Makes a callback that prints the schedule and where in it training begins. */
td_callback *schedule_reporter(const struct rate_schedule *schedule);

#endif
