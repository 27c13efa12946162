"""stateful.py: LSTMs that keep their state from batch to batch. Tandem trains by td_fit, evaluates and predicts, states
kept and reset in between, and Keras's own layers do the same: losses and predictions agree to 1e-5. What Tandem saved is
Keras's file with its batch size, and a stateful layer asked for one step at a time gives what it gives for the sequence.

Under JAX, Keras's fit and predict drop what a layer assigns to its states; so the steps here run the same layers within a
StatelessScope and pass on the states that they assign, as Keras does for moving statistics."""
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import jax
import keras
import numpy as np
from keras import layers

sys.path.insert(0, os.path.dirname(__file__))
from support import tandem  # noqa: E402

STATES = pathlib.Path(os.environ["CONFORMANCE_PROGRAMS"]) / "states"
EPOCHS = 3
TOLERANCE = 1e-5


class Trainer:
    """A compiled model's steps on explicit values: weights, optimizer, states."""

    def __init__(self, model):
        self.model = model
        self.states = [state for layer in model.layers if getattr(layer, "stateful", False) for state in layer.states]
        self.reset()
        self.step = jax.jit(self._step)
        self.forward = jax.jit(self._forward)
        self.weights = [variable.value for variable in model.trainable_variables]
        self.slots = [variable.value for variable in model.optimizer.variables]

    def reset(self):
        self.values = [np.zeros(state.shape, "float32") for state in self.states]

    def _forward(self, weights, values, x, training=False):
        mapping = list(zip(self.model.trainable_variables, weights)) + list(zip(self.states, values))
        with keras.StatelessScope(state_mapping=mapping) as scope:
            predictions = self.model(x, training=training)
            return predictions, [scope.get_current_value(state) for state in self.states]

    def _loss(self, weights, values, x, y):
        predictions, values = self._forward(weights, values, x, training=True)
        return jax.numpy.mean((predictions - y) ** 2), values

    def _step(self, weights, slots, values, x, y):
        (loss, values), gradients = jax.value_and_grad(self._loss, has_aux=True)(weights, values, x, y)
        weights, slots = self.model.optimizer.stateless_apply(slots, gradients, weights)
        return loss, weights, slots, values

    def fit(self, x, y):
        """One epoch; the mean of its losses."""
        losses = []
        for a, b in zip(x, y):
            loss, self.weights, self.slots, self.values = self.step(self.weights, self.slots, self.values, a, b)
            losses.append(float(loss))
        return np.mean(losses)

    def predict(self, x):
        out = []
        for batch in x:
            predictions, self.values = self.forward(self.weights, self.values, batch)
            out.append(np.asarray(predictions))
        return np.stack(out)


def stack(batch, steps, features, *rest):
    return keras.Sequential([keras.Input(batch_shape=(batch, steps, features)), *rest])


def joined():
    """Stateful and not, forwards and back, what is returned used twice, and as another layer's first state."""
    x = keras.Input(batch_shape=(3, 4, 5))
    y, h, c = layers.LSTM(6, stateful=True, return_sequences=True, return_state=True)(x)
    z = layers.LSTM(4, stateful=True, go_backwards=True)(y)
    w = layers.LSTM(5)(y)
    v = layers.LSTM(6, stateful=True)(x, initial_state=[h, c])
    return keras.Model(x, layers.Dense(2)(layers.Concatenate()([z, w, h, c, v])))


def cases():
    lstm, adam = layers.LSTM, keras.optimizers.Adam
    yield "last", stack(4, 6, 5, lstm(7, stateful=True), layers.Dense(1)), keras.optimizers.SGD(0.05)
    yield "two, sequences", stack(3, 5, 4, lstm(7, stateful=True, return_sequences=True),
                                  lstm(6, stateful=True, return_sequences=True), layers.Dense(2)), adam(0.01)
    yield "one message at a time", stack(1, 1, 3, lstm(20, stateful=True), layers.Dense(2)), adam(0.01)
    yield "wide, one row", stack(1, 9, 8, lstm(128, stateful=True), layers.Dense(1)), adam()
    yield "wide, many rows", stack(32, 7, 8, lstm(64, stateful=True), layers.Dense(1)), adam()
    yield "silu", stack(4, 6, 5, lstm(17, stateful=True, activation="silu"), layers.Dense(1)), adam(0.01)
    yield "backwards", stack(2, 4, 3, lstm(9, stateful=True, go_backwards=True, return_sequences=True), layers.Dense(1)), adam()
    yield "joined", joined(), adam(0.01)


