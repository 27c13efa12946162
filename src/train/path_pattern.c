/* path_pattern.c - file names with an epoch's numbers in them. */
#include "train/path_pattern.h"

#include <stdlib.h>
#include <string.h>

typedef struct filling {
    const char *pattern;
    int epoch;
    int64_t batch;
    const td_logs *logs;
    char *path;
    size_t size, used;
} filling;

/* "{name:spec}" taken apart. */
typedef struct field {
    char name[48], spec[16];
} field;

static void put(filling *f, const char *text)
{
    size_t length = strlen(text);
    if (f->used + length < f->size)
        memcpy(f->path + f->used, text, length + 1);
    f->used += length;
}

/* The shortest digits that read back as the same number, as Python writes it. */
static void put_shortest(filling *f, double value)
{
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    put(f, text);
}

/* Width, precision and the letter. */
static bool read_spec(const char *spec, int *width, bool *zeros, int *precision, char *letter)
{
    char *end;
    *zeros = *spec == '0';
    *width = (int)strtol(spec, &end, 10);
    *precision = -1;
    if (*end == '.')
        *precision = (int)strtol(end + 1, &end, 10);
    *letter = *end ? *end++ : '\0';
    return !*end && *width >= 0 && *width < 64 && *precision < 32 && (!*letter || strchr("defg", *letter));
}

static bool put_whole(filling *f, const char *spec, int64_t value)
{
    int width, precision;
    bool zeros;
    char letter, text[80];
    if (!read_spec(spec, &width, &zeros, &precision, &letter) || (letter && letter != 'd') || precision >= 0)
        return false;
    snprintf(text, sizeof text, zeros ? "%0*lld" : "%*lld", width, (long long)value);
    put(f, text);
    return true;
}

static bool put_real(filling *f, const char *spec, double value)
{
    int width, precision;
    bool zeros;
    char letter, text[400];
    if (!*spec) {
        put_shortest(f, value);
        return true;
    }
    if (!read_spec(spec, &width, &zeros, &precision, &letter) || letter == 'd' || !letter)
        return false;
    precision = precision < 0 ? 6 : precision;
    if (letter == 'f')
        snprintf(text, sizeof text, zeros ? "%0*.*f" : "%*.*f", width, precision, value);
    else if (letter == 'e')
        snprintf(text, sizeof text, zeros ? "%0*.*e" : "%*.*e", width, precision, value);
    else
        snprintf(text, sizeof text, zeros ? "%0*.*g" : "%*.*g", width, precision, value);
    put(f, text);
    return true;
}

static td_status no_such_word(const filling *f, const char *name, tdi_error *error)
{
    char known[1024];
    int used = snprintf(known, sizeof known, f->batch ? "epoch, batch" : "epoch");
    for (int i = 0; i < f->logs->count && used < (int)sizeof known; i++)
        used += snprintf(known + used, sizeof known - (size_t)used, ", %s", f->logs->entry[i].name);
    return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: there is no {%s}; there are %.800s", f->pattern, name, known);
}

static td_status put_field(filling *f, const field *wanted, tdi_error *error)
{
    const double *log = tdi_log_value(f->logs, wanted->name);
    bool good;
    if (strcmp(wanted->name, "epoch") == 0)
        good = put_whole(f, wanted->spec, f->epoch);
    else if (f->batch && strcmp(wanted->name, "batch") == 0)
        good = put_whole(f, wanted->spec, f->batch);
    else if (log)
        good = put_real(f, wanted->spec, *log);
    else
        return no_such_word(f, wanted->name, error);
    if (good)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: {%s:%s}: expected a format as {epoch:02d} or {%s:.2f}", f->pattern,
                    wanted->name, wanted->spec, log ? wanted->name : "val_loss");
}

/* The length of "{name:spec}"; 0 when it is none. */
static size_t read_field(const char *at, field *found)
{
    size_t name = strcspn(at + 1, "{}:"), spec = 0;
    const char *end = at + 1 + name;
    if (*end == ':') {
        spec = strcspn(end + 1, "{}");
        end += 1 + spec;
    }
    if (*end != '}' || !name || name >= sizeof found->name || spec >= sizeof found->spec)
        return 0;
    *found = (field){0};
    memcpy(found->name, at + 1, name);
    memcpy(found->spec, end - spec, spec);
    return (size_t)(end + 1 - at);
}

td_status tdi_path_fill(const char *pattern, int epoch, int64_t batch, const td_logs *logs, char *path, size_t size,
                        tdi_error *error)
{
    filling f = {pattern, epoch, batch, logs, path, size, 0};
    path[0] = '\0';
    for (const char *at = pattern; *at;) {
        field wanted;
        size_t length = *at == '{' && at[1] != '{' ? read_field(at, &wanted) : 0;
        if (length) {
            TDI_TRY(put_field(&f, &wanted, error));
            at += length;
        } else if (*at == '{' && at[1] != '{') {
            return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: a brace without its other; {{ stands for one", pattern);
        } else {
            put(&f, (char[2]){*at, '\0'});
            at += (*at == '{' || *at == '}') && at[1] == *at ? 2 : 1;
        }
    }
    if (f.used >= size)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: the path is too long", pattern);
    return TD_OK;
}
