"""Models whose layers' policy is mixed_bfloat16: Tandem trains them as Keras does, to what rounding leaves open; what it saves
Keras opens with the policies it had, predicts the same, and goes on training. On one CPU device, whose lanes share the products
of dense layers and the rows of convolutions, and on two.

A bfloat16 has 8 bits: rounding to nearest moves a number by up to U = 2^-9 of its size. Two right computations round in
different places (one keeps a sum float32 that the other stores, or rounds a bias before adding it), so each rounding on the way
from the input to the loss may set them apart by 2 U; n of them, which do not know of each other, by 2 U sqrt(n). That is allowed
to losses and predictions, for the roundings on the way of each case. Closer judges this: on the mean Tandem's losses are no
farther from those of float32 than Keras's own (by 1.5, for means of few numbers differ)."""
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

STEPS, BATCH, MORE = 30, 12, 5
SAMPLES = STEPS * BATCH - 5  # the last batch is uneven
U = 2.0 ** -9
MIXED = "mixed_bfloat16"


@dataclasses.dataclass
class Case:
    name: str
    make: object    # of a policy, the model
    classes: int
    roundings: int  # to bfloat16 between input and loss
    optimizer: object = dataclasses.field(default_factory=lambda: keras.optimizers.SGD(0.05))
    devices: tuple = ("cpu", "cpu:0,cpu:1")


def sequential(shape, *stack):
    return keras.Sequential([layers.Input(shape), *stack])


def dense(policy):
    return sequential((100,), layers.Dense(128, activation="relu", dtype=policy), layers.Dense(96, activation="tanh", dtype=policy),
                      layers.Dense(10, dtype="float32"))


def convolutions(policy):
    return sequential((12, 12, 3), layers.Conv2D(16, 3, padding="same", activation="relu", dtype=policy),
                      layers.MaxPooling2D(2, dtype=policy), layers.Conv2D(32, 3, activation="tanh", dtype=policy),
                      layers.AveragePooling2D(2, dtype=policy), layers.Flatten(dtype=policy), layers.Dense(5, dtype="float32"))


def odd_convolutions(policy):
    return sequential((11, 9, 4), layers.Conv2D(8, 3, groups=2, activation="tanh", dtype=policy),
                      layers.Conv2D(6, (2, 3), dilation_rate=2, activation="tanh", dtype=policy),
                      layers.Conv2D(5, (3, 1), strides=(2, 1), use_bias=False, dtype=policy), layers.Flatten(dtype=policy),
                      layers.Dense(5, dtype="float32"))


def residual(policy):
    x = layers.Input((10, 10, 8))
    y = layers.Conv2D(16, 3, padding="same", use_bias=False, dtype=policy)(x)
    y = layers.ReLU(dtype=policy)(layers.BatchNormalization(dtype=policy)(y))
    z = layers.BatchNormalization(dtype=policy)(layers.Conv2D(16, 1, dtype=policy)(y))
    y = layers.ReLU(dtype=policy)(layers.Add(dtype=policy)([y, z]))
    return keras.Model(x, layers.Dense(5, dtype="float32")(layers.GlobalAveragePooling2D(dtype=policy)(y)))


def frozen(policy):
    x = layers.Input((10, 10, 8))
    y = layers.Conv2D(16, 3, padding="same", dtype=policy)(x)
    y = layers.ReLU(dtype=policy)(layers.BatchNormalization(trainable=False, dtype=policy)(y))
    return keras.Model(x, layers.Dense(5, dtype="float32")(layers.GlobalAveragePooling2D(dtype=policy)(y)))


def cases():
    # The input, and for each layer its weights, bias, product, sum with the bias and activation; a pool.
    yield Case("dense", dense, 10, 1 + 2 * 5)
    yield Case("dense, Adam", dense, 10, 1 + 2 * 5, keras.optimizers.Adam(1e-3))
    yield Case("convolutions", convolutions, 5, 1 + 2 * 6)
    yield Case("odd convolutions", odd_convolutions, 5, 1 + 3 * 5)
    # Normalization: scale, shift and result; statistics are per replica.
    yield Case("residual", residual, 5, 1 + 2 * (5 + 3) + 4, devices=("cpu",))
    yield Case("frozen normalization", frozen, 5, 1 + 5 + 3 + 2)


def train_batch(model, x, y):
    model.reset_metrics()  # so that the loss is this batch's
    return model.train_on_batch(x, y, return_dict=True)["loss"]


def train(model, x, y):
    return np.array([train_batch(model, x[i:i + BATCH], y[i:i + BATCH]) for i in range(0, len(x), BATCH)], np.float64)


def check(what, seen, limit):
    print(f"{what}: {seen:.3g}, at most {limit:.3g}", flush=True)
    if not seen <= limit:  # NaN too
        raise AssertionError(f"{what}: {seen:.3g}, at most {limit:.3g} expected")


def apart(a, b):
    return float(np.max(np.abs(a - b) / np.abs(b)))


def compiled(case, policy, weights=None):
    model = case.make(policy)
    if weights:
        model.set_weights(weights)
    model.compile(optimizer=case.optimizer.from_config(case.optimizer.get_config()),
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def computes_narrow():
    """Whether this CPU is one on which Tandem computes in bfloat16."""
    told = subprocess.run([os.environ["TANDEM"], "doctor"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return "bfloat16: yes" in told


def policies(model):
    return [layer.dtype_policy.name for layer in model.layers]


def check_reopened(name, trained, model, more, x, y, allowed):
    opened = keras.saving.load_model(trained.path)
    if policies(opened) != policies(model):
        raise AssertionError(f"{name}: policies {policies(opened)}, {policies(model)} expected")
    check(f"{name}: predictions apart", tandem.relative(trained.predictions, opened.predict_on_batch(x[:BATCH])), allowed)
    check(f"{name}: losses apart, Keras going on", apart(train(opened, x[:MORE * BATCH], y[:MORE * BATCH]), more), allowed)


def run_case(case, folder):
    keras.utils.set_random_seed(3)
    model = compiled(case, MIXED)
    exact = compiled(case, "float32", model.get_weights())
    random = np.random.default_rng(1)
    x = random.normal(size=(SAMPLES, *model.input_shape[1:])).astype("float32")
    y = random.integers(0, case.classes, SAMPLES).astype("float32")
    start = folder / "start.keras"
    model.save(start)
    losses, exact_losses = train(model, x, y), train(exact, x, y)
    more = train(model, x[:MORE * BATCH], y[:MORE * BATCH])
    allowed = 2 * U * case.roundings ** 0.5
    for devices in case.devices:
        name = f"{case.name} ({devices})"
        trained = tandem.train(start, x, y, BATCH, devices, folder, model.output_shape[1:])
        check(f"{name}: losses apart", apart(trained.losses, losses), allowed)
        off = np.mean(np.abs(trained.losses - exact_losses))
        check(f"{name}: mean distance from float32", off, 1.5 * np.mean(np.abs(losses - exact_losses)))
        if computes_narrow() and off < 1e-6:
            raise AssertionError(f"{name}: losses are those of float32 ({off:.3g} apart)")
        check_reopened(name, trained, model, more, x, y, allowed)


def main():
    wrong = []
    for case in cases():
        with tempfile.TemporaryDirectory() as folder:
            try:
                run_case(case, pathlib.Path(folder))
            except AssertionError as error:
                wrong.append(str(error))
                print(f"FAILED: {error}", flush=True)
    if wrong:
        sys.exit(f"{len(wrong)} cases failed")


main()