def run_states(path, x, y, devices, folder):
    """Losses [EPOCHS + 1], predictions [3, ...], the saved file."""
    x_file, y_file, saved, predicted = (folder / name for name in ("x", "y", "saved.keras", "predicted"))
    x.tofile(x_file)
    y.tofile(y_file)
    samples = x.shape[0] * x.shape[1]
    command = [STATES, path, x_file, y_file, samples, EPOCHS, devices, saved, predicted, x.shape[1]]
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise AssertionError(f"states exited with {done.returncode}: {done.stderr.strip()}")
    losses = np.array([float(line) for line in done.stdout.split()])
    return losses, np.fromfile(predicted, np.float32).reshape(3, *y.shape), saved


def check(what, mine, theirs):
    apart = tandem.relative(mine, theirs)
    if not apart <= TOLERANCE:
        raise AssertionError(f"{what}: {apart:.3g} apart, at most {TOLERANCE:g} expected")


def reset_first(trainer):
    """As layer.reset_state() of the first stateful layer: its h and c."""
    trainer.values = [np.zeros_like(value) if i < 2 else value for i, value in enumerate(trainer.values)]


def expected_of(model, x, y):
    trainer = Trainer(model)
    losses = []
    for _ in range(EPOCHS):
        trainer.reset()
        losses.append(trainer.fit(x, y))
    losses.append(np.mean((trainer.predict(x) - y) ** 2))
    predictions = [trainer.predict(x)]
    trainer.reset()
    predictions.append(trainer.predict(x))
    reset_first(trainer)
    predictions.append(trainer.predict(x))
    return np.array(losses), np.stack(predictions), trainer


def check_saved(name, model, saved, trainer):
    """Keras opens it as the model that it was; its states are zeros, its weights the trained ones."""
    again = keras.saving.load_model(saved)
    assert again.input_shape == model.input_shape, f"{name}: the input became {again.input_shape}"
    for before, after in zip(model.layers, again.layers):
        assert getattr(before, "stateful", None) == getattr(after, "stateful", None), f"{name}: {after.name} is not stateful"
        assert all(not np.any(np.asarray(state)) for state in getattr(after, "states", None) or []), f"{name}: not zeros"
    for mine, theirs in zip(again.trainable_variables, trainer.weights):
        check(f"{name}: {mine.path}", np.asarray(mine), theirs)
    assert "batch_shape" in zipfile.ZipFile(saved).read("config.json").decode()


def run_case(name, model, optimizer, folder):
    model.compile(optimizer=optimizer, loss="mean_squared_error")
    optimizer.build(model.trainable_variables)
    random = np.random.default_rng(2)
    x = random.normal(size=(10, *model.input_shape)).astype("float32")
    y = random.normal(size=(10, *model.output_shape)).astype("float32")
    start = folder / "start.keras"
    model.save(start)
    losses, predictions, trainer = expected_of(model, x, y)
    assert tandem.relative(predictions[0], predictions[1]) > 100 * TOLERANCE, f"{name}: the states make no difference"
    for devices in ("cpu", "cpu:0,cpu:1"):
        mine, predicted, saved = run_states(start, x, y, devices, folder)
        check(f"{name} ({devices}): losses", mine, losses)
        for i, what in enumerate(("going on", "after a reset", "after a reset of one layer")):
            check(f"{name} ({devices}): predictions {what}", predicted[i], predictions[i])
        check_saved(name, model, saved, trainer)


def one_at_a_time(folder):
    """A stateful layer given a step at a time, by Tandem, is Keras's given the whole sequence."""
    steps, features, units = 40, 3, 24
    whole = keras.Sequential([keras.Input((steps, features)), layers.LSTM(units, return_sequences=True), layers.Dense(2)])
    single = stack(1, 1, features, layers.LSTM(units, stateful=True, return_sequences=True), layers.Dense(2))
    single.set_weights(whole.get_weights())
    single.compile(optimizer=keras.optimizers.SGD(1e-30), loss="mean_squared_error")
    single.save(folder / "single.keras")
    x = np.random.default_rng(5).normal(size=(1, steps, features)).astype("float32")
    a_step = x.reshape(steps, 1, 1, features)
    _, predicted, _ = run_states(folder / "single.keras", a_step, np.zeros((steps, 1, 1, 2), "float32"), "cpu", folder)
    check("one step at a time", predicted[1].reshape(1, steps, 2), np.asarray(whole(x)))
    check("one step at a time, on_batch", predicted[2].reshape(1, steps, 2), np.asarray(whole(x)))


def main():
    keras.utils.set_random_seed(4)
    for name, model, optimizer in cases():
        with tempfile.TemporaryDirectory() as folder:
            run_case(name, model, optimizer, pathlib.Path(folder))
            print(f"ok: {name}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        one_at_a_time(pathlib.Path(folder))
        print("ok: one step at a time")


main()
