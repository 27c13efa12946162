"""The floor of a step: the least time in which this machine could do the operations and move the bytes of Tandem's plan.

Each op of the plan takes at least its operations over the peak, and at least its bytes over the bandwidth: the larger of
the two counts, since a good kernel hides the smaller behind it; the ops' times are added up. The bandwidth is that of the
data in use (weights, gradients, slots, activations), shared by the threads: what fits into L2 moves faster than what does
not. It is a floor of this plan, not of the network: an algorithm with fewer operations (Winograd) may go below it."""
import json
import subprocess

from . import machine, setup


def plan(case, path):
    """What `tandem explain --json` says."""
    command = [setup.program("tandem"), "explain", path, "--json", "--batch-size", str(case.batch),
               "--devices", case.devices, "--precision", case.precision]
    run = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                         check=False)
    return json.loads(run.stdout) if run.returncode == 0 else None


def peak(case, roofs):
    names = ("bf16_tile_flops", "bf16_vector_flops", "fp32_flops") if case.precision == "bfloat16" else ("fp32_flops",)
    return max(roofs[name]["all"] for name in names if name in roofs)


def of_step(case, found, roofs):
    """{us, flops, bytes, ...} of one training step."""
    threads = roofs["threads"]
    in_use = (found["state_bytes"] + found["activation_bytes"] * found["parts"]) / threads
    speed = max(machine.bandwidth(roofs, kind, threads, in_use) for kind in ("read", "update"))
    total = {"us": 0.0, "flops": 0.0, "bytes": 0.0, "speed": speed, "in_use": in_use * threads}
    for step in found["steps"]:
        times = 1 if step["once"] else found["parts"]
        total["us"] += 1e6 * times * max(step["flops"] / peak(case, roofs), step["bytes"] / speed)
        total["flops"] += times * step["flops"]
        total["bytes"] += times * step["bytes"]
    return total
