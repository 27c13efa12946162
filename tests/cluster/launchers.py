"""Groups whose processes learn who is who by the variables of a launcher: mpirun's, srun's, PyTorch's, Keras's.

usage: launchers.py TANDEM"""
import socket

from support.group import check, expect_same, fresh, group, outcome, run, workplace

LINE = ("fit {start}/mlp_dropout.keras --train {start}/grey --seed 3 --epochs 2 --quiet --shards 4 --csv-log log.csv --output out.keras "
        "--devices cpu:0")


def train(root, name, count, environment_of, options=""):
    """environment_of(rank, port): what the launcher says. Bits are one process's."""
    check.begin(name)
    folder = fresh(root / "group")
    with group(folder, 1) as tasks:
        for rank in range(count):
            variables = environment_of(rank, tasks.ports.numbers[0])
            tasks.start(rank, (LINE + options).format(start=root / "start", port=tasks.ports.numbers[0]), TF_CONFIG=None, **variables)
        statuses = tasks.wait()
        check.expect(statuses == [0] * count, f"{statuses}: {[task.err for task in tasks.tasks]}")
        expect_same(outcome(root / "alone"), outcome(tasks.tasks[0].folder, but=("task0",)), "one process")
        for task in tasks.tasks[1:]:
            check.expect(not outcome(task.folder, but=("task",)), f"{task.name} wrote files")


def torch(rank, port):
    return {"RANK": str(rank), "WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


def keras(rank, port):
    return {"KERAS_DISTRIBUTION_JOB_ADDRESSES": f"127.0.0.1:{port}", "KERAS_DISTRIBUTION_NUM_PROCESSES": "3",
            "KERAS_DISTRIBUTION_PROCESS_ID": str(rank)}


def mpirun(rank, _):
    return {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_LOCAL_SIZE": "3", "PMIX_RANK": str(rank),
            "PMIX_NAMESPACE": "1"}


def mpiexec(rank, _):
    return {"PMI_RANK": str(rank), "PMI_SIZE": "3", "MPI_LOCALNRANKS": "3"}


def mpiexec_by_master(rank, port):
    return {**mpiexec(rank, port), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


def srun(rank, _):
    return {"SLURM_PROCID": str(rank), "SLURM_NTASKS": "3", "SLURM_STEP_NODELIST": "localhost", "SLURM_JOB_ID": "7",
            "SLURM_STEP_ID": "0", "SLURM_STEP_TASKS_PER_NODE": "3", "SLURM_NODEID": "0"}


def free_job():
    """A job whose port is free."""
    for job in range(4096):
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(("127.0.0.1", 61440 + job))
                return str(job)
            except OSError:
                continue
    raise OSError("no port is free")


def mpirun_within_srun(rank, port):
    """The processes inherit the variables of the one helper on the host."""
    return {**srun(0, port), **mpirun(rank, port), "SLURM_NTASKS": "1"}


def refused(root):
    """Launchers that do not say where rank 0 is."""
    check.begin("where rank 0 is found is not said")
    line = LINE.format(start=root / "start")
    for variables in (mpirun(1, 0), mpiexec(1, 0)):
        done = run(line, root / "alone", TANDEM_SECRET_FILE=str(root / "secret"), **variables)
        check.expect(done.returncode in (1, 2) and "give" in done.stderr and "--rendezvous" in done.stderr, done.stderr)
    done = run(f"{line} --rendezvous ./meet", root / "alone", TANDEM_SECRET_FILE=str(root / "secret"), **mpirun(1, 0))
    check.expect(done.returncode in (1, 2) and "rendezvous" in done.stderr, done.stderr)


def alone_under_a_launcher(root):
    """One process needs no secret, nor anything of the others."""
    check.begin("one process")
    variables = {**mpirun(0, 0), "OMPI_COMM_WORLD_SIZE": "1"}
    done = run(LINE.format(start=root / "start"), fresh(root / "one"), **variables)
    check.expect(done.returncode == 0, done.stderr)
    expect_same(outcome(root / "alone"), outcome(root / "one"), "one process without a launcher")


def main():
    with workplace() as root:
        (root / "secret").write_bytes(bytes(range(32)))
        (root / "secret").chmod(0o600)
        done = run(LINE.format(start=root / "start"), fresh(root / "alone"))
        check.expect(done.returncode == 0, done.stderr)
        at = " --rendezvous 127.0.0.1:{port}"
        job = free_job()
        train(root, "torchrun", 3, torch)
        train(root, "Keras", 3, keras)
        train(root, "mpirun", 3, mpirun, at)
        train(root, "mpiexec", 3, mpiexec, at)
        train(root, "mpiexec, MASTER_ADDR", 3, mpiexec_by_master)
        train(root, "srun", 3, lambda rank, port: {**srun(rank, port), "SLURM_JOB_ID": job})
        train(root, "srun --rendezvous", 3, srun, at)
        train(root, "mpirun within srun", 3, mpirun_within_srun, at)
        refused(root)
        alone_under_a_launcher(root)
    check.finish()


if __name__ == "__main__":
    main()
