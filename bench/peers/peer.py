"""The protocol between bench/run and what it measures. A peer says "first SECONDS" once its first training step is done,
counted from its start (BENCH_STARTED, on the monotonic clock); then, for each line it reads, trains one epoch and says its
microseconds a step; at the end of input it says its largest resident size in kilobytes."""
import os
import resource
import sys
import time

CLASSES = 10


def arguments():
    """(architecture, samples, batch)"""
    return sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def noise(samples, shape):
    """Data in the form of MNIST: floats in [0, 1), class numbers, as NumPy arrays."""
    import numpy as np
    random = np.random.default_rng(1)
    return random.random((samples, *shape), dtype=np.float32), random.integers(0, CLASSES, samples).astype(np.int32)


def serve(first_step, make_epoch, steps):
    """first_step(): one training step. make_epoch(): reads the data, returns epoch(), which trains for one epoch and
    returns once the weights are there."""
    first_step()
    print(f"first {time.monotonic() - float(os.environ['BENCH_STARTED']):.6f}", flush=True)
    epoch = make_epoch()
    for _ in sys.stdin:
        began = time.monotonic()
        epoch()
        print(f"{(time.monotonic() - began) * 1e6 / steps:.3f}", flush=True)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, flush=True)
