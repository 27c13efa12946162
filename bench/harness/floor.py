"""The floor of a step: the least time in which this machine could do the operations and move the bytes of Tandem's plan.

Each op of the plan takes at least its operations over the peak, and at least its bytes over the bandwidth: the larger of
the two counts, since a good kernel hides the smaller behind it; the ops' times are added up. What the step itself makes may
lie as near as the op's own data, shared by the threads, has room; weights and slots are reached once a step, and come from
where all data in use (weights, gradients, slots, activations) has room. It is a floor of this plan, not of the network: an
algorithm with fewer operations (Winograd) may go below it.

`tandem explain --time` reckons alike, with a roofline of its own; tests/bench/parts.py holds the two against each other."""
import json
import subprocess

from . import machine, setup


def plan(case, path, cores):
    """What `tandem explain --json` says."""
    command = [setup.program("tandem"), "explain", path, "--json", "--batch-size", str(case.batch),
               "--devices", case.devices, "--precision", case.precision]
    run = subprocess.run(machine.on(cores, command), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                         check=False)
    return json.loads(run.stdout) if run.returncode == 0 else None


def peak(step, roofline):
    names = ("fp32_flops", *(("bf16_tile_flops", "bf16_vector_flops", "bf16_flops") if step["bfloat16"] else ()))
    return max(roofline[name]["all"] for name in names if name in roofline)


def bandwidth(roofline, size):
    """Bytes a second over `size` bytes that the threads share."""
    return max(machine.bandwidth(roofline, kind, roofline["threads"], size / roofline["threads"]) for kind in ("read", "update"))


def of_op(step, times, in_use, roofline):
    """Seconds of one step of the plan, made `times` times."""
    moved, kept = times * step["bytes"], times * step["kept_bytes"]
    memory = (moved - kept) / bandwidth(roofline, moved) + kept / bandwidth(roofline, in_use)
    return max(times * step["flops"] / peak(step, roofline), memory)


def of_step(found, roofline):
    """{us, flops, bytes, ...} of one training step."""
    in_use = found["state_bytes"] + found["activation_bytes"] * found["parts"]
    total = {"us": 0.0, "flops": 0.0, "bytes": 0.0, "speed": bandwidth(roofline, in_use), "in_use": in_use}
    for step in found["steps"]:
        times = 1 if step["once"] else found["parts"]
        total["us"] += 1e6 * of_op(step, times, in_use, roofline)
        total["flops"] += times * step["flops"]
        total["bytes"] += times * step["bytes"]
    return total
