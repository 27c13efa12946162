"""The machine: what it is, and its roofline."""
import json
import os
import pathlib
import subprocess
import time

from . import setup
from .contender import Failed

FEATURES = ("avx2", "avx512f", "avx512_bf16", "amx_bf16", "asimd")


def describe(threads):
    """What makes two machines comparable."""
    facts = {"processor": "unknown processor", "threads": threads, "features": []}
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            facts["processor"] = value.strip()
        if name.strip() in ("flags", "Features"):
            facts["features"] = [feature for feature in FEATURES if feature in value.split()]
    for index in pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        if (index / "type").read_text().strip() != "Instruction":
            facts[f"l{(index / 'level').read_text().strip()}"] = (index / "size").read_text().strip()
    return facts


def sentence(machine):
    caches = ", ".join(f"{name.upper()} {machine[name]}" for name in ("l1", "l2", "l3") if name in machine)
    return f"{machine['processor']}, {machine['threads']} threads, {' '.join(machine['features'])}; {caches}"


TICK = os.sysconf("SC_CLK_TCK")


def busy_seconds():
    """Of all cores since the start, what the host took from a virtual machine included."""
    with open("/proc/stat", encoding="ascii") as stat:
        user, nice, system, _, _, interrupts, soft, stolen = map(int, stat.readline().split()[1:9])
    return (user + nice + system + interrupts + soft + stolen) / TICK


def process_seconds(pid):
    """Of processor time; 0 when there is no such process any more."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICK


class Foreign:
    """What other processes have of the machine meanwhile, seen from a process whose children have all ended."""

    def __init__(self):
        self.began, self.busy = time.monotonic(), busy_seconds() - self.own()

    @staticmethod
    def own():
        times = os.times()
        return times.user + times.system + times.children_user + times.children_system

    def share(self):
        """Of all cores."""
        return max(0.0, busy_seconds() - self.own() - self.busy) / (time.monotonic() - self.began) / os.cpu_count()


def on(cores, command):
    """The command, held to the cores."""
    return ["taskset", "-c", ",".join(map(str, sorted(cores))), *map(str, command)]


def run_roofline(cores, *words):
    """Raises Failed, in the program's words, where there is not enough memory."""
    run = subprocess.run(on(cores, [setup.program("bench_roofline"), len(cores), *words]), stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, check=False)
    if run.returncode != 0:
        raise Failed(run.stderr.strip() or f"bench_roofline ended with exit status {run.returncode}")
    return json.loads(run.stdout)


def higher(one, other):
    """The better of two measurements of the roofline, number by number."""
    if isinstance(one, dict):
        return {name: higher(value, other[name]) for name, value in one.items()}
    if isinstance(one, list):
        return [higher(mine, others) for mine, others in zip(one, other)]
    return one if isinstance(one, str) else max(one, other)


def best_of(every):
    """Of several measurements of the roofline; the hand-over is the last one's."""
    best = every[0]
    for found in every[1:]:
        best = dict(higher(best, found), handover_ns=found["handover_ns"])
    return best


class Roofline:
    """What the machine can do at most: the best of all measurements of this run."""

    def __init__(self, cores):
        self.cores = cores
        self.best = run_roofline(cores)

    def again(self):
        """Those from before where there is too little memory now."""
        try:
            self.best = best_of([self.best, run_roofline(self.cores)])
        except Failed as reason:
            print(f"the roofline is the one from before: {reason}", flush=True)
        return self.best


def handover(cores):
    """Nanoseconds from core to core, just now; None on one core."""
    found = run_roofline(cores, "meet")["handover_ns"]
    return found and found["median"]


def bandwidth(roofs_of, kind, threads, size):
    """Bytes a second over `size` bytes of each thread, between the sizes measured. kind: read or update."""
    points = roofs_of[f"{kind}_{'one' if threads == 1 else 'all'}"]
    for (smaller, slow), (larger, fast) in zip(points, points[1:]):
        if size <= larger:
            share = min(1, max(0, (size - smaller) / (larger - smaller)))
            return slow + share * (fast - slow)
    return points[-1][1]


def level(text):
    """Bytes of "2048K"."""
    return int(text[:-1]) * {"K": 1 << 10, "M": 1 << 20}[text[-1]]


def roofline_table(machine, found):
    """Lines of text."""
    lines = [f"{'roofline':36}{'1 thread':>12}{'all':>12}"]
    for name, title in (("fp32_flops", "fp32, GFLOP/s"), ("bf16_vector_flops", "bf16 by vdpbf16ps, GFLOP/s"),
                        ("bf16_tile_flops", "bf16 by AMX, GFLOP/s")):
        if name in found:
            lines.append(f"{title:36}{found[name]['one'] / 1e9:12.0f}{found[name]['all'] / 1e9:12.0f}")
    sizes = [(name.upper(), level(machine[name]) / 2) for name in ("l1", "l2") if name in machine]
    sizes += [("8 MB a thread", 8 << 20), ("256 MB a thread", 256 << 20)]
    for kind, title in (("read", "read"), ("update", "update (read + written)")):
        for name, size in sizes:
            one, every = (bandwidth(found, kind, threads, size) / 1e9 for threads in (1, 2))
            lines.append(f"{title + ', ' + name + ', GB/s':36}{one:12.0f}{every:12.0f}")
    if found["handover_ns"]:
        lines.append(f"{'hand-over from core to core, ns':36}{'':12}{found['handover_ns']['median']:12.0f}")
    return lines
