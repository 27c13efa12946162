"""Keras on TensorFlow or JAX, with the network's .keras file: fit on arrays in memory, or single calls. Without metrics
beyond the loss, which is less than what Tandem does in the same case."""
import os
import sys

import peer

case, way, path = peer.arguments()
os.environ["KERAS_BACKEND"] = "jax" if way.startswith("keras-jax") else "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
if way.startswith("keras-jax"):
    sys.modules["tensorflow"] = None  # as where it is not installed: Keras would import it, which takes two seconds

import contextlib  # noqa: E402

import keras  # noqa: E402
import numpy as np  # noqa: E402
from networks import loss_of  # noqa: E402


def strategy():
    """Two logical CPUs and one replica on each, where that is the case."""
    if way == "keras-tf-mirrored":
        import tensorflow as tf
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
        return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope()
    return contextlib.nullcontext()


def make_model():
    if case.precision == "bfloat16":
        import networks
        keras.config.set_dtype_policy("mixed_bfloat16")
        made = getattr(networks, case.network)()
    else:
        made = keras.models.load_model(path, compile=False)
    several = min(case.steps, 400) if way.endswith("-spe") else 1
    made.compile(optimizer=keras.optimizers.Adam(1e-3), loss=loss_of(case.network), steps_per_execution=several)
    return made


def make_epoch():
    x, y = peer.data(case, case.steps)
    return lambda: model.fit(x, y, batch_size=case.batch, epochs=1, verbose=0)


def first_step():
    model.fit(*peer.data(case, 1), batch_size=case.batch, verbose=0)


def parameters():
    return sum(int(np.prod(weight.shape)) for weight in model.trainable_weights)


def make_call():
    x, y = peer.data(case, 1)
    if way.endswith("-predict"):
        return lambda: model.predict(x, batch_size=case.batch, verbose=0)
    if case.what == "predict":
        return lambda: model.predict_on_batch(x)
    return lambda: float(model.train_on_batch(x, y))


with strategy():
    model = make_model()
if case.what == "fit":
    peer.serve_epochs(case, parameters, first_step, make_epoch)
else:
    peer.serve_calls(parameters, make_call())
