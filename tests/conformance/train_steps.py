"""train_steps.py GROUP...: trained in file order for 50 steps from the same file, Tandem's losses follow Keras's to 1e-5 at
every step; Keras opens what Tandem saved, predicts the same, and goes on training with the optimizer's state as if it had
never stopped. On one CPU device and on two."""
import dataclasses
import os
import pathlib
import sys
import tempfile

import keras
import numpy as np
from keras import layers

sys.path.insert(0, os.path.dirname(__file__))
from support import tandem  # noqa: E402

STEPS = 50
BATCH = 12
SAMPLES = STEPS * BATCH - 5  # the last batch is uneven
MORE = 10                    # steps that Keras goes on for
TOLERANCE = 1e-5


@dataclasses.dataclass
class Case:
    name: str
    model: keras.Model
    y: np.ndarray
    loss: object
    optimizer: object = None  # SGD by default
    warm: int = 0             # steps that Keras trains before it saves the file
    devices: tuple = ("cpu", "cpu:0,cpu:1")
    x: object = None          # normal numbers by default
    batch: int = BATCH


def random():
    return np.random.default_rng(7)


def classes(count, *shape):
    return random().integers(0, count, (SAMPLES, *shape)).astype("float32")


def one_hot(count):
    return np.eye(count, dtype="float32")[classes(count).astype(int)]


def numbers(*shape):
    return random().normal(size=(SAMPLES, *shape)).astype("float32")


def sequential(shape, *stack):
    return keras.Sequential([layers.Input(shape), *stack])


def sparse(from_logits=True, ignore_class=None):
    return keras.losses.SparseCategoricalCrossentropy(from_logits=from_logits, ignore_class=ignore_class)


def dense():
    yield Case("guide", sequential((28, 28), layers.Flatten(), layers.Dense(256, activation="relu"),
                                   layers.Dense(256, activation="relu"), layers.Dense(10)), classes(10), sparse(),
               keras.optimizers.Adam())
    yield Case("no bias", sequential((9,), layers.Dense(7, use_bias=False, activation="tanh"), layers.Dense(1)),
               numbers(1), "mean_squared_error")
    yield Case("several axes", sequential((4, 3, 5), layers.Dense(6, activation="relu"), layers.Dense(2)),
               numbers(4, 3, 2), "mean_squared_error")
    yield Case("frozen", sequential((9,), layers.Dense(7, activation="relu", trainable=False), layers.Dense(4)),
               classes(4), sparse(), keras.optimizers.Adam())
    yield Case("wide", sequential((100,), layers.Dense(300, activation="sigmoid"), layers.Dense(17)), classes(17), sparse())


ACTIVATIONS = ("linear relu tanh sigmoid softmax log_softmax leaky_relu relu6 elu selu celu gelu silu softplus softsign "
               "exponential hard_sigmoid hard_silu hard_tanh mish log_sigmoid tanh_shrink squareplus").split()


def activations():
    for name in ACTIVATIONS:
        yield Case(name, sequential((6,), layers.Dense(9, activation=name), layers.Dense(5, activation="tanh"),
                                    layers.Activation(name), layers.Dense(2)), numbers(2), "mean_squared_error")
    for name, arguments in (("slope", {"negative_slope": 0.1}), ("maximum", {"max_value": 0.7}),
                            ("threshold", {"threshold": 0.3}),
                            ("all", {"negative_slope": 0.2, "max_value": 0.9, "threshold": 0.1})):
        yield Case(f"ReLU, {name}", sequential((6,), layers.Dense(9), layers.ReLU(**arguments), layers.Dense(4)), classes(4),
                   sparse())


