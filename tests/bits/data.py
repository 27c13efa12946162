"""Small made-up data sets, the same each time, written without NumPy."""
import array
import gzip
import io
import random
import struct
import sys
import zipfile

FORMATS = {"B": "|u1", "f": "<f4", "i": "<i4"}


def npy(values, shape):
    """A .npy file's bytes. `values`: an array.array of type B, i or f."""
    assert sys.byteorder == "little" or values.typecode == "B"
    header = repr({"descr": FORMATS[values.typecode], "fortran_order": False, "shape": tuple(shape)})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + values.tobytes()


def npz(path, **arrays):
    """Each argument is a pair of values and shape."""
    with zipfile.ZipFile(path, "w") as out:
        for name, (values, shape) in arrays.items():
            out.writestr(f"{name}.npy", npy(values, shape))


def count(shape):
    product = 1
    for extent in shape:
        product *= extent
    return product


def labels(draw, rows, classes):
    return array.array("B", (draw.randrange(classes) for _ in range(rows)))


def image_bytes(draw, of, pixels):
    """Images of noise, brighter where their class says, so that a few steps learn something."""
    images = bytearray()
    for label in of:
        image = bytearray(draw.randbytes(pixels))
        low = label * pixels // 10
        image[low:low + pixels // 10] = b"\xf0" * (pixels // 10)
        images += image
    return array.array("B", bytes(images))


def idx(path, values, shape):
    header = struct.pack(">HBB", 0, 8, len(shape)) + struct.pack(f">{len(shape)}I", *shape)
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wb") as out:
        out.write(header + values.tobytes())


def grey_images(folder, rows, test_rows):
    """A folder like MNIST's."""
    draw = random.Random(1)
    folder.mkdir()
    for part, n in (("train", rows), ("t10k", test_rows)):
        y = labels(draw, n, 10)
        idx(folder / f"{part}-images-idx3-ubyte", image_bytes(draw, y, 784), (n, 28, 28))
        idx(folder / f"{part}-labels-idx1-ubyte", y, (n,))


def colour_images(path, rows, test_rows):
    draw = random.Random(2)
    arrays = {}
    for part, n in (("train", rows), ("test", test_rows)):
        y = labels(draw, n, 10)
        arrays[f"x_{part}"] = (image_bytes(draw, y, 3072), (n, 32, 32, 3))
        arrays[f"y_{part}"] = (y, (n,))
    npz(path, **arrays)


def floats(draw, shape):
    return array.array("f", (draw.uniform(-1, 1) for _ in range(count(shape)))), shape


def series(path, rows, steps, features, outputs=1):
    draw = random.Random(3)
    npz(path, x=floats(draw, (rows, steps, features)), y=floats(draw, (rows, outputs)))


def classes(path, rows, shape, of, one_hot=False):
    draw = random.Random(6)
    y = labels(draw, rows, of)
    hot = array.array("f", (float(label == k) for label in y for k in range(of)))
    npz(path, x=floats(draw, (rows, *shape)), y=(hot, (rows, of)) if one_hot else (y, (rows,)))


def table(path, rows):
    """A CSV file of three columns of very different sizes, and a target."""
    draw = random.Random(4)
    with open(path, "w", encoding="ascii") as out:
        out.write("a,b,c,y\n")
        for _ in range(rows):
            a, b, c = draw.random(), draw.uniform(100, 200), draw.uniform(-3, 3)
            out.write(f"{a:.5f},{b:.3f},{c:.4f},{a * b - c:.4f}\n")


def text(path, characters):
    draw = random.Random(5)
    words = ["sea", "wind", "salt", "tide", "and", "the", "a", "of", "boat.\n"]
    made = io.StringIO()
    while made.tell() < characters:
        made.write(draw.choice(words) + " ")
    path.write_text(made.getvalue()[:characters], encoding="ascii")
