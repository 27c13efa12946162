"""Writes keras_golden.h: what Keras computes, for tests/ops/keras.c. Run with KERAS_BACKEND=jax python keras_golden.py"""
import os
import textwrap

os.environ.setdefault("KERAS_BACKEND", "jax")
import jax
import jax.numpy as jnp
import keras
import numpy as np

jax.config.update("jax_default_matmul_precision", "highest")
rng = np.random.default_rng(5)
out = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "keras_golden.h"), "w")


def number(value):
    text = f"{float(value):.9g}"
    return text + ("f" if "." in text or "e" in text else ".0f")


def emit(name, values, kind="float"):
    flat = np.asarray(values).reshape(-1)
    text = ", ".join(str(int(v)) if kind == "int32_t" else number(v) for v in flat)
    body = textwrap.fill(text, 116, initial_indent="    ", subsequent_indent="    ")
    out.write(f"static const {kind} {name}[] = {{\n{body}}};\n")


def normal(*shape):
    return rng.standard_normal(shape).astype("float32")


out.write("/* keras_golden.h - made by keras_golden.py: do not edit.\n"
          f" * Keras {keras.__version__}, JAX {jax.__version__}. */\n/* clang-format off */\n")
out.write("#ifndef TEST_OPS_KERAS_GOLDEN_H\n#define TEST_OPS_KERAS_GOLDEN_H\n\n#include <stdint.h>\n\n")

# activations: values and derivatives
points = np.array([-20, -7.3, -4.1, -2.6, -1.4, -0.6, -0.05, 0.05, 0.4, 0.9, 1.7, 2.8, 4.4, 5.9, 6.5, 20], "float32")
emit("activation_x", points)
names = ["linear", "relu", "tanh", "sigmoid", "leaky_relu", "relu6", "elu", "selu", "celu", "gelu", "silu", "softplus",
         "softsign", "exponential", "hard_sigmoid", "hard_silu", "hard_tanh", "mish", "log_sigmoid", "tanh_shrink",
         "squareplus"]
for name in names:
    f = keras.activations.get(name)
    emit(f"activation_{name}", f(points))
    emit(f"activation_{name}_grad", jax.vmap(jax.grad(lambda v: f(v)))(points))

# convolutions
convolutions = [("valid", (2, 4, 5, 2), (3, 2, 2, 3), (1, 1), (1, 1), 1, "valid"),
                ("even_same", (1, 5, 4, 2), (2, 4, 2, 2), (1, 1), (1, 1), 1, "same"),
                ("same_stride", (1, 6, 5, 2), (3, 3, 2, 2), (2, 2), (1, 1), 1, "same"),
                ("same_stride_3", (1, 7, 5, 1), (2, 3, 1, 2), (3, 2), (1, 1), 1, "same"),
                ("dilation", (1, 6, 7, 1), (3, 2, 1, 2), (1, 1), (2, 3), 1, "same"),
                ("groups", (1, 4, 3, 4), (3, 3, 2, 4), (1, 1), (1, 1), 2, "same")]
for name, xs, ws, strides, dilation, groups, padding in convolutions:
    x, w = normal(*xs), normal(*ws)
    f = lambda x, w: keras.ops.conv(x, w, strides=strides, padding=padding, dilation_rate=dilation)
    y, back = jax.vjp(f, x, w)
    dy = normal(*y.shape)
    dx, dw = back(jnp.asarray(dy))
    for key, value in [("x", x), ("w", w), ("y", y), ("dy", dy), ("dx", dx), ("dw", dw)]:
        emit(f"conv_{name}_{key}", value)

# pooling
pools = [("valid", (1, 5, 6, 2), (2, 3), (2, 2), "valid"), ("same", (1, 5, 4, 2), (2, 2), (2, 2), "same"),
         ("same_overlap", (1, 4, 5, 1), (3, 3), (2, 1), "same")]
for kind, f in [("max", keras.ops.max_pool), ("average", keras.ops.average_pool)]:
    for name, xs, size, strides, padding in pools:
        x = normal(*xs)
        y, back = jax.vjp(lambda x: f(x, size, strides=strides, padding=padding), x)
        dy = normal(*y.shape)
        for key, value in [("x", x), ("y", y), ("dy", dy), ("dx", back(jnp.asarray(dy))[0])]:
            emit(f"pool_{kind}_{name}_{key}", value)

