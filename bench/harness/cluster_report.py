"""Tables of what bench/cluster measured, as text."""
from . import machine
from .report import number, table

# Times of one process that shared memory may take at most: an update is made in each process, which of a small dense network
# is half a step. Times of DDP over those of TLS that are to be reached at least.
MOST_OF_ONE = {"mlp": 1.7, "mlp128": 1.7, "lenet5": 1.15, "cifar": 1.15, "resnet50": 1.15}
LEAST_OF_DDP = {"mlp": 4, "mlp128": 4, "lenet5": 4, "cifar": 2, "resnet50": 1.2}
# Microseconds of an all-reduce through shared memory, the least of all rounds.
MOST_OF_MEMORY = {"4096": 1, "1048576": 30, "100000000": 15000}


def of_ddp(case, way):
    """DDP's time over that of a way, or None."""
    ddp, found = (case["groups"].get(name) for name in ("ddp", way))
    return ddp["us"] / found["us"] if ddp and found else None


def aim(name, case, way):
    """Words."""
    if way == "tandem-ucx":
        return f"at most {MOST_OF_ONE[name]:g} x one process"
    if way == "tandem-tls":
        ratio = of_ddp(case, way)
        return f"DDP takes {number(ratio)} x; aim {LEAST_OF_DDP[name]:g}" if ratio else f"aim {LEAST_OF_DDP[name]:g} x DDP"
    return ""


def training(name, case):
    """Lines: all contenders of a case."""
    rows = [("", "us/step", "least", "most", "/ one process", "aim")]
    if case["one"]:
        one = case["one"]
        rows.append((f"{one['title']}, both cores", number(one["us"]), number(one["least"]), number(one["most"]), "1", ""))
    for way, found in case["groups"].items():
        rows.append((found["title"], number(found["us"]), number(found["least"]), number(found["most"]),
                     number(found.get("ratio")), aim(name, case, way)))
    lines = ["", f"{case['title']}: two processes of one core, half of the batch each ({case['when']})"] + table(rows)
    return lines + remarks(case)


def remarks(part):
    """Lines: who was left out, and what disturbed."""
    lines = [f"left out: {title}: {reason}" for title, reason in part["left_out"].items()]
    if part["foreign"] > 0.05:
        lines.append(f"warning: other processes had {part['foreign']:.0%} of the machine meanwhile")
    return lines


def size_name(size):
    size = int(size)
    return f"{size >> 20} MiB" if size % (1 << 20) == 0 else f"{size >> 10} KiB" if size % 1024 == 0 else f"{size // 10**6} MB"


def engine(found):
    """Lines: the all-reduce alone."""
    sizes = sorted({size for way in found["ways"].values() for size in way["sizes"]}, key=int)
    rows = [("all-reduce of two processes, us", *(cell for size in sizes for cell in (f"{size_name(size)}: least", "median")))]
    for way in found["ways"].values():
        times = [way["sizes"].get(size, {}) for size in sizes]
        rows.append((way["title"], *(number(time.get(kind)) for time in times for kind in ("least", "us"))))
    return ["", *table(rows), f"({found['when']})", *remarks(found)]


def below_aims(cases):
    """Sentences."""
    for name, case in cases.items():
        memory, ratio = case["groups"].get("tandem-ucx", {}).get("ratio"), of_ddp(case, "tandem-tls")
        if memory and memory > MOST_OF_ONE[name]:
            yield f"{name}: shared memory takes {memory:.2f} times as long as one process; at most {MOST_OF_ONE[name]:g}"
        if ratio and ratio < LEAST_OF_DDP[name]:
            yield f"{name}: DDP takes {ratio:.2f} times as long as TLS; at least {LEAST_OF_DDP[name]:g}"


def engine_below_aims(found):
    """Sentences."""
    memory = found["ways"].get("tandem-ucx", {"sizes": {}})["sizes"]
    for size, most in MOST_OF_MEMORY.items():
        if size in memory and memory[size]["least"] > most:
            yield f"all-reduce of {size_name(size)}: shared memory takes {number(memory[size]['least'])} us; at most {most}"


def head(results):
    return [machine.sentence(results["machine"]),
            ", ".join(f"{name} {version}" for name, version in results["versions"].items())]


def whole(results):
    lines = head(results)
    for name, case in results["cases"].items():
        lines += training(name, case)
    return lines + (engine(results["engine"]) if results.get("engine") else [])


def failures(results):
    """Sentences: where Tandem itself did not run."""
    parts = {**results["cases"], **({"all-reduce": results["engine"]} if results.get("engine") else {})}
    for name, part in parts.items():
        for title in part["failed"]:
            if title.startswith("Tandem"):
                yield f"{name}: {title}: {part['left_out'][title]}"
