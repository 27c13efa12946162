/* rate_options.c - parses the options of Keras's schedules and its LearningRateScheduler. */
#include "rate_options.h"

#include <float.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "nearest_word.h"
#include "parse_number.h"
#include "tool.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* ---- names ---- */

static const struct {
    const char *name;
    td_schedule_kind kind;
} schedules[] = {{"cosine_decay", TD_COSINE_DECAY},
                 {"cosine_decay_restarts", TD_COSINE_DECAY_RESTARTS},
                 {"exponential_decay", TD_EXPONENTIAL_DECAY},
                 {"inverse_time_decay", TD_INVERSE_TIME_DECAY},
                 {"piecewise_constant_decay", TD_PIECEWISE_CONSTANT_DECAY},
                 {"polynomial_decay", TD_POLYNOMIAL_DECAY}};

#define KIND(kind) (1u << (kind))

enum {
    COSINE = KIND(TD_COSINE_DECAY),
    RESTARTS = KIND(TD_COSINE_DECAY_RESTARTS),
    EXPONENTIAL = KIND(TD_EXPONENTIAL_DECAY),
    INVERSE = KIND(TD_INVERSE_TIME_DECAY),
    PIECEWISE = KIND(TD_PIECEWISE_CONSTANT_DECAY),
    POLYNOMIAL = KIND(TD_POLYNOMIAL_DECAY)
};

/* An argument, the schedules that take it, and those that require it. */
static const struct argument {
    const char *name;
    enum { NUMBER, OPTIONAL, FLAG, BOUNDARIES, VALUES } form;
    unsigned of, needed;
    size_t at;
} arguments[] = {
#define ARGUMENT(form, member, of, needed)                                                                             \
    {                                                                                                                  \
#member, form, of, needed, offsetof(td_schedule, member)                                                       \
    }
    ARGUMENT(NUMBER, initial_learning_rate, COSINE | RESTARTS | EXPONENTIAL | INVERSE | POLYNOMIAL, 0),
    ARGUMENT(NUMBER, decay_steps, COSINE | EXPONENTIAL | INVERSE | POLYNOMIAL,
             COSINE | EXPONENTIAL | INVERSE | POLYNOMIAL),
    {"first_decay_steps", NUMBER, RESTARTS, RESTARTS, offsetof(td_schedule, decay_steps)},
    ARGUMENT(NUMBER, decay_rate, EXPONENTIAL | INVERSE, EXPONENTIAL | INVERSE),
    ARGUMENT(FLAG, staircase, EXPONENTIAL | INVERSE, 0),
    ARGUMENT(OPTIONAL, end_learning_rate, POLYNOMIAL, 0),
    ARGUMENT(OPTIONAL, power, POLYNOMIAL, 0),
    ARGUMENT(FLAG, cycle, POLYNOMIAL, 0),
    ARGUMENT(NUMBER, alpha, COSINE | RESTARTS, 0),
    ARGUMENT(OPTIONAL, warmup_target, COSINE, 0),
    ARGUMENT(NUMBER, warmup_steps, COSINE, 0),
    ARGUMENT(OPTIONAL, t_mul, RESTARTS, 0),
    ARGUMENT(OPTIONAL, m_mul, RESTARTS, 0),
    {"boundaries", BOUNDARIES, PIECEWISE, PIECEWISE, 0},
    {"values", VALUES, PIECEWISE, PIECEWISE, 0}};

enum { ARGUMENTS = COUNT(arguments) };

static int refuse_name(const char *name)
{
    const char *names[COUNT(schedules)];
    for (int i = 0; i < COUNT(schedules); i++)
        names[i] = schedules[i].name;
    const char *near = nearest_word(name, names, COUNT(schedules));
    return tool_refuse("--schedule: expected cosine_decay, cosine_decay_restarts, exponential_decay, "
                       "inverse_time_decay, piecewise_constant_decay or polynomial_decay, and its arguments, got '%s'; "
                       "try --schedule %s,...",
                       name, near ? near : names[0]);
}

