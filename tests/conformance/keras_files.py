"""keras_files.py: Tandem reads what Keras wrote and writes it again; Keras opens that, finds every weight, the optimizer's
state and the configuration as they were, predicts the same, and goes on training as if nothing had happened. Tandem's own
predictions are Keras's to 1e-5. The same of weights that h5py stored in other ways, and of those that save_weights wrote."""
import io
import os
import pathlib
import subprocess
import tempfile
import warnings
import zipfile

import h5py
import keras
import numpy as np
from keras import layers

RESAVE = pathlib.Path(os.environ["CONFORMANCE_PROGRAMS"]) / "resave"
SAMPLES = 7
PACKED = {"chunks": True, "compression": "gzip", "shuffle": True, "fletcher32": True}
STORED = [("newest", "latest", "f4", {}), ("packed", "earliest", "f4", PACKED), ("newest, packed", "latest", "f4", PACKED),
          ("v110, packed", "v110", "f4", PACKED), ("float64", "latest", "f8", {}), ("big-endian", "earliest", ">f4", PACKED),
          ("float16", "earliest", "f2", PACKED)]
# What a file may lack without meaning anything else: what a later Keras added with a default, and notes.
OPTIONAL = {"optional", "ragged", "quantization_config", "renorm", "renorm_clipping", "renorm_momentum", "input_axes",
            "output_axes", "build_config", "shared_object_id", "ignore_class", "jit_compile", "auto_scale_loss", "axis",
            "activity_regularizer"}


def random(*shape):
    return np.random.default_rng(3).normal(size=shape).astype("float32")


def labels(count):
    return np.random.default_rng(4).integers(0, count, SAMPLES)


def compiled(model, optimizer, loss, y, metrics=("accuracy",), steps=3, weights=None):
    model.compile(optimizer=optimizer, loss=loss, metrics=list(metrics), loss_weights=weights)
    x = inputs_of(model)
    for _ in range(steps):
        model.train_on_batch(x, y)
    return model, y


def numbers_for(tensor):
    shape = (SAMPLES, *tensor.shape[1:])
    return random(*shape) if tensor.dtype == "float32" else np.random.default_rng(5).integers(0, 9, shape).astype(tensor.dtype)


def inputs_of(model):
    x = [numbers_for(tensor) for tensor in model.inputs]
    return x[0] if len(x) == 1 else x


def mlp(**dense):
    return keras.Sequential([layers.Input((5, 4)), layers.Flatten(name="a.b"), layers.Dense(6, activation="relu", **dense),
                             layers.BatchNormalization(momentum=0.9, epsilon=1e-4), layers.Dropout(0.25, seed=11),
                             layers.Dense(3, use_bias=False)], name="mlp")


def image():
    x = layers.Input((9, 8, 3), name="picture")
    a = layers.Conv2D(4, 3, padding="same", activation="relu")(x)
    b = layers.Conv2D(4, (3, 1), padding="same", kernel_regularizer=keras.regularizers.L1L2(1e-3, 1e-2))(a)
    c = layers.Add()([a, b])
    c = layers.BatchNormalization(center=False)(c)
    c = layers.Activation("tanh")(c)
    d = layers.MaxPooling2D((2, 2), strides=(2, 1))(c)
    e = layers.AveragePooling2D(2, strides=(2, 1), padding="valid")(c)
    f = layers.Concatenate(axis=-1)([d, e])
    g = layers.Conv2D(6, 2, strides=2, groups=2, bias_initializer="ones")(f)
    h = layers.GlobalAveragePooling2D(keepdims=True)(g)
    h = layers.Reshape((2, -1))(h)
    return keras.Model(x, layers.Dense(2, activation="softmax")(layers.Flatten()(h)), name="image")