def convolution():
    def net(*stack, shape=(12, 11, 3)):
        return sequential(shape, *stack, layers.Flatten(), layers.Dense(4))

    yield Case("valid", net(layers.Conv2D(5, 3, activation="relu")), classes(4), sparse())
    yield Case("same", net(layers.Conv2D(5, 3, padding="same", activation="tanh")), classes(4), sparse())
    yield Case("even kernel, same", net(layers.Conv2D(5, (2, 4), padding="same")), classes(4), sparse())
    yield Case("strides", net(layers.Conv2D(6, (3, 2), strides=(2, 3), padding="same", activation="relu")), classes(4),
               sparse())
    yield Case("dilation", net(layers.Conv2D(5, 3, dilation_rate=2)), classes(4), sparse())
    yield Case("groups", net(layers.Conv2D(8, 3, groups=2, use_bias=False), shape=(9, 9, 4)), classes(4), sparse())
    yield Case("two", net(layers.Conv2D(16, 3, activation="relu"), layers.Conv2D(32, 3, activation="relu")), classes(4),
               sparse(), keras.optimizers.Adam())
    yield Case("lenet5", sequential(
        (28, 28, 1), layers.Conv2D(6, 5, padding="same", activation="tanh"), layers.AveragePooling2D(2),
        layers.Conv2D(16, 5, activation="tanh"), layers.AveragePooling2D(2), layers.Flatten(),
        layers.Dense(120, activation="tanh"), layers.Dense(84, activation="tanh"), layers.Dense(10)), classes(10), sparse(),
        keras.optimizers.Adam())
    yield Case("winograd", sequential(
        (13, 14, 32), layers.Conv2D(48, 3, padding="same", activation="tanh"), layers.Conv2D(32, 3, activation="tanh"),
        layers.AveragePooling2D(3), layers.Flatten(), layers.Dense(4)), classes(4), sparse())
    yield Case("zero padding", net(layers.ZeroPadding2D(1), layers.Conv2D(5, 3, strides=2, activation="relu"),
                                   layers.ZeroPadding2D(((0, 2), (1, 0))), layers.Conv2D(4, 2), layers.ReLU()), classes(4),
               sparse())
    yield Case("zero padding, more than filters see", net(
        layers.Conv2D(4, 3, activation="tanh"), layers.ZeroPadding2D(2), layers.Conv2D(4, 1), layers.ZeroPadding2D(3),
        layers.Conv2D(3, 2), layers.ZeroPadding2D(5), layers.Conv2D(4, 3)), classes(4), sparse())
    yield Case("zero padding, pooled", net(layers.Conv2D(5, 3), layers.ReLU(), layers.ZeroPadding2D(1),
                                           layers.MaxPooling2D(3, strides=2)), classes(4), sparse())
    yield Case("zero padding, pooled below zero", net(layers.Conv2D(5, 3), layers.ZeroPadding2D(((2, 1), (1, 0))),
                                                      layers.MaxPooling2D(2)), classes(4), sparse())
    # In small steps: among so many windows there are ties that rounding decides, each changing one pixel's gradient; in
    # large steps that grows, as it does in Keras itself when its initial weights are changed by 1e-7.
    yield Case("cifar", sequential(
        (32, 32, 3), layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(), layers.Conv2D(64, 3, activation="relu"),
        layers.MaxPooling2D(), layers.Conv2D(64, 3, activation="relu"), layers.Flatten(), layers.Dense(64, activation="relu"),
        layers.Dense(10)), classes(10), sparse(), keras.optimizers.SGD(0.001))


def pooling():
    def net(pool):
        return sequential((11, 10, 2), layers.Conv2D(6, 3, activation="tanh"), pool, layers.Flatten(), layers.Dense(3))

    for kind in (layers.MaxPooling2D, layers.AveragePooling2D):
        yield Case(f"{kind.__name__} defaults", net(kind(2)), classes(3), sparse())
        yield Case(f"{kind.__name__} same", net(kind((3, 2), strides=2, padding="same")), classes(3), sparse())
        yield Case(f"{kind.__name__} overlapping", net(kind(3, strides=1)), classes(3), sparse())
    yield Case("global", sequential((11, 10, 2), layers.Conv2D(6, 3, activation="tanh"), layers.GlobalAveragePooling2D(),
                                    layers.Dense(3)), classes(3), sparse())
    yield Case("global, keepdims", net(layers.GlobalAveragePooling2D(keepdims=True)), classes(3), sparse())


