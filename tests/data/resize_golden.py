"""Writes tests/data/resize_golden.h: what Keras's own image.resize makes of an image. Needs Keras; run once, what it writes
is in the tree."""
import os
import pathlib

os.environ.setdefault("KERAS_BACKEND", "jax")
import keras  # noqa: E402
import numpy as np  # noqa: E402

from golden_numbers import numbers  # noqa: E402

HEIGHT, WIDTH, CHANNELS = 5, 6, 3
SIZES = [(5, 9), (10, 12), (3, 2), (1, 1), (8, 4), (2, 13)]
MOST = max(height * width for height, width in SIZES) * CHANNELS


def main():
    image = np.random.default_rng(6).integers(0, 256, (HEIGHT, WIDTH, CHANNELS)).astype("float32")
    out = ["/* Written by resize_golden.py. */",
           f"enum {{ HEIGHT = {HEIGHT}, WIDTH = {WIDTH}, CHANNELS = {CHANNELS}, ELEMENTS = HEIGHT * WIDTH * CHANNELS, MOST = {MOST} }};",
           f"static const float image[ELEMENTS] = {{{numbers(image)}}};",
           "static const struct golden_size {\n    int64_t height, width;\n    float bilinear[MOST], nearest[MOST];\n"
           "} golden_sizes[] = {"]
    for size in SIZES:
        bilinear = keras.ops.image.resize(image, size, interpolation="bilinear", data_format="channels_last")
        nearest = keras.ops.image.resize(image, size, interpolation="nearest", data_format="channels_last")
        out.append(f"    {{{size[0]}, {size[1]}, {{{numbers(bilinear)}}}, {{{numbers(nearest)}}}}},")
    out.append("};")
    pathlib.Path(__file__).with_suffix(".h").write_text("\n".join(out) + "\n")


main()