def shared():
    """One layer called twice, before and after the layers of the same class; layers listed by depth."""
    a, b = layers.Input((4,), name="left"), layers.Input((4,), name="right")
    twice = layers.Dense(4, activation="gelu", name="twice")
    x = layers.Add()([twice(a), layers.Dense(4)(twice(b))])
    y = layers.Dense(3, name="first")(x)
    z = layers.Dense(1, activation="sigmoid", name="second")(layers.Concatenate()([x, layers.Dense(2)(a)]))
    return keras.Model([a, b], [y, z])


def recurrent():
    x = layers.Input((5, 4))
    y = layers.LSTM(6, return_sequences=True, dropout=0.2, recurrent_dropout=0.1, seed=4, activation="linear")(x)
    y, h, c = layers.LSTM(3, return_sequences=True, return_state=True, recurrent_activation="hard_sigmoid")(y)
    z = layers.LSTM(4, go_backwards=True, unroll=True, use_bias=False, kernel_regularizer="l2")(y)
    w = layers.LSTM(3, recurrent_initializer="identity")(y, initial_state=[h, c])
    return keras.Model(x, layers.Dense(2)(layers.Concatenate()([h, z, c, w])))


def larger():
    """Integers in, embedded, and images made larger both ways."""
    x = layers.Input((4, 3), dtype="int32")
    y = layers.Embedding(9, 5, embeddings_initializer="ones", embeddings_regularizer="l1")(x)
    y = layers.UpSampling2D((2, 3))(y)
    y = layers.UpSampling2D(2, interpolation="bilinear")(layers.Conv2D(3, 2, activation="tanh")(y))
    return keras.Model(x, layers.Dense(2)(layers.Flatten()(y)))


def standardized():
    """Normalization, adapted, on the input and back on the output."""
    before, after = layers.Normalization(), layers.Normalization(invert=True)
    model = keras.Sequential([layers.Input((5, 4)), before, layers.LSTM(3), layers.Dense(2), after])
    before.adapt(3 * random(20, 5, 4) + 1)
    after.adapt(2 * random(20, 2) - 1)
    return model


def initializers():
    kinds = [keras.initializers.RandomUniform(-0.1, 0.2, seed=5), keras.initializers.RandomNormal(0.5, 0.25),
             keras.initializers.TruncatedNormal(stddev=0.125), keras.initializers.VarianceScaling(2.0, "fan_avg", "uniform"),
             keras.initializers.Orthogonal(1.5), keras.initializers.HeNormal(seed=1), keras.initializers.Constant(0.3),
             keras.initializers.Identity(0.7)]
    return keras.Sequential([layers.Input((4,))] + [layers.Dense(4, kernel_initializer=kind) for kind in kinds])


def frozen():
    model = mlp()
    model.layers[1].trainable = False
    model.layers[2].trainable = False
    return model


def deferred():
    """A Sequential that learned its shape late."""
    model = keras.Sequential([layers.Dense(3, activation="silu"), layers.Dense(2)])
    model.build((None, 6))
    return model


def schedules():
    make = keras.optimizers.schedules
    return [make.ExponentialDecay(0.01, 5, 0.9, staircase=True), make.PiecewiseConstantDecay([2, 4], [0.03, 0.02, 0.01]),
            make.PolynomialDecay(0.01, 7, power=0.5, cycle=True), make.InverseTimeDecay(0.01, 3.5, 0.2),
            make.CosineDecay(0.0, 8, alpha=0.1, warmup_target=0.02, warmup_steps=2), make.CosineDecay(0.02, 9),
            make.CosineDecayRestarts(0.01, 3, t_mul=1.5, m_mul=0.9, alpha=0.01)]