def merging():
    x = layers.Input((8, 6))
    a, b = layers.Dense(6, activation="tanh")(x), layers.Dense(6, activation="relu")(x)
    added = layers.Add()([a, b, x])
    yield Case("add", keras.Model(x, layers.Dense(3)(layers.Flatten()(added))), classes(3), sparse())
    joined = layers.Concatenate()([a, x, b])
    yield Case("concatenate", keras.Model(x, layers.Dense(3)(layers.Flatten()(joined))), classes(3), sparse())
    along = layers.Concatenate(axis=1)([a, b])
    yield Case("concatenate, axis 1", keras.Model(x, layers.Dense(3)(layers.Flatten()(along))), classes(3), sparse())
    shaped = layers.Reshape((4, -1, 3))(layers.Dense(6, activation="tanh")(x))
    yield Case("reshape", keras.Model(x, layers.Dense(3)(layers.Flatten()(layers.Conv2D(4, 2)(shaped)))), classes(3), sparse())
    shared = layers.Dense(6, activation="tanh")
    twice = layers.Add()([shared(x), shared(shared(x))])
    yield Case("a layer called twice", keras.Model(x, layers.Dense(3)(layers.Flatten()(twice))), classes(3), sparse())
    y = layers.Conv2D(4, 3, padding="same", activation="relu")(layers.Reshape((8, 6, 1))(x))
    y = y + layers.Conv2D(4, 3, padding="same")(y)  # an operation, which a file calls on two arguments
    yield Case("residual", keras.Model(x, layers.Dense(3)(layers.Flatten()(y))), classes(3), sparse(),
               keras.optimizers.Adam())


def normalization():
    one = ("cpu",)  # per replica by default: two replicas differ from one, by design

    def net(*stack, shape=(6,)):
        return sequential(shape, *stack, layers.Flatten(), layers.Dense(3))

    yield Case("dense", net(layers.Dense(8, use_bias=False), layers.BatchNormalization(), layers.Activation("relu")),
               classes(3), sparse(), devices=one)
    yield Case("after a bias", net(layers.Dense(8), layers.BatchNormalization()), classes(3), sparse(), devices=one)
    yield Case("images", net(layers.Conv2D(5, 3, use_bias=False), layers.BatchNormalization(momentum=0.8, epsilon=1e-2),
                             layers.Activation("tanh"), shape=(7, 6, 2)), classes(3), sparse(), keras.optimizers.Adam(),
               devices=one)
    yield Case("neither center nor scale", net(layers.Dense(8), layers.BatchNormalization(center=False, scale=False)),
               classes(3), sparse(), devices=one)
    yield Case("frozen", net(layers.Dense(8), layers.BatchNormalization(trainable=False)), classes(3), sparse())
    x, norm = layers.Input((6,)), layers.BatchNormalization(momentum=0.5)
    shallow, deep = norm(layers.Dense(6)(x)), layers.Dense(6)(layers.Dense(6)(layers.Dense(6)(norm(x))))
    yield Case("called twice", keras.Model(x, layers.Dense(3)(layers.Add()([shallow, deep]))), classes(3), sparse(), devices=one)


