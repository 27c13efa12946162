/* ucx.c - what there is of UCX also where Tandem was built without its headers. */
#include "link/ucx.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void read_line(const char *path, char *line, int size)
{
    FILE *file = fopen(path, "re");
    line[0] = '\0';
    if (!file)
        return;
    if (fgets(line, size, file))
        line[strcspn(line, "\n")] = '\0';
    fclose(file);
}

static unsigned long long number_of(const char *path, bool device)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return 0;
    return device ? (unsigned long long)status.st_dev : (unsigned long long)status.st_ino;
}

/* UCX wakes who sleeps by a socket without a file, which is seen in its network namespace alone. */
void tdi_ucx_host(char host[TDI_UCX_HOST_BYTES])
{
    char boot[40];
    memset(host, 0, TDI_UCX_HOST_BYTES);
    read_line("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    snprintf(host, TDI_UCX_HOST_BYTES, "%s %llx %llx %llx %llx %u", boot, number_of("/proc/self/ns/pid", false),
             number_of("/proc/self/ns/ipc", false), number_of("/proc/self/ns/net", false), number_of("/dev/shm", true),
             (unsigned)geteuid());
}

#ifdef TANDEM_UCX

td_status tdi_ucx_engine(const tdi_ucx_spec *spec, tdi_engine **engine, tdi_error *error)
{
    return tdi_ucx_engine_create(spec, engine, error);
}

const char *tdi_ucx_version(tdi_error *error)
{
    return tdi_ucx_loaded_version(error);
}

#else

static const char absent[] =
    "this Tandem was built without UCX's headers; apt-get install libucx-dev, and build it again";

td_status tdi_ucx_engine(const tdi_ucx_spec *spec, tdi_engine **engine, tdi_error *error)
{
    (void)spec;
    *engine = NULL;
    return tdi_fail(error, TD_UNSUPPORTED, "%s", absent);
}

const char *tdi_ucx_version(tdi_error *error)
{
    tdi_fail(error, TD_UNSUPPORTED, "%s", absent);
    return NULL;
}

#endif

void tdi_ucx_describe(FILE *out)
{
    tdi_error error;
    tdi_error_init(&error);
    const char *version = tdi_ucx_version(&error);
    if (version)
        fprintf(out,
                "UCX: %s, for bulk data between processes of this host by shared memory, and with --encryption off "
                "between hosts\n",
                version);
    else
        fprintf(out, "UCX: none, so bulk data between processes go by TLS: %s\n", error.message);
}
