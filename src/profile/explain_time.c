/* explain_time.c - where the time of a step goes, as a table: the ops that take most of it, what is left, their sum. */
#include <stdlib.h>
#include <string.h>

#include "profile/explain.h"
#include "runtime/runtime_struct.h"

enum { SHOWN = 10 };

/* ---- lines ---- */

/* A line's texts, and how wide the table's columns of texts are. */
enum { LAYER, OP, PASS, KERNEL, SHARE, TEXTS };
typedef struct line {
    char texts[TEXTS][64];
} line;
static const line titles = {{"layer", "op", "pass", "kernel", "shared by"}};

/* A kernel that is named after its op is known by what stands before that. */
static int distinct_length(const tdi_plan_op *op)
{
    size_t length = strlen(op->kernel), name = strlen(op->op);
    bool same =
        length > name + 1 && op->kernel[length - name - 1] == ' ' && strcmp(op->kernel + length - name, op->op) == 0;
    return (int)(same ? length - name - 1 : length);
}

/* What each shard makes whole, the shards of a batch share. */
static line line_of(const tdi_timing *t, const tdi_plan_op *op)
{
    line l = {0};
    bool by_shards = t->runtime->division.shards > 1 && !op->update_phase;
    snprintf(l.texts[LAYER], sizeof *l.texts, "%s%s%s", op->layer, op->variable ? "/" : "",
             op->variable ? op->variable : "");
    td_printable(l.texts[LAYER]);
    snprintf(l.texts[OP], sizeof *l.texts, "%s", op->op);
    snprintf(l.texts[PASS], sizeof *l.texts, "%s", op->pass);
    snprintf(l.texts[KERNEL], sizeof *l.texts, "%.*s", distinct_length(op), op->kernel);
    snprintf(l.texts[SHARE], sizeof *l.texts, "%s", by_shards ? "shards" : op->share);
    if (!by_shards && op->threads > 1 && op->threads < tdi_plan_sharing(t->plan))
        snprintf(l.texts[SHARE], sizeof *l.texts, "%s, %d threads", op->share, op->threads);
    return l;
}

static void widen(int widths[TEXTS], const line *l)
{
    for (int i = 0; i < TEXTS; i++)
        if (td_columns(l->texts[i]) > widths[i])
            widths[i] = td_columns(l->texts[i]);
}

static void print_texts(const int widths[TEXTS], const line *l, FILE *out)
{
    char padded[4 * sizeof *l->texts];
    for (int i = 0; i < TEXTS; i++)
        fprintf(out, "%s  ", td_pad(l->texts[i], widths[i], padded, sizeof padded));
}

/* What stands where ops have their texts and calls. */
static void print_name(const int widths[TEXTS], const char *name, FILE *out)
{
    int width = 5;
    for (int i = 0; i < TEXTS; i++)
        width += widths[i] + 2;
    fprintf(out, "%-*s", width, name);
}

static void print_time(const tdi_timing *t, double seconds, FILE *out)
{
    fprintf(out, " %10.1f %6.1f%%", seconds * 1e6, 100 * seconds / t->seconds);
}

static void print_floor(double seconds, double floor, FILE *out)
{
    if (floor > 0)
        fprintf(out, " %10.2f %8.2f", floor * 1e6, seconds / floor);
}

static void print_op(const tdi_timing *t, const int widths[TEXTS], const tdi_op_time *time, FILE *out)
{
    line l = line_of(t, &time->op);
    print_texts(widths, &l, out);
    fprintf(out, "%5lld", (long long)time->calls);
    print_time(t, time->seconds, out);
    print_floor(time->seconds, time->floor.seconds, out);
    fprintf(out, "  %s\n", time->floor.seconds > 0 ? tdi_bound_name(&time->floor) : "");
}

static void print_beside(const tdi_timing *t, const int widths[TEXTS], const char *name, double seconds, FILE *out)
{
    print_name(widths, name, out);
    print_time(t, seconds, out);
    fprintf(out, "\n");
}

/* ---- the table ---- */

static int by_time(const void *a, const void *b)
{
    const tdi_op_time *const *x = a, *const *y = b;
    return ((*x)->seconds < (*y)->seconds) - ((*x)->seconds > (*y)->seconds);
}

static int list_by_time(const tdi_timing *t, const tdi_op_time **ops)
{
    int count = 0;
    for (int s = 0; s < t->count; s++)
        if (t->ops[s].op.op)
            ops[count++] = &t->ops[s];
    qsort(ops, (size_t)count, sizeof *ops, by_time);
    return count;
}

