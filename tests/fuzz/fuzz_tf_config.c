/* fuzz_tf_config.c - any text as TF_CONFIG, as a file of it and as SLURM's list of hosts: mistakes, or a cluster in
 * order.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void want(bool holds)
{
    if (!holds)
        abort();
}

/* Tasks stand by type and index, and each knows its place. */
static void check_order(const tdi_cluster_config *config)
{
    for (int i = 0; i < config->count; i++) {
        const tdi_task *task = &config->tasks[i], *before = i ? task - 1 : NULL;
        bool next = before && before->type == task->type;
        want(!before || before->type <= task->type);
        want(task->index == (next ? before->index + 1 : 0));
        want(tdi_cluster_find(config, task->type, task->index) == i);
    }
    want(config->self >= -1 && config->self < config->count);
}

static void read_text(const char *text, bool of_file, const char *task)
{
    tdi_cluster_config config = {.self = -1, .on_host = 1, .source = "TF_CONFIG"};
    tdi_mistakes mistakes = {.source = config.source};
    tdi_cluster_request request = {.task = task};
    want(tdi_tf_config_parse(text, of_file, &request, &config, &mistakes) == TD_OK);
    want(mistakes.list.count > 0 || (config.count > 0 && (of_file || config.self >= 0)));
    for (int i = 0; i < mistakes.list.count; i++)
        want(*mistakes.list.at[i] && !strchr(mistakes.list.at[i], '\n'));
    if (mistakes.list.count == 0)
        check_order(&config);
    tdi_mistakes_free(&mistakes);
    tdi_cluster_config_free(&config);
}

static void read_hosts(const char *text)
{
    tdi_hosts hosts = {0};
    want(tdi_nodelist_expand(text, &hosts) || hosts.count > 0);
    tdi_hosts_free(&hosts);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, bytes, size);
    text[size] = '\0';
    read_text(text, false, NULL);
    read_text(text, true, NULL);
    read_text(text, true, text);
    read_hosts(text);
    free(text);
    return 0;
}
