/* session.h - the context and the model that a subcommand works with.
 *
 * The command calls td_fit_ rather than td_fit, and so on: who reads its messages has no use for the place in its
 * source that the macros record. */
#ifndef TOOL_SESSION_H
#define TOOL_SESSION_H

#include "options.h"

struct session {
    td_context *context;
    td_model *model;
};

/* What a model must be able to do. */
enum purpose { TO_PREDICT, TO_EVALUATE, TO_TRAIN };

/* Makes the context; warnings, and unless --quiet news, go to stderr. All return an exit status, after a sentence when
 * it is not TOOL_DONE. */
int session_open(const struct options *options, struct session *session);
/* The same, with the model read from the file that the options name. */
int session_load(const struct options *options, struct session *session);
/* Compiles the model by the options over the file's compile configuration. */
int session_compile(const struct options *options, struct session *session, enum purpose purpose);
/* Writes the timeline that --trace asks for; `status` is how the work ended, and what is returned unless this fails. */
int session_end_trace(const struct options *options, const struct session *session, int status);
void session_close(struct session *session);

/* Says td_error on stderr; returns TOOL_FAILED. */
int session_failed(const struct session *session);
/* The same; TOOL_REFUSED when arguments are to blame. */
int session_refused(const struct session *session);

/* Data given by `--option`. */
struct request {
    const char *option, *path; /* "train", and its argument */
    td_role role;
    const char *recipe; /* how the data is to be read: the model's, or the training data's; NULL: anew */
    bool inputs_only;   /* targets are not needed */
};
/* Opens it, and takes the share that --shard names. All three leave NULL in *data on failure. */
int session_data(const struct options *options, const struct request *request, td_data **data);
/* Opens all of --train, and puts it through the stages: --interleave, --shard, --cache, --repeat, --augment. */
int session_train_data(const struct options *options, const char *recipe, td_data **data);
/* Opens --validation, which is read as the training data was: by its categories and means; --cache is for it too. */
int session_validation_data(const struct options *options, const td_data *train, td_data **data);

/* Loads the model, compiles it to be trained, and opens --train. */
int session_prepare(const struct options *options, struct session *session, td_data **train);

#endif
