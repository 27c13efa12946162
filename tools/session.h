/* session.h - the context and the model that a subcommand works with.
 *
 * The command calls td_fit_ rather than td_fit, and so on, because its users have no use for the place in its source
 * that the macros record for messages. */
#ifndef TOOL_SESSION_H
#define TOOL_SESSION_H

#include "options.h"

struct session {
    td_context *context;
    td_model *model;
    td_cluster *cluster;             /* in which it trains; NULL: alone */
    char *dealt[TOOL_MAX_ARGUMENTS]; /* this process's files of each --train, where files are dealt out; malloc'd */
};

/* The use for which a model is compiled. */
enum purpose { TO_PREDICT, TO_EVALUATE, TO_TRAIN };

/* Makes the context. Warnings, and news unless --quiet, go to stderr. This and the functions below return an exit
 * status and print a sentence when it is not TOOL_DONE. */
int session_open(const struct options *options, struct session *session);
/* Makes the context and meets the other processes of the cluster, if one is described. Of a process other than the
 * chief *options become those of one that says and writes nothing. */
int session_join(struct options *options, struct session *session);
/* --auto-shard file: leaves this process its files of every --train that names several, by a pattern or commas. */
int session_deal_files(struct options *options, struct session *session);
/* Makes the context, unless there is one, and reads the model from the file that the options name; in a cluster it is
 * the chief's file. */
int session_load(const struct options *options, struct session *session);
/* Compiles the model by the file's compile configuration, overridden by the options. */
int session_compile(const struct options *options, struct session *session, enum purpose purpose);
/* Writes the timeline for --trace. Returns `status`, the work's, unless this fails. */
int session_end_trace(const struct options *options, const struct session *session, int status);
void session_close(struct session *session);

/* Prints td_error on stderr and returns TOOL_FAILED. */
int session_failed(const struct session *session);
/* The same; returns TOOL_REFUSED when the arguments are to blame. */
int session_refused(const struct session *session);

/* Data that an option names. */
struct request {
    const char *option, *path; /* "train"; the option's argument */
    td_role role;
    const td_model *model; /* that the data is for; NULL: none */
    const char *recipe;    /* the model's or the training data's; NULL: none */
    bool inputs_only;      /* targets are not needed */
};
/* Opens the data and selects the shard that --shard names. The three functions set *data to NULL on failure. */
int session_data(const struct options *options, const struct request *request, td_data **data);
/* Opens all of --train and applies the stages: --interleave, --shard, --cache, --repeat, --augment. */
int session_train_data(const struct options *options, const td_model *model, td_data **data);
/* Opens --validation by the training data's recipe (categories, means); --cache applies to it too. */
int session_validation_data(const struct options *options, const td_model *model, const td_data *train, td_data **data);

/* Loads the model, compiles it for training, and opens --train. */
int session_prepare(const struct options *options, struct session *session, td_data **train);

#endif
