/* source.h - where samples come from. A file format is one tdi_source_format; a stage wraps a source. */
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

/* One array of the data: an input or a target. */
typedef struct tdi_column {
    char name[64];  /* "x", "y", or the array's name in the file */
    td_shape shape; /* per sample; rank 0: a number */
    td_dtype dtype;
    const void *values; /* [samples, shape...] in `dtype` where all of them lie in memory as they are, else NULL; a
                         * source made of another one's columns clears or moves it */
    float scale; /* values are multiplied by this when read as floats; the float nearest to 1/n divides by n exactly */
} tdi_column;

/* What values that were gathered in the column's own dtype are still to be multiplied by. */
float tdi_stored_scale(const tdi_column *column);

/* Elements of one sample. */
int64_t tdi_sample_elements(const td_shape *shape);

/* Rows of a column whose `values` are in memory, packed, as scaled floats; `convert_bytes` is tdi_convert_bytes or does
 * the same faster. */
void tdi_gather_floats(const tdi_column *column, const int64_t *rows, int64_t count, float *to,
                       void (*convert_bytes)(const uint8_t *from, float *to, int64_t count, double scale));

#define TDI_SAMPLES_UNKNOWN (-1)

/* A pass over a source's samples: an epoch, an evaluation, a prediction. */
typedef struct tdi_source_pass {
    const int64_t *order; /* [samples] the rows in the order in which they will be gathered; borrowed until end */
    int64_t first;        /* place in the order where that begins: an epoch that is resumed had those before it */
    int64_t samples;      /* TDI_SAMPLES_UNKNOWN: all, of a stream of unknown length, which has no order; to gather a
                           * row behind its end is TD_STOPPED */
    int64_t batch;
    uint64_t seed;
    int64_t epoch;
    bool training;          /* random draws (augmentation), keyed by (seed, epoch, row), are wanted */
    int columns;            /* that will be gathered, each row of them once */
    const atomic_int *stop; /* NULL, or: once it is not 0 no other sample is to be made: TD_STOPPED */
} tdi_source_pass;

struct tdi_source {
    char name[256];  /* the path, for messages */
    int64_t samples; /* or TDI_SAMPLES_UNKNOWN */
    int n_x, n_y;    /* columns: inputs first, then targets */
    tdi_column columns[TDI_MAX_COLUMNS];
    int64_t skipped;        /* samples left out because they could not be read, where that was asked for */
    char skip_reason[1024]; /* the first of them: what was wrong */
    char *recipe;           /* td_data_recipe; freed by release; NULL: none */
    uint64_t stamp;         /* of the files: it changes with their sizes and times; 0: there are none */
    uint32_t content;       /* of the files, as far as opening them has shown it: copies have the same */
    bool sequential;        /* a stream: rows are to be gathered nearly in their order, and only within a pass */
    bool drawn;             /* samples change from one training epoch to the next */
    bool made;              /* a sample is decoded, or made by a function of the caller, when it is gathered: that may
                             * take long, so they are gathered one by one, and a stop is looked for in between */

    /* Writes samples rows[0 .. count) of a column, packed, as floats (scaled), as int32, or as they are stored (`as`:
     * the column's own dtype; float32 is scaled: see tdi_stored_scale). May be called by several threads at once.
     * `rows` are within [0, samples). A class number that no int32 holds is TD_BAD_FILE. */
    td_status (*gather)(tdi_source *source, int column, const int64_t *rows, int64_t count, void *to, td_dtype as,
                        tdi_error *error);
    /* Finds out how many samples there are, where that is not known; NULL: it cannot, or is known. As
     * tdi_source_count. */
    td_status (*count)(tdi_source *source, const char *or_else, const atomic_int *stop, tdi_error *error);
    /* Brackets a pass, for sources that work ahead or draw by the epoch; NULL when it is all the same. Every gather
     * outside of a pass (td_data_read) is without random draws. end follows every begin that succeeded. */
    td_status (*begin)(tdi_source *source, const tdi_source_pass *pass, tdi_error *error);
    void (*end)(tdi_source *source);
    void (*release)(tdi_source *source);
    /* Adds to a checksum `count` samples of a column whose values lie in files, as gather gives them when they are not
     * converted; NULL: the content says enough of them. `stop` as a pass's. */
    td_status (*checksum)(const tdi_source *source, int column, int64_t first, int64_t count, uint32_t *crc,
                          const atomic_int *stop, tdi_error *error);
    /* Of a stage: the index-th source that its samples come from; NULL behind the last. */
    const tdi_source *(*beneath)(const tdi_source *source, int index);
    /* Where a row comes from: the source below, with *row made its row there; NULL: nowhere else, with *row made the
     * number of the sample in the file. Without this function: row *row of the source that is beneath, if there is one.
     */
    const tdi_source *(*origin)(const tdi_source *source, int64_t *row);
};