def recurrent():
    def net(*stack, shape=(6, 5)):
        return sequential(shape, *stack)

    lstm, mse, adam = layers.LSTM, "mean_squared_error", keras.optimizers.Adam
    yield Case("last", net(lstm(7), layers.Dense(1)), numbers(1), mse)
    yield Case("wide", net(lstm(128), layers.Dense(1), shape=(20, 8)), numbers(1), mse, adam())
    yield Case("one row", net(lstm(128, return_sequences=True), lstm(64), layers.Dense(1), shape=(20, 8)), numbers(1), mse,
               adam(), devices=("cpu", "cpu:0"), batch=1)
    yield Case("sequences", net(lstm(9, return_sequences=True), layers.Dense(3)), numbers(6, 3), mse)
    yield Case("two", net(lstm(9, return_sequences=True), lstm(8), layers.Dense(4)), classes(4), sparse(), adam())
    yield Case("backwards", net(lstm(9, go_backwards=True, return_sequences=True), layers.Flatten(), layers.Dense(4)),
               classes(4), sparse())
    yield Case("one step", net(lstm(20), layers.Dense(4), shape=(1, 3)), classes(4), sparse())
    yield Case("no bias, unrolled", net(lstm(9, use_bias=False, unroll=True), layers.Dense(4)), classes(4), sparse())
    yield Case("no forget bias", net(lstm(9, unit_forget_bias=False), layers.Dense(4)), classes(4), sparse())
    yield Case("activations", net(lstm(9, activation="relu", recurrent_activation="hard_sigmoid"), layers.Dense(4)),
               classes(4), sparse())
    yield Case("linear", net(lstm(9, activation="linear", recurrent_activation=None), layers.Dense(4)), classes(4), sparse())
    yield Case("regularizers", net(lstm(9, kernel_regularizer="l2", recurrent_regularizer="l1", bias_regularizer="l2"),
                                   layers.Dense(4)), classes(4), sparse())
    x = layers.Input((6, 5))
    y, h, c = lstm(7, return_sequences=True, return_state=True)(x)
    joined = layers.Concatenate()([layers.Flatten()(y), h, c])
    yield Case("state", keras.Model(x, layers.Dense(4)(joined)), classes(4), sparse(), adam())
    y, h, c = lstm(7, return_state=True)(x)
    yield Case("last and state", keras.Model(x, layers.Dense(4)(layers.Concatenate()([c, y]))), classes(4), sparse())
    y, h, c = lstm(9, return_state=True, kernel_regularizer="l2")(x)
    y = lstm(9, return_sequences=True)(x, [h, c])  # in its place
    yield Case("from another's state", keras.Model(x, layers.Dense(4)(layers.Flatten()(y))), classes(4), sparse(), adam())
    h, c = layers.Dense(20)(layers.Flatten()(x)), layers.Dense(20, activation="tanh")(layers.Flatten()(x))
    y, *state = lstm(20, go_backwards=True, return_state=True)(x, initial_state=(h, c))
    yield Case("state of the batch", keras.Model(x, layers.Dense(1)(layers.Concatenate()([y, state[1]]))), numbers(1), mse)
    for activation, recurrent in (("silu", "sigmoid"), ("gelu", "softsign"), ("tanh", "mish"), ("tanh_shrink", "hard_silu"),
                                  ("squareplus", "sigmoid"), ("softmax", "sigmoid"), ("tanh", "softmax"),
                                  ("log_softmax", "hard_sigmoid")):
        layer = lstm(9, activation=activation, recurrent_activation=recurrent)
        yield Case(f"{activation}, {recurrent}", net(layer, layers.Dense(4)), classes(4), sparse())
    both = dict(return_sequences=True, go_backwards=True, activation="gelu", recurrent_activation="silu")
    yield Case("sequences backwards of gelu, silu", net(lstm(33, **both), lstm(32, **both), layers.Flatten(), layers.Dense(4)),
               classes(4), sparse(), adam())


def indices():
    def net(*stack, shape=(6,), dtype="int32"):
        return keras.Sequential([layers.Input(shape, dtype=dtype), *stack])

    adam, x = keras.optimizers.Adam, classes(20, 6)
    yield Case("last", net(layers.Embedding(20, 5), layers.LSTM(7), layers.Dense(4)), classes(4), sparse(), adam(), x=x)
    yield Case("float32 input", net(layers.Embedding(20, 5), layers.Flatten(), layers.Dense(4), dtype="float32"),
               classes(4), sparse(), x=x)
    yield Case("wide", net(layers.Embedding(20, 80), layers.LSTM(16, return_sequences=True), layers.Dense(20)),
               classes(20, 6), sparse(), adam(), x=x)
    yield Case("regularized", net(layers.Embedding(20, 8, embeddings_regularizer="l2"), layers.Flatten(), layers.Dense(4)),
               classes(4), sparse(), keras.optimizers.SGD(0.1, momentum=0.9), x=x)
    yield Case("frozen", net(layers.Embedding(20, 8, trainable=False), layers.Flatten(), layers.Dense(4)), classes(4),
               sparse(), x=x)
    yield Case("planes", net(layers.Embedding(20, 3), layers.Conv2D(4, 2, activation="tanh"), layers.Flatten(),
                             layers.Dense(4), shape=(3, 5)), classes(4), sparse(), x=classes(20, 3, 5))
    y = keras.Input((6,), dtype="int64")
    both = layers.Concatenate()([layers.Embedding(20, 4)(y), layers.Embedding(30, 3)(y)])
    yield Case("two tables", keras.Model(y, layers.Dense(4)(layers.Flatten()(both))), classes(4), sparse(), x=x)


