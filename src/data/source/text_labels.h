/* text_labels.h - labels that are texts, as b"cat" and b"dog" in TFRecords: classes, numbered in the order of their
 * names. Where all of them are numbers, as b"0" and b"1", the labels are these numbers. */
#ifndef TDI_DATA_SOURCE_TEXT_LABELS_H
#define TDI_DATA_SOURCE_TEXT_LABELS_H

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"

typedef struct tdi_text_labels {
    tdi_vec(char *) names; /* of the classes, sorted */
    bool numbers;          /* the labels are numbers, and there are no classes */
} tdi_text_labels;

/* False for bytes that are no text, such as raw pixels: they have control characters. */
bool tdi_is_text(const uint8_t *bytes, size_t size);

/* Adds a label that a record has, if it is new. TD_BAD_FILE when it is not UTF-8, TD_UNSUPPORTED when there are more
 * than classes can be. The sentence does not name the record. */
td_status tdi_text_labels_add(tdi_text_labels *labels, const uint8_t *bytes, size_t size, tdi_error *error);
/* Called when all labels are known: finds out whether they are numbers. */
void tdi_text_labels_end(tdi_text_labels *labels);

/* Sets *value to the label's class number, or number. TD_BAD_FILE, naming the labels that are known, when it is none of
 * them. */
td_status tdi_text_labels_find(const tdi_text_labels *labels, const uint8_t *bytes, size_t size, double *value,
                               tdi_error *error);

/* For recipes: a list of names, or "numbers"; and the way back, false when `json` is neither. */
json_t *tdi_text_labels_json(const tdi_text_labels *labels);
bool tdi_text_labels_restore(tdi_text_labels *labels, const json_t *json);

void tdi_text_labels_release(tdi_text_labels *labels);

#endif