/* What of td_open_args only some formats read. */
typedef enum tdi_open_field {
    TDI_OPEN_SCALE = 1,
    TDI_OPEN_IMAGE_SIZE = 2, /* its samples can be images */
    TDI_OPEN_FEATURES = 4,
    TDI_OPEN_MISSING = 8,
    TDI_OPEN_WINDOW = 16,
    TDI_OPEN_HORIZON = 32
} tdi_open_field;

typedef struct tdi_source_format {
    const char *name; /* "IDX directory" */
    unsigned reads;   /* tdi_open_fields */
    bool (*claims)(const char *path);
    td_status (*open)(const td_open_args *args, tdi_source **source, tdi_error *error); /* scale 0: the format's own */
    const char *when_large; /* ends the sentence that it cannot be opened for want of memory: ", or ..." */
} tdi_source_format;

extern const tdi_source_format *const tdi_source_formats[]; /* NULL-terminated, asked in order */

/* Opens by the first format that claims the path. TD_NOT_FOUND with the formats listed when none does;
 * TD_INVALID_ARGUMENT for a field that the format does not read. */
td_status tdi_source_open(const td_open_args *args, tdi_source **source, tdi_error *error);

/* Adds a file to the source's stamp; or words that say what of its files it reads. */
void tdi_source_stamp(tdi_source *source, const char *path);
void tdi_source_stamp_words(tdi_source *source, const char *words);

/* Adds to the source's content: bytes; or a file by its size. */
void tdi_source_content(tdi_source *source, const void *bytes, size_t size);
void tdi_source_content_file(tdi_source *source, const char *path);

/* The source at the bottom that a row comes from, which a person knows by its name; *row becomes the sample's number
 * there. */
const tdi_source *tdi_source_origin(const tdi_source *source, int64_t *row);

/* Adds to a checksum all of the arrays and what is known of other files. */
td_status tdi_source_fingerprint(const tdi_source *source, uint32_t *crc, const atomic_int *stop, tdi_error *error);

/* Makes sure that the number of samples is known; `stop` as a pass's. `or_else` is what else could be given (" or
 * steps_per_epoch"), "" when nothing. */
td_status tdi_source_count(tdi_source *source, const char *or_else, const atomic_int *stop, tdi_error *error);

/* The `count` of a stage that has as many samples as what is beneath it. */
td_status tdi_count_beneath(tdi_source *source, const char *or_else, const atomic_int *stop, tdi_error *error);

/* A source over functions of the caller; `args->user` is released even when this fails. */
td_status tdi_source_generator(const td_generator_args *args, tdi_source **source, tdi_error *error);

/* TD_STOPPED when the flag, which may be NULL, is set. */
td_status tdi_check_stop(const atomic_int *stop, tdi_error *error);

/* begin and end, where the source has them. */
td_status tdi_source_begin(tdi_source *source, const tdi_source_pass *pass, tdi_error *error);
void tdi_source_end(tdi_source *source);

struct td_data {
    atomic_int references;
    tdi_source *source; /* NULL: poison */
    tdi_error error;
};

/* A stage over `of`, which it adopts: the source that `make` makes of it, whose release releases `of`; or poison, which
 * is `of` itself when that is poison. */
typedef td_status tdi_stage_make(td_data *of, const void *args, tdi_source **source, tdi_error *error);
td_data *tdi_data_stage(td_data *of, const td_location *at, tdi_stage_make *make, const void *args);

/* Samples [first, first + count) of a source, which is borrowed. */
td_status tdi_source_range(tdi_source *whole, int64_t first, int64_t count, tdi_source **range, tdi_error *error);

/* The order that a buffer of `buffer` samples gives: one of those in it, by chance, is taken, and the next one put in
 * its place. No sample comes more than `buffer` - 1 places too early. Fixed by (seed, epoch). */
td_status tdi_buffered_order(int64_t *order, int64_t count, int64_t buffer, uint64_t seed, int64_t epoch,
                             tdi_error *error);

/* The order of an epoch: samples 0 .. count-1, permuted by (seed, epoch) when `shuffle`. */
void tdi_epoch_order(int64_t *order, int64_t count, bool shuffle, uint64_t seed, int64_t epoch);

#endif
