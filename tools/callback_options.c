/* callback_options.c - parses the arguments of Keras's callbacks. */
#include "callback_options.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "nearest_word.h"
#include "parse_number.h"
#include "tool.h"

enum { MOST_ARGUMENTS = 8 };

static const struct list {
    const char *option, *example;
    struct argument {
        const char *name;
        enum { WHOLE, REAL, OPTIONAL, STEPS, MODE, YES_NO, TEXT } form;
        size_t at;
    } arguments[MOST_ARGUMENTS];
} lists[CALLBACK_LISTS] = {
#define ARGUMENT(form, callback, member)                                                                               \
    {                                                                                                                  \
#member, form, offsetof(struct callback_options, callback.member)                                              \
    }
    [LIST_EARLY_STOPPING] = {"early-stopping",
                             "5,min_delta=0.001",
                             {ARGUMENT(WHOLE, early_stopping, patience), ARGUMENT(REAL, early_stopping, min_delta),
                              ARGUMENT(MODE, early_stopping, mode), ARGUMENT(OPTIONAL, early_stopping, baseline),
                              ARGUMENT(WHOLE, early_stopping, start_from_epoch),
                              ARGUMENT(YES_NO, early_stopping, restore_best_weights),
                              ARGUMENT(TEXT, early_stopping, monitor)}},
    [LIST_REDUCE_LR] = {"reduce-lr",
                        "3,factor=0.5",
                        {ARGUMENT(OPTIONAL, reduce_lr, patience), ARGUMENT(OPTIONAL, reduce_lr, factor),
                         ARGUMENT(OPTIONAL, reduce_lr, min_delta), ARGUMENT(WHOLE, reduce_lr, cooldown),
                         ARGUMENT(REAL, reduce_lr, min_lr), ARGUMENT(MODE, reduce_lr, mode),
                         ARGUMENT(TEXT, reduce_lr, monitor)}},
    [LIST_CHECKPOINT] = {"checkpoint-options",
                         "monitor=val_accuracy,save_best_only",
                         {ARGUMENT(TEXT, checkpoint, monitor), ARGUMENT(YES_NO, checkpoint, save_best_only),
                          ARGUMENT(YES_NO, checkpoint, save_weights_only), ARGUMENT(MODE, checkpoint, mode),
                          ARGUMENT(STEPS, checkpoint, save_freq),
                          ARGUMENT(OPTIONAL, checkpoint, initial_value_threshold)}},
    [LIST_CSV_LOG] = {"csv-log-options",
                      "separator=;,append",
                      {ARGUMENT(TEXT, csv_log, separator), ARGUMENT(YES_NO, csv_log, append)}},
    [LIST_TENSORBOARD] = {"tensorboard-options",
                          "write_graph=no",
                          {ARGUMENT(YES_NO, tensorboard, write_graph),
                           ARGUMENT(YES_NO, tensorboard, write_steps_per_second),
                           ARGUMENT(YES_NO, tensorboard, write_hparams)}},
    [LIST_BACKUP] = {"backup-options",
                     "double_checkpoint=no",
                     {ARGUMENT(YES_NO, backup, double_checkpoint), ARGUMENT(STEPS, backup, save_freq)}}};

/* ---- values ---- */

static bool take_whole(const char *text, int64_t least, int64_t *number)
{
    return text && read_count(text, number) && *number >= least && *number <= INT_MAX;
}

static bool take_mode(const char *text, td_monitor_mode *mode)
{
    static const char *const names[] = {"auto", "min", "max"};
    for (int i = 0; text && i < 3; i++)
        if (strcmp(text, names[i]) == 0) {
            *mode = (td_monitor_mode)(TD_AUTO + i);
            return true;
        }
    return false;
}

/* The name alone means yes. */
static bool take_choice(const char *text, td_choice *choice)
{
    *choice = text && strcmp(text, "no") == 0 ? TD_NO : TD_YES;
    return !text || *choice == TD_NO || strcmp(text, "yes") == 0;
}

static bool take_value(const struct argument *argument, const char *text, struct callback_options *options)
{
    void *at = (char *)options + argument->at;
    int64_t whole = 0;
    double real = 0;
    bool good = false;
    switch (argument->form) {
    case WHOLE:
        good = take_whole(text, 0, &whole);
        *(int *)at = (int)whole;
        break;
    case STEPS:
        good = take_whole(text, 1, (int64_t *)at);
        break;
    case REAL:
        good = text && read_real(text, (double *)at);
        break;
    case OPTIONAL:
        good = text && read_real(text, &real);
        *(td_optional *)at = TD_SET((float)real);
        break;
    case MODE:
        good = take_mode(text, at);
        break;
    case YES_NO:
        good = take_choice(text, at);
        break;
    case TEXT:
        good = text && *text;
        *(const char **)at = text;
        break;
    }
    return good;
}

/* ---- lists ---- */

static int refuse_value(const struct list *list, const struct argument *argument, const char *text)
{
    static const char *const expected[] = {"a whole number",   "a number",  "a number", "a whole number above 0",
                                           "auto, min or max", "yes or no", "a text"};
    const char *quote = text ? "'" : "";
    return tool_refuse("--%s: %s: expected %s, got %s%s%s; try --%s %s", list->option, argument->name,
                       expected[argument->form], quote, text ? text : "nothing", quote, list->option, list->example);
}

static int refuse_name(const struct list *list, const char *word)
{
    const char *names[MOST_ARGUMENTS];
    char all[256] = "";
    int count = 0;
    for (size_t used = 0; count < MOST_ARGUMENTS && list->arguments[count].name; count++) {
        names[count] = list->arguments[count].name;
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", count ? ", " : "", names[count]);
    }
    const char *near = nearest_word(word, names, count);
    return tool_refuse("--%s: expected %s, got '%s'; try --%s %s", list->option, all, word, list->option,
                       near ? near : list->example);
}

/* True for a number as the first word, which is the patience. */
static bool is_patience(const struct list *list, const char *word)
{
    return strcmp(list->arguments[0].name, "patience") == 0 && *word >= '0' && *word <= '9';
}

static int take_word(const struct list *list, bool first, char *word, struct callback_options *options)
{
    bool patience = first && is_patience(list, word);
    char *value = patience ? word : strchr(word, '=');
    const char *name = patience ? "patience" : word;
    if (value && !patience)
        *value++ = '\0';
    for (int i = 0; i < MOST_ARGUMENTS && list->arguments[i].name; i++)
        if (strcmp(list->arguments[i].name, name) == 0)
            return take_value(&list->arguments[i], value, options) ? TOOL_DONE
                                                                   : refuse_value(list, &list->arguments[i], value);
    return refuse_name(list, name);
}

int read_callback_list(enum callback_list which, const char *text, struct callback_options *options)
{
    const struct list *list = &lists[which];
    char *rest = options->words[which];
    int status = TOOL_DONE;
    if ((size_t)snprintf(rest, sizeof options->words[which], "%s", text) >= sizeof options->words[which])
        return tool_refuse("--%s: expected less than %zu bytes", list->option, sizeof options->words[which]);
    options->given[which] = true;
    for (char *word, *begin = rest; status == TOOL_DONE && (word = strsep(&rest, ","));)
        status = take_word(list, word == begin, word, options);
    return status;
}
