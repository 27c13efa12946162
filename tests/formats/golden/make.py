"""Makes the files beside it with real Keras (3.15.1, JAX): models after some steps of training, inputs x and Keras's
predictions p as .npy. Run in this folder: KERAS_BACKEND=jax python make.py

The files keras_2_* were written by Keras 2.12, 2.13 and 2.15 (TensorFlow), as their names say, with that Keras's
predictions."""
import json
import zipfile

import keras
import numpy as np
from keras import layers

ROWS = 5


def save(name, model, x):
    model.save(f"{name}.keras")
    np.save(f"{name}.x.npy", x)
    np.save(f"{name}.p.npy", model.predict(x, verbose=0))


def random(*shape):
    return np.random.default_rng(1).normal(size=shape).astype("float32")


def train(model, x, y, steps):
    for _ in range(steps):
        model.train_on_batch(x, y)


def mlp():
    model = keras.Sequential([layers.Input((4, 3)), layers.Flatten(), layers.Dense(8, activation="relu"),
                              layers.Dropout(0.2), layers.Dense(3, kernel_regularizer=keras.regularizers.L2(1e-3))])
    model.compile(keras.optimizers.Adam(2e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    x = random(ROWS, 4, 3)
    train(model, x, np.arange(ROWS) % 3, 4)
    return model, x


def cnn():
    image = layers.Input((6, 6, 2))
    a = layers.Conv2D(3, 3, padding="same", activation="relu")(image)
    b = layers.Conv2D(3, 3, padding="same")(a)
    c = layers.BatchNormalization()(layers.Add()([a, b]))
    d = layers.MaxPooling2D()(layers.Concatenate()([c, a]))
    e = layers.Dropout(0.1)(layers.GlobalAveragePooling2D()(d))
    model = keras.Model(image, layers.Dense(2, activation="softmax")(e))
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9), "categorical_crossentropy", metrics=["accuracy"])
    x = random(ROWS, 6, 6, 2)
    train(model, x, np.eye(2)[np.arange(ROWS) % 2], 3)
    return model, x


def plain():
    model = keras.Sequential([layers.Input((3,)), layers.Dense(4, activation="tanh"), layers.Dense(2)])
    return model, random(ROWS, 3)


def averages():
    """An optimizer that keeps everything it can: two updates of two steps each, and one step of the next."""
    model = keras.Sequential([layers.Input((3,)), layers.Dense(4, activation="tanh"), layers.Dense(2)])
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9, use_ema=True, ema_momentum=0.9, ema_overwrite_frequency=7,
                                       gradient_accumulation_steps=2, global_clipnorm=0.5, loss_scale_factor=8.0), "mse")
    x = random(ROWS, 3)
    train(model, x, np.eye(2)[np.arange(ROWS) % 2], 5)
    return model, x


def characters():
    """A character model, not trained; x are numbers of characters, as floats."""
    model = keras.Sequential([layers.Input((8,), dtype="int32"), layers.Embedding(5, 6),
                              layers.LSTM(12, return_sequences=True), layers.Dense(5)])
    model.compile(keras.optimizers.Adam(2e-2), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model, (np.arange(ROWS * 8).reshape(ROWS, 8) ** 2 % 5).astype("float32")


def relu():
    """Every argument of the ReLU layer."""
    model = keras.Sequential([layers.Input((3,)), layers.Dense(6), layers.ReLU(negative_slope=0.1, max_value=0.9, threshold=0.2),
                              layers.Dense(4), layers.ReLU(max_value=1.5), layers.Dense(4),
                              layers.ReLU(negative_slope=0.3), layers.Dense(2)])
    return model, random(ROWS, 3)


def heads():
    """Two outputs, of which one is trained; names that are not ASCII, and that a terminal would obey."""
    x = layers.Input((3,), name="in")
    h = layers.Dense(4, activation="tanh", name="\u0441\u043b\u043e\u0439")(x)
    a = layers.Dense(2, activation="softmax", name="a\x1b[31m\u7ea2")(h)
    b = layers.Dense(2, name="b")(h)
    model = keras.Model(x, [a, b])
    model.compile(keras.optimizers.SGD(0.1), ["sparse_categorical_crossentropy", None], metrics=[["accuracy"], ["mae"]])
    return model, random(ROWS, 3)


def own(y_true, y_pred):
    return keras.ops.mean(y_pred)


def partly():
    """An optimizer and a metric that Tandem does not know beside a loss and a metric that it does."""
    model = keras.Sequential([layers.Input((3,)), layers.Dense(2, activation="softmax")])
    model.compile(keras.optimizers.Adamax(0.1), "sparse_categorical_crossentropy", metrics=["accuracy", own])
    x = random(ROWS, 3)
    print("partly: loss and accuracy", model.evaluate(x, np.arange(ROWS) % 2, verbose=0)[:2])
    return model, x


def older(object):
    """The configuration as earlier versions wrote it: policies by name, the input's shape under its old key, tensors as
    bare lists, no InputLayer in a Sequential."""
    if isinstance(object, list):
        return [older(item) for item in object]
    if not isinstance(object, dict):
        return object
    if object.get("class_name") == "DTypePolicy":
        return object["config"]["name"]
    object = {key: older(value) for key, value in object.items() if key not in ("shared_object_id", "build_config")}
    if object.get("class_name") == "InputLayer":
        object["config"]["batch_input_shape"] = object["config"].pop("batch_shape")
    if isinstance(object.get("inbound_nodes"), list) and object["inbound_nodes"]:
        tensors = object["inbound_nodes"][0]["args"][0]
        tensors = tensors if isinstance(tensors, list) else [tensors]
        object["inbound_nodes"] = [[tensor["config"]["keras_history"] + [{}] for tensor in tensors]]
    if isinstance(object.get("input_layers"), list):
        object["input_layers"] = [object["input_layers"]]
        object["output_layers"] = [object["output_layers"]]
    for key in ("renorm", "renorm_clipping", "renorm_momentum", "quantization_config", "optional", "ragged"):
        object.pop(key, None)
    return object


def rewrite(name, to, change):
    with zipfile.ZipFile(f"{name}.keras") as before, zipfile.ZipFile(f"{to}.keras", "w") as after:
        for entry in before.namelist():
            content = before.read(entry)
            if entry == "config.json":
                content = json.dumps(change(json.loads(content))).encode()
            after.writestr(entry, content)


keras.utils.set_random_seed(2)
save("mlp_adam", *mlp())
save("cnn_sgd", *cnn())
save("plain", *plain())
save("averages", *averages())
save("characters", *characters())
rewrite("cnn_sgd", "cnn_older", older)
save("relu", *relu())
save("partly", *partly())
heads()[0].save("heads.keras")
