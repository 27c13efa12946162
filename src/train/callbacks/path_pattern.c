/* path_pattern.c - file names with an epoch's numbers in them. */
#include "train/callbacks/path_pattern.h"

#include <string.h>

#include "base/number_format.h"

typedef struct filling {
    const char *pattern;
    int epoch;
    int64_t batch;
    const td_logs *logs;
    bool open; /* there may be other logs, whose numbers nobody knows yet */
    tdi_text path;
} filling;

/* "{name:spec}" taken apart. */
typedef struct field {
    char name[TD_MAX_LOG_NAME], spec[64];
} field;

static td_status no_such_name(const filling *f, const char *name, tdi_error *error)
{
    char known[1024];
    int used = snprintf(known, sizeof known, f->batch ? "{epoch}, {batch}" : "{epoch}");
    for (int i = 0; i < f->logs->count && used < (int)sizeof known; i++)
        used += snprintf(known + used, sizeof known - (size_t)used, ", {%s}", f->logs->entry[i].name);
    return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: there is no {%s}; there are %.800s", f->pattern, name, known);
}

static td_status put_field(filling *f, const field *wanted, tdi_error *error)
{
    const double *log = tdi_log_value(f->logs, wanted->name), unknown = 0;
    bool epoch = strcmp(wanted->name, "epoch") == 0, batch = f->batch && strcmp(wanted->name, "batch") == 0;
    if (!epoch && !batch && !log && !f->open)
        return no_such_name(f, wanted->name, error);
    const char *wrong = epoch || batch ? tdi_format_int(epoch ? f->epoch : f->batch, wanted->spec, &f->path)
                                       : tdi_format_float(log ? *log : unknown, wanted->spec, &f->path);
    if (!wrong)
        return TD_OK;
    return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: {%s:%s}: %s; try {%s:%s}", f->pattern, wanted->name, wanted->spec,
                    wrong, wanted->name, epoch || batch ? "02d" : ".2f");
}

static td_status refuse_brace(const char *pattern, char brace, tdi_error *error)
{
    return tdi_fail(error, TD_INVALID_ARGUMENT, "%s: %s; %c%c stands for one", pattern,
                    brace == '{' ? "a { opens what is no {name} or {name:format}" : "a } closes nothing", brace, brace);
}

/* The length of "{name:spec}"; 0 when it is none. */
static size_t read_field(const char *at, field *found)
{
    size_t name = strcspn(at + 1, "{}:!"), spec = 0;
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

static td_status fill(filling *f, tdi_error *error)
{
    for (const char *at = f->pattern; *at;) {
        field wanted;
        bool brace = *at == '{' || *at == '}', doubled = brace && at[1] == *at;
        size_t length = *at == '{' && !doubled ? read_field(at, &wanted) : 0;
        if (brace && !doubled && !length)
            return refuse_brace(f->pattern, *at, error);
        if (length)
            TDI_TRY(put_field(f, &wanted, error));
        else
            tdi_text_add(&f->path, (char[2]){*at, '\0'});
        at += length ? length : doubled ? 2 : 1;
    }
    return f->path.failed ? tdi_no_memory(error) : TD_OK;
}

td_status tdi_path_fill(const char *pattern, int epoch, int64_t batch, const td_logs *logs, char *path, size_t size,
                        tdi_error *error)
{
    filling f = {.pattern = pattern, .epoch = epoch, .batch = batch, .logs = logs};
    td_status status = fill(&f, error);
    if (status == TD_OK && f.path.length >= size)
        status = tdi_fail(error, TD_INVALID_ARGUMENT, "%.200s...: the path is too long", pattern);
    if (status == TD_OK)
        memcpy(path, f.path.chars ? f.path.chars : "", f.path.length + 1);
    tdi_text_free(&f.path);
    return status;
}

td_status tdi_path_check(const char *pattern, bool batch, const td_logs *names, bool open, tdi_error *error)
{
    filling f = {.pattern = pattern, .epoch = 1, .batch = batch, .logs = names, .open = open};
    td_status status = fill(&f, error);
    tdi_text_free(&f.path);
    return status;
}
