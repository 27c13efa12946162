/* tfrecord_feature.h - the features of one record, a tf.train.Example or tf.train.SequenceExample: what they hold. */
#ifndef TDI_DATA_SOURCE_TFRECORD_FEATURE_H
#define TDI_DATA_SOURCE_TFRECORD_FEATURE_H

#include <files/example.pb-c.h>
#include <stdbool.h>

#include "files/image_codec.h"

typedef enum tdi_feature_kind {
    TDI_FEATURE_IMAGE, /* JPEG or PNG, decoded to bytes [height, width, channels] */
    TDI_FEATURE_BYTES,
    TDI_FEATURE_FLOATS,
    TDI_FEATURE_INTEGERS
} tdi_feature_kind;

/* What a record holds in a feature. */
typedef struct tdi_feature_form {
    tdi_feature_kind kind;
    int64_t steps;   /* of a feature list, [steps, count] */
    int64_t count;   /* numbers or bytes, in each step of a list */
    tdi_image image; /* of an image, whose count is 0 */
    bool list;       /* a SequenceExample's feature list; else `steps` is 1 */
} tdi_feature_form;

/* A parsed record. */
typedef struct tdi_example {
    void *bytes; /* that `message` was unpacked from */
    Tandem__Example *message;
    char where[512]; /* "file: record 17 at offset 4711", for messages */
} tdi_example;

void tdi_example_release(tdi_example *record);

/* The text or bytes of a feature that holds just one; NULL when there are none. */
const ProtobufCBinaryData *tdi_feature_bytes(const tdi_example *record, const char *key);

/* The one integer of a feature; -1: it holds something else. */
int64_t tdi_feature_integer(const tdi_example *record, const char *key);

/* Finds out what a feature holds. With `plain` bytes are not taken for an image. TD_BAD_FILE with a sentence when there
 * is none of the name, or nothing in it that can be read. */
td_status tdi_feature_look(const tdi_example *record, const char *key, bool plain, tdi_feature_form *form,
                           tdi_error *error);

/* Fails unless `seen`, what the record holds, can stand where `form` is expected. Images of another size can when
 * `resize` is set, and those of other channels always. */
td_status tdi_feature_check(const tdi_example *record, const char *key, const tdi_feature_form *form,
                            const tdi_feature_form *seen, bool resize, tdi_error *error);

/* Copies the numbers or bytes of a feature whose form is `form`, and no image. */
void tdi_feature_copy(const tdi_example *record, const char *key, const tdi_feature_form *form, void *to);

#endif
