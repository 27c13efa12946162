/* schedules.c - Keras's learning rate schedules: their fields, checks and values, which are computed in float32 as
 * Keras does. */
#include <math.h>

#include "layers/optimizers.h"

#define FIRST_FIELDS                                                                                                   \
    TDI_FIELD(FLOAT, td_schedule, initial_learning_rate, "initial_learning_rate", 0),                                  \
        TDI_FIELD(FLOAT, td_schedule, decay_steps, "decay_steps", 0)

static const tdi_field rate_fields[] = {FIRST_FIELDS,
                                        TDI_FIELD(FLOAT, td_schedule, decay_rate, "decay_rate", 0),
                                        TDI_FIELD(CHOICE, td_schedule, staircase, "staircase", 0),
                                        {0}};

static const tdi_field polynomial_fields[] = {
    FIRST_FIELDS,
    TDI_FIELD(OPTIONAL, td_schedule, end_learning_rate, "end_learning_rate", 1e-4),
    TDI_FIELD(OPTIONAL, td_schedule, power, "power", 1),
    TDI_FIELD(CHOICE, td_schedule, cycle, "cycle", 0),
    {0}};

static const tdi_field cosine_fields[] = {FIRST_FIELDS,
                                          TDI_FIELD(FLOAT, td_schedule, alpha, "alpha", 0),
                                          TDI_FIELD(IF_SET, td_schedule, warmup_target, "warmup_target", 0),
                                          TDI_FIELD(FLOAT, td_schedule, warmup_steps, "warmup_steps", 0),
                                          {0}};

static const tdi_field restarts_fields[] = {
    TDI_FIELD(FLOAT, td_schedule, initial_learning_rate, "initial_learning_rate", 0),
    TDI_FIELD(FLOAT, td_schedule, decay_steps, "first_decay_steps", 0),
    TDI_FIELD(OPTIONAL, td_schedule, t_mul, "t_mul", 2),
    TDI_FIELD(OPTIONAL, td_schedule, m_mul, "m_mul", 1),
    TDI_FIELD(FLOAT, td_schedule, alpha, "alpha", 0),
    {0}};

static const tdi_field no_fields[] = {{0}};

const tdi_config_type tdi_schedule_types[] = {
    {TD_EXPONENTIAL_DECAY, "ExponentialDecay", "ExponentialDecay", rate_fields},
    {TD_PIECEWISE_CONSTANT_DECAY, "PiecewiseConstantDecay", "PiecewiseConstant", no_fields},
    {TD_POLYNOMIAL_DECAY, "PolynomialDecay", "PolynomialDecay", polynomial_fields},
    {TD_INVERSE_TIME_DECAY, "InverseTimeDecay", "InverseTimeDecay", rate_fields},
    {TD_COSINE_DECAY, "CosineDecay", "CosineDecay", cosine_fields},
    {TD_COSINE_DECAY_RESTARTS, "CosineDecayRestarts", "SGDRDecay", restarts_fields},
    {0},
};

/* ---- checks ---- */

static td_status check_pieces(const td_schedule *schedule, tdi_error *error)
{
    if (schedule->pieces < 2 || !schedule->boundaries || !schedule->values)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "PiecewiseConstantDecay: %d pieces; at least 2, with their values and one boundary less, were "
                        "expected",
                        schedule->pieces);
    for (int i = 0; i < schedule->pieces; i++)
        if (!(schedule->values[i] >= 0) || !isfinite(schedule->values[i]))
            return tdi_fail(error, TD_INVALID_ARGUMENT,
                            "PiecewiseConstantDecay: value %d is %g and must be a finite number of at least 0", i,
                            (double)schedule->values[i]);
    return TD_OK;
}

