/* sample_reader.c - gathers samples that are read one at a time, and drops those that cannot be read. */
#include "data/sample_reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "data/convert.h"

void *tdi_sample_reader_create(size_t size, const char *name, void (*release)(tdi_source *source), tdi_error *error)
{
    tdi_source *source = calloc(1, size);
    if (!source) {
        tdi_no_memory(error);
        return NULL;
    }
    snprintf(source->name, sizeof source->name, "%s", name);
    source->gather = tdi_sample_reader_gather;
    source->release = release;
    return source;
}

/* ---- class numbers ---- */

static td_status not_a_class(const tdi_source *source, int column, int64_t row, const char *element, tdi_error *error)
{
    const tdi_column *facts = &source->columns[column];
    char value[48];
    int64_t whole;
    double precise;
    float number;
    if (facts->dtype == TD_INT64) {
        memcpy(&whole, element, sizeof whole);
        snprintf(value, sizeof value, "%" PRId64, whole);
    } else if (facts->dtype == TD_FLOAT64) {
        memcpy(&precise, element, sizeof precise);
        snprintf(value, sizeof value, "%.17g", precise);
    } else {
        tdi_convert_floats(facts->dtype, element, &number, 1, 1);
        snprintf(value, sizeof value, "%.9g", (double)number);
    }
    const tdi_source *origin = tdi_source_origin(source, &row);
    return tdi_fail(error, TD_BAD_FILE,
                    "%s: %s of sample %" PRId64 " is %s, which is not %s (a whole number that 32 bits hold): %s",
                    origin->name, facts->name, row, value, column < source->n_x ? "an index" : "a class number",
                    column < source->n_x ? "the model looks rows up by it"
                                         : "give class numbers, or a loss for such targets");
}

td_status tdi_sample_classes(const tdi_source *source, int column, int64_t row, const void *from, int32_t *to,
                             tdi_error *error)
{
    const tdi_column *facts = &source->columns[column];
    int64_t bad = tdi_convert_classes(facts->dtype, from, to, tdi_sample_elements(&facts->shape));
    if (bad < 0)
        return TD_OK;
    return not_a_class(source, column, row, (const char *)from + (size_t)bad * td_dtype_size(facts->dtype), error);
}

/* ---- gathering ---- */

enum { PIECE = 1 << 18 }; /* bytes of samples that are read and then converted together */

static int64_t row_of(const tdi_sample_reader *reader, int64_t row)
{
    return reader->kept ? reader->kept[row] : row;
}

/* The number of rows, at most `most`, that follow each other in the file. */
static int64_t run_of(const tdi_sample_reader *reader, const int64_t *rows, int64_t count, int64_t most)
{
    int64_t run = 1;
    while (run < count && run < most && row_of(reader, rows[run]) == row_of(reader, rows[0]) + run)
        run++;
    return run;
}

static td_status read_samples(tdi_sample_reader *reader, int column, int64_t first, int64_t count, void *to,
                              tdi_error *error)
{
    return reader->read_run ? reader->read_run(reader, column, first, count, to, error)
                            : reader->read(reader, column, first, to, error);
}

static td_status convert(const tdi_source *source, int column, const int64_t *rows, int64_t count, const char *from,
                         void *to, td_dtype as, tdi_error *error)
{
    const tdi_column *facts = &source->columns[column];
    int64_t elements = tdi_sample_elements(&facts->shape);
    if (as == TD_FLOAT32) {
        tdi_convert_floats(facts->dtype, from, to, elements * count, tdi_exact_scale(facts->scale));
        return TD_OK;
    }
    size_t stored = tdi_column_bytes(facts);
    for (int64_t i = 0; i < count; i++)
        TDI_TRY(tdi_sample_classes(source, column, rows[i], from + (size_t)i * stored, (int32_t *)to + i * elements,
                                   error));
    return TD_OK;
}

td_status tdi_sample_reader_gather(tdi_source *source, int column, const int64_t *rows, int64_t count, void *to,
                                   td_dtype as, tdi_error *error)
{
    tdi_sample_reader *reader = (tdi_sample_reader *)source;
    const tdi_column *facts = &source->columns[column];
    size_t elements = (size_t)tdi_sample_elements(&facts->shape);
    size_t stored = tdi_column_bytes(facts), made = elements * td_dtype_size(as);
    bool in_place = as == facts->dtype && (as != TD_FLOAT32 || facts->scale == 1);
    int64_t most = reader->read_run ? 1 + PIECE / (int64_t)stored : 1;
    char *piece = in_place ? NULL : malloc((size_t)(most < count ? most : count) * stored + 1);
    if (!in_place && !piece)
        return tdi_no_memory(error);
    td_status status = TD_OK;
    for (int64_t i = 0, run; i < count && status == TD_OK; i += run) {
        char *at = (char *)to + (size_t)i * made;
        run = run_of(reader, rows + i, count - i, in_place && reader->read_run ? count : most);
        status = read_samples(reader, column, row_of(reader, rows[i]), run, in_place ? at : piece, error);
        if (status == TD_OK && !in_place)
            status = convert(source, column, rows + i, run, piece, at, as, error);
    }
    free(piece);
    return status;
}

