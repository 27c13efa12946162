/* cluster_config.h - `tandem cluster config`: a file for each task of a cluster. */
#ifndef TOOL_CLUSTER_CONFIG_H
#define TOOL_CLUSTER_CONFIG_H

struct options;

/* Writes the files by --chief, --workers, --ps, --evaluator and --output. Returns an exit status. */
int cluster_config(const struct options *options);

#endif
