/* explain_json.c - a plan as JSON, for programs that reckon with its operations and bytes. */
#include "plan/inside.h"

static void write_string(const char *string, FILE *out)
{
    putc('"', out);
    for (const unsigned char *c = (const unsigned char *)string; *c; c++)
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if (*c < ' ')
            fprintf(out, "\\u%04x", *c);
        else
            putc(*c, out);
    putc('"', out);
}

static void write_member(const char *name, const char *value, FILE *out)
{
    fprintf(out, ", \"%s\": ", name);
    write_string(value, out);
}

static void write_step(const tdi_plan *plan, const tdi_planned *step, FILE *out)
{
    char shape[TDI_SHAPE_TEXT];
    fprintf(out, "{\"flops\": %.0f, \"bytes\": %.0f, \"once\": %s, \"barrier\": %s, \"shape\": %s",
            tdi_planned_flops(step), tdi_planned_bytes(plan, step), step->node->once ? "true" : "false",
            step->barrier ? "true" : "false", tdi_shape_text(&tdi_placed_of(plan, step->node)->shape, shape));
    write_member("layer", step->node->scope, out);
    write_member("op", step->node->op->name, out);
    write_member("kernel", step->kernel ? step->kernel->name : "reference", out);
    write_member("share", tdi_planned_share(plan, step), out);
    putc('}', out);
}

void tdi_plan_explain_json(const tdi_plan *plan, FILE *out)
{
    bool first = true;
    fprintf(out, "\"activation_bytes\": %lld, \"scratch_bytes\": %zu,\n\"steps\": [\n",
            (long long)plan->activation_bytes, plan->scratch_bytes);
    for (int s = 0; s < plan->n_steps; s++) {
        const tdi_planned *step = &plan->planned[s];
        if (!step->node)
            continue;
        fputs(first ? "" : ",\n", out);
        write_step(plan, step, out);
        first = false;
    }
    fputs("\n]", out);
}
