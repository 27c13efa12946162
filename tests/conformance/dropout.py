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

WIDTH, BATCH, STEPS = 400, 32, 200
SIGMAS = 5


def mean_model(rate):
    """The mean of dropped-out ones; it hardly trains, so that each step samples the same law."""
    model = keras.Sequential([layers.Input((WIDTH,)), layers.Dropout(rate),
                              layers.Dense(1, use_bias=False, kernel_initializer=keras.initializers.Constant(1 / WIDTH))])
    model.compile(optimizer=keras.optimizers.SGD(1e-12), loss="mean_squared_error")
    return model


def sampled(rate, target, folder):
    """The mean loss over all steps, and the loss of each."""
    start = pathlib.Path(folder) / "start.keras"
    mean_model(rate).save(start)
    x = np.ones((BATCH * STEPS, WIDTH), "float32")
    trained = tandem.train(start, x, np.full((len(x), 1), target, "float32"), BATCH, "cpu:0,cpu:1", folder, (1,))
    if np.max(np.abs(trained.predictions - 1)) > 1e-5:
        sys.exit(f"rate {rate}: a prediction of {trained.predictions.ravel()[:4]}, as if dropout were on outside training")
    return trained.losses


def check(what, seen, expected, deviation):
    if abs(seen - expected) > SIGMAS * deviation:
        sys.exit(f"{what}: {seen:.6g}, {expected:.6g} expected within {SIGMAS} deviations of {deviation:.3g}")
    print(f"ok: {what}: {seen:.6g}, {expected:.6g} expected")


def main():
    for rate in (0.1, 0.25, 0.5, 0.9):
        with tempfile.TemporaryDirectory() as folder:
            # The mean m of WIDTH kept-and-scaled ones has mean 1 and this variance; the loss is (m - target)^2.
            variance = rate / (1 - rate) / WIDTH
            samples = BATCH * STEPS
            around = sampled(rate, 1, folder)
            check(f"rate {rate}: variance", around.mean(), variance, variance * np.sqrt(2 / samples))
            if len(set(around)) < STEPS // 2:
                sys.exit(f"rate {rate}: only {len(set(around))} different losses in {STEPS} steps: the mask repeats")
            above = sampled(rate, 0, folder)
            check(f"rate {rate}: mean of squares", above.mean(), 1 + variance, 2 * np.sqrt(variance / samples))


main()
