/* run_identity.h - what a backup must agree with to be resumed. */
#ifndef TDI_TRAIN_BACKUP_RUN_IDENTITY_H
#define TDI_TRAIN_BACKUP_RUN_IDENTITY_H

#include <jansson.h>

#include "data/source.h"
#include "model/model.h"

typedef struct tdi_run {
    tdi_source *train, *validation; /* NULL: none, or data that no two processes have in common */
    int64_t batch, steps;           /* the global batch; steps of an epoch */
    int64_t validation_steps;       /* 0: all */
    bool shuffle;
    int64_t shuffle_buffer;  /* 0: none */
    int64_t base_batch_size; /* this and the next two change the learning rate, as in td_fit_args */
    int warmup_epochs;
    bool momentum_correction;
} tdi_run;

/* *facts: an object of texts by their subjects ("batch size": "64"), with the model's configuration as its file has it
 * under "model", "optimizer", "loss", ... What a resumed run may change is left out. Data are identified by shapes and
 * types, by their source's fingerprint, and by a checksum of TDI_FACTS_SAMPLES samples spread over them, which are
 * read, and augmented, for it. */
enum { TDI_FACTS_SAMPLES = 64 };
td_status tdi_run_facts(const td_model *model, const tdi_run *run, json_t **facts, tdi_error *error);

/* TD_INVALID_ARGUMENT with the first fact that differs: its subject, what it was, and what it is now; `where` is the
 * backup's folder. */
enum { TDI_FACTS_TEXT = 200 };
td_status tdi_facts_refuse(const char *where, const char *about, const char *before, const char *after,
                           tdi_error *error);
/* The first fact that differs between two objects of facts, with its texts; false: none does. */
typedef struct tdi_facts_difference {
    char about[256]; /* "optimizer.momentum", "model.layers.dense_1.units" */
    char before[TDI_FACTS_TEXT], after[TDI_FACTS_TEXT];
} tdi_facts_difference;
bool tdi_facts_differ(const json_t *then, const json_t *now, tdi_facts_difference *difference);
td_status tdi_facts_compare(const json_t *then, const json_t *now, const char *where, tdi_error *error);

#endif
