/* monitor.c - has a log improved? */
#include "train/monitor.h"

#include <math.h>
#include <string.h>

void tdi_monitor_init(tdi_monitor *monitor, const char *name, td_monitor_mode mode, double min_delta)
{
    *monitor = (tdi_monitor){.min_delta = fabs(min_delta)};
    snprintf(monitor->name, sizeof monitor->name, "%s", name ? name : "val_loss");
    size_t length = strlen(monitor->name);
    bool loss = length >= 4 && strcmp(monitor->name + length - 4, "loss") == 0;
    monitor->rising = mode == TD_MAX || (mode == TD_AUTO && !loss);
}

const double *tdi_monitor_value(const tdi_monitor *monitor, const char *who, td_training *training, const td_logs *logs)
{
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
