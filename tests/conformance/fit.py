"""fit.py: `tandem fit` and Keras's fit from the same file, in the same order, end with the same weights and the same logs of
their epochs: where what fit does at its end, or between its steps, is what is compared."""
import csv
import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile

import keras
import numpy as np
from keras import layers

sys.path.insert(0, os.path.dirname(__file__))
from support import tandem  # noqa: E402

SAMPLES, BATCH, EPOCHS = 70, 8, 3  # 9 steps an epoch, the last of 6 samples
TOLERANCE = 1e-5


@dataclasses.dataclass
class Case:
    name: str
    optimizer: object
    options: tuple = ()     # of `tandem fit`
    callbacks: tuple = ()   # of Keras's
    compiled: dict = dataclasses.field(default_factory=dict)


def cases():
    sgd, adam = keras.optimizers.SGD, keras.optimizers.Adam
    yield Case("the weights become their averages", sgd(0.05, momentum=0.9, use_ema=True))
    yield Case("... overwritten on the way too", adam(0.01, use_ema=True, ema_momentum=0.7, ema_overwrite_frequency=5))
    yield Case("gradients accumulated across epochs", adam(0.01, gradient_accumulation_steps=4, global_clipnorm=0.5))
    decay = keras.optimizers.schedules.CosineDecay(0.0, 20, warmup_target=0.05, warmup_steps=6)
    yield Case("a schedule over the epochs", sgd(decay, momentum=0.9))


def data():
    random = np.random.default_rng(2)
    return random.normal(size=(SAMPLES, 6)).astype("float32"), random.integers(0, 3, SAMPLES).astype("float32")


def run_tandem(case, folder, x, y):
    np.savez(folder / "d.npz", x=x, y=y)
    command = [os.environ["TANDEM"], "fit", "start.keras", "--train", "d.npz", "--no-shuffle", "--epochs", EPOCHS, "--batch-size",
               BATCH, "--output", "end.keras", "--csv-log", "log.csv", "--log", "log.jsonl", *case.options]
    done = subprocess.run(list(map(str, command)), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0 or done.stderr:
        raise AssertionError(f"tandem fit exited with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def run_keras(case, folder, x, y):
    keras.utils.set_random_seed(4)
    model = keras.Sequential([layers.Input((6,)), layers.Dense(9, activation="tanh"), layers.Dense(3)])
    model.compile(case.optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"],
                  **case.compiled)
    model.save(folder / "start.keras")
    model.fit(x, y, BATCH, EPOCHS, shuffle=False, verbose=0,
              callbacks=[keras.callbacks.CSVLogger(folder / "keras.csv"), *case.callbacks])
    return model


def check_weights(expected, seen):
    for a, b in zip(expected.weights, seen.weights):
        off = tandem.relative(keras.ops.convert_to_numpy(b), keras.ops.convert_to_numpy(a))
        assert off <= TOLERANCE, f"{a.path} is off by {off:.3g}"
    for a, b in zip(expected.optimizer.variables, seen.optimizer.variables):
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        off = np.max(np.abs(a - b)) / max(np.max(np.abs(a)), 1e-3)
        assert off <= TOLERANCE, f"the optimizer's state is off by {off:.3g}"


def check_logs(folder):
    with open(folder / "keras.csv", newline="") as a, open(folder / "log.csv", newline="") as b:
        expected, seen = list(csv.DictReader(a)), list(csv.DictReader(b))
    assert len(expected) == len(seen), f"{len(seen)} epochs in the log, {len(expected)} in Keras's"
    for a, b in zip(expected, seen):
        assert set(a) == set(b), f"the log has {sorted(b)}, Keras's {sorted(a)}"
        for key in a:
            same = a[key] == b[key] or np.isclose(float(a[key]), float(b[key]), rtol=TOLERANCE, atol=1e-7)
            assert same, f"epoch {a['epoch']}: {key} is {b[key]}, Keras's {a[key]}"


def check(case, folder):
    x, y = data()
    expected = run_keras(case, folder, x, y)
    run_tandem(case, folder, x, y)
    check_weights(expected, keras.saving.load_model(folder / "end.keras"))
    check_logs(folder)
    print(f"ok: {case.name}", flush=True)


def main():
    for case in cases():
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(case, pathlib.Path(folder))
            except AssertionError as error:
                sys.exit(f"FAILED: {case.name}: {error}")


main()
