"""hdf5_data.py: `tandem predict` reads what h5py writes, of every dtype, whole, in chunks and compressed: a model that passes its
input on gives the same numbers."""
import os
import pathlib
import subprocess
import tempfile

import h5py
import keras
import numpy as np
from keras import layers

SAMPLES, WIDTH = 300, 5
TYPES = "uint8 int8 uint16 >i2 int32 uint32 int64 float16 float32 >f8 bool".split()
LAYOUTS = [{}, {"chunks": (7, WIDTH)}, {"chunks": True, "compression": "gzip", "shuffle": True, "fletcher32": True}]


def tandem(*arguments):
    return subprocess.run([os.environ["TANDEM"], *map(str, arguments)], capture_output=True, text=True)


def main(folder):
    model = keras.Sequential([layers.Input((WIDTH,)), layers.Dense(WIDTH, use_bias=False)])
    model.set_weights([np.eye(WIDTH, dtype="float32")])
    model.save(folder / "same.keras")
    x = np.random.default_rng(1).integers(0, 100, (SAMPLES, WIDTH))
    for kind in TYPES:
        for version in ("earliest", "v110"):
            with h5py.File(folder / "data.h5", "w", libver=version) as file:
                for i, layout in enumerate(LAYOUTS):
                    file.create_dataset(f"group/{i}", data=x.astype(kind), **layout)
            for i in range(len(LAYOUTS)):
                done = tandem("predict", folder / "same.keras", "--data", f"{folder}/data.h5:/group/{i}", "--output",
                              folder / "p.npy", "--quiet")
                assert done.returncode == 0, f"{kind}, layout {i}, {version}: {done.stderr}"
                assert np.array_equal(np.load(folder / "p.npy"), x.astype(kind).astype("float32")), f"{kind}, {i}, {version}"
        print(f"{kind}: the same")
    with h5py.File(folder / "lzf.h5", "w") as file:
        file.create_dataset("x", data=x, compression="lzf")
    done = tandem("predict", folder / "same.keras", "--data", folder / "lzf.h5", "--output", folder / "p.npy")
    assert done.returncode == 1 and "filter 32000" in done.stderr, done.stderr


with tempfile.TemporaryDirectory() as name:
    main(pathlib.Path(name))
