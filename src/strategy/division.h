/* division.h - how a compiled model's work is divided: the strategy turned into parts, workers and lanes. */
#ifndef TDI_STRATEGY_DIVISION_H
#define TDI_STRATEGY_DIVISION_H

#include "device/device.h"
#include "model/model.h"

#define TDI_MAX_PARTS 256

typedef struct tdi_division {
    int replicas;  /* as the user counts them: devices */
    int parts;     /* slices of the global batch */
    int groups;    /* that share batch statistics: some parts each, or several in a part */
    int workers;   /* threads with a communicator handle each; worker w computes parts [w * parts / workers, ...) */
    int lanes;     /* threads per worker that share its ops */
    bool either;   /* rows among workers or ops among lanes: the results are the same, which is faster is a guess */
    char why[256]; /* one sentence for explain */
} tdi_division;

/* Parses "cpu", "cpu:0,cpu:1", "all" and opens the devices: at most TDI_MAX_PARTS. The caller closes them. */
td_status tdi_open_devices(const char *list, tdi_device **devices, int *count, tdi_error *error);
void tdi_close_devices(tdi_device **devices, int count);

/* Chooses from the devices' lanes, the strategy and the model. The rules:
 * - shards: one part each, on one lane, statistics per shard;
 * - devices of one memory are computed as one, each with batch statistics of its own where these are per replica;
 * - networks without convolutions are divided by columns among lanes, the others by rows among workers: each has whole
 *   replicas of those, or each of those whole workers. */
td_status tdi_divide(const td_model *model, tdi_device *const *devices, int count, tdi_division *division,
                     tdi_error *error);
/* The same for `count` devices that come to so many cores. */
td_status tdi_divide_cores(const td_model *model, int count, int cores, tdi_division *division, tdi_error *error);
/* The other way to use the same cores, of a division that could be `either`. */
tdi_division tdi_divide_otherwise(const tdi_division *division);
/* Would workers have none of so few rows, where lanes could share each of them; and the division in which they do: the
 * workers have rows, their lanes are what cores there are. */
bool tdi_has_too_few(const tdi_division *division, int64_t rows);
tdi_division tdi_divide_few(const tdi_division *division, int64_t rows);
/* The division of the same cores in which a run with batches of `rows` had so many parts; false: none would have. */
bool tdi_divide_again(const tdi_division *division, int parts, int64_t rows, tdi_division *again);

/* Has the model statistics that each replica takes on its own? */
bool tdi_has_statistics_per_replica(const td_model *model);

#endif