const char *schedule_name(td_schedule_kind kind)
{
    int i = 0;
    while (schedules[i].kind != kind)
        i++;
    return schedules[i].name;
}

static int refuse_argument(td_schedule_kind kind, const char *word)
{
    const char *names[ARGUMENTS];
    char list[512] = "";
    int count = 0;
    size_t used = 0;
    for (int i = 0; i < ARGUMENTS; i++)
        if (arguments[i].of & KIND(kind)) {
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", count ? ", " : "", arguments[i].name);
            names[count++] = arguments[i].name;
        }
    const char *near = nearest_word(word, names, count);
    return tool_refuse("--schedule: %s takes %s; got '%s'%s%s", schedule_name(kind), list, word, near ? "; try " : "",
                       near ? near : "");
}

/* ---- values ---- */

static bool read_float(const char *text, float *value)
{
    double number;
    bool good = read_real(text, &number) && number >= 0 && number <= (double)FLT_MAX;
    *value = good ? (float)number : 0;
    return good;
}

/* Parses "100:200:300" and returns the number of values, -1 when one is wrong. */
static int read_list(char *text, bool whole, struct rate_schedule *to)
{
    int count = 0;
    for (char *word; (word = strsep(&text, ":")); count++)
        if (count == MOST_RATES ||
            !(whole ? read_count(word, &to->boundaries[count]) : read_float(word, &to->values[count])))
            return -1;
    return count;
}

/* Parses an argument's value. False when it is missing or wrong, or when a flag has one. */
static bool take_value(const struct argument *argument, char *text, struct rate_schedule *to, int *pieces)
{
    void *at = (char *)&to->schedule + argument->at;
    float number;
    if (argument->form == FLAG)
        *(td_choice *)at = TD_YES;
    if (argument->form == FLAG || !text)
        return argument->form == FLAG && !text;
    if (argument->form == BOUNDARIES || argument->form == VALUES) {
        *pieces = read_list(text, argument->form == BOUNDARIES, to);
        return *pieces > 0;
    }
    if (!read_float(text, &number))
        return false;
    if (argument->form == OPTIONAL)
        *(td_optional *)at = TD_SET(number);
    else
        *(float *)at = number;
    return true;
}

static int refuse_value(const struct argument *argument, const char *text)
{
    static const char *const expected[] = {"a number not below 0, as 1000", "a number not below 0, as 0.001",
                                           "no value", "whole numbers, as 1000:2000", "numbers, as 0.1:0.01:0.001"};
    const char *quote = text ? "'" : "";
    return tool_refuse("--schedule: %s: expected %s, got %s%s%s", argument->name, expected[argument->form], quote,
                       text ? text : "nothing", quote);
}

/* ---- a schedule ---- */

struct parse {
    struct rate_schedule *to;
    unsigned seen; /* bits: the arguments that were given */
    int n_boundaries, n_values;
};

static int take_word(struct parse *parse, char *word)
{
    td_schedule_kind kind = parse->to->schedule.kind;
    char *name = strsep(&word, "="), *value = word;
    for (int i = 0; i < ARGUMENTS; i++) {
        const struct argument *argument = &arguments[i];
        if (!(argument->of & KIND(kind)) || strcmp(argument->name, name) != 0)
            continue;
        char copy[256];
        snprintf(copy, sizeof copy, "%s", value ? value : "");
        parse->seen |= 1u << i;
        if (take_value(argument, value, parse->to,
                       argument->form == BOUNDARIES ? &parse->n_boundaries : &parse->n_values))
            return TOOL_DONE;
        return refuse_value(argument, value ? copy : NULL);
    }
    return refuse_argument(kind, name);
}

static bool was_seen(const struct parse *parse, const char *name)
{
    for (int i = 0; i < ARGUMENTS; i++)
        if (strcmp(arguments[i].name, name) == 0)
            return parse->seen >> i & 1;
    return false;
}