def standardized():
    """Trained from the file's mean and variance; tests/conformance/adapt.py holds adapting against Keras's."""
    before, after = layers.Normalization(), layers.Normalization(invert=True)
    model = sequential((6, 5), before, layers.LSTM(7), layers.Dense(2), after)
    before.adapt(numbers(6, 5) * 3 - 2)
    after.adapt(numbers(2) + 4)
    yield Case("in and out", model, numbers(2), "mean_squared_error")


def upsampling():
    def net(*stack, shape=(5, 4, 3)):
        return sequential(shape, layers.Conv2D(6, 2, activation="tanh"), *stack, layers.Conv2D(2, 2, activation="relu"),
                          layers.Flatten(), layers.Dense(4))

    up = layers.UpSampling2D
    yield Case("nearest", net(up()), classes(4), sparse())
    yield Case("nearest, uneven", net(up((3, 1))), classes(4), sparse())
    yield Case("bilinear", net(up(2, interpolation="bilinear")), classes(4), sparse())
    yield Case("bilinear, uneven", net(up((1, 5), interpolation="bilinear")), classes(4), sparse(), keras.optimizers.Adam())
    yield Case("bilinear, one pixel", net(layers.GlobalAveragePooling2D(keepdims=True), up(4, interpolation="bilinear")),
               classes(4), sparse())
    yield Case("labels by pixel", sequential((8, 8, 3), layers.Conv2D(8, 3, padding="same", strides=2, activation="relu"),
                                             up(2, interpolation="bilinear"), layers.Conv2D(5, 1)), classes(5, 8, 8), sparse())


def losses():
    def net(units, activation=None):
        return sequential((7,), layers.Dense(9, activation="tanh"), layers.Dense(units, activation=activation))

    yield Case("sparse from logits", net(5), classes(5), sparse())
    yield Case("sparse", net(5, "softmax"), classes(5), sparse(False))
    yield Case("sparse, from a sigmoid", net(5, "sigmoid"), classes(5), sparse(False))
    yield Case("sparse, a layer of softmax", sequential((7,), layers.Dense(9, activation="tanh"), layers.Dense(5),
                                                        layers.Softmax()), classes(5), sparse(False))
    yield Case("categorical from logits", net(5), one_hot(5), keras.losses.CategoricalCrossentropy(from_logits=True))
    yield Case("categorical", net(5, "softmax"), one_hot(5), "categorical_crossentropy")
    yield Case("binary from logits", net(3), classes(2, 3), keras.losses.BinaryCrossentropy(from_logits=True))
    yield Case("binary", net(1, "sigmoid"), classes(2, 1), "binary_crossentropy")
    yield Case("mean squared error", net(4), numbers(4), "mean_squared_error")
    yield Case("mean absolute error", net(4), numbers(4), "mae")
    yield Case("huber", net(4), numbers(4), "huber")
    yield Case("sparse, by place", sequential((4, 7), layers.Dense(5)), classes(5, 4), sparse())
    yield from ignoring()


def ignoring():
    """Batches, and what two devices have of them, differ in how many positions are valid; some have none."""
    images = sequential((6, 5, 3), layers.Conv2D(6, 3, padding="same", activation="tanh"), layers.Conv2D(4, 1))
    y = classes(5, 6, 5)
    yield Case("ignore_class, pixels", images, y, sparse(ignore_class=4), keras.optimizers.Adam())
    y[:3 * BATCH], y[y == 4] = 4, 255
    yield Case("ignore_class 255, whole batches", images, y, sparse(ignore_class=255))
    y[y == 255] = -1
    yield Case("ignore_class -1, from probabilities", sequential((6, 5, 3), layers.Conv2D(4, 1, activation="softmax")), y,
               sparse(False, ignore_class=-1))
    yield Case("ignore_class, from a sigmoid", sequential((7,), layers.Dense(5, activation="sigmoid")), classes(5),
               sparse(False, ignore_class=0))


