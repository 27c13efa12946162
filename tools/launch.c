/* launch.c - `tandem launch`: a command in several processes of this host, as the tasks of one cluster.
 *
 * The processes are worker 0, the chief, to worker N - 1. TF_CONFIG tells each who is who. The secret of the cluster is
 * made for this run and never lies in a file system: the processes inherit a descriptor of it, which TANDEM_SECRET_FILE
 * names. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "options.h"
#include "process_group.h"

enum { MOST = 256, ADDRESS = 24, SECRET = 32 };

struct launch {
    int count, secret;
    int sockets[MOST], ports[MOST];
    char cluster[MOST * (ADDRESS + 4) + 64]; /* as JSON, without the task */
};

/* Takes a port of the system's choice. The socket holds it until the process, which may bind it too, has come that far.
 */
static bool take_port(int *fd, int *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool good = *fd >= 0 && setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) == 0 &&
                bind(*fd, (struct sockaddr *)&at, size) == 0 && getsockname(*fd, (struct sockaddr *)&at, &size) == 0;
    *port = ntohs(at.sin_port);
    return good;
}

static int take_ports(struct launch *launch)
{
    size_t used = (size_t)snprintf(launch->cluster, sizeof launch->cluster, "{\"cluster\": {\"worker\": [");
    for (int i = 0; i < launch->count; i++) {
        if (!take_port(&launch->sockets[i], &launch->ports[i]))
            return tool_fail("no port of 127.0.0.1 is to be had: %s", strerror(errno));
        used += (size_t)snprintf(launch->cluster + used, sizeof launch->cluster - used, "%s\"127.0.0.1:%d\"",
                                 i ? ", " : "", launch->ports[i]);
    }
    snprintf(launch->cluster + used, sizeof launch->cluster - used, "]}");
    return TOOL_DONE;
}

/* A file in memory that only this user's processes read, and nobody changes. */
static int make_secret(struct launch *launch)
{
    unsigned char bytes[SECRET];
    launch->secret = memfd_create("tandem secret", MFD_ALLOW_SEALING);
    bool good = launch->secret >= 0 && getrandom(bytes, sizeof bytes, 0) == sizeof bytes &&
                write(launch->secret, bytes, sizeof bytes) == sizeof bytes &&
                fchmod(launch->secret, S_IRUSR | S_IWUSR) == 0 &&
                fcntl(launch->secret, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0;
    explicit_bzero(bytes, sizeof bytes);
    return good ? TOOL_DONE : tool_fail("the cluster's secret cannot be made: %s", strerror(errno));
}

static void prepare(const struct process_spec *spec, int i)
{
    const struct launch *launch = spec->user;
    char config[sizeof launch->cluster + 64], path[32];
    snprintf(config, sizeof config, "%s, \"task\": {\"type\": \"worker\", \"index\": %d}}", launch->cluster, i);
    snprintf(path, sizeof path, "/proc/self/fd/%d", launch->secret);
    setenv("TF_CONFIG", config, 1);
    setenv("TANDEM_SECRET_FILE", path, 1);
}

static int check(const struct options *options)
{
    if (!options->processes)
        return tool_refuse("--processes: expected how many, got none; try tandem launch -n 2 -- %s ...",
                           options->argument);
    return options->argument[0] == '-' || strchr(options->argument, '/') ? TOOL_DONE
                                                                         : tool_check_command(options->argument);
}

static int run(const struct options *options)
{
    int status = check(options);
    if (status != TOOL_DONE)
        return status;
    static struct launch launch; /* large for a stack */
    launch.count = (int)options->processes;
    launch.secret = -1;
    status = take_ports(&launch);
    if (status == TOOL_DONE)
        status = make_secret(&launch);
    if (status == TOOL_DONE)
        status = process_group_run(&(struct process_spec){
            .count = launch.count, .words = options->command, .prepare = prepare, .user = &launch});
    for (int i = 0; i < launch.count; i++)
        if (launch.ports[i])
            close(launch.sockets[i]);
    if (launch.secret >= 0)
        close(launch.secret);
    return status;
}

static const struct argp_option options[] = {
    {"processes", KEY_PROCESSES, "N", 0, "How many processes, 1 to 256; required", 0}, OPTIONS_END};

const struct command launch_command = {
    "launch",
    "COMMAND...",
    "a command in several processes of this host", /* */
    "Starts N processes of this host with the same command of tandem, or the same program, named by a path, as the "
    "workers 0 to N - 1 of one cluster, and waits for them. They train one model in step. Worker 0 is the chief: its "
    "output is seen. Of the others, messages on standard error are, behind their names. Each process finds the cluster "
    "in its TF_CONFIG: ports of 127.0.0.1 that the system chose; a secret is made for the run.\n\n"
    "Ctrl-C, SIGTERM and SIGHUP are passed on to all. When one process fails the others are ended, and the exit status "
    "is its own; no process outlives the launcher.\v"
    "Examples:\n"
    "\n"
    "  One model, trained by three processes in step, with the bits of one process:\n"
    "    tandem launch -n 3 -- fit mlp.keras --train mnist/ --devices cpu:0 --shards 6\n"
    "\n"
    "  A program of your own that calls td_cluster_open:\n"
    "    tandem launch -n 2 -- build/examples/two_pendulums\n"
    "\n"
    "  What each process knows of the cluster:\n"
    "    tandem launch -n 3 -- doctor --cluster\n",
    options,
    run};
