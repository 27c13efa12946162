"""Writes golden.h: what Keras (JAX backend) says of configurations, losses and metrics.

    KERAS_BACKEND=jax python golden.py > golden.h
"""
import json
import textwrap

import jax
import keras
import numpy as np
from keras import layers, losses, metrics, optimizers

image = keras.Input((8, 8, 3))
vector = keras.Input((5,))
sequence = keras.Input((6, 5))


def config(obj):
    values = keras.saving.serialize_keras_object(obj)["config"]
    for key in ("name", "trainable", "dtype"):
        values.pop(key, None)
    return values


def called(layer, *inputs):
    layer(inputs[0] if len(inputs) == 1 else list(inputs))
    return layer


DEFAULTS = {
    "InputLayer": layers.InputLayer((8, 8, 3)),
    "Dense": called(layers.Dense(7), vector),
    "Conv2D": called(layers.Conv2D(7, 3), image),
    "MaxPooling2D": called(layers.MaxPooling2D(), image),
    "AveragePooling2D": called(layers.AveragePooling2D(2), image),
    "GlobalAveragePooling2D": called(layers.GlobalAveragePooling2D(), image),
    "Flatten": called(layers.Flatten(), image),
    "Reshape": called(layers.Reshape((24, -1)), image),
    "Activation": called(layers.Activation("linear"), image),
    "Dropout": called(layers.Dropout(0.25), image),
    "Add": called(layers.Add(), image, image),
    "Concatenate": called(layers.Concatenate(), image, image),
    "BatchNormalization": called(layers.BatchNormalization(), image),
    "ZeroPadding2D": called(layers.ZeroPadding2D(((1, 2), (3, 4))), image),
    "ReLU": called(layers.ReLU(), image),
    "Softmax": called(layers.Softmax(), image),
    "LSTM": called(layers.LSTM(7), sequence),
    "Embedding": called(layers.Embedding(9, 4), keras.Input((5,), dtype="int32")),
    "Normalization": called(layers.Normalization(), vector),
    "UpSampling2D": called(layers.UpSampling2D(), image),
    "SGD": optimizers.SGD(),
    "Adam": optimizers.Adam(),
}


def text(name, value):
    print(f"static const char {name}[] =")
    lines = textwrap.wrap(json.dumps(value), 90, break_long_words=False, break_on_hyphens=False)
    print("\n".join("    " + json.dumps(line + " ") for line in lines) + ";\n")


def numbers(name, values, kind="float"):
    values = np.asarray(values).reshape(-1)
    shown = (f"{v:d}" if kind == "int32_t" else np.format_float_scientific(v, precision=9, unique=False) + "f"
             for v in values)
    print(f"static const {kind} {name}[] = {{")
    print(textwrap.fill(", ".join(shown), 110, initial_indent="    ", subsequent_indent="    ") + "};\n")


random = np.random.default_rng(3)
logits = random.normal(0, 2, (6, 5)).astype("float32")
classes = random.integers(0, 5, 6).astype("int32")
classes[::2] = logits[::2].argmax(axis=-1)
targets = random.dirichlet(np.ones(5), 6).astype("float32")
targets[3:] = np.asarray(keras.ops.softmax(logits[3:] / 4))
bits = (random.random((6, 5)) < 0.5).astype("float32")
probabilities = random.random((6, 5)).astype("float32")  # rows do not sum to 1
probabilities[0, 0], probabilities[1, 1] = 0.0, 1.0  # clipped
mild = logits / 4  # near 1 a float32 p leaves few digits of 1 - p, Keras's too
softmax = np.asarray(keras.ops.softmax(mild))
sigmoid = np.asarray(keras.ops.sigmoid(mild))

print("/* golden.h - written by golden.py with Keras", keras.__version__, "on JAX. Not to be edited. */")
print("/* clang-format off */")
for name, obj in DEFAULTS.items():
    text("golden_" + name, config(obj))

numbers("golden_logits", logits)
numbers("golden_classes", classes, "int32_t")
numbers("golden_targets", targets)
numbers("golden_bits", bits)
numbers("golden_probabilities", probabilities)
numbers("golden_mild", mild)
numbers("golden_softmax", softmax)
numbers("golden_sigmoid", sigmoid)

CASES = [
    ("sparse", losses.sparse_categorical_crossentropy, classes, False),
    ("categorical", losses.categorical_crossentropy, targets, True),
    ("binary", losses.binary_crossentropy, bits, True),
]
for name, function, y, smooths in CASES:
    for form, x in (("logits", logits), ("probabilities", probabilities)):
        def values(x, **options):
            return function(y, x, from_logits=form == "logits", **options)

        numbers(f"golden_{name}_{form}", values(x))
        numbers(f"golden_{name}_{form}_gradient", jax.grad(lambda x: values(x).sum())(x))
        if smooths:
            numbers(f"golden_{name}_{form}_smooth", values(x, label_smoothing=0.1))
for form, x in (("logits", logits), ("probabilities", probabilities)):
    ignoring = losses.SparseCategoricalCrossentropy(from_logits=form == "logits", ignore_class=int(classes[0]))
    numbers(f"golden_ignoring_{form}", ignoring(classes, x))
    numbers(f"golden_ignoring_{form}_gradient", jax.grad(lambda x: ignoring(classes, x))(x))
numbers("golden_sparse_softmax", losses.sparse_categorical_crossentropy(classes, softmax))
numbers("golden_categorical_softmax", losses.categorical_crossentropy(targets, softmax))
numbers("golden_binary_sigmoid", losses.binary_crossentropy(bits, sigmoid))
numbers("golden_mse", losses.mean_squared_error(targets, logits))
numbers("golden_mse_gradient", jax.grad(lambda x: losses.mean_squared_error(targets, x).sum())(logits))
numbers("golden_mae", losses.mean_absolute_error(targets, logits))
numbers("golden_mae_gradient", jax.grad(lambda x: losses.mean_absolute_error(targets, x).sum())(logits))
numbers("golden_huber", losses.huber(targets, logits, delta=1.5))
numbers("golden_huber_gradient", jax.grad(lambda x: losses.huber(targets, x, delta=1.5).sum())(logits))
numbers("golden_sparse_accuracy", metrics.sparse_categorical_accuracy(classes, logits))
numbers("golden_categorical_accuracy", metrics.categorical_accuracy(targets, logits))
numbers("golden_binary_accuracy", np.mean(metrics.binary_accuracy(bits, sigmoid), axis=-1))
