/* source.h - where samples come from: the interface of sources, and what every source shares.
 *
 * A source gives any rows of any of its columns, from any thread. A file format is a tdi_source_format whose `open`
 * makes a source (src/data/source/); a stage is a source over another one that changes samples or selects rows
 * (src/data/stage/). To add a format:
 *
 * - src/data/source/<name>.c: a tdi_source_format, declared below and listed in source.c. Arrays that are read at once
 *   fill a tdi_table (array_table.h); samples that are read or decoded one by one derive from tdi_sample_reader
 *   (sample_reader.h). Headers are never believed: sizes are compared with the file before memory is allocated. Files
 *   that fit into memory are read whole, not mapped, because a mapped file that someone truncates ends the process with
 *   a signal.
 * - A test in tests/data/, a fuzz target tests/fuzz/fuzz_<name>.c with seeds in tests/fuzz/seeds/fuzz_<name>/. */
#ifndef TDI_DATA_SOURCE_H
#define TDI_DATA_SOURCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <tandem/data.h>
#include <tandem/generators.h>

#include "base/error.h"

#define TDI_MAX_COLUMNS 8
#define TDI_MAX_IMAGE   65500 /* pixels of an image's height and width, as in a JPEG file */

typedef struct tdi_source tdi_source;

/* What a column is; columns stand in this order. */
typedef enum tdi_column_role { TDI_X, TDI_Y, TDI_WEIGHT } tdi_column_role;

/* One array of the data: an input, a target or weights, [samples, shape...]. */
typedef struct tdi_column {
    char name[64];      /* "x", "y", "sample_weight", or the array's name in the file */
    td_shape shape;     /* per sample; rank 0: a number */
    td_dtype dtype;     /* as stored */
    const void *values; /* [samples, shape...] in `dtype` when all of them lie in memory, else NULL. A stage that copies
                         * a column clears this, or moves it to its own first row. */
    float scale;        /* factor of values read as floats; the float nearest to 1/n divides by n exactly */
} tdi_column;

/* The factor that remains to be applied to values gathered in the column's own dtype: gather has scaled float32. */
float tdi_stored_scale(const tdi_column *column);

/* The number of elements of one sample. */
int64_t tdi_sample_elements(const td_shape *shape);

/* The bytes of one stored sample of a column. */
size_t tdi_column_bytes(const tdi_column *column);

/* Gathers rows[0 .. count) of a column whose `values` are in memory, as scaled floats, packed. `convert_bytes` is
 * tdi_convert_bytes or a device's faster loop with the same results. */
void tdi_gather_floats(const tdi_column *column, const int64_t *rows, int64_t count, float *to,
                       void (*convert_bytes)(const uint8_t *from, float *to, int64_t count, double scale));

#define TDI_SAMPLES_UNKNOWN (-1)

/* One run over a source's samples: an epoch, an evaluation, a prediction. */
typedef struct tdi_source_run {
    const int64_t *order; /* [samples] the rows in the order in which they will be gathered; borrowed until `end` */
    int64_t first;        /* place in the order where gathering begins; above 0 when an epoch is resumed */
    int64_t samples;      /* TDI_SAMPLES_UNKNOWN: a stream of unknown length is gathered to its end, without an order;
                           * a row behind its end gives TD_STOPPED */
    int64_t batch;        /* rows of a step */
    uint64_t seed;
    int64_t epoch;
    bool training;          /* augmentation draws at random, keyed by (seed, epoch, row) */
    int columns;            /* number of columns that will be gathered, each row of them once */
    const atomic_int *stop; /* once it is not 0 no further sample is made, and gather gives TD_STOPPED; NULL: never */
} tdi_source_run;

/* A source. Formats and stages derive from it: it is the first member of their own struct.
 *
 * `gather`, `beneath` and `origin` may be called by several threads at once. The others are called by the thread that
 * trains, evaluates or predicts; two such threads may share a td_data, so that one run begins while another is under
 * way, and a source that serves one run at a time refuses the second. Every function may block on reading files or,
 * where samples come from the user's functions, on those. */
struct tdi_source {
    char name[256];    /* the path, for messages */
    int64_t samples;   /* number of samples, or TDI_SAMPLES_UNKNOWN */
    int n_x, n_y, n_w; /* numbers of columns: inputs come first, then targets, then weights of the losses: one that all
                        * outputs share, or one for each target */
    tdi_column columns[TDI_MAX_COLUMNS];
    int64_t skipped;        /* number of samples left out because they cannot be read, where the user asked for that */
    char skip_reason[1024]; /* what was wrong with the first of them */
    char note[1024];  /* what opening found that its user should know: files, arrays or columns that are not used; "":
                       * nothing */
    char advice[512]; /* ends the sentence of a shape that the model does not take: "; choose columns by ..." */
    char *recipe;     /* JSON, see recipe.h; freed by `release`; NULL: none */
    uint64_t stamp;   /* hash of the files' sizes and times; 0: there are no files */
    uint32_t content; /* checksum of what opening has read of the files; copies of the files have the same */
    bool sequential;  /* a stream: rows are gathered nearly in order, and only between begin and end */
    bool by_class;    /* samples of a class stand one behind the other, so that the last ones are of few classes */
    bool drawn;       /* samples differ from one training epoch to the next */
    td_data *of;      /* of a stage over one source: the data below; NULL: the source is no such stage */
    bool on_demand;   /* gathering a sample decodes it or calls a function of the user, which may take long: rows
                       * are gathered one by one, and `stop` is checked in between */

