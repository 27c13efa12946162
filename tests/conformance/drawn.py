"""drawn.py [SEED [CASES]]: networks, losses, optimizers and batches drawn at random: `tandem predict` gives what Keras's
predict gives, and `tandem fit` ends with the weights that Keras's fit ends with, on all cores, on one, by several replicas,
in fixed parts and with values computed again.

Each case is drawn from a number of its own, from SEED on: `drawn.py 17 1` makes case 17 alone."""
import os
import pathlib
import subprocess
import sys
import tempfile

import h5py
import jax
import keras
import numpy as np
from keras import layers

sys.path.insert(0, os.path.dirname(__file__))
from support import tandem  # noqa: E402

EPOCHS = 2
TOLERANCE = 1e-5         # of predictions
OF_CHANGE = 2e-3         # of a weight: its change is small, and what roundings of many sums made of it
MOST_NUMBERS = 20_000    # of a value of one sample
MOST_WEIGHTS = 300_000
WORDS = 30               # that an Embedding knows

SMOOTH = "linear tanh sigmoid softplus silu gelu elu selu softsign".split()
ANY = SMOOTH + "relu leaky_relu relu6 hard_sigmoid celu mish".split()


class Draw:
    def __init__(self, number):
        self.random = np.random.default_rng(number)
        self.norms = {}  # made so far, by the shape of a sample

    def below(self, n):
        return int(self.random.integers(n))

    def of(self, choices):
        return choices[self.below(len(choices))]

    def chance(self, one_in):
        return self.below(one_in) == 0

    def activation(self):
        return self.of(ANY if self.chance(3) else SMOOTH)

    def width(self):
        return self.of([1, 2, 3, 4, 6, 8, 12, 16, 17, 32, 33, 48, 64, 96])


# ---- layers: each of a value, or None where it does not fit ----

def pair(size):
    return (size, size) if isinstance(size, int) else size


def padding(draw, x, height, width):
    return draw.of(["valid", "same"]) if x.shape[1] >= height and x.shape[2] >= width else "same"


def convolution(draw, x):
    size = (1 + draw.below(5), 1 + draw.below(5)) if draw.chance(3) else draw.of([1, 3, 3, 5])
    groups = draw.of([g for g in (1, 1, 1, 2, 3, 4) if x.shape[-1] % g == 0])
    strides = draw.of([1, 1, 1, 2, (1, 2), (3, 2)])
    dilation = draw.of([1, 1, 1, 2, (1, 3)]) if strides == 1 else 1
    height, width = ((side - 1) * apart + 1 for side, apart in zip(pair(size), pair(dilation)))
    return layers.Conv2D(draw.width() * groups, size, strides, padding(draw, x, height, width), dilation_rate=dilation,
                         groups=groups, activation=draw.activation(), use_bias=not draw.chance(3),
                         bias_initializer="random_normal")(x)


def pooling(draw, x):
    size, kind = draw.of([2, 2, 3, (1, 2), (3, 2)]), draw.of([layers.MaxPooling2D, layers.AveragePooling2D])
    return kind(size, draw.of([None, None, 1, 2]), padding(draw, x, *pair(size)))(x)


def zeros(draw, x):
    return layers.ZeroPadding2D(draw.of([1, (0, 1), ((0, 2), (1, 0)), 2]))(x)


def upsampling(draw, x):
    return layers.UpSampling2D(draw.of([2, (1, 2), (3, 1)]), interpolation=draw.of(["nearest", "bilinear"]))(x)


def global_pooling(draw, x):
    return layers.GlobalAveragePooling2D(keepdims=draw.chance(3))(x)


def normalization(draw, x):
    """By a layer that has another value too, where there is one."""
    shared = draw.norms.get(x.shape[1:])
    if not shared or draw.chance(2):
        shared = layers.BatchNormalization(momentum=0.9, epsilon=1e-2, center=not draw.chance(4), scale=not draw.chance(4))
        draw.norms[x.shape[1:]] = shared
    return shared(x)


def frozen_normalization(draw, x):
    return layers.BatchNormalization(trainable=False, moving_mean_initializer="random_normal")(x)


def dense(draw, x):
    layer = layers.Dense(200 if draw.chance(6) else draw.width(), activation=draw.activation(), use_bias=not draw.chance(4),
                         kernel_regularizer=draw.of([None, None, None, "l2"]), trainable=not draw.chance(8))
    return layer(layer(x)) if layer.units == x.shape[-1] else layer(x)


def activation(draw, x):
    return layers.Softmax()(x) if draw.chance(4) else layers.Activation(draw.activation())(x)


