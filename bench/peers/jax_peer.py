"""JAX by hand: one jitted function of forward, backward and Adam, its state donated. "jax-jit" calls it step by step,
"jax-scan" runs a whole epoch as one lax.scan, rows gathered inside."""
import functools

import jax
import jax.numpy as jnp
import numpy as np
import peer
from jax import lax

case, way, _ = peer.arguments()
RATE, BETA_1, BETA_2, EPSILON = 1e-3, 0.9, 0.999, 1e-7
UNITS = 128  # of the LSTM
SHAPES = {
    "mlp": [(784, 256), (256, 256), (256, 10)],
    "lenet5": [(5, 5, 1, 6), (5, 5, 6, 16), (400, 120), (120, 84), (84, 10)],
    "cifar": [(3, 3, 3, 32), (3, 3, 32, 64), (3, 3, 64, 64), (1024, 64), (64, 10)],
    "lstm": [(8 + UNITS, 4 * UNITS), (UNITS, 1)],
    "policy": [(8, 64), (64, 64), (64, 2)],
}[case.network]


def glorot(random, shape):
    receptive = int(np.prod(shape[:-2]))
    limit = np.sqrt(6 / (receptive * (shape[-2] + shape[-1])))
    return jnp.asarray(random.uniform(-limit, limit, shape).astype(np.float32)), jnp.zeros(shape[-1])


def convolve(x, layer, padding, activate):
    kernel, bias = layer
    y = lax.conv_general_dilated(x, kernel, (1, 1), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return activate(y + bias)


def average(x):
    return lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4


def largest(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def dense(layers, x, activate):
    for kernel, bias in layers[:-1]:
        x = activate(x @ kernel + bias)
    return x @ layers[-1][0] + layers[-1][1]


def mlp(layers, x):
    return dense(layers, x, jax.nn.relu)


def lenet5(layers, x):
    x = average(convolve(x, layers[0], "SAME", jnp.tanh))
    x = average(convolve(x, layers[1], "VALID", jnp.tanh))
    return dense(layers[2:], x.reshape(x.shape[0], -1), jnp.tanh)


def cifar(layers, x):
    x = largest(convolve(x, layers[0], "VALID", jax.nn.relu))
    x = largest(convolve(x, layers[1], "VALID", jax.nn.relu))
    x = convolve(x, layers[2], "VALID", jax.nn.relu)
    return dense(layers[3:], x.reshape(x.shape[0], -1), jax.nn.relu)


def lstm(layers, x):
    kernel, bias = layers[0]
    inputs = x @ kernel[:8] + bias  # of all times at once

    def step(state, z):
        h, c = state
        i, f, g, o = jnp.split(z + h @ kernel[8:], 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), None

    zero = jnp.zeros((x.shape[0], UNITS))
    (h, _), _ = lax.scan(step, (zero, zero), jnp.swapaxes(inputs, 0, 1))
    return dense(layers[1:], h, None)


def policy(layers, x):
    return dense(layers, x, jnp.tanh)


network = globals()[case.network]


def loss(layers, x, y):
    y_hat = network(layers, x)
    if not case.classes:
        return jnp.mean((y_hat - y) ** 2)
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(y_hat), y[:, None], 1))


def train(state, x, y):
    layers, m, v, t = state
    t = t + 1
    value, gradients = jax.value_and_grad(loss)(layers, x, y)
    alpha = RATE * jnp.sqrt(1 - BETA_2**t) / (1 - BETA_1**t)
    m = jax.tree.map(lambda m, g: m + (g - m) * (1 - BETA_1), m, gradients)
    v = jax.tree.map(lambda v, g: v + (g * g - v) * (1 - BETA_2), v, gradients)
    layers = jax.tree.map(lambda w, m, v: w - alpha * m / (jnp.sqrt(v) + EPSILON), layers, m, v)
    return (layers, m, v, t), value


step = jax.jit(train, donate_argnums=0)


@functools.partial(jax.jit, donate_argnums=0)
def train_epoch(state, x, y, order):
    return lax.scan(lambda state, rows: train(state, x[rows], y[rows]), state, order)


def zeros(layers):
    return jax.tree.map(jnp.zeros_like, layers)


generator = np.random.default_rng(2)
weights = [glorot(generator, shape) for shape in SHAPES]
state = (weights, zeros(weights), zeros(weights), jnp.float32(0))


def parameters():
    return sum(value.size for value in jax.tree.leaves(state[0]))


def first_step():
    """By "jax-scan" a scan of one, which takes as long to compile as that of an epoch."""
    global state
    x, y = peer.data(case, 1)
    first = train_epoch(state, x, y, np.arange(case.batch)[None]) if way == "jax-scan" else step(state, x, y)
    state = jax.block_until_ready(first)[0]


def make_epoch():
    x, y = peer.data(case, case.steps)
    random = np.random.default_rng(3)

    def by_steps():
        global state
        for rows in random.permutation(len(x)).reshape(case.steps, case.batch):
            state, _ = step(state, x[rows], y[rows])
        jax.block_until_ready(state)

    def by_scan():
        global state
        order = random.permutation(len(x)).reshape(case.steps, case.batch)
        state, _ = jax.block_until_ready(train_epoch(state, on_device[0], on_device[1], order))

    if way == "jax-jit":
        return by_steps
    on_device = jnp.asarray(x), jnp.asarray(y)
    return by_scan


def make_call():
    x, y = peer.data(case, 1)
    predict = jax.jit(network)

    def train_call():
        global state
        state, value = step(state, x, y)
        return float(value)

    return train_call if case.what == "train" else lambda: np.asarray(predict(state[0], x))


if case.what == "fit":
    peer.serve_epochs(case, parameters, first_step, make_epoch)
else:
    peer.serve_calls(parameters, make_call())
