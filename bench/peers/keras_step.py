"""Keras's fit on its JAX backend."""
import os

os.environ["KERAS_BACKEND"] = "jax"

import keras  # noqa: E402
import numpy as np  # noqa: E402
import peer  # noqa: E402
from keras import layers  # noqa: E402

architecture, samples, batch = peer.arguments()
if architecture == "mlp":
    SHAPE = (784,)
    model = keras.Sequential([layers.Input(SHAPE), layers.Dense(256, activation="relu"), layers.Dense(256, activation="relu"),
                              layers.Dense(10)])
else:
    SHAPE = (28, 28, 1)
    model = keras.Sequential([layers.Input(SHAPE), layers.Conv2D(6, 5, padding="same", activation="tanh"),
                              layers.AveragePooling2D(2), layers.Conv2D(16, 5, activation="tanh"),
                              layers.AveragePooling2D(2), layers.Flatten(), layers.Dense(120, activation="tanh"),
                              layers.Dense(84, activation="tanh"), layers.Dense(10)])
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))


def first_step():
    model.train_on_batch(np.full((batch, *SHAPE), 0.5, np.float32), np.zeros(batch, np.int32))


def make_epoch():
    x, y = peer.noise(samples, SHAPE)
    return lambda: model.fit(x, y, batch_size=batch, epochs=1, verbose=0)


peer.serve(first_step, make_epoch, samples // batch)
