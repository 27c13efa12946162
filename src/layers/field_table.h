/* field_table.h - the arguments of a layer, optimizer, schedule or metric, described once: a row of the table is a key
 * of Keras's configuration and a member of the args struct.
 *
 * The table drives the defaults here and Keras's JSON in both directions (src/formats/keras_config.c). An args struct
 * filled with zeros means all defaults, so a zero that has a default of its own cannot be given;
 * `tdi_field_zero_is_default` tells which fields that concerns.
 *
 *     static const tdi_field fields[] = {
 *         TDI_FIELD(INT64, td_dense_args, units, "units", 0),
 *         TDI_FIELD(CHOICE, td_dense_args, use_bias, "use_bias", 1),
 *         {0},
 *     }; */
#ifndef TDI_LAYERS_FIELD_TABLE_H
#define TDI_LAYERS_FIELD_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <tandem/layers.h>

typedef enum tdi_field_kind {
    TDI_FIELD_END = 0,
    TDI_FIELD_INT,           /* int */
    TDI_FIELD_INT64,         /* int64_t */
    TDI_FIELD_FLOAT,         /* float; 0 means the default */
    TDI_FIELD_OPTIONAL,      /* td_optional */
    TDI_FIELD_IF_SET,        /* td_optional without a default; JSON null when it is not set */
    TDI_FIELD_NULLABLE,      /* float; JSON null means 0 */
    TDI_FIELD_COUNT,         /* int, at least 0; JSON null means 0 */
    TDI_FIELD_CLASS,         /* td_optional, a class number; JSON null when it is not set */
    TDI_FIELD_CHOICE,        /* td_choice */
    TDI_FIELD_SIZE,          /* td_size; JSON [height, width] or one number for both */
    TDI_FIELD_SIDES,         /* td_sides; JSON [[top, bottom], [left, right]], [height, width] or one number for all */
    TDI_FIELD_SHAPE,         /* td_shape */
    TDI_FIELD_ACTIVATION,    /* td_activation; 0 means the default; JSON null is linear */
    TDI_FIELD_PADDING,       /* td_padding */
    TDI_FIELD_INTERPOLATION, /* td_interpolation */
    TDI_FIELD_INITIALIZER,   /* td_initializer */
    TDI_FIELD_REGULARIZER,   /* td_regularizer; JSON null is none */
    TDI_FIELD_SEED,          /* int64_t; JSON null is 0 */
    TDI_FIELD_WORD,          /* an enum; JSON is one of the words in `text`, "ROC|PR"; the word null is JSON null */
    TDI_FIELD_FIXED,         /* Tandem knows only the value `text` (JSON) and refuses another, naming the key */
    TDI_FIELD_IGNORED        /* of files of Keras 2: any value, which changes nothing; not written */
} tdi_field_kind;

typedef struct tdi_field {
    const char *key; /* Keras's: "kernel_size" */
    tdi_field_kind kind;
    size_t offset;     /* in the args struct */
    double number;     /* the default of numbers, choices (1 yes, 0 no) and sizes (both numbers) */
    const char *text;  /* WORD: the words; FIXED: the JSON text; INITIALIZER: the default's class ("GlorotUniform") */
    const char *since; /* FIXED: the Keras version that introduced the key, which is then not written, so that older
                          ones read the file; else NULL */
} tdi_field;

/* Replaces every member that is unset by its default, so that emitters and writers see final values. */
void tdi_fields_resolve(const tdi_field *fields, void *args);
/* True where a 0 in a file would be taken for "unset" and must therefore be refused. */
bool tdi_field_zero_is_default(const tdi_field *field);

/* Rows of a table. */
#define TDI_FIELD(its_kind, type, member, json_key, its_default)                                                       \
    {                                                                                                                  \
        .key = (json_key), .kind = TDI_FIELD_##its_kind, .offset = offsetof(type, member), .number = (its_default)     \
    }
#define TDI_INITIALIZER_FIELD(type, member, json_key, default_class)                                                   \
    {                                                                                                                  \
        .key = (json_key), .kind = TDI_FIELD_INITIALIZER, .offset = offsetof(type, member), .text = (default_class)    \
    }
#define TDI_WORD_FIELD(type, member, json_key, words)                                                                  \
    {                                                                                                                  \
        .key = (json_key), .kind = TDI_FIELD_WORD, .offset = offsetof(type, member), .text = (words)                   \
    }
#define TDI_FIXED_FIELD(json_key, json_text)                                                                           \
    {                                                                                                                  \
        .key = (json_key), .kind = TDI_FIELD_FIXED, .text = (json_text)                                                \
    }
#define TDI_IGNORED_FIELD(json_key)                                                                                    \
    {                                                                                                                  \
        .key = (json_key), .kind = TDI_FIELD_IGNORED                                                                   \
    }
#define TDI_FIXED_FIELD_SINCE(json_key, json_text, version)                                                            \
    {                                                                                                                  \
        .key = (json_key), .kind = TDI_FIELD_FIXED, .text = (json_text), .since = (version)                            \
    }

/* Names of enumerators in Keras's spelling. Parsing gives -1, and naming NULL, for what is unknown. */
int tdi_activation_parse(const char *name);
const char *tdi_activation_name(int activation);
int tdi_initializer_parse(const char *class_name); /* "GlorotUniform" or "glorot_uniform" */
const char *tdi_initializer_class(td_initializer_kind kind);

#endif
