/* ucx_load.c - finds libucp, and keeps it from changing the process.
 *
 * When UCX is loaded it would handle SIGSEGV and its like, patch the code of mmap and munmap in the running process,
 * and in some versions start a thread. Variables of the environment forbid that, but they are read by constructors, as
 * dlopen runs. So for its time the process has another environment: the old one and these variables, unless the user
 * has set them. The old one is not touched, since other threads may read it. */
#define _GNU_SOURCE
#include "link/ucx_load.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const settings[] = {
    "UCX_HANDLE_ERRORS=none", "UCX_DEBUG_SIGNO=0", "UCX_MEM_EVENTS=n",    "UCX_MEM_MMAP_HOOK_MODE=none",
    "UCX_MEM_MALLOC_HOOKS=n", "UCX_VFS_ENABLE=n",  "UCX_LOG_LEVEL=fatal",
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static struct {
    pthread_once_t once;
    tdi_ucx_api api;
    tdi_error error;
} ucx = {.once = PTHREAD_ONCE_INIT};

static bool is_set(const char *setting)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(setting, "="), setting);
    return getenv(name) != NULL;
}

/* The environment and the settings that it lacks. NULL when memory is out. */
static char **extended_environment(void)
{
    size_t count = 0;
    while (environ && environ[count])
        count++;
    char **extended = calloc(count + SETTINGS + 1, sizeof *extended);
    if (!extended)
        return NULL;
    if (count)
        memcpy(extended, environ, count * sizeof *extended);
    for (int i = 0; i < SETTINGS; i++)
        if (!is_set(settings[i]))
            extended[count++] = (char *)(uintptr_t)settings[i];
    return extended;
}

static void *open_library(void)
{
    char **extended = extended_environment(), **own = environ;
    if (!extended)
        return NULL;
    environ = extended;
    void *library = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    environ = own;
    free(extended);
    return library;
}

/* The name of a function that is missing, or NULL. */
static const char *find_functions(void *library)
{
    const char *missing = NULL;
#define TDI_UCX_FIND(name)                                                                                             \
    *(void **)&ucx.api.name = dlsym(library, #name);                                                                   \
    missing = ucx.api.name ? missing : #name;
    TDI_UCX_FUNCTIONS(TDI_UCX_FIND)
#undef TDI_UCX_FIND
    return missing;
}

static void check_version(void)
{
    unsigned release;
    ucx.api.ucp_get_version(&ucx.api.major, &ucx.api.minor, &release);
    snprintf(ucx.api.version, sizeof ucx.api.version, "%u.%u.%u", ucx.api.major, ucx.api.minor, release);
    if (ucx.api.major != UCP_API_MAJOR || ucx.api.minor < UCP_API_MINOR)
        tdi_fail(&ucx.error, TD_UNSUPPORTED,
                 "UCX %s: expected %d.%d or a later %d, which this Tandem was built with; build it again, or apt-get "
                 "install libucx0",
                 ucx.api.version, UCP_API_MAJOR, UCP_API_MINOR, UCP_API_MAJOR);
}

static void load(void)
{
    void *library = open_library();
    const char *missing = library ? find_functions(library) : NULL;
    if (!library)
        tdi_fail(&ucx.error, TD_UNSUPPORTED, "UCX (libucp.so.0) was not found; try apt-get install libucx0");
    else if (missing)
        tdi_fail(&ucx.error, TD_UNSUPPORTED, "UCX (libucp.so.0) has no %s: it is too old; try apt-get install libucx0",
                 missing);
    else
        check_version();
}

td_status tdi_ucx_load(const tdi_ucx_api **api, tdi_error *error)
{
    pthread_once(&ucx.once, load);
    *api = ucx.error.status == TD_OK ? &ucx.api : NULL;
    return *api ? TD_OK : tdi_fail(error, ucx.error.status, "%s", ucx.error.message);
}
