/* progress.c - drawing Keras's progress line:
 * 1563/1563 ━━━━━━━━━━━━━━━━━━━━ 3s 2ms/step - accuracy: 0.9214 - loss: 0.2702
 * and, at an epoch's end, how much of the time the devices waited for input. */
#define _POSIX_C_SOURCE 200809L
#include "train/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

enum { WIDTH = 20 };

void tdi_progress_begin(tdi_progress *progress, FILE *out, const char *title, int64_t steps)
{
    *progress = (tdi_progress){.out = out, .steps = steps, .began = tdi_seconds(), .waited = -1};
    if (!out)
        return;
    progress->terminal = isatty(fileno(out)) == 1;
    snprintf(progress->title, sizeof progress->title, "%s", title);
    if (progress->terminal && *title)
        fprintf(out, "%s\n", title);
}

static void add_time_per_step(tdi_text *line, double seconds)
{
    if (seconds >= 1)
        tdi_text_format(line, "%.0fs/step", seconds);
    else if (seconds >= 1e-3)
        tdi_text_format(line, "%.0fms/step", seconds * 1e3);
    else
        tdi_text_format(line, "%.0fus/step", seconds * 1e6);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b); /* an entry begins with its name */
}

/* Orders logs as Keras does: by name, the validation's last. */
static void add_logs(tdi_text *line, const td_logs *logs)
{
    td_logs sorted = *logs;
    qsort(sorted.entry, (size_t)sorted.count, sizeof sorted.entry[0], by_name);
    for (int validation = 0; validation < 2; validation++)
        for (int i = 0; i < sorted.count; i++) {
            double value = sorted.entry[i].value;
            char *name = td_printable(sorted.entry[i].name);
            if ((strncmp(name, "val_", 4) == 0) != (validation == 1))
                continue;
            tdi_text_format(line, fabs(value) > 1e-3 || value == 0 ? " - %s: %.4f" : " - %s: %.4e", name, value);
        }
}

static void add_bar(tdi_text *line, int64_t done, int64_t steps)
{
    int64_t filled = steps ? WIDTH * done / steps : WIDTH;
    tdi_text_add(line, " \033[32m");
    for (int64_t i = 0; i < filled; i++)
        tdi_text_add(line, "━");
    tdi_text_add(line, "\033[37m");
    for (int64_t i = filled; i < WIDTH; i++)
        tdi_text_add(line, "━");
    tdi_text_add(line, "\033[0m");
}

static void draw(tdi_progress *progress, int64_t done, const td_logs *logs, bool final)
{
    tdi_text line = {0};
    double elapsed = tdi_seconds() - progress->began, per_step = done ? elapsed / (double)done : 0;
    if (progress->terminal)
        tdi_text_add(&line, "\r");
    else if (*progress->title)
        tdi_text_format(&line, "%s: ", progress->title);
    bool known = progress->steps >= 0 || final;
    int64_t steps = progress->steps >= 0 ? progress->steps : done;
    tdi_text_format(&line, known ? "%lld/%lld" : "%lld/Unknown", (long long)done, (long long)steps);
    if (progress->terminal && known)
        add_bar(&line, done, steps);
    /* Keras: the time left, where that can be said, then taken */
    double shown = final || !known ? elapsed : per_step * (double)(steps - done);
    tdi_text_format(&line, " %.0fs ", shown);
    add_time_per_step(&line, per_step);
    add_logs(&line, logs);
    if (final && progress->waited >= 0)
        tdi_text_format(&line, " - waited for input: %.1f%%", progress->waited * 100);
    tdi_text_add(&line, progress->terminal ? "\033[K" : "");
    tdi_text_add(&line, final ? "\n" : "");
    if (!line.failed)
        fputs(line.chars, progress->out);
    fflush(progress->out);
    tdi_text_free(&line);
}

void tdi_progress_update(tdi_progress *progress, int64_t done, const td_logs *logs)
{
    double now = tdi_seconds();
    if (!progress->out || !progress->terminal || now - progress->drawn < 0.1)
        return;
    progress->drawn = now;
    draw(progress, done, logs, false);
}

void tdi_progress_waited(tdi_progress *progress, double waited, double seconds)
{
    progress->waited = seconds > 0 ? waited / seconds : -1;
}

void tdi_progress_end(tdi_progress *progress, int64_t done, const td_logs *logs)
{
    if (progress->out)
        draw(progress, done, logs, true);
}