# softmax and losses
logits, dy = normal(4, 5) * 4, normal(4, 5)
dloss, labels = normal(4), np.array([3, 0, 4, 1], "int32")
targets, bits = rng.dirichlet(np.ones(5), 4).astype("float32"), (rng.random((4, 5)) < 0.5).astype("float32")
emit("logits", logits)
emit("logits_dy", dy)
emit("dloss", dloss)
emit("labels", labels, "int32_t")
emit("targets", targets)
emit("bits", bits)
for name in ["softmax", "log_softmax"]:
    y, back = jax.vjp(getattr(keras.ops, name), logits)
    emit(f"{name}_y", y)
    emit(f"{name}_dx", back(jnp.asarray(dy))[0])
for name, f, d in [
        ("sparse", lambda z: keras.ops.sparse_categorical_crossentropy(labels, z, from_logits=True), dloss),
        ("dense", lambda z: keras.ops.categorical_crossentropy(targets, z, from_logits=True), dloss),
        ("sigmoid", lambda z: keras.ops.binary_crossentropy(bits, z, from_logits=True), dy)]:
    y, back = jax.vjp(f, logits)
    emit(f"{name}_loss", y)
    emit(f"{name}_dlogits", back(jnp.asarray(d))[0])

# batch normalization in training: result, gradients, moving statistics
layer = keras.layers.BatchNormalization(momentum=0.97, epsilon=1e-3)
layer.build((None, 2, 3))
x, dy, gamma, beta = normal(3, 2, 3) * 2 + 5, normal(3, 2, 3), normal(3), normal(3)
mean, variance = normal(3), np.abs(normal(3)) + 0.5


def batch_norm(x, gamma, beta, training):
    return layer.stateless_call([gamma, beta], [jnp.asarray(mean), jnp.asarray(variance)], x, training=training)


y, back, moving = jax.vjp(lambda *a: batch_norm(*a, True), x, gamma, beta, has_aux=True)
dx, dgamma, dbeta = back(jnp.asarray(dy))
inference = batch_norm(x, gamma, beta, False)[0]
for key, value in [("x", x), ("dy", dy), ("gamma", gamma), ("beta", beta), ("mean", mean), ("variance", variance),
                   ("y", y), ("dx", dx), ("dgamma", dgamma), ("dbeta", dbeta), ("moving_mean", moving[0]),
                   ("moving_variance", moving[1]), ("inference", inference)]:
    emit(f"norm_{key}", value)

# optimizers: weights after each of 6 steps
weight, gradients = normal(5), normal(6, 5)
emit("optimizer_weight", weight)
emit("optimizer_gradients", gradients)
optimizers = {
    "sgd": keras.optimizers.SGD(0.1),
    "sgd_momentum": keras.optimizers.SGD(0.1, momentum=0.9),
    "sgd_nesterov": keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True, weight_decay=0.05, clipvalue=0.5),
    "adam": keras.optimizers.Adam(0.1),
    "adam_amsgrad": keras.optimizers.Adam(0.1, beta_1=0.8, beta_2=0.95, epsilon=1e-3, amsgrad=True),
    "adam_decay": keras.optimizers.Adam(0.1, weight_decay=0.02, clipvalue=0.7),
}
for name, optimizer in optimizers.items():
    variable = keras.Variable(weight)
    optimizer.build([variable])
    steps = []
    for gradient in gradients:
        optimizer.apply([keras.ops.convert_to_tensor(gradient)], [variable])
        steps.append(keras.ops.convert_to_numpy(variable).copy())
    emit(f"optimizer_{name}", steps)

# metrics
emit("sparse_accuracy", keras.metrics.sparse_categorical_accuracy(labels, logits))
emit("categorical_accuracy", keras.metrics.categorical_accuracy(targets, logits))
emit("binary_accuracy", np.mean(keras.metrics.binary_accuracy(bits, logits, threshold=0.3), axis=-1))
out.write("\n#endif\n")
