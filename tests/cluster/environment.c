/* What launchers put into the environment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/parse.h"

/* A process's environment: "NAME=value" and so on; what is to come of it. */
static const struct process {
    const char *set[8];
    const char *rendezvous, *source;
    int count, self, on_host;
    const char *first, *last; /* addresses; NULL: not known */
} processes[] = {
    {{"KERAS_DISTRIBUTION_JOB_ADDRESSES=10.0.0.1:1234,10.0.0.2:2345", "KERAS_DISTRIBUTION_NUM_PROCESSES=2",
      "KERAS_DISTRIBUTION_PROCESS_ID=1"},
     NULL,
     "KERAS_DISTRIBUTION_JOB_ADDRESSES, _NUM_PROCESSES and _PROCESS_ID",
     2,
     1,
     1,
     "10.0.0.1:1234",
     "10.0.0.2:2345"},
    {{"KERAS_DISTRIBUTION_JOB_ADDRESSES=a:1, b:1", "KERAS_DISTRIBUTION_NUM_PROCESSES=2",
      "KERAS_DISTRIBUTION_PROCESS_ID=0"},
     NULL,
     "KERAS",
     2,
     0,
     1,
     "a:1",
     "b:1"},
    {{"KERAS_DISTRIBUTION_JOB_ADDRESSES=10.0.0.1:1234", "KERAS_DISTRIBUTION_NUM_PROCESSES=3",
      "KERAS_DISTRIBUTION_PROCESS_ID=2"},
     NULL,
     "KERAS",
     3,
     2,
     1,
     "10.0.0.1:1234",
     NULL},
    {{"MASTER_ADDR=node1", "MASTER_PORT=29500", "RANK=3", "WORLD_SIZE=4", "LOCAL_WORLD_SIZE=2"},
     NULL,
     "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT",
     4,
     3,
     2,
     "node1:29500",
     NULL},
    {{"MASTER_ADDR=fe80::1", "MASTER_PORT=29500", "RANK=0", "WORLD_SIZE=1"},
     NULL,
     "RANK",
     1,
     0,
     1,
     "[fe80::1]:29500",
     "[fe80::1]:29500"},
    {{"SLURM_PROCID=1", "SLURM_NTASKS=3", "SLURM_STEP_NODELIST=node[08-10]", "SLURM_JOB_ID=5000"},
     NULL,
     "SLURM_PROCID, SLURM_NTASKS and SLURM_STEP_NODELIST",
     3,
     1,
     1,
     "node08:62344",
     NULL},
    {{"SLURM_PROCID=5", "SLURM_NTASKS=7", "SLURM_STEP_NODELIST=a,b,c,d", "SLURM_JOBID=1", "SLURM_STEP_ID=2",
      "SLURM_STEP_TASKS_PER_NODE=2(x3),1", "SLURM_NODEID=2"},
     NULL,
     "SLURM",
     7,
     5,
     2,
     "a:61635",
     NULL},
    {{"SLURM_PROCID=1", "SLURM_NTASKS=3", "SLURM_STEP_NODELIST=a,b"}, "b:7000", "SLURM", 3, 1, 1, "b:7000", NULL},
    {{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_SIZE=2"},
     "node1:7000",
     "OMPI_COMM_WORLD_RANK and _SIZE",
     2,
     1,
     2,
     "node1:7000",
     NULL},
    {{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "PMIX_NAMESPACE=x"}, NULL, "OMPI", 2, 1, 1, NULL, NULL},
    {{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2"}, "/home/meet", "OMPI", 2, 1, 1, NULL, NULL},
    {{"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2", "MASTER_ADDR=node1", "MASTER_PORT=7000"},
     NULL,
     "OMPI",
     2,
     0,
     1,
     "node1:7000",
     NULL},
    {{"PMI_RANK=2", "PMI_SIZE=3", "MPI_LOCALNRANKS=3"}, "a:1", "PMI_RANK and PMI_SIZE", 3, 2, 3, "a:1", NULL},
    {{"PMI_RANK=0", "PMI_SIZE=1"}, NULL, "PMI_RANK", 1, 0, 1, NULL, NULL},
    /* mpirun within a SLURM job, whose helpers were started by srun; srun that offers PMI itself */
    {{"SLURM_PROCID=0", "SLURM_NTASKS=2", "SLURM_STEP_NODELIST=a,b", "SLURM_JOB_ID=1", "OMPI_COMM_WORLD_RANK=1",
      "OMPI_COMM_WORLD_SIZE=4"},
     "a:1",
     "OMPI",
     4,
     1,
     1,
     "a:1",
     NULL},
    {{"SLURM_PROCID=0", "SLURM_NTASKS=2", "SLURM_STEP_NODELIST=a,b", "SLURM_JOB_ID=1", "PMI_RANK=1", "PMI_SIZE=4"},
     "a:1",
     "PMI_RANK",
     4,
     1,
     1,
     "a:1",
     NULL},
    {{"SLURM_PROCID=1", "SLURM_NTASKS=2", "SLURM_STEP_NODELIST=a,b", "SLURM_JOB_ID=1", "PMI_RANK=1", "PMI_SIZE=2"},
     NULL,
     "SLURM",
     2,
     1,
     1,
     "a:61441",
     NULL},
    /* a cluster's prologue that sets RANK for everybody */
    {{"RANK=0", "WORLD_SIZE=1", "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2"},
     "a:1",
     "OMPI",
     2,
     1,
     1,
     "a:1",
     NULL},
    /* nobody's launcher: RANK alone, an address alone, the script of sbatch */
    {{"RANK=1"}, NULL, "", 0, -1, 1, NULL, NULL},
    {{"MASTER_ADDR=a", "MASTER_PORT=1"}, NULL, "", 0, -1, 1, NULL, NULL},
    {{"SLURM_PROCID=0", "SLURM_NTASKS=4", "SLURM_JOB_ID=1", "SLURM_JOB_NODELIST=a"}, NULL, "", 0, -1, 1, NULL, NULL},
    /* the first that is there */
    {{"TF_CONFIG={\"cluster\": {\"worker\": [\"t:1\"]}, \"task\": {\"type\": \"worker\", \"index\": 0}}", "RANK=1",
      "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=1"},
     NULL,
     "TF_CONFIG",
     1,
     0,
     1,
     "t:1",
     "t:1"},
};

static void set_all(const char *const set[8])
{
    clearenv();
    for (int i = 0; i < 8 && set[i]; i++)
        assert_int_equal(putenv((char *)set[i]), 0);
}

static void check_address(const char *found, const char *want)
{
    if (want)
        assert_string_equal(found, want);
    else
        assert_null(found);
}

static void check_process(const struct process *want)
{
    tdi_cluster_config config;
    tdi_error error = {0};
    set_all(want->set);
    if (tdi_cluster_config_read(&(tdi_cluster_request){.rendezvous = want->rendezvous}, &config, &error) != TD_OK)
        fail_msg("%s: %s", want->set[0], error.message);
    if (config.count != want->count || config.self != want->self || config.on_host != want->on_host)
        fail_msg("%s: task %d of %d, %d on this host", want->set[0], config.self, config.count, config.on_host);
    assert_int_equal(strncmp(config.source, want->source, strlen(want->source)), 0);
    for (int i = 0; i < config.count; i++)
        assert_true(config.tasks[i].type == TDI_WORKER && config.tasks[i].index == i);
    if (config.count) {
        check_address(config.tasks[0].address, want->first);
        check_address(config.tasks[config.count - 1].address, want->last);
    }
    bool folder = want->rendezvous && strchr(want->rendezvous, '/');
    check_address(config.rendezvous, folder ? want->rendezvous : NULL);
    tdi_cluster_config_free(&config);
}

static void launchers_are_understood(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof processes / sizeof *processes; i++)
        check_process(&processes[i]);
}

static const struct bad {
    const char *set[8];
    const char *rendezvous, *task, *sentence;
} bad[] = {
    {{"KERAS_DISTRIBUTION_JOB_ADDRESSES=a:1,b:1,c:1", "KERAS_DISTRIBUTION_NUM_PROCESSES=2",
      "KERAS_DISTRIBUTION_PROCESS_ID=1"},
     NULL,
     NULL,
     "KERAS_DISTRIBUTION_JOB_ADDRESSES has 3 addresses, but KERAS_DISTRIBUTION_NUM_PROCESSES is 2; expected an address "
     "for each, or the first alone"},
    {{"KERAS_DISTRIBUTION_JOB_ADDRESSES=a:1,b:1", "KERAS_DISTRIBUTION_PROCESS_ID=1"},
     NULL,
     NULL,
     "KERAS_DISTRIBUTION_NUM_PROCESSES is not set"},
    {{"KERAS_DISTRIBUTION_NUM_PROCESSES=2", "KERAS_DISTRIBUTION_PROCESS_ID=1"},
     NULL,
     NULL,
     "KERAS_DISTRIBUTION_JOB_ADDRESSES is not set; set it to the address of process 0"},
    {{"KERAS_DISTRIBUTION_JOB_ADDRESSES=10.0.0.1", "KERAS_DISTRIBUTION_NUM_PROCESSES=2",
      "KERAS_DISTRIBUTION_PROCESS_ID=1"},
     NULL,
     NULL,
     "worker 0: address \"10.0.0.1\": a port is missing"},
    {{"RANK=4", "WORLD_SIZE=4", "MASTER_ADDR=a", "MASTER_PORT=1"},
     NULL,
     NULL,
     "RANK is 4, but WORLD_SIZE is 4; ranks go from 0 to 3"},
    {{"RANK=x", "WORLD_SIZE=4", "MASTER_ADDR=a", "MASTER_PORT=1"},
     NULL,
     NULL,
     "RANK: expected a whole number from 0, got 'x'"},
    {{"RANK=0", "WORLD_SIZE=0", "MASTER_ADDR=a", "MASTER_PORT=1"},
     NULL,
     NULL,
     "WORLD_SIZE: expected a whole number from 1, got '0'"},
    {{"RANK=0", "WORLD_SIZE=5000", "MASTER_ADDR=a", "MASTER_PORT=1"},
     NULL,
     NULL,
     "WORLD_SIZE is 5000; a cluster has at most 1024 tasks"},
    {{"RANK=0", "MASTER_ADDR=a", "MASTER_PORT=1"}, NULL, NULL, "WORLD_SIZE is not set"},
    {{"RANK=0", "WORLD_SIZE=2"}, NULL, NULL, "MASTER_ADDR is not set; set it to the host of rank 0"},
    {{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a"}, NULL, NULL, "MASTER_PORT is not set"},
    {{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=70000"}, NULL, NULL, "its port is not from 1 to 65535"},
    {{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=1"}, "a:1", NULL, "leave out --rendezvous"},
    {{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=1"},
     NULL,
     "worker:1",
     "RANK says which task this process is; leave out --task"},
    {{"SLURM_PROCID=0", "SLURM_NTASKS=2", "SLURM_STEP_NODELIST=a[1-", "SLURM_JOB_ID=1"},
     NULL,
     NULL,
     "SLURM_STEP_NODELIST, 'a[1-': ']' is missing"},
    {{"SLURM_PROCID=0", "SLURM_NTASKS=2", "SLURM_STEP_NODELIST=a"}, NULL, NULL, "SLURM_JOBID is not set"},
    {{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2"},
     NULL,
     NULL,
     "nothing says where rank 0 of 2 is found; give --rendezvous HOST:PORT"},
    {{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2"},
     "node1",
     NULL,
     "--rendezvous: expected HOST:PORT, or the path of a folder that all hosts see, got 'node1'"},
    {{"PMI_RANK=3", "PMI_SIZE=2"}, "a:1", NULL, "PMI_RANK is 3, but PMI_SIZE is 2"},
};

static void mistakes_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tdi_cluster_config config;
        tdi_error error = {0};
        set_all(bad[i].set);
        tdi_cluster_request request = {.rendezvous = bad[i].rendezvous, .task = bad[i].task};
        if (tdi_cluster_config_read(&request, &config, &error) != TD_INVALID_ARGUMENT)
            fail_msg("%s: taken", bad[i].set[0]);
        if (!strstr(error.message, bad[i].sentence) || strstr(error.message, " more: "))
            fail_msg("\"%s\" is not \"%s\"", error.message, bad[i].sentence);
        tdi_cluster_config_free(&config);
    }
}

static const struct expanded {
    const char *list, *hosts; /* or what is wrong */
} lists[] = {
    {"node1", "node1"},
    {"node1,login", "node1 login"},
    {"node[1-3,7]", "node1 node2 node3 node7"},
    {"node[08-11]-ib,b", "node08-ib node09-ib node10-ib node11-ib b"},
    {"r[0-1]n[1,3]", "r0n1 r0n3 r1n1 r1n3"},
    {"[1-2]", "1 2"},
    {"a[099-101]", "a099 a100 a101"},
    {"a[3]", "a3"},
    {"a[1-3", "']' is missing"},
    {"a1-3]", "expected names and commas"},
    {"a[3-1]", "a range goes from a number to a greater one"},
    {"a[1-]", "a range goes from a number to a greater one"},
    {"a[]", "brackets hold numbers and ranges"},
    {"a[x]", "brackets hold numbers and ranges"},
    {"a[1,]", "brackets hold numbers and ranges"},
    {"a[1-2-3]", "a range goes from a number to a greater one"},
    {"a[1234567890]", "brackets hold numbers and ranges"},
    {"a[[1]]", "brackets hold numbers and ranges"},
    {"", "expected names and commas"},
    {"a,", "expected names and commas"},
    {",a", "expected names and commas"},
    {"a[0-99999999]", "it has too many hosts"},
};

static void lists_of_hosts_are_expanded(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        char all[512] = "";
        tdi_hosts hosts = {0};
        const char *why = tdi_nodelist_expand(lists[i].list, &hosts);
        for (int h = 0; !why && h < hosts.count; h++)
            snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", h ? " " : "", hosts.at[h]);
        if (why ? strncmp(why, lists[i].hosts, strlen(lists[i].hosts)) != 0 : strcmp(all, lists[i].hosts) != 0)
            fail_msg("%s: %s", lists[i].list, why ? why : all);
        tdi_hosts_free(&hosts);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(launchers_are_understood), cmocka_unit_test(mistakes_are_named),
                                       cmocka_unit_test(lists_of_hosts_are_expanded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