def optimizers():
    sgd, adam = keras.optimizers.SGD, keras.optimizers.Adam
    for name, optimizer in (
            ("SGD", sgd()), ("SGD momentum", sgd(0.05, momentum=0.9)), ("SGD nesterov", sgd(0.05, momentum=0.8, nesterov=True)),
            ("SGD weight decay", sgd(0.05, weight_decay=0.02)), ("SGD clipvalue", sgd(0.05, momentum=0.5, clipvalue=0.01)),
            ("Adam", adam()), ("Adam arguments", adam(0.01, beta_1=0.8, beta_2=0.95, epsilon=1e-5)),
            ("Adam amsgrad", adam(0.01, amsgrad=True)), ("Adam weight decay", adam(0.01, weight_decay=0.02)),
            ("Adam clipvalue", adam(0.01, clipvalue=0.01))):
        yield from warmed(name, optimizer)


def warmed(name, optimizer, units=9):
    for warm in (0, 3):
        model = sequential((7,), layers.Dense(units, activation="tanh", kernel_regularizer="l2"), layers.Dense(5))
        yield Case(f"{name}, {warm} steps before", model, classes(5), sparse(), optimizer.from_config(optimizer.get_config()),
                   warm)


def common_arguments():
    sgd, adam = keras.optimizers.SGD, keras.optimizers.Adam
    for name, optimizer in (
            ("clipnorm", sgd(0.05, momentum=0.9, clipnorm=0.1)), ("clipnorm, not reached", sgd(0.05, clipnorm=100.0)),
            ("global_clipnorm", adam(0.01, global_clipnorm=0.2)), ("weight_decay, clipnorm", sgd(0.05, weight_decay=0.02, clipnorm=0.2)),
            ("use_ema", sgd(0.05, momentum=0.9, use_ema=True)),
            ("use_ema, overwriting", adam(0.01, amsgrad=True, use_ema=True, ema_momentum=0.8, ema_overwrite_frequency=4)),
            ("gradient_accumulation_steps", adam(0.01, gradient_accumulation_steps=4)),
            ("gradient_accumulation_steps, weight_decay", sgd(0.05, momentum=0.9, weight_decay=0.02, gradient_accumulation_steps=3)),
            ("loss_scale_factor", sgd(0.05, loss_scale_factor=100.0)),
            ("everything", adam(0.01, global_clipnorm=0.2, weight_decay=0.01, use_ema=True, ema_momentum=0.9,
                                ema_overwrite_frequency=3, loss_scale_factor=64.0, gradient_accumulation_steps=2))):
        yield from warmed(name, optimizer)
    yield from warmed("global_clipnorm of blocks", sgd(0.05, global_clipnorm=0.2), 2000)


def schedules():
    sgd, adam, make = keras.optimizers.SGD, keras.optimizers.Adam, keras.optimizers.schedules
    for schedule in (make.ExponentialDecay(0.05, 9, 0.7), make.ExponentialDecay(0.05, 8, 0.5, staircase=True),
                     make.PiecewiseConstantDecay([10, 33], [0.05, 0.02, 0.005]), make.PolynomialDecay(0.05, 11, power=2.0, cycle=True),
                     make.InverseTimeDecay(0.05, 4, 0.5), make.CosineDecay(0.0, 30, warmup_target=0.05, warmup_steps=10),
                     make.CosineDecayRestarts(0.05, 6, t_mul=1.5, m_mul=0.9)):
        yield from warmed(type(schedule).__name__, sgd(schedule, momentum=0.9))
    yield from warmed("CosineDecay, accumulating", adam(make.CosineDecay(0.02, 40), gradient_accumulation_steps=3, weight_decay=0.1))