/* ---- dropping samples that cannot be read ---- */

/* The work of tdi_sample_reader_drop_bad. */
typedef struct check {
    tdi_sample_reader *reader;
    int threads;
    bool *bad;         /* [samples] */
    tdi_error *failed; /* [threads] a failure that ends the check */
    tdi_error *reason; /* [threads] why the thread's first bad sample cannot be read */
} check;

static td_status read_sample(tdi_sample_reader *reader, int64_t row, void *scratch, tdi_error *error)
{
    const tdi_source *source = &reader->source;
    for (int column = 0; column < tdi_source_columns(source); column++)
        TDI_TRY(read_samples(reader, column, row, 1, scratch, error));
    return TD_OK;
}

static size_t largest_sample(const tdi_source *source)
{
    size_t largest = 1;
    for (int i = 0; i < tdi_source_columns(source); i++) {
        size_t size = tdi_column_bytes(&source->columns[i]);
        largest = size > largest ? size : largest;
    }
    return largest;
}

/* Each thread checks consecutive samples, so that the first bad sample of all is the first one of the first thread that
 * has one. */
static void check_share(void *argument, int index)
{
    check *work = argument;
    int64_t samples = work->reader->source.samples;
    int64_t first = samples * index / work->threads, end = samples * (index + 1) / work->threads;
    void *scratch = malloc(largest_sample(&work->reader->source));
    if (!scratch)
        tdi_no_memory(&work->failed[index]);
    for (int64_t row = first; row < end && work->failed[index].status == TD_OK; row++) {
        tdi_error error = {0};
        td_status status = read_sample(work->reader, row, scratch, &error);
        work->bad[row] = status == TD_BAD_FILE;
        if (status == TD_BAD_FILE && work->reason[index].status == TD_OK)
            work->reason[index] = error;
        else if (status != TD_OK && status != TD_BAD_FILE)
            work->failed[index] = error;
    }
    free(scratch);
}

static const tdi_source *kept_origin(const tdi_source *source, int64_t *row)
{
    *row = row_of((const tdi_sample_reader *)source, *row);
    return NULL;
}

static td_status keep_good(const check *work, tdi_error *error)
{
    tdi_sample_reader *reader = work->reader;
    tdi_source *source = &reader->source;
    int64_t kept = 0;
    reader->kept = malloc((size_t)source->samples * sizeof *reader->kept);
    if (!reader->kept)
        return tdi_no_memory(error);
    for (int64_t row = 0; row < source->samples; row++)
        if (!work->bad[row])
            reader->kept[kept++] = row;
    const char *reason = NULL;
    for (int i = 0; i < work->threads && !reason; i++)
        reason = work->reason[i].status != TD_OK ? work->reason[i].message : NULL;
    if (!kept)
        return tdi_fail(error, TD_BAD_FILE, "%s: not one of its %" PRId64 " samples can be read; the first: %s",
                        source->name, source->samples, reason ? reason : "there is none");
    if (reason && !source->skipped)
        snprintf(source->skip_reason, sizeof source->skip_reason, "%s", reason);
    source->skipped += source->samples - kept;
    source->samples = kept;
    source->origin = kept_origin;
    return TD_OK;
}

static td_status check_all(check *work, tdi_error *error)
{
    tdi_team *team;
    TDI_TRY(tdi_team_create(work->threads, &team, error));
    tdi_team_run(team, work->threads, check_share, work);
    tdi_team_free(team);
    for (int i = 0; i < work->threads; i++)
        if (work->failed[i].status != TD_OK)
            return tdi_fail(error, work->failed[i].status, "%s", work->failed[i].message);
    return keep_good(work, error);
}

td_status tdi_sample_reader_drop_bad(tdi_sample_reader *reader, tdi_error *error)
{
    check work = {.reader = reader, .threads = tdi_cores_allowed()};
    work.bad = calloc((size_t)reader->source.samples, sizeof *work.bad);
    work.failed = calloc((size_t)work.threads, sizeof *work.failed);
    work.reason = calloc((size_t)work.threads, sizeof *work.reason);
    td_status status = work.bad && work.failed && work.reason ? check_all(&work, error) : tdi_no_memory(error);
    free(work.bad);
    free(work.failed);
    free(work.reason);
    return status;
}
