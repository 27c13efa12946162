"""What the conformance scripts share: running Tandem's steps program, comparing numbers."""
import dataclasses
import os
import pathlib
import subprocess

import numpy as np

STEPS = pathlib.Path(os.environ["CONFORMANCE_PROGRAMS"]) / "steps"


@dataclasses.dataclass
class Trained:
    """What Tandem's training gave."""
    losses: np.ndarray       # [steps]
    predictions: np.ndarray  # of x's first batch after the last step, as the model's output shape
    path: pathlib.Path       # the file it saved


def relative(a, b):
    """max|a - b| / max|b|; 0 where they are equal, be it zeros."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return 0.0 if np.array_equal(a, b) else float(np.max(np.abs(a - b)) / np.max(np.abs(b)))


def train(model_file, x, y, batch, devices, folder, output_shape):
    """Trains one epoch in file order by td_train_on_batch: ceil(samples / batch) steps."""
    x_file, y_file, saved, predicted = (pathlib.Path(folder) / name for name in ("x", "y", "saved.keras", "predicted"))
    np.ascontiguousarray(x, np.float32).tofile(x_file)
    np.ascontiguousarray(y, np.float32).tofile(y_file)
    command = [STEPS, model_file, x_file, y_file, len(x), batch, devices, saved, predicted]
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise AssertionError(f"steps exited with {done.returncode}: {done.stderr.strip()}")
    losses = np.array([float(line) for line in done.stdout.split()])
    return Trained(losses, np.fromfile(predicted, np.float32).reshape(-1, *output_shape), saved)


def run(folder, *words):
    """What `tandem WORD...` printed in the folder."""
    done = subprocess.run([os.environ["TANDEM"], *map(str, words)], cwd=folder, capture_output=True, text=True, encoding="utf-8",
                          timeout=120)
    if done.returncode != 0:
        raise AssertionError(f"tandem {' '.join(map(str, words))} exited with {done.returncode}: {done.stderr.strip()[:500]}")
    return done.stdout
