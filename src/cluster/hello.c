/* hello.c - writing, reading and comparing hellos. */
#define _GNU_SOURCE
#include "cluster/hello.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const purposes[TDI_PURPOSES] = {"control", "bulk"};

void tdi_hello_cluster(const tdi_cluster_config *config, char text[TDI_HELLO_TEXT])
{
    size_t used = 0;
    text[0] = '\0';
    for (int type = 0; type < TDI_TASK_TYPES; type++) {
        int count = tdi_cluster_count(config, (tdi_task_type)type);
        if (count && used < TDI_HELLO_TEXT)
            used += (size_t)snprintf(text + used, TDI_HELLO_TEXT - used, "%s%d %s%s", used ? ", " : "", count,
                                     tdi_task_type_name((tdi_task_type)type), count == 1 ? "" : "s");
    }
}

static void append_first_line(const char *path, char text[TDI_HELLO_TEXT])
{
    size_t used = strlen(text);
    FILE *file = fopen(path, "r");
    if (file && fgets(text + used, (int)(TDI_HELLO_TEXT - used), file))
        text[strcspn(text, "\n")] = '\0';
    if (file)
        fclose(file);
}

/* Two containers of one host have one boot but cannot see each other's processes, nor share memory. */
void tdi_hello_host(char text[TDI_HELLO_TEXT])
{
    char tree[48] = "";
    if (gethostname(text, TDI_HELLO_TEXT / 2) != 0)
        snprintf(text, TDI_HELLO_TEXT, "unknown");
    text[TDI_HELLO_TEXT / 2 - 1] = '\0';
    strcat(text, " ");
    append_first_line("/proc/sys/kernel/random/boot_id", text);
    ssize_t length = readlink("/proc/self/ns/ipc", tree, sizeof tree - 1);
    if (length > 0)
        snprintf(text + strlen(text), TDI_HELLO_TEXT - strlen(text), " %.*s", (int)length, tree);
}

char *tdi_hello_write(const tdi_hello *hello)
{
    json_t *json =
        json_pack("{s:i, s:s, s:s, s:i, s:i, s:I, s:s, s:s}", "protocol", hello->protocol, "version", hello->version,
                  "purpose", purposes[hello->purpose], "task", hello->task, "port", hello->port, "incarnation",
                  (json_int_t)hello->incarnation, "cluster", hello->cluster, "host", hello->host);
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    return text;
}

static bool copy_text(const char *from, char to[TDI_HELLO_TEXT])
{
    return from && snprintf(to, TDI_HELLO_TEXT, "%s", from) < TDI_HELLO_TEXT;
}

static bool read_rest(json_t *json, tdi_hello *hello)
{
    const char *purpose = NULL, *cluster = NULL, *host = NULL;
    json_int_t incarnation = 0;
    if (json_unpack(json, "{s:s, s:i, s:i, s:I, s:s, s:s}", "purpose", &purpose, "task", &hello->task, "port",
                    &hello->port, "incarnation", &incarnation, "cluster", &cluster, "host", &host) != 0)
        return false;
    int which = 0;
    while (which < TDI_PURPOSES && strcmp(purpose, purposes[which]) != 0)
        which++;
    hello->purpose = (tdi_purpose)which;
    hello->incarnation = (uint64_t)incarnation;
    return which < TDI_PURPOSES && incarnation > 0 && hello->port >= 0 && hello->port <= UINT16_MAX &&
           copy_text(cluster, hello->cluster) && copy_text(host, hello->host);
}

td_status tdi_hello_read(const char *bytes, size_t size, tdi_hello *hello, tdi_error *error)
{
    const char *version = NULL;
    *hello = (tdi_hello){0};
    json_t *json = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, NULL);
    bool good = json && json_unpack(json, "{s:i, s:s}", "protocol", &hello->protocol, "version", &version) == 0 &&
                copy_text(version, hello->version);
    if (good && hello->protocol == TDI_HELLO_PROTOCOL)
        good = read_rest(json, hello);
    json_decref(json);
    return good ? TD_OK : tdi_fail(error, TD_INVALID_ARGUMENT, "its first words are no hello of Tandem");
}

td_status tdi_hello_check(const tdi_hello *hello, const tdi_hello *own, int tasks, const char *name, tdi_error *error)
{
    if (hello->protocol != own->protocol || strcmp(hello->version, own->version) != 0)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s runs Tandem %s, and this process %s; install the same version everywhere", name,
                        hello->version, own->version);
    if (strcmp(hello->cluster, own->cluster) != 0)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s is of a cluster of %s, and this process of one of %s; give all processes the same cluster "
                        "(TF_CONFIG, or --cluster)",
                        name, hello->cluster, own->cluster);
    if (hello->task < 0 || hello->task >= tasks)
        return tdi_fail(error, TD_INVALID_ARGUMENT, "%s says that it is task %d of %d, which cannot be", name,
                        hello->task, tasks);
    if (hello->task == own->task)
        return tdi_fail(error, TD_INVALID_ARGUMENT,
                        "%s says that it is the same task as this process; give each process a task of its own "
                        "(\"task\" in TF_CONFIG, or --task)",
                        name);
    return TD_OK;
}
