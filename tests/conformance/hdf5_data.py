"""hdf5_data.py: `tandem predict` reads what h5py writes, of every dtype, in every layout and by every version of the format: a model that
passes its input on gives the same numbers. What is damaged is refused, or read as it was."""
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
PACKED = {"compression": "gzip", "shuffle": True, "fletcher32": True}
LAYOUTS = [{}, {"chunks": (7, WIDTH)}, {"chunks": True, **PACKED}, {"chunks": (7, 2), **PACKED},
           {"chunks": (SAMPLES, WIDTH), "compression": "gzip"}, {"chunks": (1, WIDTH), "maxshape": (None, WIDTH)},
           {"chunks": (3, 2), "maxshape": (None, WIDTH), **PACKED}, {"chunks": (5, 4), "maxshape": (SAMPLES, None)},
           {"chunks": (2, 1), "maxshape": (None, None)}, {"chunks": (2, 1), "maxshape": (None, None), **PACKED},
           {"chunks": (1, 1)}, {"chunks": (7, 3), "maxshape": (2 * SAMPLES, 9)}]
FILES = [{"libver": "earliest"}, {"libver": "v110"}, {"libver": "latest"}, {"userblock_size": 1024}, {"track_order": True}]


def tandem(*arguments):
    return subprocess.run([os.environ["TANDEM"], *map(str, arguments)], capture_output=True, text=True, errors="replace")


def predict(folder, data):
    done = tandem("predict", folder / "same.keras", "--data", data, "--output", folder / "p.npy", "--quiet")
    return (np.load(folder / "p.npy") if done.returncode == 0 else None), done


def expect(folder, data, wanted, what):
    seen, done = predict(folder, data)
    assert done.returncode == 0, f"{what}: {done.stderr}"
    assert np.array_equal(seen, wanted.astype("float32")), what


def every_layout(folder, x):
    for options in FILES:
        with h5py.File(folder / "data.h5", "w", **options) as file:
            for i, layout in enumerate(LAYOUTS):
                file.create_dataset(f"group/{i}", data=x.astype("float32"), **layout)
        for i in range(len(LAYOUTS)):
            expect(folder, f"{folder}/data.h5:/group/{i}", x, f"layout {i}, {options}")
        print(f"{options}: the same")


def every_type(folder, x):
    for kind in TYPES:
        with h5py.File(folder / "data.h5", "w") as file:
            for i, layout in enumerate(LAYOUTS[:3]):
                file.create_dataset(str(i), data=x.astype(kind), **layout)
        for i in range(3):
            expect(folder, f"{folder}/data.h5:/{i}", x.astype(kind), f"{kind}, layout {i}")
        print(f"{kind}: the same")


def many_chunks(folder, version):
    """So many that the lists of chunks have pages, and super blocks."""
    x = (np.arange(140000 * WIDTH) % 251).astype("uint8").reshape(-1, WIDTH)
    with h5py.File(folder / "data.h5", "w", libver=version) as file:
        file.create_dataset("fixed", data=x[:5000], chunks=(1, WIDTH))
        file.create_dataset("growing", data=x, chunks=(1, WIDTH), maxshape=(None, WIDTH))
        holes = file.create_dataset("holes", shape=(len(x), WIDTH), dtype="uint8", chunks=(1, WIDTH), maxshape=(None, WIDTH),
                                    fillvalue=7)
        holes[138000:138900] = x[138000:138900]
    expect(folder, f"{folder}/data.h5:/fixed", x[:5000], version)
    expect(folder, f"{folder}/data.h5:/growing", x, version)
    wanted = np.full_like(x, 7)
    wanted[138000:138900] = x[138000:138900]
    expect(folder, f"{folder}/data.h5:/holes", wanted, version)


def many_names(folder, x):
    for count in (5, 20, 3000):
        with h5py.File(folder / "data.h5", "w", libver="latest") as file:
            for i in range(count):
                file[f"name_{i}"] = np.full((2, WIDTH), i, "float32")
        for i in (0, count // 3, count - 1):
            expect(folder, f"{folder}/data.h5:/name_{i}", np.full((2, WIDTH), i), f"{count} names")
        _, done = predict(folder, f"{folder}/data.h5:/name_{count}")
        assert done.returncode == 1 and "has no array" in done.stderr, done.stderr


def grown_and_cut(folder, x):
    for version in ("earliest", "v110"):
        with h5py.File(folder / "data.h5", "w", libver=version) as file:
            data = file.create_dataset("x", data=x[:100], chunks=(7, WIDTH), maxshape=(None, WIDTH), fillvalue=3)
            data.resize((SAMPLES, WIDTH))
            data[100:200] = x[100:200]
            cut = file.create_dataset("cut", data=x, chunks=(7, WIDTH), maxshape=(None, WIDTH))
            cut.resize((50, WIDTH))
        expect(folder, f"{folder}/data.h5:/x", np.concatenate([x[:200], np.full((100, WIDTH), 3)]), f"grown, {version}")
        expect(folder, f"{folder}/data.h5:/cut", x[:50], f"cut, {version}")


def refusals(folder, x):
    with h5py.File(folder / "odd.h5", "w") as file:
        file.create_dataset("lzf", data=x, compression="lzf")
        file.create_dataset("offset", data=x, scaleoffset=0)
        file["soft"] = h5py.SoftLink("/lzf")
        file["other"] = h5py.ExternalLink("data.h5", "/x")
    for name, says in (("lzf", "filter 32000 (lzf)"), ("offset", "filter 6 (scaleoffset)"), ("soft", "a link to another name"),
                       ("other", "a link to another file")):
        _, done = predict(folder, f"{folder}/odd.h5:/{name}")
        assert done.returncode == 1 and says in done.stderr, done.stderr


def damage(folder, x):
    """Newer files have checksums everywhere but in what is not packed: a changed byte is found."""
    with h5py.File(folder / "good.h5", "w", libver="v110") as file:
        file.create_dataset("x", data=x.astype("uint8"), chunks=(20, WIDTH), maxshape=(None, WIDTH), **PACKED)
    good = bytearray((folder / "good.h5").read_bytes())
    generator = np.random.default_rng(3)
    for _ in range(60):
        bad = bytearray(good)
        bad[generator.integers(len(bad))] ^= 1 << generator.integers(8)
        (folder / "bad.h5").write_bytes(bad)
        seen, done = predict(folder, folder / "bad.h5")
        assert done.returncode in (0, 1), done.stderr
        assert done.returncode == 1 or np.array_equal(seen, x.astype("float32")), "damage went unseen"


def main(folder):
    model = keras.Sequential([layers.Input((WIDTH,)), layers.Dense(WIDTH, use_bias=False)])
    model.set_weights([np.eye(WIDTH, dtype="float32")])
    model.save(folder / "same.keras")
    x = np.random.default_rng(1).integers(0, 100, (SAMPLES, WIDTH))
    every_type(folder, x)
    every_layout(folder, x)
    many_chunks(folder, "earliest")
    many_chunks(folder, "v110")
    many_names(folder, x)
    grown_and_cut(folder, x)
    refusals(folder, x)
    damage(folder, x)


with tempfile.TemporaryDirectory() as name:
    main(pathlib.Path(name))