static int check_complete(const struct parse *parse)
{
    td_schedule_kind kind = parse->to->schedule.kind;
    for (int i = 0; i < ARGUMENTS; i++)
        if ((arguments[i].needed & KIND(kind)) && !(parse->seen >> i & 1))
            return tool_refuse("--schedule: %s needs %s; try --schedule %s,%s=...", schedule_name(kind),
                               arguments[i].name, schedule_name(kind), arguments[i].name);
    if (was_seen(parse, "warmup_target") != was_seen(parse, "warmup_steps"))
        return tool_refuse("--schedule: warmup_target and warmup_steps belong together: the rate rises to the one in "
                           "the other; give both");
    if (kind == TD_PIECEWISE_CONSTANT_DECAY && parse->n_values != parse->n_boundaries + 1)
        return tool_refuse("--schedule: %d boundaries and %d values; expected one value more than boundaries, as "
                           "boundaries=1000:2000,values=0.1:0.01:0.001",
                           parse->n_boundaries, parse->n_values);
    return TOOL_DONE;
}

static td_schedule_kind kind_of(const char *name)
{
    for (int i = 0; i < COUNT(schedules); i++)
        if (strcmp(schedules[i].name, name) == 0)
            return schedules[i].kind;
    return TD_SCHEDULE_NONE;
}

int read_schedule(const char *text, struct rate_schedule *schedule)
{
    char list[1024], *rest = list;
    struct parse parse = {.to = schedule};
    if ((size_t)snprintf(list, sizeof list, "%s", text) >= sizeof list)
        return tool_refuse("--schedule: expected less than %zu bytes", sizeof list);
    const char *name = strsep(&rest, ",");
    *schedule = (struct rate_schedule){.schedule.kind = kind_of(name)};
    if (schedule->schedule.kind == TD_SCHEDULE_NONE)
        return refuse_name(name);
    for (char *word; (word = strsep(&rest, ","));) {
        int status = take_word(&parse, word);
        if (status != TOOL_DONE)
            return status;
    }
    schedule->initial_rate_given = was_seen(&parse, "initial_learning_rate");
    schedule->schedule.pieces = parse.n_values;
    return check_complete(&parse);
}

/* ---- rates of epochs ---- */

static bool read_epoch_rate(char *word, struct epoch_rates *rates)
{
    const char *epoch = strsep(&word, "=");
    int at = rates->count;
    if (at == MOST_RATES || !word || !read_count(epoch, &rates->at[at].epoch) || !read_real(word, &rates->at[at].rate))
        return false;
    rates->count++;
    return rates->at[at].rate >= 0 && (at == 0 || rates->at[at].epoch > rates->at[at - 1].epoch);
}

int read_epoch_rates(const char *text, struct epoch_rates *rates)
{
    char list[1024], *rest = list;
    bool good = (size_t)snprintf(list, sizeof list, "%s", text) < sizeof list;
    *rates = (struct epoch_rates){0};
    for (char *word; good && (word = strsep(&rest, ","));)
        good = read_epoch_rate(word, rates);
    if (good)
        return TOOL_DONE;
    return tool_refuse(
        "--learning-rate-scheduler: expected EPOCH=RATE and commas, epochs counted from 0 and rising, got "
        "'%s'; try --learning-rate-scheduler 30=0.01,60=0.001",
        text);
}

double epoch_rate(void *user, int epoch, double rate)
{
    const struct epoch_rates *rates = user;
    for (int i = 0; i < rates->count && rates->at[i].epoch <= epoch; i++)
        rate = rates->at[i].rate;
    return rate;
}

/* ---- where a schedule begins ---- */

static td_status say_schedule(void *user, td_training *training)
{
    const struct rate_schedule *schedule = user;
    char line[160];
    snprintf(line, sizeof line, "Learning rate: %s, %s at %.9g.", schedule_name(schedule->schedule.kind),
             td_training_resumed(training) ? "going on" : "beginning",
             (double)td_learning_rate(td_training_model(training)));
    td_training_say(training, line);
    return TD_OK;
}

td_callback *schedule_reporter(const struct rate_schedule *schedule)
{
    return td_callback_create(&(td_callback_functions){.train_begin = say_schedule}, (void *)schedule);
}
