"""TensorFlow's MultiWorkerMirroredStrategy by Keras 2 (tf-keras), since the fit of Keras 3 does not run under it. TF_CONFIG
says who is in the group; each process trains on its share of every batch, in each round one epoch."""
import os
import sys

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", TF_USE_LEGACY_KERAS="1")

import numpy as np  # noqa: E402
import peer  # noqa: E402
import tensorflow as tf  # noqa: E402
import tf_keras  # noqa: E402

sys.modules["keras"] = tf_keras  # whose layers and losses have the names that networks.py uses
import networks  # noqa: E402

MOST_STEPS = 100  # in one execution
case, _, _ = peer.arguments()
strategy = tf.distribute.MultiWorkerMirroredStrategy()


def make_model():
    made = getattr(networks, case.network)()
    made.compile(optimizer=tf_keras.optimizers.Adam(1e-3), loss=networks.loss_of(case.network),
                 steps_per_execution=min(case.steps, MOST_STEPS))
    return made


def make_epoch():
    x, y = peer.data(case, case.steps)
    return lambda: model.fit(x, y, batch_size=case.batch, epochs=1, verbose=0)


def first_step():
    model.fit(*peer.data(case, 1), batch_size=case.batch, verbose=0)


def parameters():
    return sum(int(np.prod(weight.shape)) for weight in model.trainable_weights)


with strategy.scope():
    model = make_model()
peer.serve_epochs(case, parameters, first_step, make_epoch)