def lstm(draw, x):
    made = layers.LSTM(draw.of([1, 5, 8, 16, 33, 64, 128]), return_sequences=draw.chance(2), go_backwards=draw.chance(3),
                       use_bias=not draw.chance(4), activation=draw.of(["tanh", "tanh", "tanh", "softsign", "gelu"]),
                       recurrent_activation=draw.of(["sigmoid", "sigmoid", "hard_sigmoid"]), return_state=draw.chance(4))(x)
    return draw.of(made) if isinstance(made, (list, tuple)) else made


def reshape(draw, x):
    numbers = int(np.prod(x.shape[1:]))
    ways = [(numbers,), (numbers // 2, 2), (3, numbers // 3), (2, numbers // 4, 2), (numbers, 1)]
    return layers.Reshape(draw.of([way for way in ways if int(np.prod(way)) == numbers]))(x)


OF_RANK = {4: [convolution] * 6 + [pooling, pooling, zeros, upsampling, global_pooling, normalization], 3: [lstm] * 4 + [dense],
           2: [dense] * 4}
OF_ANY = [dense, activation, normalization, frozen_normalization, reshape]


def merged(draw, x, values):
    """With another value, where one fits."""
    others = [v for v in values if v is not x and v.shape[:-1] == x.shape[:-1]]
    if not others:
        return None
    other = draw.of(others)
    if other.shape == x.shape and draw.below(3):
        return x + other if draw.chance(2) else layers.Add()([x, other])
    return layers.Concatenate()([other, x])


# ---- networks ----

def input_shape(draw):
    side = [1, 3, 5, 8, 9, 12, 16, 17, 28, 32]
    image = draw.of(side), draw.of(side), draw.of([1, 1, 2, 3, 3, 5, 8, 16, 24, 32])
    return draw.of([image, image, (draw.of([1, 2, 5, 9, 20]), draw.of([1, 4, 7, 16, 33])), (draw.of([1, 3, 10, 64, 129]),)])


def inputs(draw):
    """And what layers see of them: words by an Embedding."""
    words = draw.chance(8)
    x = layers.Input((draw.of([1, 4, 11]),), dtype="int32") if words else layers.Input(input_shape(draw))
    seen = layers.Embedding(WORDS, draw.width())(x) if words else x
    if draw.below(5):
        return [x], [seen]
    other = layers.Input((3,) if words else x.shape[1:])
    return [x, other], [seen, other]


def grow(draw, values):
    x = values[-1] if draw.below(4) else draw.of(values)
    made = merged(draw, x, values) if draw.chance(4) else draw.of(OF_RANK.get(len(x.shape), []) + OF_ANY)(draw, x)
    if made is not None and np.prod(made.shape[1:]) <= MOST_NUMBERS:
        values.append(made)


def output(x):
    return layers.Dense(4)(layers.Flatten()(x) if len(x.shape) > 2 else x)


def network(draw):
    """Values may be read once, several times or never; of two inputs there are two outputs."""
    given, values = inputs(draw)
    for _ in range(2 + draw.below(10)):
        grow(draw, values)
    ends = [values[-1]] if len(given) == 1 and draw.below(5) else [values[-1], draw.of(values)]
    return keras.Model(given, [output(x) for x in ends]) if len(ends) > 1 else keras.Model(given[0], output(ends[0]))


def optimizer(draw):
    more = draw.of([{}, {}, {"clipnorm": 0.5}, {"global_clipnorm": 0.5}, {"weight_decay": 0.01}, {"clipvalue": 0.05},
                    {"gradient_accumulation_steps": 2}, {"use_ema": True, "ema_momentum": 0.5}])
    if draw.chance(3):
        return keras.optimizers.Adam(0.01, epsilon=0.1, amsgrad=draw.chance(3), **more)
    return keras.optimizers.SGD(0.05, momentum=draw.of([0.0, 0.9]), nesterov=draw.chance(3), **more)


def compile_model(draw, model):
    """Returns a function that draws targets of one output."""
    count = len(model.outputs)
    weights = [1.0, 0.3] if count > 1 and draw.chance(2) else None
    if draw.chance(2):
        model.compile(optimizer(draw), [keras.losses.SparseCategoricalCrossentropy(from_logits=True) for _ in range(count)],
                      weights, [["accuracy"]] * count if count > 1 else ["accuracy"])
        return lambda samples: draw.random.integers(0, 4, samples)
    model.compile(optimizer(draw), ["mean_squared_error"] * count, weights)
    return lambda samples: draw.random.normal(size=(samples, 4))


def sample(draw, given, samples):
    if given.dtype == "int32":
        return draw.random.integers(0, WORDS, (samples, *given.shape[1:])).astype("int32")
    return draw.random.normal(size=(samples, *given.shape[1:])).astype("float32")


def samples_of(draw, batch):
    """Some batches, the last of which may have fewer samples."""
    return batch * (1 + draw.below(4)) + (draw.below(batch) if draw.chance(2) else 0)


def save(model, path):
    """With statistics of the whole batch, whatever the devices: an argument that Keras takes with TensorFlow alone."""
    norms = [layer for layer in model.layers if isinstance(layer, layers.BatchNormalization)]
    for layer in norms:
        layer.synchronized = True
    model.save(path)
    for layer in norms:
        layer.synchronized = False


# ---- Tandem ----

def numbers(variables):
    return [np.asarray(keras.ops.convert_to_numpy(v), np.float64) for v in variables]


def write_data(path, x, y):
    """Returns its description for options."""
    features = []
    with h5py.File(path, "w") as file:
        for name, values in (("x", x), ("y", y)):
            for i, value in enumerate(values):
                file[f"{name}{i}"] = value
                features.append(f"{name}{i if len(values) > 1 else ''}=/{name}{i}")
    return ",".join(features)


def check_predictions(draw, folder, features, expected):
    several = len(expected) > 1
    file = folder / ("p.npz" if several else "p.npy")
    for more in (("--batch-size", 1), ("--batch-size", draw.of([2, 3, 32])), ("--devices", "cpu:0,cpu:1", "--batch-size", 7)):
        tandem.run(folder, "predict", "start.keras", "--data", "d.h5", "--features", features, "--output", file.name, *more)
        seen = np.load(file)
        for i, of_keras in enumerate(expected):
            off = np.max(np.abs((seen[f"y{i}"] if several else seen) - of_keras))
            if not off <= TOLERANCE * max(np.max(np.abs(of_keras)), 0.1):
                raise AssertionError(f"predict {more}, output {i}: off by {off:.3g} of {np.max(np.abs(of_keras)):.3g}")


def ways(draw):
    yield ()
    yield ("--devices", "cpu:0")
    yield ("--devices", "cpu:0,cpu:1")
    yield ("--devices", "cpu:0,cpu:1,cpu:2,cpu:3,cpu:4")
    yield ("--rematerialize",)
    yield ("--rematerialize", "--devices", "cpu:0,cpu:1")
    yield ("--shards", 1 + draw.below(4))


def check_weights(way, model, start, expected):
    for weight, before, after, seen in zip(model.weights, start, expected, numbers(model.weights)):
        change, off = np.max(np.abs(after - before)), np.max(np.abs(seen - after))
        if not off <= OF_CHANGE * change + 1e-6 * max(np.max(np.abs(after)), 0.5):
            raise AssertionError(f"fit {' '.join(map(str, way))}: {weight.path} {after.shape} is off by {off:.3g}, has changed by {change:.3g}")


def check_training(draw, folder, model, features, batch, start, expected):
    for way in ways(draw):
        tandem.run(folder, "fit", "start.keras", "--train", "d.h5", "--features", features, "--no-shuffle", "--epochs", EPOCHS,
                   "--batch-size", batch, "--output", "end.keras", *way)
        model.load_weights(folder / "end.keras")
        check_weights(way, model, start, expected)


def is_tame(weights):
    return all(np.all(np.isfinite(v)) and np.max(np.abs(v), initial=0) < 1e3 for v in weights)


def check(number, folder):
    keras.utils.set_random_seed(number)
    draw = Draw(number)
    model = network(draw)
    if model.count_params() > MOST_WEIGHTS:
        return "left out: too many weights"
    batch = draw.of([1, 1, 2, 3, 7, 8, 16, 32, 33, 1 + draw.below(48)])
    if any(isinstance(layer, layers.BatchNormalization) and layer.trainable for layer in model.layers):
        batch = max(batch, 8)
    samples = samples_of(draw, batch)
    target = compile_model(draw, model)
    x = [sample(draw, given, samples) for given in model.inputs]
    y = [target(samples).astype("float32") for _ in model.outputs]
    save(model, folder / "start.keras")
    features = write_data(folder / "d.h5", x, y)
    start, predicted = numbers(model.weights), model.predict(x, batch, verbose=0)
    model.fit(x, y, batch, EPOCHS, shuffle=False, verbose=0)
    expected = numbers(model.weights)
    check_predictions(draw, folder, features, predicted if isinstance(predicted, list) else [predicted])
    if not is_tame(expected):
        return "its training left out: its weights grow without bound"
    check_training(draw, folder, model, features, batch, start, expected)
    return "ok"


def main(first=1, cases=24):
    wrong = 0
    for number in range(first, first + cases):
        keras.backend.clear_session()
        jax.clear_caches()  # what is compiled for one case is of use to no other
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(f"{number}: {check(number, pathlib.Path(folder))}", flush=True)
            except (AssertionError, subprocess.TimeoutExpired) as error:
                wrong += 1
                print(f"{number}: FAILED: {error}", flush=True)
    if wrong:
        sys.exit(f"{wrong} of {cases} cases failed")


main(*map(int, sys.argv[1:]))
