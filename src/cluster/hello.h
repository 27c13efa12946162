/* hello.h - the first words on every link between the tasks of a cluster: who speaks, of which run, for what.
 *
 * The two have proved by the handshake that they know the secret; a hello says whether they also have the same idea of
 * the cluster. It travels as JSON, so that another version can still be read far enough to say what is wrong. */
#ifndef TDI_CLUSTER_HELLO_H
#define TDI_CLUSTER_HELLO_H

#include <stddef.h>
#include <stdint.h>

#include "cluster/config.h"

enum { TDI_HELLO_PROTOCOL = 1, TDI_HELLO_LONGEST = 4096, TDI_HELLO_TEXT = 128 };

typedef enum tdi_purpose { TDI_CONTROL_LINK, TDI_BULK_LINK, TDI_PURPOSES } tdi_purpose;

typedef struct tdi_hello {
    int protocol;
    tdi_purpose purpose;
    int task;                     /* the speaker's place among the tasks */
    int port;                     /* where it listens */
    uint64_t incarnation;         /* of the process: random, above 0 */
    char version[TDI_HELLO_TEXT]; /* of Tandem */
    char cluster[TDI_HELLO_TEXT]; /* its tasks: "chief, 2 workers" */
    char host[TDI_HELLO_TEXT];    /* on which it runs, with the boot: the same for two processes of one host alone */
} tdi_hello;

/* "chief, 2 workers, 1 evaluator": of how many tasks of which type a cluster consists. */
void tdi_hello_cluster(const tdi_cluster_config *config, char text[TDI_HELLO_TEXT]);
/* This host, in this boot and, where processes have trees of their own, in this one. */
void tdi_hello_host(char text[TDI_HELLO_TEXT]);

/* JSON, malloc'd; NULL when memory is out. */
char *tdi_hello_write(const tdi_hello *hello);
/* Any bytes. TD_INVALID_ARGUMENT: no hello. Of another protocol's, the protocol and the version alone are read. */
td_status tdi_hello_read(const char *bytes, size_t size, tdi_hello *hello, tdi_error *error);
/* Can the speaker, of whom sentences speak as `name`, work with a process whose hello is `own`? TD_INVALID_ARGUMENT:
 * the sentence says in what they differ. `tasks`: how many the cluster has. */
td_status tdi_hello_check(const tdi_hello *hello, const tdi_hello *own, int tasks, const char *name, tdi_error *error);

#endif
