/* summary.c - Keras's table of layers. */
#include <stdio.h>

#include "base/text.h"
#include "model/model.h"

enum { NAME = 34, SHAPE = 24, COUNT = 15 };

static void rule(FILE *out, const char *left, const char *middle, const char *line, const char *right)
{
    const int widths[] = {NAME, SHAPE, COUNT};
    fputs(left, out);
    for (int column = 0; column < 3; column++) {
        for (int i = 0; i < widths[column]; i++)
            fputs(line, out);
        fputs(column < 2 ? middle : right, out);
    }
    fputc('\n', out);
}

/* 269322 -> "269,322" */
static const char *with_commas(int64_t number, char text[32])
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)number), used = 0;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            text[used++] = ',';
        text[used++] = digits[i];
    }
    text[used] = '\0';
    return text;
}

static void show_shape(tdi_text *text, const td_tensor *tensor)
{
    if (tensor->batch)
        tdi_text_format(text, "(%lld", (long long)tensor->batch);
    else
        tdi_text_format(text, "(None");
    for (int d = 0; d < tensor->shape.rank; d++)
        tdi_text_format(text, ", %lld", (long long)tensor->shape.dim[d]);
    tdi_text_format(text, ")");
}

/* Of the layer's first call; several outputs as a list. */
static void show_outputs(tdi_text *text, const td_model *model, const tdi_layer *layer)
{
    for (int i = 0; i < model->architecture->sites.count; i++) {
        const tdi_call_site *site = model->architecture->sites.at[i];
        if (site->layer != layer)
            continue;
        for (int o = 0; o < site->n_out; o++) {
            tdi_text_format(text, "%s", o ? ", " : site->n_out > 1 ? "[" : "");
            show_shape(text, site->out[o]);
        }
        tdi_text_format(text, "%s", site->n_out > 1 ? "]" : "");
        break;
    }
}

static void row(const td_model *model, const tdi_layer *layer, FILE *out)
{
    char name[512], count[32], padded[2][160];
    tdi_text shape = {0};
    int64_t elements = 0;
    for (int i = 0; i < layer->weights.count; i++)
        elements += layer->weights.at[i]->variable.elements;
    snprintf(name, sizeof name, "%s (%s)", layer->name, layer->type->class_name);
    show_outputs(&shape, model, layer);
    fprintf(out, "│ %s │ %s │ %*s │\n", td_pad(name, NAME - 2, padded[0], sizeof padded[0]),
            td_pad(shape.chars ? shape.chars : "", SHAPE - 2, padded[1], sizeof padded[1]), COUNT - 2,
            with_commas(elements, count));
    tdi_text_free(&shape);
}

static void totals(const td_model *model, FILE *out)
{
    int64_t trained, all = td_parameter_count(model, &trained);
    char text[32];
    fprintf(out, " Total params: %s (%.2f KB)\n", with_commas(all, text), (double)all * 4 / 1024);
    fprintf(out, " Trainable params: %s (%.2f KB)\n", with_commas(trained, text), (double)trained * 4 / 1024);
    fprintf(out, " Non-trainable params: %s (%.2f KB)\n", with_commas(all - trained, text),
            (double)(all - trained) * 4 / 1024);
}

td_status td_summary(td_model *model, FILE *out)
{
    if (!model)
        return TD_INVALID_ARGUMENT;
    if (!out)
        return tdi_fail(&model->context->error, TD_INVALID_ARGUMENT, "td_summary: a FILE to write to was expected");
    char name[512];
    snprintf(name, sizeof name, "%s", model->architecture->name);
    fprintf(out, "Model: \"%s\"\n", td_printable(name));
    rule(out, "┏", "┳", "━", "┓");
    fprintf(out, "┃ %-*s ┃ %-*s ┃ %*s ┃\n", NAME - 2, "Layer (type)", SHAPE - 2, "Output Shape", COUNT - 2, "Param #");
    rule(out, "┡", "╇", "━", "┩");
    for (int i = 0; i < model->architecture->layers.count; i++) {
        if (model->architecture->sequential && model->architecture->layers.at[i]->type->min_in == 0)
            continue;
        row(model, model->architecture->layers.at[i], out);
    }
    rule(out, "└", "┴", "─", "┘");
    totals(model, out);
    if (model->state->optimizer.kind != TD_OPTIMIZER_NONE)
        fprintf(out, " Optimizer: %s, learning rate %g, %lld steps taken\n",
                tdi_config_type_of(tdi_optimizer_types, model->state->optimizer.kind)->class_name,
                (double)td_learning_rate(model), (long long)model->state->iteration);
    if (fflush(out) == 0 && !ferror(out))
        return TD_OK;
    return tdi_fail(&model->context->error, TD_IO, "the summary could not be written");
}
