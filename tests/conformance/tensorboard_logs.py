"""tensorboard_logs.py: real TensorBoard reads what `tandem fit --tensorboard` wrote: scalars, histograms, images, both graphs,
hyper-parameters and text. Keras's own TensorBoard callback, recorded in place of TensorFlow's summaries, gives the same folders,
tags, steps and values for the same training; to look does not change the training."""
import contextlib
import os
import subprocess
import tempfile

os.environ.setdefault("KERAS_BACKEND", "jax")
import jax
import keras
import numpy as np
from tensorboard import context
from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
from tensorboard.plugins import base_plugin
from tensorboard.plugins.graph import graphs_plugin
from tensorboard.plugins.hparams import api_pb2, backend_context, get_experiment
from tensorboard.util import tensor_util

TANDEM = os.environ["TANDEM"]
EPOCHS, FREQUENCY = 3, 7
rng = np.random.default_rng(6)
x, y = rng.normal(size=(100, 8, 8, 1)).astype("float32"), rng.integers(0, 4, 100)
held_x, held_y = rng.normal(size=(30, 8, 8, 1)).astype("float32"), rng.integers(0, 4, 30)


class Recorder:
    """Takes the place of tensorflow.summary: {(folder, kind, tag): {step: value}}."""

    def __init__(self):
        self.records, self.writers, self.conditions = {}, [], []

    def create_file_writer(self, folder):
        return Writer(self, os.path.basename(folder))

    @contextlib.contextmanager
    def record_if(self, condition):
        self.conditions.append(condition)
        yield
        self.conditions.pop()

    def record(self, kind, tag, value, step):
        # Keras 3 forgets Keras 2's record_if(True) around what it writes by epoch.
        if tag.startswith("batch_") and self.conditions and not self.conditions[-1]():
            return
        self.records.setdefault((self.writers[-1], kind, tag), {})[int(step)] = value

    def scalar(self, tag, value, step):
        self.record("scalars", tag, float(value), step)

    def histogram(self, tag, value, step):
        self.record("histograms", tag, np.asarray(keras.ops.convert_to_numpy(value)), step)

    def image(self, tag, value, step):
        self.record("images", tag, np.array(value), step)


class Writer:
    def __init__(self, recorder, folder):
        self.recorder, self.folder = recorder, folder

    @contextlib.contextmanager
    def as_default(self, step=None):
        self.recorder.writers.append(self.folder)
        yield
        self.recorder.writers.pop()

    def flush(self):
        pass

    close = flush


