"""keras.applications.ResNet50, smaller pictures: Tandem predicts what Keras predicts, trains as Keras trains, and what it
saves Keras opens and goes on with."""
import os
import pathlib
import subprocess
import sys
import tempfile

import jax
import keras
import numpy as np

sys.path.insert(0, os.path.dirname(__file__))
from support import tandem  # noqa: E402

BATCH = 8
WARM = 2  # steps that Keras trains first, so that the moving statistics are not the initial ones
STEPS = 5
MORE = 2
CLASSES = 10
# As initialized the network is chaotic: weights changed by 1e-7 change Keras's own second loss by more than 1e-2. With the
# blocks' last scales small, as training makes them (Goyal et al., 1706.02677, begin with 0), and in small steps it is not.
LAST_SCALE = 0.1
RATE = 1e-5
PREDICTED, LOSSES = 1e-5, 1e-5

jax.config.update("jax_disable_most_optimizations", False)  # its steps are long


def check(what, seen, limit):
    print(f"{what}: {seen:.3g}", flush=True)
    if not seen <= limit:  # NaN too
        sys.exit(f"{what}: {seen:.3g}, at most {limit:g} expected")


def train(model, x, y):
    losses = []
    for i in range(0, len(x), BATCH):
        model.reset_metrics()  # so that the loss is this batch's
        losses.append(model.train_on_batch(x[i:i + BATCH], y[i:i + BATCH], return_dict=True)["loss"])
    return np.array(losses, np.float64)


def predict(path, x, folder):
    """As Tandem predicts, by the program that reads a file, predicts and writes it again."""
    x_file, p_file = folder / "x", folder / "p"
    x.tofile(x_file)
    program = pathlib.Path(os.environ["CONFORMANCE_PROGRAMS"]) / "resave"
    subprocess.run(list(map(str, (program, path, folder / "again.keras", len(x), x_file, p_file))), check=True)
    return np.fromfile(p_file, np.float32).reshape(len(x), -1)


def main(folder):
    random = np.random.default_rng(1)
    keras.utils.set_random_seed(3)
    model = keras.applications.ResNet50(weights=None, input_shape=(64, 64, 3), classes=CLASSES)
    for layer in model.layers:
        if layer.name.endswith("_3_bn"):
            layer.gamma.assign(LAST_SCALE * layer.gamma)
    model.compile(optimizer=keras.optimizers.SGD(RATE, momentum=0.9), loss="sparse_categorical_crossentropy")
    x = random.random((STEPS * BATCH, 64, 64, 3)).astype("float32")
    y = random.integers(0, CLASSES, STEPS * BATCH).astype("float32")
    train(model, x[:WARM * BATCH], y[:WARM * BATCH])
    start = folder / "start.keras"
    model.save(start)
    check("predictions apart", tandem.relative(predict(start, x[:BATCH], folder), model.predict_on_batch(x[:BATCH])), PREDICTED)
    expected = train(model, x, y)
    more = train(model, x[:MORE * BATCH], y[:MORE * BATCH])
    trained = tandem.train(start, x, y, BATCH, "cpu", folder, (CLASSES,))
    check("losses apart", np.max(np.abs(trained.losses - expected) / expected), LOSSES)
    opened = keras.saving.load_model(trained.path)
    check("predictions of what was saved apart", tandem.relative(trained.predictions, opened.predict_on_batch(x[:BATCH])),
          PREDICTED)
    gone_on = train(opened, x[:MORE * BATCH], y[:MORE * BATCH])
    check("losses apart, Keras going on", np.max(np.abs(gone_on - more) / more), LOSSES)


with tempfile.TemporaryDirectory() as temporary:
    main(pathlib.Path(temporary))
