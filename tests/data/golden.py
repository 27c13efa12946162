"""Writes tests/data/golden/: TFRecord files as TensorFlow writes them, and the pixels that Pillow sees in their images.
Needs numpy, Pillow and google-crc32c. Run once; what it writes is in the tree."""
import gzip
import io
import pathlib
import struct

import google_crc32c
import numpy as np
from PIL import Image

GOLDEN = pathlib.Path(__file__).parent / "golden"


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def feature(value):
    if isinstance(value, bytes):
        return field(1, field(1, value))
    if isinstance(value[0], float):
        return field(2, field(1, struct.pack(f"<{len(value)}f", *value)))
    return field(3, field(1, b"".join(varint(v & (1 << 64) - 1) for v in value)))


def example(features):
    return field(1, b"".join(field(1, field(1, key.encode()) + field(2, feature(value))) for key, value in features.items()))


def masked(data):
    crc = google_crc32c.value(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data):
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def encoded(pixels, kind):
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, kind, **({"quality": 85} if kind == "JPEG" else {}))
    return out.getvalue()


def main():
    GOLDEN.mkdir(exist_ok=True)
    random = np.random.default_rng(7)
    rows, columns = np.mgrid[0:10, 0:12]
    images, seen = b"", []
    for i, kind in enumerate(["JPEG", "PNG", "JPEG", "PNG"]):
        pixels = np.stack([rows * 20 + i, columns * 20, random.integers(0, 99, (10, 12))], -1).astype(np.uint8)
        data = encoded(pixels, kind)
        seen.append(np.asarray(Image.open(io.BytesIO(data))))
        images += record(example({"image/encoded": data, "image/class/label": [i], "image/format": kind.encode()}))
    (GOLDEN / "images.tfrecord.gz").write_bytes(gzip.compress(images, mtime=0))
    (GOLDEN / "images.tfrecord").write_bytes(images)
    (GOLDEN / "pixels.bin").write_bytes(np.stack(seen).tobytes())
    numbers = b"".join(record(example({"a": [i + 0.5, float(-i), 1e-3], "b": [-3 * i, 7]})) for i in range(3))
    (GOLDEN / "numbers.tfrecord").write_bytes(numbers)
    named = lambda *labels: b"".join(record(example({"image/encoded": encoded(np.full((2, 2, 3), 60 * label, np.uint8), "PNG"),
                                                     "image/class/label": [label], "image/class/text": text})) for label, text in labels)
    animals = (1, b"dog"), (0, b"cat"), (3, b"cow"), (1, b"dog")
    (GOLDEN / "named.tfrecord").write_bytes(named(*animals))
    (GOLDEN / "captions.tfrecord").write_bytes(named(*animals, (3, b"a cow in a field")))

    sizes = b""
    for i, (height, width) in enumerate([(6, 8), (3, 4), (5, 5)]):
        rows, columns = np.mgrid[0:height, 0:width]
        pixels = np.stack([rows * 20, columns * 20, rows * 0 + i], -1).astype(np.uint8)
        sizes += record(example({"image/encoded": encoded(pixels, "PNG"), "map": encoded((rows + columns).astype(np.uint8), "PNG")}))
    (GOLDEN / "sizes.tfrecord").write_bytes(sizes)


main()