static void print_others(const tdi_timing *t, const int widths[TEXTS], const tdi_op_time *const *ops, int count,
                         FILE *out)
{
    char name[48];
    double seconds = 0, floor = 0;
    for (int i = 0; i < count; i++) {
        seconds += ops[i]->seconds;
        floor += ops[i]->floor.seconds;
    }
    snprintf(name, sizeof name, "the other %d op%s", count, count == 1 ? "" : "s");
    print_name(widths, name, out);
    print_time(t, seconds, out);
    print_floor(seconds, floor, out);
    fprintf(out, "\n");
}

static void print_table(const tdi_timing *t, const tdi_op_time *const *ops, int count, FILE *out)
{
    int widths[TEXTS] = {0}, shown = count < SHOWN ? count : SHOWN;
    widen(widths, &titles);
    for (int i = 0; i < shown; i++) {
        line l = line_of(t, &ops[i]->op);
        widen(widths, &l);
    }
    print_texts(widths, &titles, out);
    fprintf(out, "calls  us a step   share   floor us  x floor  bound by\n");
    for (int i = 0; i < shown; i++)
        print_op(t, widths, ops[i], out);
    if (count > shown)
        print_others(t, widths, ops + shown, count - shown, out);
    print_beside(t, widths, "bringing the next step's rows together", t->feeding, out);
    if (t->threads > 1)
        print_beside(t, widths, "waiting for other threads", t->waiting, out);
    print_beside(t, widths, "between them", t->rest + (t->threads > 1 ? 0 : t->waiting), out);
    print_name(widths, "a step", out);
    print_time(t, t->seconds, out);
    print_floor(t->seconds, t->floor, out);
    fprintf(out, "\n");
}

/* ---- around it ---- */

static const char *const steps[TDI_MODES] = {
    [TDI_TRAIN] = "training step", [TDI_EVALUATE] = "step of evaluation", [TDI_PREDICT] = "prediction"};

static void print_head(const tdi_explained *e, FILE *out)
{
    const tdi_timing *t = e->timing;
    char name[256];
    snprintf(name, sizeof name, "%s", e->runtime->model->architecture->name);
    fprintf(out, "model %s, batch %lld, %s in %s, by %d thread%s of", td_printable(name), (long long)e->batch,
            steps[e->mode], tdi_computes_bfloat16(e->runtime) ? "bfloat16" : "float32", t->threads,
            t->threads == 1 ? "" : "s");
    for (int i = 0; i < e->runtime->n_devices; i++)
        fprintf(out, "%s %s", i ? "," : "", e->runtime->devices[i]->name);
    fprintf(out, ": %.4g ms, %.*f a second; the floor is %.4g ms\n\n", t->seconds * 1e3, t->seconds > 0.1 ? 2 : 0,
            1 / t->seconds, t->floor * 1e3);
}

static bool below_floor(const tdi_op_time *const *ops, int count)
{
    for (int i = 0; i < count; i++)
        if (ops[i]->seconds < ops[i]->floor.seconds)
            return true;
    return false;
}

static void print_notes(const tdi_explained *e, const tdi_op_time *const *ops, int count, FILE *out)
{
    const tdi_timing *t = e->timing;
    fprintf(out,
            "\nMeans over the threads and over %lld steps on synthetic rows, the middle half of all by their length.\n",
            (long long)t->steps);
    fprintf(out, "The floor of an op: its operations at %.0f GFLOP/s", t->roofline.flops * 1e-9);
    if (t->roofline.bfloat16_flops > 0)
        fprintf(out, " (bfloat16: %.0f)", t->roofline.bfloat16_flops * 1e-9);
    fprintf(out, ", or its bytes at %.0f GB/s (weights and slots) and up to %.0f, whichever takes longer.\n",
            tdi_roofline_bandwidth(&t->roofline, t->in_use) * 1e-9, tdi_roofline_bandwidth(&t->roofline, 0) * 1e-9);
    if (below_floor(ops, count < SHOWN ? count : SHOWN))
        fprintf(out,
                "Below 1: it needs fewer operations than are counted, as Winograd's convolutions do, leaves them to an "
                "update, or finds its data nearer.\n");
}

td_status tdi_explain_times(const tdi_explained *e, FILE *out, tdi_error *error)
{
    const tdi_op_time **ops = calloc((size_t)e->timing->count + 1, sizeof *ops);
    if (!ops)
        return tdi_no_memory(error);
    int count = list_by_time(e->timing, ops);
    print_head(e, out);
    print_table(e->timing, ops, count, out);
    print_notes(e, ops, count, out);
    free(ops);
    return TD_OK;
}