def regularizers():
    make = keras.regularizers
    for name, regularizer in (("L1", make.L1(0.01)), ("L2", make.L2(0.01)), ("L1L2", make.L1L2(0.01, 0.02))):
        yield Case(f"dense {name}", sequential((7,), layers.Dense(9, activation="tanh", kernel_regularizer=regularizer,
                                                                 bias_regularizer=regularizer), layers.Dense(5)),
                   classes(5), sparse(), keras.optimizers.Adam())
    yield Case("convolution", sequential((7, 7, 2), layers.Conv2D(4, 3, kernel_regularizer="l2", activation="tanh"),
                                         layers.Flatten(), layers.Dense(5)), classes(5), sparse())
    yield Case("batch normalization", sequential(
        (7,), layers.Dense(9, use_bias=False), layers.BatchNormalization(gamma_regularizer="l2", beta_regularizer="l1"),
        layers.Dense(5)), classes(5), sparse(), devices=("cpu",))


def train_batch(model, x, y):
    model.reset_metrics()  # so that the loss is this batch's, not the mean so far
    return model.train_on_batch(x, y, return_dict=True)["loss"]


def train(model, x, y, batch):
    return np.array([train_batch(model, x[i:i + batch], y[i:i + batch]) for i in range(0, len(x), batch)])


def check(what, seen, limit, details=""):
    if not seen <= limit:  # NaN too
        raise AssertionError(f"{what}: {seen:.3g}, at most {limit:g} expected{details}")


def check_losses(what, mine, keras_losses):
    if len(mine) != len(keras_losses):
        raise AssertionError(f"{what}: {len(mine)} losses, {len(keras_losses)} expected")
    apart = np.abs(mine - keras_losses) / np.where(keras_losses == 0, 1, np.abs(keras_losses))
    worst = int(np.argmax(np.where(np.isnan(apart), np.inf, apart)))
    check(f"{what}: losses apart", apart[worst], TOLERANCE, f" (step {worst}: {mine[worst]:.9g}, Keras {keras_losses[worst]:.9g})")


def check_reopened(name, trained, x, y, batch, more, iterations):
    """Keras opens what Tandem saved, predicts the same and goes on."""
    model = keras.saving.load_model(trained.path)
    check(f"{name}: predictions apart", tandem.relative(trained.predictions, model.predict_on_batch(x[:batch])), TOLERANCE)
    if int(model.optimizer._iterations.value) != iterations:  # .iterations counts updates
        raise AssertionError(f"{name}: the saved optimizer counts {int(model.optimizer._iterations.value)} steps")
    check_losses(f"{name}, Keras going on", train(model, x[:MORE * batch], y[:MORE * batch], batch), more)


def run_case(case, folder):
    keras.utils.set_random_seed(3)
    case.model.compile(optimizer=case.optimizer or keras.optimizers.SGD(), loss=case.loss)
    x = case.x
    if x is None:
        x = np.random.default_rng(1).normal(size=(SAMPLES, *case.model.input_shape[1:])).astype("float32")
    batch = case.batch
    x, y = x[:STEPS * batch], case.y[:STEPS * batch]
    train(case.model, x[:case.warm * batch], y[:case.warm * batch], batch)
    start = pathlib.Path(folder) / "start.keras"
    case.model.save(start)
    expected = train(case.model, x, y, batch)
    more = train(case.model, x[:MORE * batch], y[:MORE * batch], batch)
    for devices in case.devices:
        name = f"{case.name} ({devices})"
        trained = tandem.train(start, x, y, batch, devices, folder, case.model.output_shape[1:])
        check_losses(name, trained.losses, expected)
        check_reopened(name, trained, x, y, batch, more, case.warm + STEPS)


GROUPS = {function.__name__: function for function in (dense, activations, convolution, pooling, merging, normalization,
                                                       recurrent, indices, standardized, upsampling, losses, optimizers, common_arguments,
                                                       schedules, regularizers)}


def cases_of(group):
    keras.utils.set_random_seed(5)
    return GROUPS[group]()


def main(groups):
    wrong = []
    for case in (case for group in groups for case in cases_of(group)):
        with tempfile.TemporaryDirectory() as folder:
            try:
                run_case(case, folder)
                print(f"ok: {case.name}", flush=True)
            except AssertionError as error:
                wrong.append(str(error))
                print(f"FAILED: {error}", flush=True)
    if wrong:
        sys.exit(f"{len(wrong)} cases failed")


main(sys.argv[1:])
