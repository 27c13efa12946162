"""The networks as Keras models, and `networks.py NETWORK FILE train|predict`, which writes one with fresh weights to a
.keras file: to train compiled with Adam, classifiers with accuracy."""
import os
import sys

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras  # noqa: E402
from keras import layers  # noqa: E402


def mlp():
    return keras.Sequential([layers.Input((784,)), layers.Dense(256, activation="relu"),
                             layers.Dense(256, activation="relu"), layers.Dense(10)])


def lenet5():
    return keras.Sequential([
        layers.Input((28, 28, 1)), layers.Conv2D(6, 5, padding="same", activation="tanh"), layers.AveragePooling2D(2),
        layers.Conv2D(16, 5, activation="tanh"), layers.AveragePooling2D(2), layers.Flatten(),
        layers.Dense(120, activation="tanh"), layers.Dense(84, activation="tanh"), layers.Dense(10)])


def cifar():
    return keras.Sequential([
        layers.Input((32, 32, 3)), layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(2),
        layers.Conv2D(64, 3, activation="relu"), layers.MaxPooling2D(2), layers.Conv2D(64, 3, activation="relu"),
        layers.Flatten(), layers.Dense(64, activation="relu"), layers.Dense(10)])


def resnet50():
    return keras.applications.ResNet50(weights=None)


def lstm():
    return keras.Sequential([layers.Input((50, 8)), layers.LSTM(128), layers.Dense(1)])


def policy():
    return keras.Sequential([layers.Input((8,)), layers.Dense(64, activation="tanh"), layers.Dense(64, activation="tanh"),
                             layers.Dense(2)])


LOSSES = {"resnet50": keras.losses.SparseCategoricalCrossentropy(), "lstm": keras.losses.MeanSquaredError()}


def loss_of(network):
    return LOSSES.get(network) or keras.losses.SparseCategoricalCrossentropy(from_logits=True)


if __name__ == "__main__":
    network, path, purpose = sys.argv[1:]
    keras.utils.set_random_seed(1)
    model = globals()[network]()
    if purpose == "train":
        model.compile(optimizer=keras.optimizers.Adam(1e-3), loss=loss_of(network),
                      metrics=[] if network == "lstm" else ["accuracy"])
    model.save(path)
