"""image_folders.py: a folder of images is the data that Keras's image_dataset_from_directory makes of it. Its list of files, its
numbers of classes and its resizing are Keras's own functions here; the images are made without a decoder."""
import os
import pathlib
import struct
import subprocess
import tempfile
import zlib

import keras
import numpy as np
from keras import layers
from keras.src.utils import dataset_utils

TANDEM = os.environ["TANDEM"]
FORMATS = (".bmp", ".gif", ".jpeg", ".jpg", ".png")
SIZE = (6, 5)
FILES = ["dog/b.png", "dog/a.PNG", "dog/B.png", "cat/z.png", "cat/more/a.png", "cat/more-1/a.png", "cat/more/deep/q.png",
         "cat/\u00e9.png", "eel/1.png", "eel/10.png", "eel/2.png", "Ant/a b.png"]


def png(pixels):
    height, width, channels = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)),
              (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
                                             for kind, data in chunks)


def write_images(folder):
    """{path: [height, width, 3]}; every third one is grey."""
    random, images = np.random.default_rng(1), {}
    for number, name in enumerate(FILES):
        shape = (*random.integers(3, 9, 2), 1 if number % 3 == 0 else 3)
        pixels = random.integers(0, 256, shape).astype("uint8")
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(pixels))
        images[str(path)] = np.broadcast_to(pixels, (*shape[:2], 3))
    (folder / "cat" / "notes.txt").write_text("no image")
    return images


def listed(folder, labels):
    return dataset_utils.index_directory(str(folder), labels, FORMATS, shuffle=False, verbose=False)


def resized(images, paths):
    return np.stack([keras.ops.image.resize(images[os.path.normpath(path)].astype("float32"), SIZE, data_format="channels_last")
                     for path in paths])


def tandem(*words):
    return subprocess.run([TANDEM, *map(str, words)], check=True, capture_output=True, text=True).stdout


def close(seen, wanted, what, tolerance):
    difference = float(np.abs(np.asarray(seen) - np.asarray(wanted)).max())
    assert difference <= tolerance, f"{what}: they differ by {difference}"


def main():
    keras.utils.set_random_seed(1)
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work, "images")
        images = write_images(folder)
        options = ["--image-size", f"{SIZE[0]}x{SIZE[1]}", "--quiet"]
        pixels = keras.Sequential([layers.Input((*SIZE, 3)), layers.Flatten()])
        pixels.save(f"{work}/pixels.keras")
        tandem("predict", f"{work}/pixels.keras", "--data", folder, "--output", f"{work}/p.npy", *options)
        paths, _, _ = listed(folder, None)
        close(np.load(f"{work}/p.npy").reshape(-1, *SIZE, 3) * 255, resized(images, paths), "pixels", 0.5001)  # whole bytes
        paths, numbers, names = listed(folder, "inferred")
        assert names == ["Ant", "cat", "dog", "eel"]
        model = keras.Sequential([layers.Input((*SIZE, 3)), layers.Flatten(), layers.Dense(4)])
        model.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), optimizer="sgd")
        model.save(f"{work}/model.keras")
        loss = model.evaluate(np.round(resized(images, paths)) / 255, numbers, verbose=0)
        seen = tandem("evaluate", f"{work}/model.keras", "--data", folder, *options)
        close(float(seen.split("loss:")[1].split()[0]), loss, "loss", 2e-3)
    print("image folders: as Keras lists them")


main()
