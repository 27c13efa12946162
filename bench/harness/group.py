"""Processes that train together and are measured as one: each is held to a core of its own."""
import concurrent.futures
import json
import os
import signal
import socket
import statistics
import subprocess
import time

from .contender import Contender, Failed, spread

TURN = 1.5  # seconds of training, about, in a turn of Tandem's
LEAST_EPOCHS, MOST_EPOCHS = 3, 60  # of it


def free_ports(count):
    """Ports of 127.0.0.1 that nobody used just now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def environments(count):
    """What tells each process who is in its group: as torchrun does, and as TensorFlow and Tandem read it."""
    *ports, meeting = free_ports(count + 1)
    workers = [f"127.0.0.1:{port}" for port in ports]
    return [{"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1",
             "MASTER_PORT": str(meeting), "GLOO_SOCKET_IFNAME": "lo",
             "TF_CONFIG": json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}})}
            for rank in range(count)]


class Group:
    """Contenders that are told the same rounds, of one epoch each, at once; measured as a contender is."""

    def __init__(self, name, title, command, cores, log, patience):
        """Raises Failed."""
        self.name, self.title, self.rounds = name, title, []
        self.members = [Contender(name, title, command, {core}, log.with_name(f"{log.name}-{rank}.log"), patience, environment)
                        for rank, (core, environment) in enumerate(zip(sorted(cores), environments(len(cores))))]
        try:
            self.all(Contender.await_first)
        except BaseException:
            self.kill()
            raise
        self.facts = self.members[0].facts

    def all(self, call):
        """call(member) of every member, each in a thread; when one fails the others, who may wait for it, are ended."""
        with concurrent.futures.ThreadPoolExecutor(len(self.members)) as pool:
            calls = [pool.submit(call, member) for member in self.members]
            for done in concurrent.futures.as_completed(calls):
                if done.exception():
                    self.kill()
                    raise done.exception()
        return [done.result() for done in calls]

    def measure(self, _):
        began = time.monotonic()
        self.rounds.append(max(self.all(lambda member: member.round(0))))
        return time.monotonic() - began

    def end(self):
        self.all(Contender.end)

    def kill(self):
        for member in self.members:
            member.kill()

    def result(self, base):
        return {"title": self.title, **summary(self.rounds, base), "parameters": self.facts["parameters"],
                "kilobytes": sum(member.facts["kilobytes"] for member in self.members)}


def summary(rounds, base):
    """Of microseconds a step; `base`: the rounds of the one that all are compared with, in turn with these, or None."""
    found = {"us": statistics.median(rounds), "least": min(rounds), "most": max(rounds), "rounds": len(rounds)}
    if base:
        ratios = sorted(mine / other for mine, other in zip(rounds, base))
        found.update(ratio=statistics.median(ratios), noise=spread(ratios))
    return found


class TandemGroup:
    """`tandem fit` of several processes, which every turn starts anew: what the chief's log says of each epoch but the first,
    which warms up. The median of a turn is a round; the least and the most are those of all epochs."""

    def __init__(self, name, title, fit, cores, folder, patience):
        """`fit`: the command without epochs and files. Raises Failed."""
        self.name, self.title, self.fit, self.cores, self.patience = name, title, fit, sorted(cores), patience
        self.folder, self.log = folder, folder / f"{name}.jsonl"
        self.rounds, self.every, self.epochs = [], [], LEAST_EPOCHS
        folder.mkdir(parents=True, exist_ok=True)
        epochs = self.turn()
        self.epochs = 1 + max(LEAST_EPOCHS, min(MOST_EPOCHS, int(TURN / statistics.median(epoch["seconds"] for epoch in epochs))))

    def errors(self, rank):
        return self.folder / f"{self.name}-{rank}.log"

    def start(self, rank, environment):
        """The same command in each process; the chief alone writes."""
        command = ["taskset", "-c", self.cores[rank], *self.fit, "--epochs", self.epochs, "--quiet", "--log", self.log,
                   "--output", self.folder / "trained.keras"]
        with open(self.errors(rank), "wb") as errors:
            return subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                    stderr=errors, env={**os.environ, **environment}, start_new_session=True)

    def await_all(self, processes):
        """Raises Failed, in the words of the process that failed first."""
        end = time.monotonic() + self.patience
        while any(process.poll() is None for process in processes):
            for rank, process in enumerate(processes):
                if process.poll():
                    raise Failed(f"process {rank}: {self.last_words(rank)} (exit status {process.returncode})")
            if time.monotonic() > end:
                raise Failed(f"not done within {self.patience:.0f} s")
            time.sleep(0.01)
        for rank, process in enumerate(processes):
            if process.returncode:
                raise Failed(f"process {rank}: {self.last_words(rank)} (exit status {process.returncode})")

    def last_words(self, rank):
        lines = self.errors(rank).read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1][:200] if lines else "it said nothing"

    def turn(self):
        """The log's entries of all epochs but the first. Raises Failed."""
        self.log.unlink(missing_ok=True)
        secret = self.folder / "secret"
        secret.unlink(missing_ok=True)
        with open(os.open(secret, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(os.urandom(32))
        processes = [self.start(rank, {**environment, "TANDEM_SECRET_FILE": str(secret)})
                     for rank, environment in enumerate(environments(len(self.cores)))]
        try:
            self.await_all(processes)
        finally:
            for process in processes:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return self.entries()[1:]

    def entries(self):
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        if len(lines) != self.epochs:
            raise Failed(f"the log has {len(lines)} lines for {self.epochs} epochs: the processes did not train together")
        return [json.loads(line) for line in lines]

    def measure(self, _):
        began = time.monotonic()
        steps = [1e6 * epoch["seconds"] / epoch["steps"] for epoch in self.turn()]
        self.every += steps
        self.rounds.append(statistics.median(steps))
        return time.monotonic() - began

    def end(self):
        pass

    def kill(self):
        pass

    def result(self, base):
        return {"title": self.title, **summary(self.rounds, base), "least": min(self.every), "most": max(self.every)}
