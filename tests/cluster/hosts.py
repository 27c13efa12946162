"""Groups over several hosts, which are network namespaces here, connected by a bridge. Needs root, and is skipped without.

usage: hosts.py TANDEM"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from support.group import TANDEM, Task, check, environment, expect_same, fresh, is_gone, outcome, run, until, workplace

SKIPPED = 77
PORT = 2222  # each host has all ports for itself
LINE = "fit {model} --train {start}/grey --seed 3 --epochs {epochs} --batch-size 8 --quiet --shards 4 --csv-log log.csv --output out.keras"
HOSTS = 3


def ip(*words):
    subprocess.run(["ip", *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def address(host):
    return f"10.77.0.{host + 1}"


@contextlib.contextmanager
def network():
    """The names of the hosts. The bridge is in a namespace of its own, so that this host's network is not touched."""
    prefix = f"tandem{os.getpid()}"
    switch, hosts = f"{prefix}-switch", [f"{prefix}-{host}" for host in range(HOSTS)]
    try:
        for name in (switch, *hosts):
            ip("netns", "add", name)
        ip("-n", switch, "link", "add", "bridge", "type", "bridge")
        ip("-n", switch, "link", "set", "bridge", "up")
        for host, name in enumerate(hosts):
            ip("-n", switch, "link", "add", f"port{host}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("-n", switch, "link", "set", f"port{host}", "master", "bridge", "up")
            ip("-n", name, "address", "add", f"{address(host)}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield hosts
    finally:
        for name in (switch, *hosts):
            subprocess.run(["ip", "netns", "delete", name], check=False, stderr=subprocess.DEVNULL)


def is_possible():
    if os.geteuid() != 0 or not shutil.which("ip"):
        return False
    try:
        with network():
            return True
    except subprocess.CalledProcessError as error:
        print(error.stderr.decode())
        return False


class Hosts:
    """A process on each host, with one secret and a folder of its own."""

    def __init__(self, root, names):
        self.root, self.names = fresh(root), names
        self.secret = root / "secret"
        self.secret.write_bytes(os.urandom(32))
        self.secret.chmod(0o600)
        self.tasks = []

    def start(self, host, line, **variables):
        folder = self.root / f"host{host}"
        folder.mkdir(exist_ok=True)
        command = ["ip", "netns", "exec", self.names[host], TANDEM]
        task = Task(line, folder, f"host{host}", environment(TANDEM_SECRET_FILE=str(self.secret), **variables), command)
        self.tasks.append(task)
        return task

    def wait(self):
        return [task.wait() for task in self.tasks]

    def close(self):
        for task in self.tasks:
            if not is_gone(task.process.pid):
                task.process.kill()
                task.process.wait()


@contextlib.contextmanager
def started(root, names):
    made = Hosts(root, names)
    try:
        yield made
    finally:
        made.close()


def cluster(host):
    workers = [f"{address(one)}:{PORT}" for one in range(HOSTS)]
    return json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": host}})


def listening(task):
    """Where anybody listens, or takes datagrams, on the process's host."""
    found = set()
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for row in pathlib.Path(f"/proc/{task.process.pid}/net/{table}").read_text(encoding="ascii").splitlines()[1:]:
            local, state = row.split()[1], row.split()[3]
            if state == "0A" or table.startswith("udp"):
                found.add(f"{table} {in_words(local)}")
    return found


def in_words(local):
    """127.0.0.1:2222 of 0100007F:08AE."""
    host, port = local.split(":")
    if len(host) > 8:
        return local
    return ".".join(str(byte) for byte in reversed(bytes.fromhex(host))) + f":{int(port, 16)}"


def expect_bits(hosts, root):
    statuses = hosts.wait()
    check.expect(statuses == [0] * HOSTS, f"{statuses}: {[task.err for task in hosts.tasks]}")
    expect_same(outcome(root / "alone"), outcome(hosts.tasks[0].folder, but=("host0",)), "one process")


def trains(hosts):
    return lambda: (hosts.root / "host0" / "log.csv").exists() or any(task.process.poll() is not None for task in hosts.tasks)


def by_tf_config(root, names, line):
    check.begin("three hosts by TF_CONFIG")
    with started(root / "hosts", names) as hosts:
        for host in range(HOSTS):
            hosts.start(host, line, TF_CONFIG=cluster(host))
        until(trains(hosts), "they train")
        for host, task in enumerate(hosts.tasks):
            found = listening(task) if task.process.poll() is None else None
            check.expect(found == {f"tcp {address(host)}:{PORT}"}, f"host {host} listens at {found}")
        expect_bits(hosts, root)


def by_rank_0(root, names, line):
    """The others listen where rank 0 sees them, and nowhere else."""
    check.begin("three hosts by MASTER_ADDR")
    with started(root / "hosts", names) as hosts:
        for rank in range(HOSTS):
            hosts.start(rank, line, RANK=str(rank), WORLD_SIZE=str(HOSTS), MASTER_ADDR=address(0), MASTER_PORT=str(PORT))
        until(trains(hosts), "they train")
        for host, task in enumerate(hosts.tasks):
            found = listening(task) if task.process.poll() is None else set()
            port = PORT if host == 0 else r"\d+"
            right = len(found) == 1 and re.fullmatch(rf"tcp {re.escape(address(host))}:{port}", *found)
            check.expect(right, f"host {host} listens at {found}")
        expect_bits(hosts, root)


def model_at_the_chief_alone(root, names):
    check.begin("the model is at the chief alone, the cluster in a file")
    with started(root / "hosts", names) as hosts:
        (hosts.root / "cluster.json").write_text(json.dumps(json.loads(cluster(0))["cluster"]), encoding="ascii")
        (hosts.root / "host0").mkdir()
        shutil.copy(root / "start" / "mlp_dropout.keras", hosts.root / "host0" / "net.keras")
        line = LINE.format(start=root / "start", model="net.keras", epochs=6)
        for host in range(HOSTS):
            hosts.start(host, f"{line} --cluster ../cluster.json --task worker:{host}")
        statuses = hosts.wait()
        check.expect(statuses == [0] * HOSTS, f"{statuses}: {[task.err for task in hosts.tasks]}")
        expect_same(outcome(root / "alone"), outcome(hosts.tasks[0].folder, but=("host0", "net.keras")), "one process")
        for task in hosts.tasks[1:]:
            check.expect(not outcome(task.folder, but=("host",)), f"{task.name} wrote {list(outcome(task.folder))}")


def address_of_another(root, names, line):
    check.begin("an address of another host")
    with started(root / "hosts", names) as hosts:
        task = hosts.start(2, line, TF_CONFIG=cluster(1))
        task.wait()
        right = re.search(rf"worker 1 \({address(1)}:{PORT}\) cannot listen: .*no address of this", task.err)
        check.expect(task.wait() in (1, 2) and right, task.err)
    check.begin("another address to bind")
    with started(root / "hosts", names) as hosts:
        for host in range(HOSTS):
            hosts.start(host, line + (" --bind 0.0.0.0" if host == 1 else ""), TF_CONFIG=cluster(host))
        expect_bits(hosts, root)


def main():
    if not is_possible():
        print("skipped: no network namespaces without root")
        sys.exit(SKIPPED)
    with workplace() as root, network() as names:
        line = LINE.format(start=root / "start", model=root / "start" / "mlp_dropout.keras", epochs=6)
        done = run(line, fresh(root / "alone"))
        check.expect(done.returncode == 0, done.stderr)
        by_tf_config(root, names, line)
        by_rank_0(root, names, line)
        model_at_the_chief_alone(root, names)
        address_of_another(root, names, line)
    check.finish()


if __name__ == "__main__":
    main()
