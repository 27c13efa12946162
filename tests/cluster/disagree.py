"""Processes that do not fit together, or cannot begin: each mistake is named before the first step, and nobody hangs.

usage: disagree.py TANDEM"""
import contextlib
import os
import re
import shutil
import socket
import subprocess

from support.group import Ports, check, expect_same, fresh, group, outcome, run, until, workplace

FIT = "fit {start}/mlp.keras --train {start}/grey --seed 3 --epochs 1 --batch-size 32 --quiet --devices cpu:0 --output out.keras"
BOTH = r"worker 2 \(127\.0\.0\.1:\d+\) and the chief "
ON = BOTH + "disagree on the "


def expect_failures(tasks, *patterns):
    """Every process fails by one of its sentences, the last pattern's for the rest of them, and none writes a model."""
    for number, task in enumerate(tasks):
        pattern = patterns[min(number, len(patterns) - 1)]
        status = task.wait()
        check.expect(status in (1, 2), f"{task.name}: status {status}")
        check.expect(re.search(pattern, task.err), f"{task.name}: {pattern!r} is not in: {task.err}")
        check.expect(not (task.folder / "out.keras").exists(), f"{task.name} saved a model")


def start_all(tasks, start, *lines, **more):
    return tasks.start_all(*[line.format(start=start) for line in lines], **more)


# ---- what they were told ----

def make_other_labels(start):
    shutil.copytree(start / "grey", start / "other")
    with open(start / "other" / "train-labels-idx1-ubyte", "r+b") as labels:
        labels.seek(8 + 40)
        one = labels.read(1)[0]
        labels.seek(8 + 40)
        labels.write(bytes([one ^ 1]))


DISAGREEMENTS = (
    ("data", "{start}/grey", "{start}/other", ON + "training data: 97 samples .* there, 97 samples .* at the chief"),
    ("batch size", "size 32", "size 16", ON + "batch size: 16 there, 32 at the chief"),
    ("epochs", "epochs 1", "epochs 2", ON + "epochs: 2 there, 1 at the chief"),
    ("seed", "seed 3", "seed 4", ON + "seed: 4 there, 3 at the chief"),
    ("shards", "--quiet", "--quiet --shards 4", ON + "number of shards: 4 there, 0 at the chief"),
    ("precision", "--quiet", "--quiet --precision float32", ON + "precision: float32 there, the file's at the chief"),
    ("shuffle", "--quiet", "--quiet --no-shuffle", ON + "shuffle: no there, yes at the chief"),
    ("optimizer", "--quiet", "--quiet --optimizer sgd", ON + "optimizer"),
    ("clipping", "--quiet", "--quiet --clipnorm 0.5", ON + "optimizer.clipnorm: 0.5 there, null at the chief"),
    ("metrics", "--quiet", "--quiet --metrics none", ON + "metrics"),
    ("validation", "--quiet", "--quiet --validation {start}/grey", ON + "validation data: 33 samples .* there, none at the chief"),
    ("class weights", "--quiet", "--quiet --class-weight 1:2", ON + "class weights"),
    ("steps", "--quiet", "--quiet --steps-per-epoch 2", ON + "steps of an epoch: 2 there, 4 at the chief"),
    ("rates", "--quiet", "--quiet --learning-rate-scheduler 0=0.01",
     "epoch 1: " + ON + "learning rate: 0.0.* there, 0.001.* at the chief; give all processes the same callbacks"),
    ("calls", FIT, "evaluate {start}/mlp.keras --data {start}/grey --quiet", BOTH + "are at different calls"),
    ("data of one is missing", "{start}/grey", "{start}/nowhere",
     r"worker 2 \(.*\) has left|--train: .*nowhere: no such file"),
    ("targets of one are of another kind", "--quiet", "--quiet --loss mean_squared_error", "y holds targets of shape .*MeanSquaredError"),
)