def model():
    inputs = keras.Input((8, 8, 1), name="pixels")
    z = keras.layers.Conv2D(6, 3, activation="relu", name="convolve")(inputs)
    z = keras.layers.BatchNormalization(name="normalize")(z)
    z = keras.layers.Reshape((36, 6), name="rows")(z)
    z = keras.layers.LSTM(5, name="remember")(z)
    made = keras.Model(inputs, keras.layers.Dense(4, name="scores")(z), name="small")
    made.compile(optimizer=keras.optimizers.SGD(0.05), metrics=["accuracy"],
                 loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return made


def fit(output, *options):
    words = [TANDEM, "fit", "model.keras", "--train", "train.npz", "--validation", "held.npz", "--epochs", str(EPOCHS),
             "--no-shuffle", "--seed", "3", "--learning-rate-scheduler", "2=0.02", "--quiet", "--output", output, *options]
    subprocess.run(words, check=True)


def by_keras(made):
    callback = keras.callbacks.TensorBoard("unused", histogram_freq=2, write_images=True, write_graph=False,
                                           update_freq=FREQUENCY)
    callback._summary_module = Recorder()
    made.fit(x, y, batch_size=32, epochs=EPOCHS, shuffle=False, validation_data=(held_x, held_y), verbose=0,
             callbacks=[keras.callbacks.LearningRateScheduler(lambda epoch, rate: 0.02 if epoch == 2 else rate), callback])
    # Validation's own batches and iterations: Keras writes them by TensorFlow's default writer, whatever update_freq.
    return {key: steps for key, steps in callback._summary_module.records.items() if "evaluation_" not in key[2]}


def read(folder):
    """A multiplexer of real TensorBoard over the folder, and {(run, plugin, tag): {step: array}}."""
    multiplexer = plugin_event_multiplexer.EventMultiplexer()
    multiplexer.AddRunsFromDirectory(folder)
    multiplexer.Reload()
    found = {}
    for run in multiplexer.Runs():
        for tag, metadata in multiplexer.AllSummaryMetadata().get(run, {}).items():
            plugin = metadata.plugin_data.plugin_name
            found[os.path.relpath(run, "run"), plugin, tag] = {event.step: tensor_util.make_ndarray(event.tensor_proto)
                                       for event in multiplexer.Tensors(run, tag)}
    return multiplexer, found


def compare(found, wanted):
    kinds = ("scalars", "histograms", "images")
    ours = {key for key in found if key[1] in kinds and not key[2].endswith("/gradient")}
    assert ours == set(wanted), (ours ^ set(wanted))
    for (folder, kind, tag), steps in wanted.items():
        mine = found[folder, kind, tag]
        assert set(mine) == set(steps), (tag, set(mine), set(steps))
        for step, value in steps.items():
            if kind == "scalars":
                assert abs(float(mine[step]) - value) < 2e-4 * max(1, abs(value)), (tag, step, mine[step], value)
            elif kind == "histograms":
                buckets = mine[step]
                assert buckets.shape == (30, 3) and buckets[:, 2].sum() == value.size, (tag, buckets)
                near = 1e-4 * max(1, np.abs(value).max())
                assert abs(buckets[0, 0] - value.min()) < near and abs(buckets[-1, 1] - value.max()) < near, tag
                counts = np.histogram(value, 30)[0]
                assert np.abs(counts - buckets[:, 2]).sum() <= 0.1 * value.size + 4, (tag, counts, buckets[:, 2])
            else:
                width, height, *pngs = [bytes(string) for string in mine[step]]
                assert (int(height), int(width)) == value.shape[1:3], (tag, height, width, value.shape)
                assert len(pngs) == min(3, len(value)) and all(png.startswith(b"\x89PNG") for png in pngs), tag


def gradients(found):
    """Those of the first batch, with the weights as the epoch left them."""
    trained = keras.saving.load_model("one.keras")
    fixed = [variable.value for variable in trained.non_trainable_variables]

    def loss(variables):
        logits, _ = trained.stateless_call(variables, fixed, x[:32], training=True)
        return trained.loss(y[:32], logits)

    values = jax.grad(loss)([variable.value for variable in trained.trainable_variables])
    for variable, value in zip(trained.trainable_variables, map(np.asarray, values)):
        buckets = found["train", "histograms", f"{variable.path}/gradient"][0]
        near = 1e-3 * np.abs(value).max() + 1e-6
        assert buckets[:, 2].sum() == value.size, variable.path
        assert abs(buckets[0, 0] - value.min()) < near and abs(buckets[-1, 1] - value.max()) < near, (variable.path, buckets)


def pages(multiplexer, folder):
    provider = data_provider.MultiplexerDataProvider(multiplexer, folder)
    page = base_plugin.TBContext(logdir=folder, multiplexer=multiplexer, data_provider=provider)
    request = context.RequestContext()
    graphs = graphs_plugin.GraphsPlugin(page)
    info = graphs.info_impl(request, folder)["run/train"]
    assert info["run_graph"] and info["tags"]["keras"]["conceptual_graph"], info
    layers, _ = graphs.graph_impl(request, "run/train", "keras", True, folder)
    for name in ("pixels", "convolve", "normalize", "rows", "remember", "scores"):
        assert f'name: "small/{name}"' in layers, layers
    assert 'input: "small/remember"' in layers
    ops, _ = graphs.graph_impl(request, "run/train", None, False, folder)
    assert 'op: "conv2d"' in ops and 'name: "remember/kernel"' in ops and 'op: "sgd"' in ops
    experiment = get_experiment.Handler(request, backend_context.Context(page), folder,
                                        api_pb2.GetExperimentRequest(include_metrics=True)).run()
    hparams = {hparam.name for hparam in experiment.hparam_infos}
    assert {"optimizer", "learning_rate", "batch_size", "epochs", "loss"} <= hparams, hparams
    assert ("validation", "epoch_loss") in {(m.name.group, m.name.tag) for m in experiment.metric_infos}


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    made = model()
    made.save("model.keras")
    np.savez("train.npz", x=x, y=y)
    np.savez("held.npz", x=held_x, y=held_y)
    fit("with.keras", "--tensorboard", "logs/run", "--histogram-freq", "2", "--write-images", "--update-freq", str(FREQUENCY))
    fit("without.keras")
    subprocess.run([TANDEM, "fit", "model.keras", "--train", "train.npz", "--no-shuffle", "--quiet", "--output", "one.keras"],
                   check=True)
    for one, other in zip(*(keras.saving.load_model(name).get_weights() for name in ("with.keras", "without.keras"))):
        assert (one == other).all(), "to look at the training has changed it"
    multiplexer, found = read("logs")
    compare(found, by_keras(made))
    gradients(found)
    pages(multiplexer, "logs")
    [text] = found[".", "text", "summary"].values()
    assert b"convolve" in text.item() and b"Total params" in text.item(), text
    print("TensorBoard reads it, Keras names it the same")