    /* Writes rows[0 .. count) of a column to `to`, packed. `as` is TD_FLOAT32 (scaled), TD_INT32 or the column's own
     * dtype (unscaled but for float32: see tdi_stored_scale). Called from any thread, several at once, for rows within
     * [0, samples). TD_BAD_FILE: a sample cannot be read, or a class number does not fit into int32. TD_STOPPED: the
     * run's `stop` is set, or a stream has ended. Never NULL. */
    td_status (*gather)(tdi_source *source, int column, const int64_t *rows, int64_t count, void *to, td_dtype as,
                        tdi_error *error);

    /* Sets `samples` of a source that does not know it, by reading its data. Called by tdi_source_count, which
     * describes the arguments. NULL: the number is known, or cannot be found out. */
    td_status (*count)(tdi_source *source, const char *or_else, const atomic_int *stop, tdi_error *error);

    /* Begins a run. Called before the run's first gather. The source may start threads, draw random numbers for the
     * epoch, or seek. Outside of a run (td_data_read) gather makes no random draws. TD_INVALID_ARGUMENT: the source
     * serves one run at a time, and another is under way. NULL: all runs are alike. */
    td_status (*begin)(tdi_source *source, const tdi_source_run *run, tdi_error *error);

    /* Ends a run; called once after every `begin` that succeeded, whatever happened in between. NULL: nothing to do. */
    void (*end)(tdi_source *source);

    /* Frees the source. Called once, by its owner: the td_data when its last reference is released. Never NULL. */
    void (*release)(tdi_source *source);

    /* Adds `count` samples of a column, from `first` on, to a CRC-32C, as gather gives them unconverted. Called when a
     * backup identifies its data. TD_STOPPED when `stop` is set. NULL: `content` identifies the values well enough, or
     * they are in `values`. */
    td_status (*checksum)(const tdi_source *source, int column, int64_t first, int64_t count, uint32_t *crc,
                          const atomic_int *stop, tdi_error *error);

    /* Of a stage: the source number `index` that its samples come from, or NULL behind the last. Called from any thread
     * and does not block. NULL: the source is no stage. */
    const tdi_source *(*beneath)(const tdi_source *source, int index);

    /* Translates a row for messages: returns the source below and sets *row to the row there. Returns NULL when the
     * source is itself the origin, with *row the number of the sample in the file. Called from any thread and does not
     * block. NULL: row *row of beneath(0), if there is one. */
    const tdi_source *(*origin)(const tdi_source *source, int64_t *row);
};

/* The members of td_open_args that only some formats read; bits. */
typedef enum tdi_open_field {
    TDI_OPEN_SCALE = 1,
    TDI_OPEN_IMAGE_SIZE = 2, /* read by formats whose samples can be images */
    TDI_OPEN_FEATURES = 4,
    TDI_OPEN_MISSING = 8,
    TDI_OPEN_WINDOW = 16,
    TDI_OPEN_HORIZON = 32,
    TDI_OPEN_HEADER = 64,
    TDI_OPEN_SAMPLE_WEIGHT = 128
} tdi_open_field;

/* The number of all its columns. */
static inline int tdi_source_columns(const tdi_source *source)
{
    return source->n_x + source->n_y + source->n_w;
}

/* The number of columns of a role, to be counted up when one is added. */
static inline int *tdi_source_count_of(tdi_source *source, tdi_column_role role)
{
    return role == TDI_X ? &source->n_x : role == TDI_Y ? &source->n_y : &source->n_w;
}

/* A file format. Its functions are called by the thread that calls td_open. */
typedef struct tdi_source_format {
    const char *name; /* as messages say it: "IDX directory" */
    unsigned reads;   /* tdi_open_fields; others are refused when they are given */

    /* True when the path looks like this format's, by its name or its first bytes. Asked in the order of
     * tdi_source_formats until one is true. */
    bool (*claims)(const char *path);

    /* Opens a path that `claims` accepted; args->scale 0 means the format's own. On failure *source stays unset.
     * TD_BAD_FILE, TD_NOT_FOUND, TD_IO, TD_UNSUPPORTED or TD_INVALID_ARGUMENT with a sentence that names the path;
     * TD_NO_MEMORY is given a sentence by the caller. */
    td_status (*open)(const td_open_args *args, tdi_source **source, tdi_error *error);

    const char *when_large; /* how that sentence ends, after "allow it more": ", or ..." */
} tdi_source_format;

