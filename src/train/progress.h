/* progress.h - Keras's progress line. */
#ifndef TDI_TRAIN_PROGRESS_H
#define TDI_TRAIN_PROGRESS_H

#include <stdbool.h>
#include <stdio.h>
#include <tandem/model.h>

/* On a terminal the line is redrawn in place, ten times a second at most; elsewhere it is written once, at the end. */
typedef struct tdi_progress {
    FILE *out; /* NULL: silence */
    bool terminal;
    char title[64]; /* "Epoch 1/2"; "": none */
    int64_t steps;  /* below 0: not known */
    double began, drawn;
    double waited; /* share of the time in steps that the devices waited for input; below 0: not known */
} tdi_progress;

void tdi_progress_begin(tdi_progress *progress, FILE *out, const char *title, int64_t steps);
void tdi_progress_update(tdi_progress *progress, int64_t done, const td_logs *logs);
/* Gives the last line the time that the devices waited for input: `waited` of `seconds`. */
void tdi_progress_waited(tdi_progress *progress, double waited, double seconds);
void tdi_progress_end(tdi_progress *progress, int64_t done, const td_logs *logs);

#endif
