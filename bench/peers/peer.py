"""The protocol between bench/run and what it measures, in lines of JSON. A program is started as `PROGRAM CASE WAY MODEL`;
it says {"first": SECONDS since BENCH_STARTED (monotonic clock), "parameters": N} once its first step is done; then for
each line "round SECONDS" it works at least that long and says {"us": microseconds a step}; where single calls are timed,
"round SECONDS TICK" has one made every TICK seconds, with sleep between them. At the end of input it says its largest
resident size, and where single calls were timed the percentiles of both kinds, but for the first round's, which warms up."""
import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from harness import setup  # noqa: E402
from harness.cases import CASES  # noqa: E402

PERCENTILES = (50, 99, 99.9)


def arguments():
    """(case, way, path of the model's file)"""
    return CASES[sys.argv[1]], sys.argv[2], sys.argv[3]


def say(**facts):
    print(json.dumps(facts), flush=True)


def read_digits(samples, shape):
    import numpy as np
    folder = setup.unpacked_digits()  # before the clock started, setup.digits() filled it
    x = np.fromfile(folder / "train-images-idx3-ubyte", np.uint8, samples * int(np.prod(shape)), offset=16)
    y = np.fromfile(folder / "train-labels-idx1-ubyte", np.uint8, samples, offset=8)
    return x.reshape(samples, *shape).astype(np.float32) / np.float32(255), y.astype(np.int32)


def data(case, batches):
    """Floats in [0, 1], the digits or noise, and class numbers, or numbers to learn, as NumPy arrays."""
    import numpy as np
    if case.digits:
        return read_digits(case.batch * batches, case.shape)
    random = np.random.default_rng(1)
    samples = case.batch * batches
    x = random.random((samples, *case.shape), dtype=np.float32)
    if case.classes:
        return x, random.integers(0, case.classes, samples).astype(np.int32)
    return x, random.random((samples, 1), dtype=np.float32)


def kilobytes():
    """Of the whole life of this process. (ru_maxrss would begin with the size of the parent.)"""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def rounds(measure, forget=lambda: None):
    """measure(seconds), measure(seconds, tick): microseconds a step. Ends with the input. What the first round left, which
    warms up, is forgotten."""
    for number, line in enumerate(sys.stdin):
        say(us=measure(*map(float, line.split()[1:])))
        if number == 0:
            forget()


def serve_epochs(case, parameters, first_step, make_epoch):
    """first_step(): one training step. make_epoch(): reads the data, returns epoch(), which trains for one epoch and
    returns once the weights are there."""
    first_step()
    say(first=time.monotonic() - float(os.environ["BENCH_STARTED"]), parameters=parameters())
    epoch = make_epoch()

    def measure(seconds):
        began, epochs = time.monotonic(), 0
        while epochs == 0 or time.monotonic() - began < seconds:
            epoch()
            epochs += 1
        return (time.monotonic() - began) * 1e6 / (epochs * case.steps)

    rounds(measure)
    say(kilobytes=kilobytes())


def percentiles(calls):
    ordered = sorted(calls)
    return {"calls": len(ordered), **{str(p): ordered[min(len(ordered) - 1, int(len(ordered) * p / 100))] for p in PERCENTILES}}


def serve_calls(parameters, call):
    """call(): one training step or prediction, whose result the caller then has."""
    call()
    say(first=time.monotonic() - float(os.environ["BENCH_STARTED"]), parameters=parameters())
    in_a_row, at_ticks = [], []

    def measure(seconds, tick=0):
        calls = at_ticks if tick else in_a_row
        before, start = len(calls), time.monotonic()
        while (now := time.monotonic()) < start + seconds:
            if tick:
                time.sleep(tick - (now - start) % tick)
            began = time.perf_counter_ns()
            call()
            calls.append((time.perf_counter_ns() - began) / 1e3)
        return sorted(calls[before:])[(len(calls) - before) // 2]

    rounds(measure, in_a_row.clear)
    say(kilobytes=kilobytes(), **{name: percentiles(calls) for name, calls in
                                  (("percentiles", in_a_row), ("at_ticks", at_ticks)) if calls})