td_status tdi_schedule_check(const td_schedule *schedule, tdi_error *error)
{
    const tdi_config_type *type = tdi_config_type_of(tdi_schedule_types, schedule->kind);
    if (!type)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "optimizer: there is no schedule of number %d",
                        (int)schedule->kind);
    if (schedule->kind == TD_PIECEWISE_CONSTANT_DECAY)
        return check_pieces(schedule, error);
    if (!(schedule->initial_learning_rate >= 0) || !isfinite(schedule->initial_learning_rate))
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s: initial_learning_rate is %g and must be a finite number of at least 0", type->class_name,
                        (double)schedule->initial_learning_rate);
    if (!(schedule->decay_steps > 0) || !isfinite(schedule->decay_steps))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: %s is %g and must be above 0", type->class_name,
                        type->fields[1].key, (double)schedule->decay_steps);
    if (!(schedule->warmup_steps >= 0) || (schedule->kind == TD_COSINE_DECAY_RESTARTS && !(schedule->t_mul.value > 0)))
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: warmup_steps is %g and t_mul %g; neither can be negative",
                        type->class_name, (double)schedule->warmup_steps, (double)schedule->t_mul.value);
    return TD_OK;
}

/* ---- values ---- */

static float steps_done(const td_schedule *s, float step)
{
    float done = step / s->decay_steps;
    return s->staircase == TD_YES ? floorf(done) : done;
}

static float piecewise(const td_schedule *s, int64_t step)
{
    int piece = 0;
    while (piece + 1 < s->pieces && step > s->boundaries[piece])
        piece++;
    return s->values[piece];
}

static float polynomial(const td_schedule *s, float step)
{
    float all = s->decay_steps, end = s->end_learning_rate.value;
    if (s->cycle != TD_YES)
        step = fminf(step, all);
    else if (step > 0)
        all *= ceilf(step / all);
    return (s->initial_learning_rate - end) * powf(1.0f - step / all, s->power.value) + end;
}

static float cosine_between(float fraction, float alpha)
{
    return (1.0f - alpha) * (0.5f * (1.0f + cosf((float)M_PI * fraction))) + alpha;
}

static float cosine(const td_schedule *s, float step)
{
    float from = s->initial_learning_rate, warmup = 0;
    if (s->warmup_target.is_set) {
        warmup = s->warmup_steps;
        if (step < warmup)
            return (s->warmup_target.value - from) * (step / warmup) + from;
        from = s->warmup_target.value;
    }
    return from * cosine_between(fminf(step - warmup, s->decay_steps) / s->decay_steps, s->alpha);
}

/* Each period is t_mul times as long as the one before it and starts at m_mul times its rate. */
static float cosine_restarts(const td_schedule *s, float step)
{
    float done = step / s->decay_steps, growth = s->t_mul.value, restarts;
    if (growth == 1.0f) {
        restarts = floorf(done);
        done -= restarts;
    } else {
        restarts = floorf(logf(1.0f - done * (1.0f - growth)) / logf(growth));
        float grown = powf(growth, restarts);
        done = (done - (1.0f - grown) / (1.0f - growth)) / grown;
    }
    float height = 0.5f * powf(s->m_mul.value, restarts) * (1.0f + cosf((float)M_PI * done));
    return s->initial_learning_rate * ((1.0f - s->alpha) * height + s->alpha);
}

float tdi_schedule_rate(const td_schedule *schedule, int64_t step)
{
    switch (schedule->kind) {
    case TD_EXPONENTIAL_DECAY:
        return schedule->initial_learning_rate * powf(schedule->decay_rate, steps_done(schedule, (float)step));
    case TD_PIECEWISE_CONSTANT_DECAY:
        return piecewise(schedule, step);
    case TD_POLYNOMIAL_DECAY:
        return polynomial(schedule, (float)step);
    case TD_INVERSE_TIME_DECAY:
        return schedule->initial_learning_rate / (1.0f + schedule->decay_rate * steps_done(schedule, (float)step));
    case TD_COSINE_DECAY:
        return cosine(schedule, (float)step);
    case TD_COSINE_DECAY_RESTARTS:
        return cosine_restarts(schedule, (float)step);
    default:
        return 0;
    }
}
