"""`allreduce_peer.py gloo|mpi FOLDER BYTES:ROUNDS...`: one of several processes that add up a vector, again and again, by
torch.distributed over Gloo or by MPI (mpi4py). For each vector a line of JSON goes to FOLDER/RANK: when each round began and
ended, nanoseconds of the monotonic clock, and how many sums were wrong. With BENCH_CORES each process holds itself to the
core of its rank, for launchers that do not."""
import json
import os
import sys
import time

import numpy as np


class Gloo:
    """The sum replaces the vector, which is filled anew outside of the time."""

    def __init__(self):
        import torch
        from torch import distributed
        torch.set_num_threads(1)
        distributed.init_process_group("gloo")
        self.torch, self.add = torch, distributed.all_reduce
        self.rank, self.size = distributed.get_rank(), distributed.get_world_size()
        self.library = f"torch {torch.__version__}"

    def open(self, own):
        self.own = self.torch.from_numpy(own)
        self.sum = self.torch.empty_like(self.own)

    def fill(self):
        self.sum.copy_(self.own)

    def run(self):
        self.add(self.sum)

    def sums(self):
        return self.sum.numpy()

    def close(self):
        self.torch.distributed.destroy_process_group()


class Mpi:
    def __init__(self):
        from mpi4py import MPI
        self.world = MPI.COMM_WORLD
        self.rank, self.size = self.world.Get_rank(), self.world.Get_size()
        self.library = MPI.Get_library_version().split(",")[0].split("\n")[0].strip("\0 ")

    def open(self, own):
        self.own, self.sum = own, np.empty_like(own)

    def fill(self):
        pass

    def run(self):
        self.world.Allreduce(self.own, self.sum)

    def sums(self):
        return self.sum

    def close(self):
        pass


def hold_to_core(rank):
    cores = os.environ.get("BENCH_CORES")
    if cores:
        os.sched_setaffinity(0, {int(cores.split(",")[rank])})


def elements(rank, count, turn):
    """The vector of a process, another one in each round that is checked: sums of an earlier one are noticed."""
    return np.resize((np.arange(251) + rank + 1 + 7 * (turn % 5)).astype(np.float32), count)


def measure(engine, size, rounds):
    """Sums are checked in full in the first two rounds, and in the last."""
    began, ended, wrong, count = [], [], 0, size // 4
    for turn in range(rounds):
        checked = turn < 2 or turn == rounds - 1
        if checked:
            engine.open(elements(engine.rank, count, turn))
        engine.fill()
        began.append(time.monotonic_ns())
        engine.run()
        ended.append(time.monotonic_ns())
        if checked:
            right = sum(elements(rank, count, turn) for rank in range(engine.size))
            wrong += int(np.count_nonzero(engine.sums() != right))
    return {"bytes": size, "wrong": wrong, "began": began, "ended": ended}


def main():
    way, folder, *sizes = sys.argv[1:]
    hold_to_core(int(os.environ.get("RANK") or os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("PMI_RANK") or 0))
    engine = Gloo() if way == "gloo" else Mpi()
    with open(os.path.join(folder, str(engine.rank)), "w", encoding="ascii") as out:
        print(json.dumps({"library": engine.library}), file=out)
        for size in sizes:
            print(json.dumps(measure(engine, *map(int, size.split(":")))), file=out)
    engine.close()


main()
