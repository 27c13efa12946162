/* monitor.c - has a log improved? */
#include "train/callbacks/monitor.h"

#include <math.h>
#include <string.h>

void tdi_monitor_init(tdi_monitor *monitor, const char *name, td_monitor_mode mode, double min_delta)
{
    *monitor = (tdi_monitor){.automatic = mode == TD_AUTO, .rising = mode == TD_MAX, .min_delta = fabs(min_delta)};
    snprintf(monitor->name, sizeof monitor->name, "%s", name ? name : "val_loss");
}

/* The metric's name without the output's in front, where there are several outputs. */
static bool is_log_of(const td_model *model, int output, const td_metric *metric, const char *name)
{
    const char *layer = model->architecture->outputs[output]->site->layer->name;
    size_t length = strlen(layer);
    if (model->architecture->n_outputs == 1)
        return strcmp(name, tdi_metric_name(metric)) == 0;
    return strncmp(name, layer, length) == 0 && name[length] == '_' &&
           strcmp(name + length + 1, tdi_metric_name(metric)) == 0;
}

/* A loss and an error are to fall; any other metric is to rise. */
static bool rises(const td_model *model, const char *name)
{
    name += strncmp(name, "val_", 4) == 0 ? 4 : 0;
    size_t length = strlen(name);
    for (int o = 0; o < model->architecture->n_outputs; o++)
        for (int m = 0; m < model->compiled.outputs[o].n_metrics; m++)
            if (is_log_of(model, o, &model->compiled.outputs[o].metrics[m], name))
                return !tdi_metric_falls(&model->compiled.outputs[o].metrics[m]);
    return length < 4 || strcmp(name + length - 4, "loss") != 0;
}

void tdi_monitor_check(const tdi_monitor *monitor, const char *who, const td_training *training, bool epoch, bool open)
{
    td_logs names;
    tdi_text known = {0};
    tdi_log_names(training, epoch, &names);
    for (int i = 0; i < names.count; i++)
        tdi_text_format(&known, "%s%s", i ? ", " : "", names.entry[i].name);
    if (!open && !tdi_log_value(&names, monitor->name))
        tdi_log(training->model->context, TD_LOG_WARNING, "%s: there will be no %s to monitor; there are %s", who,
                monitor->name, known.chars ? known.chars : "none");
    tdi_text_free(&known);
}

const double *tdi_monitor_value(tdi_monitor *monitor, const char *who, td_training *training, const td_logs *logs)
{
    if (monitor->automatic)
        monitor->rising = rises(training->model, monitor->name);
    const double *value = tdi_log_value(logs, monitor->name);
    char line[1200];
    int used = snprintf(line, sizeof line, "%s: the epoch gave no %s, but:", who, monitor->name);
    for (int i = 0; i < logs->count && used < (int)sizeof line; i++)
        used += snprintf(line + used, sizeof line - (size_t)used, " %s", logs->entry[i].name);
    if (!value)
        td_training_say(training, line);
    return value;
}

bool tdi_monitor_improves(const tdi_monitor *monitor, double value, double reference)
{
    return monitor->rising ? value - monitor->min_delta > reference : value + monitor->min_delta < reference;
}

bool tdi_monitor_keep(tdi_monitor *monitor, double value)
{
    if (monitor->has_best && !tdi_monitor_improves(monitor, value, monitor->best))
        return false;
    monitor->has_best = true;
    monitor->best = value;
    return true;
}

void tdi_monitor_state(tdi_monitor *monitor, td_state *state)
{
    tdi_state_flag(state, "has best", &monitor->has_best);
    td_state_number(state, "best", &monitor->best);
}
