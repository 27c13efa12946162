"""Dropout by distribution: what is kept, how it is scaled, how two layers differ. Tandem's random numbers are its own, so
single values cannot be held against Keras's; their law can."""
import os
import pathlib
import sys
import tempfile

import keras
import numpy as np
from keras import layers

sys.path.insert(0, os.path.dirname(__file__))
from support import tandem  # noqa: E402

WIDTH, NARROW, BATCH, STEPS = 400, 20, 32, 200
SIGMAS = 5


def constant(value):
    return keras.initializers.Constant(value)


def mean_model(rate):
    """The mean of dropped-out ones; it hardly trains, so that each step samples the same law."""
    return keras.Sequential([layers.Input((WIDTH,)), layers.Dropout(rate),
                             layers.Dense(1, use_bias=False, kernel_initializer=constant(1 / WIDTH))])


def lstm_model(steps, features, units, candidate, recurrent, gates, **dropout):
    """An LSTM without squashing: its gates i, f and o are these numbers, its candidate `candidate` times the sum of the
    features plus `recurrent` times the sum of h."""
    layer = layers.LSTM(units, activation="linear", recurrent_activation="linear", **dropout)
    model = keras.Sequential([layers.Input((steps, features)), layer,
                              layers.Dense(1, use_bias=False, kernel_initializer=constant(1 / units))])
    kernel, inner, bias = (np.zeros(w.shape, "float32") for w in layer.weights)
    kernel[:, 2 * units:3 * units] = candidate
    inner[:, 2 * units:3 * units] = recurrent
    for gate, value in zip((0, 1, 3), gates):
        bias[gate * units:(gate + 1) * units] = value
    layer.set_weights([kernel, inner, bias])
    return model


def input_model(rate):
    """The mean over three steps of dropped-out features: of one step, if what is dropped is the same in each."""
    return lstm_model(3, WIDTH, 1, 1 / WIDTH / 3, 0, (1, 1, 1), dropout=rate)


def recurrent_model(steps):
    """The mean m of what is kept of h, to the power of `steps` - 1 if that is the same in each: the first step's
    features are ones, the others' zeros."""
    def model(rate):
        return lstm_model(steps, 1, NARROW, 1, 1 / NARROW, (1, 0, 1), recurrent_dropout=rate)
    return model


def ones_then_zeros(shape):
    x = np.ones(shape, "float32")
    x[:, 1:] = 0
    return x


def sampled(model, target, folder, x=None):
    """The mean loss over all steps, and the loss of each."""
    start = pathlib.Path(folder) / "start.keras"
    model.compile(optimizer=keras.optimizers.SGD(1e-12), loss="mean_squared_error")
    model.save(start)
    if x is None:
        x = np.ones((BATCH * STEPS, *model.input_shape[1:]), "float32")
    trained = tandem.train(start, x, np.full((len(x), 1), target, "float32"), BATCH, "cpu:0,cpu:1", folder, (1,))
    if np.max(np.abs(trained.predictions - 1)) > 1e-5:
        sys.exit(f"a prediction of {trained.predictions.ravel()[:4]}, as if dropout were on outside training")
    return trained.losses


def check(what, seen, expected, deviation):
    if abs(seen - expected) > SIGMAS * deviation:
        sys.exit(f"{what}: {seen:.6g}, {expected:.6g} expected within {SIGMAS} deviations of {deviation:.3g}")
    print(f"ok: {what}: {seen:.6g}, {expected:.6g} expected")


def check_mean(name, make, width, rate, folder, x=None):
    """The mean m of `width` kept-and-scaled ones has mean 1 and this variance; the loss is (m - target)^2."""
    variance = rate / (1 - rate) / width
    samples = BATCH * STEPS
    around = sampled(make(rate), 1, folder, x)
    check(f"{name}, rate {rate}: variance", around.mean(), variance, variance * np.sqrt(2 / samples) * (1 + 1 / width))
    if len(set(around)) < STEPS // 2:
        sys.exit(f"{name}, rate {rate}: only {len(set(around))} different losses in {STEPS} steps: the mask repeats")
    above = sampled(make(rate), 0, folder, x)
    check(f"{name}, rate {rate}: mean of squares", above.mean(), 1 + variance, 2 * np.sqrt(variance / samples))


def check_square(rate, folder):
    """The same parts of h are dropped in both later steps: m m has the mean 1 + variance, of two draws it would be 1."""
    x = ones_then_zeros((BATCH * STEPS, 3, 1))
    around, above = (sampled(recurrent_model(3)(rate), target, folder, x).mean() for target in (1, 0))
    variance = rate / (1 - rate) / NARROW
    check(f"LSTM's h, rate {rate}: mean after two steps", (above - around + 1) / 2, 1 + variance,
          2 * np.sqrt(variance / BATCH / STEPS))


def main():
    for rate in (0.1, 0.25, 0.5, 0.9):
        with tempfile.TemporaryDirectory() as folder:
            check_mean("Dropout", mean_model, WIDTH, rate, folder)
    for rate in (0.25, 0.5):
        with tempfile.TemporaryDirectory() as folder:
            check_mean("LSTM's inputs", input_model, WIDTH, rate, folder)
            check_mean("LSTM's h", recurrent_model(2), NARROW, rate, folder, ones_then_zeros((BATCH * STEPS, 2, 1)))
            check_square(rate, folder)


main()
