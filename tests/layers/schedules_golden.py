"""Writes schedules_golden.h: the learning rates that Keras's schedules (JAX backend) give to steps 0 to 59.

    KERAS_BACKEND=jax python schedules_golden.py > schedules_golden.h
"""
import textwrap

import keras
import numpy as np
from keras.optimizers import schedules

SCHEDULES = {
    "exponential": schedules.ExponentialDecay(0.1, 20, 0.5),
    "exponential_staircase": schedules.ExponentialDecay(0.1, 7, 0.9, staircase=True),
    "piecewise": schedules.PiecewiseConstantDecay([10, 30, 31], [0.5, 0.2, 0.1, 0.02]),
    "polynomial": schedules.PolynomialDecay(0.1, 40),
    "polynomial_power": schedules.PolynomialDecay(0.1, 25, end_learning_rate=0.0, power=0.5),
    "polynomial_cycle": schedules.PolynomialDecay(0.1, 13, end_learning_rate=0.01, power=2.0, cycle=True),
    "inverse_time": schedules.InverseTimeDecay(0.1, 10, 0.5),
    "inverse_time_staircase": schedules.InverseTimeDecay(0.1, 10, 0.5, staircase=True),
    "cosine": schedules.CosineDecay(0.1, 50, alpha=0.1),
    "cosine_warmup": schedules.CosineDecay(0.0, 40, warmup_target=0.2, warmup_steps=12),
    "restarts": schedules.CosineDecayRestarts(0.1, 7),
    "restarts_even": schedules.CosineDecayRestarts(0.1, 11, t_mul=1.0, m_mul=0.8, alpha=0.05),
    "restarts_slow": schedules.CosineDecayRestarts(0.1, 10, t_mul=1.5, m_mul=0.9),
}

print("/* schedules_golden.h - written by schedules_golden.py with Keras", keras.__version__, "on JAX. Not to be edited. */")
print("/* clang-format off */")
for name, schedule in SCHEDULES.items():
    rates = (np.format_float_scientific(np.float32(schedule(np.int32(step))), precision=9, unique=False) + "f" for step in range(60))
    print(f"static const float golden_{name}[] = {{")
    print(textwrap.fill(", ".join(rates), 110, initial_indent="    ", subsequent_indent="    ") + "};\n")
