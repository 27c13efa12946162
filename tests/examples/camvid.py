"""The program examples/camvid.c on made-up streets: sky over a road, and void between them. The mean IoU climbs, on
one replica and on two, and its PNG files hold classes in CamVid's colours."""
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import zlib

PROGRAM = sys.argv[1]
HEIGHT, WIDTH = 24, 32
SKY, ROAD, VOID = 0, 3, 11
PAINT = {SKY: (90, 140, 230), ROAD: (70, 60, 60), VOID: (250, 250, 250)}


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def write_png(path, rows, colour_type, width=WIDTH):
    header = struct.pack(">IIBBBBB", width, len(rows), 8, colour_type, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b""))


def write_part(folder, part, count, height=HEIGHT):
    draw = random.Random(part)
    (folder / part).mkdir(parents=True)
    (folder / f"{part}annot").mkdir()
    for i in range(count):
        horizon = draw.randrange(8, 16)
        classes = [SKY if y < horizon else VOID if y < horizon + 2 else ROAD for y in range(height)]
        write_png(folder / f"{part}annot/{i}.png", [[c] * WIDTH for c in classes], 0)
        write_png(folder / f"{part}/{i}.png",
                  [[max(0, min(255, v + draw.randrange(-20, 21))) for _ in range(WIDTH) for v in PAINT[c]]
                   for c in classes], 2)


def chunks(path):
    data, at = path.read_bytes(), 8
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        yield data[at + 4:at + 8], data[at + 8:at + 8 + size]
        at += 12 + size


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)


def learns(streets, out, *devices):
    """A class that is seen where there is none has an IoU of 0 and its part in the mean: 0.4 is well learned."""
    done = run(streets, 6, out, *devices)
    assert done.returncode == 0, done.stderr
    scores = [float(found) for found in re.findall(r"val_mean_io_u: ([0-9.]+)", done.stdout)]
    assert len(scores) == 6, done.stdout
    assert scores[-1] > max(0.4, 2 * scores[0]), f"the mean IoU does not climb: {scores}"
    assert (out / "camvid.keras").stat().st_size > 100_000


def draws(out, count):
    pictures = sorted(path.name for path in out.glob("*.png"))
    assert pictures == [f"{i:03}.png" for i in range(count)], pictures
    parts = dict(chunks(out / "000.png"))
    assert struct.unpack(">IIBB", parts[b"IHDR"][:10]) == (WIDTH, HEIGHT, 4, 3), "not 16 colours, by number"
    assert parts[b"PLTE"][9:12] == bytes((128, 64, 128)), "class 3, road, is drawn in another colour"
    stride = 1 + WIDTH // 2
    rows = zlib.decompress(parts[b"IDAT"])
    assert len(rows) == HEIGHT * stride


def refuses(scratch, streets):
    assert run().returncode == 2
    assert run(streets, 0).returncode == 2
    missing = run(scratch / "nowhere", 1, scratch / "out3")
    assert missing.returncode == 1 and "nowhere" in missing.stderr, missing.stderr
    odd = scratch / "odd"
    write_part(odd, "train", 2, height=22)
    write_part(odd, "val", 1, height=22)
    uneven = run(odd, 1, scratch / "out4")
    assert uneven.returncode == 1 and "multiples of 4, got 22 x 32" in uneven.stderr, uneven.stderr
    unwritable = run(streets, 1, scratch / "no/such/folder")
    assert unwritable.returncode == 1 and "no/such/folder" in unwritable.stderr, unwritable.stderr


with tempfile.TemporaryDirectory() as name:
    scratch = pathlib.Path(name)
    streets = scratch / "streets"
    write_part(streets, "train", 32)
    write_part(streets, "val", 3)
    learns(streets, scratch / "one")
    draws(scratch / "one", 3)
    if len(os.sched_getaffinity(0)) > 1:
        learns(streets, scratch / "two", "cpu:0,cpu:1")
    refuses(scratch, streets)
