/* parse.h - what the readers of configurations share. Within this folder. */
#ifndef TDI_CLUSTER_PARSE_H
#define TDI_CLUSTER_PARSE_H

#include <stddef.h>

#include "cluster/config.h"

/* Adds a task behind the others, with a copy of the address (NULL: not known). */
td_status tdi_cluster_add(tdi_cluster_config *config, tdi_task_type type, int index, const char *address);

/* Reads the JSON of TF_CONFIG; `of_file`: of a file, which may also hold what stands in "cluster" alone, and need not
 * say which task this process is. request->task overrides its "task". `text` ends with a NUL. */
td_status tdi_tf_config_parse(const char *text, bool of_file, const tdi_cluster_request *request,
                              tdi_cluster_config *config, tdi_mistakes *mistakes);
/* Checks the text and what it describes; fails with the first mistake. `config` is to be freed in any case. */
td_status tdi_tf_config_check(const char *text, tdi_cluster_config *config, tdi_error *error);
/* Reads a file of that. */
td_status tdi_tf_config_file(const tdi_cluster_request *request, tdi_cluster_config *config, tdi_mistakes *mistakes);

/* Reads what launchers put into the environment; config->count stays 0 when none of them is there. */
td_status tdi_environment_read(const tdi_cluster_request *request, tdi_cluster_config *config, tdi_mistakes *mistakes);

/* SLURM's lists of hosts: "a[01-03,7],b" is a01, a02, a03, a7 and b. Adds copies to `hosts`. NULL, or what is wrong
 * with the list, as a phrase. */
typedef tdi_vec(char *) tdi_hosts;
const char *tdi_nodelist_expand(const char *list, tdi_hosts *hosts);
void tdi_hosts_free(tdi_hosts *hosts);

/* Digits alone, at most 9 of them: true and the number. */
bool tdi_whole_number(const char *text, int *number);

#endif
