"""A training step written by hand in JAX: one jitted function of forward, backward and Adam, its state donated."""
import functools

import jax
import jax.numpy as jnp
import numpy as np
import peer
from jax import lax

architecture, samples, batch = peer.arguments()
SHAPE = {"mlp": (784,), "lenet5": (28, 28, 1)}[architecture]
RATE, BETA_1, BETA_2, EPSILON = 1e-3, 0.9, 0.999, 1e-7


def glorot(random, *shape):
    receptive = int(np.prod(shape[:-2]))
    limit = np.sqrt(6 / (receptive * (shape[-2] + shape[-1])))
    return jnp.asarray(random.uniform(-limit, limit, shape).astype(np.float32)), jnp.zeros(shape[-1])


def parameters():
    random = np.random.default_rng(2)
    if architecture == "mlp":
        return [glorot(random, 784, 256), glorot(random, 256, 256), glorot(random, 256, 10)]
    return [glorot(random, 5, 5, 1, 6), glorot(random, 5, 5, 6, 16), glorot(random, 400, 120), glorot(random, 120, 84),
            glorot(random, 84, 10)]


def convolve(x, layer, padding):
    kernel, bias = layer
    y = lax.conv_general_dilated(x, kernel, (1, 1), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return jnp.tanh(y + bias)


def average(x):
    return lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4


def logits(layers, x):
    if architecture == "mlp":
        activate = jax.nn.relu
    else:
        activate = jnp.tanh
        x = average(convolve(x, layers[0], "SAME"))
        x = average(convolve(x, layers[1], "VALID"))
        x, layers = x.reshape(x.shape[0], -1), layers[2:]
    for kernel, bias in layers[:-1]:
        x = activate(x @ kernel + bias)
    return x @ layers[-1][0] + layers[-1][1]


def loss(layers, x, y):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits(layers, x)), y[:, None], 1))


@functools.partial(jax.jit, donate_argnums=0)
def step(state, x, y):
    layers, m, v, t = state
    t = t + 1
    gradients = jax.grad(loss)(layers, x, y)
    alpha = RATE * jnp.sqrt(1 - BETA_2**t) / (1 - BETA_1**t)
    m = jax.tree.map(lambda m, g: m + (g - m) * (1 - BETA_1), m, gradients)
    v = jax.tree.map(lambda v, g: v + (g * g - v) * (1 - BETA_2), v, gradients)
    layers = jax.tree.map(lambda w, m, v: w - alpha * m / (jnp.sqrt(v) + EPSILON), layers, m, v)
    return layers, m, v, t


def zeros(layers):
    return jax.tree.map(jnp.zeros_like, layers)


layers = parameters()
state = (layers, zeros(layers), zeros(layers), jnp.float32(0))


def first_step():
    global state
    state = jax.block_until_ready(step(state, np.full((batch, *SHAPE), 0.5, np.float32), np.zeros(batch, np.int32)))


def make_epoch():
    x, y = peer.noise(samples, SHAPE)
    random = np.random.default_rng(3)

    def epoch():
        global state
        order = random.permutation(samples)
        for i in range(0, samples - batch + 1, batch):
            rows = order[i:i + batch]
            state = step(state, x[rows], y[rows])
        jax.block_until_ready(state)

    return epoch


peer.serve(first_step, make_epoch, samples // batch)
