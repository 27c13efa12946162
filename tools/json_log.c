/* json_log.c - writes JSON lines (RFC 8259). Numbers keep every bit; numbers that are not finite become null. */
#include "json_log.h"

#include <math.h>
#include <string.h>

static void put_string(FILE *file, const char *text)
{
    putc('"', file);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(file, "\\%c", c);
        else if (c < 0x20)
            fprintf(file, "\\u%04x", c);
        else
            putc(c, file);
    }
    putc('"', file);
}

static void put_number(FILE *file, const char *name, double value)
{
    fputs(", ", file);
    put_string(file, name);
    if (isfinite(value))
        fprintf(file, ": %.17g", value);
    else
        fputs(": null", file);
}

/* Ends a line that was cut short. What cannot be read, as a pipe, has none. */
static void begin_line(FILE *file)
{
    if (fseek(file, -1, SEEK_END) != 0)
        return;
    int last = getc(file);
    fseek(file, 0, SEEK_END);
    if (last != EOF && last != '\n')
        putc('\n', file);
}

/* Skips a learning rate among the logs, which a callback may have added: every line has it at its end. */
int log_epoch(FILE *file, const td_epoch *epoch)
{
    begin_line(file);
    fprintf(file, "{\"epoch\": %d", epoch->epoch);
    for (int i = 0; i < epoch->logs.count; i++)
        if (strcmp(epoch->logs.entry[i].name, "learning_rate") != 0)
            put_number(file, epoch->logs.entry[i].name, epoch->logs.entry[i].value);
    fprintf(file, ", \"steps\": %lld, \"samples\": %lld", (long long)epoch->steps, (long long)epoch->samples);
    put_number(file, "seconds", epoch->seconds);
    put_number(file, "seconds_waiting", epoch->seconds_waiting);
    put_number(file, "learning_rate", epoch->learning_rate);
    fputs("}\n", file);
    return fflush(file) == 0 && !ferror(file) ? 0 : -1;
}