def disagreements(root):
    make_other_labels(root / "start")
    for name, now, then, sentence in DISAGREEMENTS:
        check.begin(name)
        with group(fresh(root / "group"), 3) as tasks:
            expect_failures(start_all(tasks, root / "start", FIT, FIT, FIT.replace(now, then)), sentence)


def what_is_the_chiefs(root):
    """The chief's learning rate, execution and files hold, whatever the others were told."""
    check.begin("what is the chief's")
    start = root / "start"
    line = FIT.format(start=start) + " --shards 2"
    chiefs = f"{line} --learning-rate 0.01 --csv-log log.csv --steps-per-execution 3"
    alone = fresh(root / "alone")
    run(chiefs, alone)
    with group(fresh(root / "group"), 2) as tasks:
        other = line.replace(str(start / "mlp.keras"), "nowhere/none.keras")
        tasks.start_all(chiefs, f"{other} --steps-per-execution 1 --checkpoint c.keras --tensorboard board --log l --trace t")
        check.expect(tasks.wait() == [0, 0], [task.err for task in tasks.tasks])
        expect_same(outcome(alone), outcome(tasks.tasks[0].folder, but=("task0",)), "the chief's files")
        check.expect(not outcome(tasks.tasks[1].folder, but=("task1",)), "the worker wrote files")


# ---- who they are ----

def cluster_of_another_size(root):
    check.begin("a cluster of another size")
    line = FIT.format(start=root / "start")
    with group(fresh(root / "group"), 3) as tasks:
        small = tasks.config(1, tasks.addresses[:2])
        for index in range(3):  # the last one may come when the others have ended already
            tasks.start(index, f"{line} --start-timeout 10", TF_CONFIG=small if index == 1 else tasks.config(index))
        said = r"is of a cluster of [23] workers, and this process of one of [23] workers; give all processes"
        expect_failures(tasks.tasks[:2], said)
        expect_failures(tasks.tasks[2:], said + r"|did not come within 10 seconds")


def same_task_twice(root):
    check.begin("the same task twice")
    line = FIT.format(start=root / "start")
    with group(fresh(root / "group"), 3) as tasks:
        first = tasks.start(1, f"{line} --start-timeout 3")
        until(lambda: "waits for" in first.err or first.process.poll() is not None or listens(tasks.ports.numbers[1]), "worker 1 listens")
        second = tasks.start(1, line, folder=root / "group" / "second", name="second")
        expect_failures([second], r"worker 1 .*cannot listen.*in use")
        expect_failures([first], r"worker 0 \(.*\), worker 2 \(.*\) did not come within 3 seconds")
    with group(fresh(root / "group"), 3) as tasks, contextlib.closing(Ports(1)) as spare:
        chief, first = tasks.start(0, line.replace("--quiet", "")), tasks.start(1, line)
        wait_for(chief, f"worker 0 ({tasks.addresses[0]}) waits for worker 2")
        second = tasks.start(1, f"{line} --bind {spare.addresses[0]}", folder=root / "group" / "second", name="second")
        expect_failures([second], "refuses this process: another process has that task already; was it started twice?")
        rest = [chief, first, tasks.start(2, line)]
        check.expect([task.wait() for task in rest] == [0, 0, 0], f"{[task.err for task in rest]}")


def listens(port):
    """Something listens at this port of this host."""
    with open("/proc/net/tcp", encoding="ascii") as table:
        return any(re.search(rf"^ *\d+: [0-9A-F]{{8}}:{port:04X} \S+ 0A ", row) for row in table)


def a_task_never_comes(root):
    check.begin("a task never comes")
    line = FIT.format(start=root / "start") + " --start-timeout 2"
    with group(fresh(root / "group"), 3) as tasks:
        started = [tasks.start(index, line) for index in (0, 1)]
        expect_failures(started, r"^tandem fit: worker 2 \(127.0.0.1:\d+\) did not come within 2 seconds.*--start-timeout")
    with group(fresh(root / "group"), 3) as tasks:
        expect_failures([tasks.start(2, line)],
                        r"worker 0 \(.*\), worker 1 \(.*\) did not come within 2 seconds; the last attempt: .*refuses")


