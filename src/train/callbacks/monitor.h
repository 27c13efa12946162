/* monitor.h - has a log improved? What EarlyStopping, ReduceLROnPlateau and ModelCheckpoint share, as Keras's
 * MonitorCallback. */
#ifndef TDI_TRAIN_CALLBACKS_MONITOR_H
#define TDI_TRAIN_CALLBACKS_MONITOR_H

#include "train/backup/state.h"

typedef struct tdi_monitor {
    char name[TD_MAX_LOG_NAME];
    bool automatic;   /* `rising` follows from the kind of the model's metric of that name */
    bool rising;      /* more is better */
    double min_delta; /* not below 0 */
    bool has_best;
    double best;
} tdi_monitor;

/* `name` NULL: "val_loss". */
void tdi_monitor_init(tdi_monitor *monitor, const char *name, td_monitor_mode mode, double min_delta);
/* Warns, before the first step, when there will be no such log: at an epoch's end, or else after a step. */
void tdi_monitor_check(const tdi_monitor *monitor, const char *who, const td_training *training, bool epoch, bool open);
/* The log's value; NULL, after a warning in `who`'s name, when the epoch gave none. */
const double *tdi_monitor_value(tdi_monitor *monitor, const char *who, td_training *training, const td_logs *logs);
bool tdi_monitor_improves(const tdi_monitor *monitor, double value, double reference);
/* Returns whether `value` is the best so far, or the first, and keeps it if so. */
bool tdi_monitor_keep(tdi_monitor *monitor, double value);
/* Visits what the monitor remembers. */
void tdi_monitor_state(tdi_monitor *monitor, td_state *state);

#endif