/* The formats; a new one is declared here and listed in source.c. */
extern const tdi_source_format tdi_source_idx, tdi_source_npz, tdi_source_npy, tdi_source_tfrecord, tdi_source_images,
    tdi_source_csv, tdi_source_hdf5, tdi_source_text;
extern const tdi_source_format *const tdi_source_formats[]; /* ends with NULL */

/* Opens by the first format that claims the path. TD_NOT_FOUND, listing the formats, when none does;
 * TD_INVALID_ARGUMENT for a field that the format does not read. */
td_status tdi_source_open(const td_open_args *args, tdi_source **source, tdi_error *error);

/* Adds a file's size and time, or words that say how files are read, to the source's stamp. */
void tdi_source_stamp(tdi_source *source, const char *path);
void tdi_source_stamp_words(tdi_source *source, const char *words);

/* Adds bytes, or a file's size, to the source's content. */
void tdi_source_content(tdi_source *source, const void *bytes, size_t size);
void tdi_source_content_file(tdi_source *source, const char *path);

/* The source at the bottom that a row comes from, whose name the user knows; *row becomes the sample's number there. */
const tdi_source *tdi_source_origin(const tdi_source *source, int64_t *row);

/* Adds the data beneath the source to a CRC-32C: arrays by their values, other files by their content. TD_STOPPED when
 * `stop` is set. */
td_status tdi_source_fingerprint(const tdi_source *source, uint32_t *crc, const atomic_int *stop, tdi_error *error);

/* Makes sure that `samples` is known. `or_else` ends the sentence of a failure with what the user could give instead
 * (" or steps_per_epoch"), "" for nothing. TD_STOPPED when `stop` is set. */
td_status tdi_source_count(tdi_source *source, const char *or_else, const atomic_int *stop, tdi_error *error);

/* Sets *opened to the source when `status`, that of filling it, is TD_OK, else releases it. Returns `status`. */
td_status tdi_source_finish(tdi_source *source, td_status status, tdi_source **opened);

/* Makes *stage a copy of the source of `of` that passes runs and counts on to it. The stage then sets what it does
 * differently: gather and release at least, the columns that it changes, and `checksum` and `origin`, which are NULL.
 */
void tdi_stage_init(tdi_source *stage, td_data *of);

/* The source below a stage over one source. */
tdi_source *tdi_stage_below(const tdi_source *stage);

/* The `release` of such a stage that owns nothing else. */
void tdi_stage_release(tdi_source *stage);

/* Makes a source of arrays in the user's memory, which are borrowed until it is released. */
td_status tdi_source_arrays(const td_arrays_args *args, tdi_source **source, tdi_error *error);

/* Makes a source over functions of the user. args->user is released even when this fails. */
td_status tdi_source_generator(const td_generator_args *args, tdi_source **source, tdi_error *error);

/* Call the source's begin and end, where it has them. */
td_status tdi_source_begin(tdi_source *source, const tdi_source_run *run, tdi_error *error);
void tdi_source_end(tdi_source *source);

/* The handle that users hold: a source with a count of its owners, or the reason why there is none. */
struct td_data {
    atomic_int references;
    tdi_source *source; /* NULL: poison */
    tdi_error error;    /* of poison */
};

/* The body of every public stage function. Adopts `of` and returns a handle of the source that `make` makes over it,
 * whose release releases `of`. Returns poison when `make` fails, and `of` itself when that is poison. */
typedef td_status tdi_stage_make(td_data *of, const void *args, tdi_source **source, tdi_error *error);
td_data *tdi_data_stage(td_data *of, const td_location *at, tdi_stage_make *make, const void *args);

/* Makes a source of the samples [first, first + count) of `whole`, which is borrowed. */
td_status tdi_source_range(tdi_source *whole, int64_t first, int64_t count, tdi_source **range, tdi_error *error);

/* Makes a source of the samples rows[0 .. count) of `whole`; both are borrowed. */
td_status tdi_source_rows(tdi_source *whole, const int64_t *rows, int64_t count, tdi_source **range, tdi_error *error);

/* Fills order[0 .. count) with the samples of an epoch: 0 .. count - 1, permuted by (seed, epoch) when `shuffle`. */
void tdi_epoch_order(int64_t *order, int64_t count, bool shuffle, uint64_t seed, int64_t epoch);

/* Fills order[0 .. count) with the order of a shuffle buffer of `buffer` samples, fixed by (seed, epoch): a random
 * sample leaves the buffer and the next one takes its place. No sample comes more than buffer - 1 places too early. */
td_status tdi_buffered_order(int64_t *order, int64_t count, int64_t buffer, uint64_t seed, int64_t epoch,
                             tdi_error *error);

#endif