def ports_and_addresses(root):
    line = FIT.format(start=root / "start")
    with group(fresh(root / "group"), 2) as tasks, socket.socket() as taken:
        check.begin("a port in use")
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        addresses = [f"127.0.0.1:{taken.getsockname()[1]}", tasks.addresses[1]]
        expect_failures([tasks.start(0, line, TF_CONFIG=tasks.config(0, addresses))], r"worker 0 .*cannot listen: .*in use")
        check.begin("an address of another host")
        addresses[0] = "192.0.2.1:2222"
        expect_failures([tasks.start(0, line, TF_CONFIG=tasks.config(0, addresses))],
                        r"worker 0 \(192.0.2.1:2222\) cannot listen: .*no address of this")
        check.begin("a name of no host")
        addresses[0] = "no-such-host.invalid:2222"
        expect_failures([tasks.start(0, line, TF_CONFIG=tasks.config(0, addresses))], r"no-such-host.invalid")


# ---- the secret ----

def secrets(root):
    line = FIT.format(start=root / "start")
    with group(fresh(root / "group"), 2) as tasks:
        other = tasks.folder / "other"
        other.write_bytes(os.urandom(32))
        check.begin("a secret that others can read")
        other.chmod(0o644)
        expect_failures([tasks.start(1, line, TANDEM_SECRET_FILE=str(other))], "other.*chmod 600")
        check.begin("no secret")
        expect_failures([tasks.start(1, line, TANDEM_SECRET_FILE=None)], "none was given: make one by `tandem cluster")
        expect_failures([tasks.start(1, line, TANDEM_SECRET_FILE="none")], "none.*No such file")
        check.begin("a short secret")
        other.chmod(0o600)
        other.write_bytes(b"password\n")
        expect_failures([tasks.start(1, line, TANDEM_SECRET_FILE=str(other))], "other.*16")
        check.begin("a wrong secret")
        other.write_bytes(os.urandom(32))
        chief = tasks.start(0, line)
        expect_failures([tasks.start(1, line, TANDEM_SECRET_FILE=str(other))], r"worker 0 \(.*\): .*has another secret|another secret")
        wait_for(chief, "a connection was refused: 127.0.0.1")
        check.begin("a run of another name")
        expect_failures([tasks.start(1, f"{line} --name other")], r"belongs to a run of another name")
        check.begin("the right one, at last")
        right = tasks.start(1, line)
        check.expect((right.wait(), chief.wait()) == (0, 0), f"{chief.err}{right.err}")


def wait_for(task, words):
    until(lambda: words in task.err, f"{task.name} says: {words}")


# ---- the chief's disk ----

def full_disk(root):
    """The model finds no room at its place; nobody waits for anybody, and it is not lost."""
    check.begin("a full disk")
    if os.geteuid() != 0:
        print("skipped: a full disk needs root")
        return
    line = FIT.format(start=root / "start")
    with group(fresh(root / "group"), 2) as tasks:
        small = tasks.folder / "small"
        small.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "none", small]
        if subprocess.run(mount, check=False, stderr=subprocess.DEVNULL).returncode:
            print("skipped: nothing is mounted here")
            return
        try:
            tasks.start_all(line.replace("out.keras", str(small / "out.keras")), line)
            statuses = tasks.wait()
            chief = tasks.tasks[0]
            check.expect(statuses[0] == 1 and "No space left" in chief.err, f"{statuses} {chief.err}")
            check.expect(statuses[1] in (0, 1), f"the worker: {statuses} {tasks.tasks[1].err}")
        finally:
            subprocess.run(["umount", small], check=True)


def main():
    with workplace() as root:
        disagreements(root)
        what_is_the_chiefs(root)
        cluster_of_another_size(root)
        same_task_twice(root)
        a_task_never_comes(root)
        ports_and_addresses(root)
        secrets(root)
        full_disk(root)
    check.finish()


if __name__ == "__main__":
    main()
