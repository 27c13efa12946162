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
    spoiled: bool = False   # an input is NaN
    scheduled: object = None  # the optimizer that Keras trains with, where options change the file's


class WarmUp(keras.callbacks.Callback):
    """Goyal et al. by hand: the rate of each step set before it, and what the momentum's slots hold corrected."""

    def __init__(self, scale, corrects=False):
        super().__init__()
        self.scale, self.corrects, self.step = scale, corrects, 0

    def factor(self):
        steps = 2 * -(-SAMPLES // BATCH)
        return 1 + (self.scale - 1) * min(self.step / steps, 1)

    def on_train_begin(self, logs=None):
        self.rate = float(self.model.optimizer.learning_rate)

    def on_train_batch_begin(self, batch, logs=None):
        optimizer, before = self.model.optimizer, float(self.model.optimizer.learning_rate)
        optimizer.learning_rate = self.rate * self.factor()
        if self.corrects and self.step:
            self.model.jax_state_sync()
            for slot in optimizer.momentums:
                slot.assign(slot * (float(optimizer.learning_rate) / before))
        if self.step:
            self.model._jax_state = None
        self.step += 1

    def on_epoch_end(self, epoch, logs=None):
        logs["learning_rate"] = self.rate * self.factor()

    def on_train_end(self, logs=None):
        self.model.optimizer.learning_rate = self.rate


class LogRate(keras.callbacks.Callback):
    """What Tandem logs of an optimizer's schedule, where Keras leaves it to TensorBoard: the rate that it has come to."""

    def on_epoch_end(self, epoch, logs=None):
        logs["learning_rate"] = float(keras.ops.convert_to_numpy(self.model.optimizer.learning_rate))


def schedules():
    make = keras.optimizers.schedules
    yield make.CosineDecay(0.0, 20, warmup_target=0.05, warmup_steps=6), "cosine_decay,initial_learning_rate=0,decay_steps=20,warmup_target=0.05,warmup_steps=6"
    yield make.CosineDecay(0.05, 20, alpha=0.1), "cosine_decay,decay_steps=20,alpha=0.1"
    yield make.CosineDecayRestarts(0.05, 8, m_mul=0.5), "cosine_decay_restarts,first_decay_steps=8,m_mul=0.5"
    yield make.ExponentialDecay(0.05, 8, 0.5, staircase=True), "exponential_decay,decay_steps=8,decay_rate=0.5,staircase"
    yield make.InverseTimeDecay(0.05, 4, 0.5), "inverse_time_decay,decay_steps=4,decay_rate=0.5"
    yield make.PolynomialDecay(0.05, 10, power=2.0, cycle=True), "polynomial_decay,decay_steps=10,power=2,cycle"
    yield make.PiecewiseConstantDecay([9, 14], [0.05, 0.02, 0.01]), "piecewise_constant_decay,boundaries=9:14,values=0.05:0.02:0.01"


def cases():
    sgd, adam = keras.optimizers.SGD, keras.optimizers.Adam
    yield Case("the weights become their averages", sgd(0.05, momentum=0.9, use_ema=True))
    yield Case("... overwritten on the way too", adam(0.01, use_ema=True, ema_momentum=0.7, ema_overwrite_frequency=5))
    yield Case("gradients accumulated across epochs", adam(0.01, gradient_accumulation_steps=4, global_clipnorm=0.5))
    decay = keras.optimizers.schedules.CosineDecay(0.0, 20, warmup_target=0.05, warmup_steps=6)
    yield Case("steps per execution", sgd(0.05), compiled={"steps_per_execution": 4})
    yield Case("a loss that is NaN", sgd(0.05), ("--terminate-on-nan",), (keras.callbacks.TerminateOnNaN(),), spoiled=True)
    yield Case("scaled and warmed up", sgd(0.01), ("--base-batch-size", 2, "--warmup-epochs", 2), (WarmUp(4.0),))
    yield Case("... with the momentum corrected", sgd(0.01, momentum=0.9, nesterov=True),
               ("--base-batch-size", 2, "--warmup-epochs", 2, "--momentum-correction", "--steps-per-execution", 2), (WarmUp(4.0, corrects=True),))
    yield Case("a schedule over the epochs", sgd(decay, momentum=0.9), (), (LogRate(),))
    yield Case("rates of epochs", sgd(0.05), ("--learning-rate-scheduler", "1=0.02,2=0.04"),
               (keras.callbacks.LearningRateScheduler(lambda epoch, rate: (rate, 0.02, 0.04)[epoch]),))
    yield Case("reduced on a plateau", sgd(2e-5), ("--reduce-lr", 1, "--monitor", "loss"),
               (keras.callbacks.ReduceLROnPlateau(monitor="loss", patience=1),))
    for schedule, words in schedules():
        yield Case(words, sgd(0.05), ("--schedule", words), (LogRate(),), scheduled=sgd(schedule))


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
    if case.scheduled:
        model.compile(case.scheduled, model.loss, metrics=["accuracy"])
    model.fit(x, y, BATCH, EPOCHS, shuffle=False, verbose=0,
              callbacks=[*case.callbacks, keras.callbacks.CSVLogger(folder / "keras.csv")])
    return model


def check_weights(expected, seen):
    for a, b in zip(expected.weights, seen.weights):
        off = tandem.relative(keras.ops.convert_to_numpy(b), keras.ops.convert_to_numpy(a))
        assert off <= TOLERANCE, f"{a.path} is off by {off:.3g}"
    for a, b in zip(expected.optimizer.variables, seen.optimizer.variables):
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        off = np.max(np.abs(a - b)) / max(np.max(np.abs(a)), 1e-3)
        assert off <= TOLERANCE, f"the optimizer's state is off by {off:.3g}"


def check_logs(folder, case):
    with open(folder / "keras.csv", newline="") as a, open(folder / "log.csv", newline="") as b:
        expected, seen = list(csv.DictReader(a)), list(csv.DictReader(b))
    assert len(expected) == len(seen), f"{len(seen)} epochs in the log, {len(expected)} in Keras's"
    for a, b in zip(expected, seen):
        assert set(a) == set(b), f"the log has {sorted(b)}, Keras's {sorted(a)}"
        # what is the largest of NaNs is nobody's rule: accuracy is left out
        for key in ("epoch", "loss") if case.spoiled else a:
            same = a[key] == b[key] or np.isclose(float(a[key]), float(b[key]), rtol=TOLERANCE, atol=1e-7, equal_nan=True)
            assert same, f"epoch {a['epoch']}: {key} is {b[key]}, Keras's {a[key]}"


def check(case, folder):
    x, y = data()
    if case.spoiled:
        x[5 * BATCH + 3, 1] = np.nan
    expected = run_keras(case, folder, x, y)
    said = run_tandem(case, folder, x, y)
    seen = keras.saving.load_model(folder / "end.keras")
    assert int(seen.optimizer.iterations) == int(expected.optimizer.iterations)
    if "--steps-per-execution" not in case.options:
        assert seen.steps_per_execution == expected.steps_per_execution, f"{seen.steps_per_execution} steps per execution"
    if case.spoiled:
        assert "Batch 5: Invalid loss, terminating training" in said, said
    else:
        check_weights(expected, seen)
    check_logs(folder, case)
    print(f"ok: {case.name}", flush=True)


def main():
    for case in cases():
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(case, pathlib.Path(folder))
            except AssertionError as error:
                sys.exit(f"FAILED: {case.name}: {error}")


main()
