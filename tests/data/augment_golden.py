"""Writes tests/data/augment_golden.h: what Keras's own layers make of an image, for draws that are given. Needs Keras; run
once, what it writes is in the tree."""
import os
import pathlib

os.environ.setdefault("KERAS_BACKEND", "jax")
import keras  # noqa: E402
import numpy as np  # noqa: E402

from golden_numbers import numbers  # noqa: E402

HEIGHT, WIDTH, CHANNELS = 5, 6, 3
FILLS = ["constant", "reflect", "nearest", "wrap"]
TRANSLATIONS = [(0.0, 2.0), (-3.0, 1.0), (1.25, -0.5), (-7.75, 6.5)]
DEGREES = [10.0, -33.0, 90.0]


def translated(image, fill, right, down):
    layer = keras.layers.RandomTranslation(0.5, 0.5, fill_mode=fill)
    translations = np.array([[right, down]], "float32")
    return layer.transform_images(image, {"translations": translations, "input_shape": image.shape})


def rotated(image, fill, degrees):
    layer = keras.layers.RandomRotation(0.5, fill_mode=fill)
    zero, one = np.zeros(1, "float32"), np.ones(1, "float32")
    matrix = layer._compute_affine_matrix(0.5, 0.5, np.array([degrees], "float32"), zero, zero, one, zero, zero, HEIGHT,
                                          WIDTH)
    return layer.transform_images(image, {"rotation_matrix": matrix[0]})


def flipped(image, mode):
    return keras.layers.RandomFlip(mode).transform_images(image, {"flips": np.ones((1, 1, 1), bool)})


def moves(image):
    """(flip_x, flip_y, right, down, degrees, fill, result)"""
    yield 1, 0, 0, 0, 0, "reflect", flipped(image, "horizontal")
    yield 0, 1, 0, 0, 0, "reflect", flipped(image, "vertical")
    for fill in FILLS:
        for right, down in TRANSLATIONS:
            yield 0, 0, right, down, 0, fill, translated(image, fill, right, down)
        for degrees in DEGREES:
            yield 0, 0, 0, 0, degrees, fill, rotated(image, fill, degrees)


def main():
    image = np.random.default_rng(5).integers(0, 256, (HEIGHT, WIDTH, CHANNELS)).astype("float32")
    out = ["/* Written by augment_golden.py. */",
           f"enum {{ HEIGHT = {HEIGHT}, WIDTH = {WIDTH}, CHANNELS = {CHANNELS}, ELEMENTS = HEIGHT * WIDTH * CHANNELS }};",
           f"static const float image[ELEMENTS] = {{{numbers(image)}}};",
           "static const struct golden_move {\n    int flip_x, flip_y;\n    double right, down, degrees;\n"
           "    int fill; /* from TD_FILL_ZEROS on */\n    float result[ELEMENTS];\n} golden_moves[] = {"]
    for flip_x, flip_y, right, down, degrees, fill, result in moves(image):
        out.append(f"{{{flip_x}, {flip_y}, {right}, {down}, {degrees}, {FILLS.index(fill)}, {{{numbers(result)}}}}},")
    out.append("};")
    contrast = keras.layers.RandomContrast(0.5).transform_images(image, {"contrast_factor": np.float32(1.4)})
    brightness = keras.layers.RandomBrightness(0.5).transform_images(image, {"rgb_delta": np.full((1, 1, 1), -38.25)})
    out.append(f"static const float contrast_1_4[ELEMENTS] = {{{numbers(contrast)}}};")
    out.append(f"static const float brightness_minus_38_25[ELEMENTS] = {{{numbers(brightness)}}};")
    (pathlib.Path(__file__).parent / "augment_golden.h").write_text("\n".join(out) + "\n")


main()