def cases():
    sparse = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    one_hot = np.eye(2, dtype="float32")[labels(2)]
    yield "adam", *compiled(mlp(), keras.optimizers.Adam(2e-3, beta_1=0.8), sparse, labels(3))
    yield "amsgrad", *compiled(mlp(), keras.optimizers.Adam(amsgrad=True, weight_decay=0.01), sparse, labels(3))
    yield "averages", *compiled(mlp(), keras.optimizers.Adam(amsgrad=True, use_ema=True, ema_momentum=0.9, clipnorm=2.0,
                                                             ema_overwrite_frequency=5, gradient_accumulation_steps=2,
                                                             loss_scale_factor=4.0), sparse, labels(3))
    yield "global norm", *compiled(mlp(), keras.optimizers.SGD(0.01, use_ema=True, global_clipnorm=1.5), sparse, labels(3))
    for schedule in schedules():
        yield type(schedule).__name__, *compiled(mlp(), keras.optimizers.Adam(schedule, use_ema=True), sparse, labels(3))
    yield "sgd", *compiled(mlp(), keras.optimizers.SGD(0.05), "mse", random(SAMPLES, 3), metrics=())
    yield "nesterov", *compiled(image(), keras.optimizers.SGD(0.01, 0.9, nesterov=True, clipvalue=0.5),
                                keras.losses.CategoricalCrossentropy(label_smoothing=0.1), one_hot)
    yield "names", *compiled(image(), "adam", "categorical_crossentropy", one_hot, ["categorical_accuracy"])
    yield "not trained", *compiled(mlp(), "adam", sparse, labels(3), steps=0)
    yield "shared", *compiled(shared(), "sgd", {"first": sparse, "second": "binary_crossentropy"},
                              [labels(3), np.float32(labels(2)).reshape(-1, 1)], [["accuracy"], ["binary_accuracy"]],
                              weights={"first": 1.0, "second": 0.5})
    yield "frozen", *compiled(frozen(), "adam", sparse, labels(3))
    yield "recurrent", *compiled(recurrent(), "adam", keras.losses.CategoricalCrossentropy(from_logits=True), one_hot)
    yield "larger", *compiled(larger(), "adam", keras.losses.CategoricalCrossentropy(from_logits=True), one_hot)
    yield "standardized", *compiled(standardized(), "adam", "mse", random(SAMPLES, 2), metrics=())
    yield "initializers", initializers(), None
    yield "deferred", deferred(), None


