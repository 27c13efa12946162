/* mistakes.h - the list of what is wrong with a configuration: a sentence each, with its remedy. */
#ifndef TDI_CLUSTER_MISTAKES_H
#define TDI_CLUSTER_MISTAKES_H

#include "base/error.h"
#include "base/vec.h"

typedef struct tdi_mistakes {
    tdi_vec(char *) list;
    const char
        *source;    /* what the configuration came from, which stands before each sentence; NULL: nothing; borrowed */
    bool no_memory; /* sentences are missing */
} tdi_mistakes;

/* What a terminal would obey becomes '?'. */
__attribute__((format(printf, 2, 3))) void tdi_mistake(tdi_mistakes *mistakes, const char *format, ...);
void tdi_mistakes_free(tdi_mistakes *mistakes);
/* Fails with the first mistake and the number of the others; TD_OK when there is none. */
td_status tdi_mistakes_fail(const tdi_mistakes *mistakes, tdi_error *error);

/* A user's word for a sentence: 60 bytes of it at most. */
typedef struct tdi_word {
    char text[64];
} tdi_word;
tdi_word tdi_word_of(const char *text);

#endif
