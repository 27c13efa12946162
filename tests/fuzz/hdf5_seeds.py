"""hdf5_seeds.py FOLDER: small HDF5 files with every structure that src/files/hdf5_*.c reads, as seeds of fuzz_hdf5_data, and of weights
as Keras does not store them, as seeds of fuzz_hdf5; FOLDER is tests/fuzz/seeds."""
import pathlib
import sys

import h5py
import numpy as np

FOLDER = pathlib.Path(sys.argv[1])
X = np.arange(24, dtype="float32").reshape(12, 2)
PACKED = {"compression": "gzip", "shuffle": True, "fletcher32": True}


def write(name, fill, target="fuzz_hdf5_data", **options):
    with h5py.File(FOLDER / target / name, "w", **options) as file:
        fill(file)


def original(file):
    file["x"] = X
    file.create_dataset("y", data=X.astype(">i2"), chunks=(5, 2), **PACKED)
    file.create_dataset("group/inner", data=X.astype("float16"), chunks=(5, 1), maxshape=(None, None))


def newer(file):
    file.create_dataset("x", data=X, chunks=(5, 2), **PACKED)  # a fixed array
    file.create_dataset("y", data=X, chunks=(1, 1), maxshape=(None, 2), **PACKED)  # a growing one
    file.create_dataset("group/inner", data=X, chunks=(2, 2), maxshape=(None, None))  # a tree


def many(file):
    for i in range(20):
        file[f"n{i}"] = X[:1, 0]


def others(file):
    file.create_dataset("x", data=X, chunks=(12, 2), compression="gzip")  # one chunk
    space = h5py.h5s.create_simple((3,))
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_layout(h5py.h5d.COMPACT)
    h5py.h5d.create(file.id, b"y", h5py.h5t.STD_U8LE, space, plan).write(space, space, np.arange(3, dtype="uint8"))
    file.create_dataset("group/inner", shape=(7, 3), chunks=(2, 3), dtype="int64", fillvalue=9)[2] = 1


def weights(file):
    file.create_dataset("layers/dense/vars/0", data=X, chunks=(5, 2), **PACKED)
    file.create_dataset("layers/dense/vars/1", data=X[0].astype("float16"))
    file.create_dataset("optimizer/vars/0", data=7)
    file["optimizer/vars/1"] = file["layers/dense/vars/0"]
    for i in range(2, 20):
        file[f"optimizer/vars/{i}"] = X[:1, 0].astype(">f8")


write("original.h5", original)
write("newer.h5", newer, libver="v110")
write("newest.h5", newer, libver="latest")
write("many.h5", many, libver="v110")
write("others.h5", others, libver="v110")
write("block.h5", lambda file: file.create_dataset("x", data=X.astype("uint8")), userblock_size=512)
write("packed.h5", weights, "fuzz_hdf5")
write("newest.h5", weights, "fuzz_hdf5", libver="latest")