def run_resave(*words):
    done = subprocess.run(list(map(str, [RESAVE, *words])), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, f"resave exited with {done.returncode}: {done.stdout}"
    assert done.stdout == "", f"resave said: {done.stdout}"


def resave(path, to, model):
    words = [path, to]
    single = len(model.inputs) == 1
    x_file, p_file = path.with_suffix(".x"), path.with_suffix(".p")
    if single:
        inputs_of(model).astype("float32").tofile(x_file)
        words += [SAMPLES, x_file, p_file]
    run_resave(*words)
    return np.fromfile(p_file, "float32").reshape(SAMPLES, *model.output_shape[1:]) if single else None


def different(a, b, where=""):
    """Where two configurations differ in meaning."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(set(a) | set(b)):
            if key not in OPTIONAL or (key in a and key in b):
                yield from different(a.get(key), b.get(key), f"{where}/{key}")
    elif isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b)):
            yield from different(x, y, f"{where}[{i}]")
    elif isinstance(a, float) and isinstance(b, (float, int)):
        if np.float32(a) != np.float32(b):
            yield f"{where}: {a} became {b}"
    elif a != b:
        yield f"{where}: {a} became {b}"


def check_same(name, before, after):
    assert len(before.weights) == len(after.weights), name
    for a, b in zip(before.weights, after.weights):
        assert np.array_equal(a, b), f"{name}: {a.path} differs"
    found = list(different(before.get_config(), after.get_config()))
    assert not found, f"{name}: {found}"


def check_optimizers(name, before, after):
    before, after = before.optimizer, after.optimizer
    found = list(different(before.get_config() | {"name": ""}, after.get_config() | {"name": ""}))
    assert not found and type(before) is type(after), f"{name}: {found}"
    assert len(before.variables) == len(after.variables), f"{name}: the optimizer's state"
    for a, b in zip(before.variables, after.variables):
        assert np.array_equal(a, b), f"{name}: {a.path} differs"


def check_training(name, before, after, y):
    """Dropout draws anew in each process, so the step is compared where there is none."""
    x = inputs_of(before)
    if any(getattr(layer, "dropout", 0) or isinstance(layer, layers.Dropout) for layer in before.layers):
        assert np.allclose(before.test_on_batch(x, y), after.test_on_batch(x, y), rtol=1e-6), name
        return
    for _ in range(2):
        a, b = before.train_on_batch(x, y), after.train_on_batch(x, y)
        assert np.allclose(a, b, rtol=1e-6), f"{name}: the losses {a} and {b} differ"
    for a, b in zip(before.weights, after.weights):
        assert np.allclose(a, b, rtol=1e-6, atol=1e-7), f"{name}: {a.path} differs after training"


def copy_weights(old, new, kind, options):
    def copy(name, item):
        if isinstance(item, h5py.Group):
            new.require_group(name).attrs.update(item.attrs)
        elif item.dtype.kind == "f":
            new.create_dataset(name, data=item[()].astype(kind), **(options if item.ndim else {}))
        else:
            new[name] = item[()]

    old.visititems(copy)


def store_again(path, libver, kind, options):
    """The archive's weights as h5py can also store them: by another version of HDF5, of another type, packed."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    made = io.BytesIO()
    with h5py.File(io.BytesIO(members["model.weights.h5"])) as old, h5py.File(made, "w", libver=libver) as new:
        copy_weights(old, new, kind, options)
    members["model.weights.h5"] = made.getvalue()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def variables_of(model):
    return [*model.weights, *(model.optimizer.variables if model.compiled else [])]


def check_weights(name, path, folder, before):
    """Through save_weights, Tandem's load_weights and save_weights, and load_weights, into a model that had other ones."""
    blank, given, again = folder / "blank.keras", folder / "keras.weights.h5", folder / "tandem.weights.h5"
    other = keras.models.load_model(path)
    for variable in variables_of(other):
        variable.assign(keras.ops.ones(variable.shape, variable.dtype))
    other.save(blank)
    before.save_weights(given)
    run_resave(blank, given, again)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="Skipping variable loading")
        other.load_weights(again)
    for a, b in zip(variables_of(before), variables_of(other)):
        assert np.array_equal(a, b), f"{name}: {a.path} differs"


def check(name, model, y, folder, *stored):
    path, again = folder / "keras.keras", folder / "tandem.keras"
    model.save(path)
    if stored:
        store_again(path, *stored)
    predicted = resave(path, again, model)
    before = keras.models.load_model(path)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="Skipping variable loading")
        after = keras.models.load_model(again)
    check_same(name, before, after)
    x = inputs_of(before)
    for a, b in zip(keras.tree.flatten(before.predict(x, verbose=0)), keras.tree.flatten(after.predict(x, verbose=0))):
        assert np.array_equal(a, b), f"{name}: predictions differ"
    if predicted is not None:
        wanted = before.predict(x, verbose=0)
        error = np.max(np.abs(predicted - wanted)) / np.max(np.abs(wanted))
        assert error < 1e-5, f"{name}: Tandem's predictions are off by {error}"
    check_weights(name, path, folder, before)
    assert before.compiled == after.compiled, name
    if before.compiled:
        check_optimizers(name, before, after)
        check_training(name, before, after, y)
    print(f"{name}: as it was")


def main():
    print(f"Keras {keras.__version__}, {keras.backend.backend()}")
    keras.utils.set_random_seed(1)
    for case in cases():
        with tempfile.TemporaryDirectory() as folder:
            check(*case, pathlib.Path(folder))
    for name, *stored in STORED:
        with tempfile.TemporaryDirectory() as folder:
            check(name, *compiled(recurrent(), "adam", "mse", random(SAMPLES, 2), metrics=()), pathlib.Path(folder), *stored)


main()
