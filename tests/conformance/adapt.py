"""adapt.py: `tandem fit --adapt` gives Normalization layers the mean and the variance that Keras's adapt gives them, of the
training part alone; Keras opens the file."""
import os
import pathlib
import subprocess
import tempfile

import keras
import numpy as np
from keras import layers

SAMPLES, KEPT = 700, 100


def adapted_by_keras(x, y):
    before, after = layers.Normalization(), layers.Normalization(invert=True)
    model = keras.Sequential([layers.Input(x.shape[1:]), before, layers.Flatten(), layers.Dense(2), after])
    model.compile(optimizer=keras.optimizers.SGD(1e-4), loss="mse")
    before.adapt(x)
    after.adapt(y)
    return model


def adapted_by_tandem(model, x, y, folder):
    plain, trained = folder / "plain.keras", folder / "trained.keras"
    for layer in model.layers:
        if isinstance(layer, layers.Normalization):
            layer.adapt_mean.assign(np.zeros(layer.adapt_mean.shape))
            layer.adapt_variance.assign(np.ones(layer.adapt_variance.shape))
    model.save(plain)
    np.savez(folder / "data.npz", x=x, y=y)
    subprocess.run([os.environ["TANDEM"], "fit", plain, "--train", folder / "data.npz", "--validation-split", str(KEPT), "--adapt",
                    "--output", trained, "--quiet"], check=True)
    return keras.models.load_model(trained)


random = np.random.default_rng(2)
x = (random.normal(size=(SAMPLES, 6, 5)) * [1, 10, 100, 1e-3, 0] + [1000, 5, -3, 0, 7]).astype("float32")
y = (random.normal(size=(SAMPLES, 2)) * [30, 2] + [1, 50]).astype("float32")
model = adapted_by_keras(x[:-KEPT], y[:-KEPT])
expected = [(layer.mean, layer.variance) for layer in model.layers if isinstance(layer, layers.Normalization)]
with tempfile.TemporaryDirectory() as folder:
    again = adapted_by_tandem(model, x, y, pathlib.Path(folder))
seen = [(layer.mean, layer.variance) for layer in again.layers if isinstance(layer, layers.Normalization)]
for theirs, mine in zip(expected, seen):
    for name, a, b in zip(("mean", "variance"), theirs, mine):
        a, b = np.asarray(a).reshape(-1), np.asarray(b).reshape(-1)
        apart = np.max(np.abs(a - b) / (np.abs(a) + 1e-3))
        assert apart < 1e-4, f"{name}: Tandem's {b}, Keras's {a}"
        print(f"{name}: apart by {apart:.2g}")
