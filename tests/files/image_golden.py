"""Writes tests/files/image_golden.h: images of all formats, and what their pixels are. Needs Pillow; run once, what it writes is in
the tree. image_golden.py FOLDER writes the images into the folder too, as seeds of fuzz_image.

Pixels are Pillow's. A PNG's grey is libpng's, which TensorFlow's decoder calls, and of 16 bits it keeps the upper 8; so
these two are computed here."""
import io
import pathlib
import struct
import sys

import numpy as np
from PIL import Image

HEIGHT, WIDTH = 9, 7  # interlaced GIFs have all their passes


def draw(channels):
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    planes = [(x * 37 + y * 5) % 256, (y * 29 + 40) % 256, (x * y * 4 + 90) % 256, (x * 40 + 5) % 256]
    return np.stack(planes[:channels], -1).astype("uint8")


RGB, RGBA = Image.fromarray(draw(3)), Image.fromarray(draw(4))
GREY = RGB.convert("L")
PALETTE = RGB.quantize(20)


def saved(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def png_16():
    """Grey of 16 bits, whose lower byte would round the upper one up."""
    values = np.asarray(GREY).astype("uint16") * 256 + 200
    return saved(Image.fromarray(values), "PNG")


def bmp(header, bits, rows, masks=b"", palette=b"", compression=0, top_down=False):
    """A BMP of a kind that Pillow does not write."""
    offset = 14 + header + len(masks) * (header == 40) + len(palette)
    height = -HEIGHT if top_down else HEIGHT
    if header == 12:
        second = struct.pack("<IHHHH", 12, WIDTH, HEIGHT, 1, bits)
    else:
        second = struct.pack("<IiiHHIIiiII", header, WIDTH, height, 1, bits, compression, 0, 0, 0, 0, 0) + masks
        second = second.ljust(header if header > 40 else 0, b"\0")
    pixels = b"".join(row.ljust((len(row) + 3) // 4 * 4, b"\0") for row in (rows if top_down else rows[::-1]))
    return b"BM" + struct.pack("<IHHI", offset + len(pixels), 0, 0, offset) + second + palette + pixels


def bmp_565():
    rgb = draw(3).astype("uint16")
    values = (rgb[..., 0] >> 3) << 11 | (rgb[..., 1] >> 2) << 5 | rgb[..., 2] >> 3
    return bmp(40, 16, [row.tobytes() for row in values], struct.pack("<III", 0xF800, 0x7E0, 0x1F), compression=3)


def bmp_555():
    rgb = draw(3).astype("uint16")
    values = (rgb[..., 0] >> 3) << 10 | (rgb[..., 1] >> 3) << 5 | rgb[..., 2] >> 3
    return bmp(40, 16, [row.tobytes() for row in values])


def bmp_4():
    indices = np.asarray(RGB.quantize(16))
    palette = RGB.quantize(16).getpalette()
    entries = b"".join(bytes((*palette[i + 2:i + 3], *palette[i + 1:i + 2], palette[i], 0)) for i in range(0, 48, 3))
    packed = [bytes((int(row[i]) << 4) | (int(row[i + 1]) if i + 1 < WIDTH else 0) for i in range(0, WIDTH, 2))
              for row in indices]
    return bmp(40, 4, packed, palette=entries)


def bmp_rgba():
    bgra = draw(4)[..., [2, 1, 0, 3]]
    return bmp(56, 32, [row.tobytes() for row in bgra],
               struct.pack("<IIII", 0xFF0000, 0xFF00, 0xFF, 0xFF000000), compression=3)


def images():
    turned = RGB.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    exif = Image.Exif()
    exif[0x112] = 6  # turned by a quarter
    return {
        "grey.png": saved(GREY, "PNG"),
        "grey_1.png": saved(RGB.convert("1"), "PNG"),
        "grey_16.png": png_16(),
        "grey_opacity.png": saved(RGBA.convert("LA"), "PNG"),
        "rgb.png": saved(RGB, "PNG"),
        "rgba.png": saved(RGBA, "PNG"),
        "palette.png": saved(PALETTE, "PNG"),
        "palette_opacity.png": saved(PALETTE, "PNG", transparency=3),
        "grey.jpg": saved(GREY, "JPEG", quality=95),
        "rgb.jpg": saved(RGB, "JPEG", quality=95),
        "exif.jpg": saved(RGB, "JPEG", quality=95, exif=exif),
        "progressive.jpg": saved(RGB, "JPEG", quality=95, progressive=True),
        "cmyk.jpg": saved(RGB.convert("CMYK"), "JPEG", quality=95),
        "grey.bmp": saved(GREY, "BMP"),
        "bits_1.bmp": saved(RGB.convert("1"), "BMP"),
        "bits_4.bmp": bmp_4(),
        "palette.bmp": saved(PALETTE, "BMP"),
        "bits_555.bmp": bmp_555(),
        "bits_565.bmp": bmp_565(),
        "rgb.bmp": saved(RGB, "BMP"),
        "top_down.bmp": bmp(40, 24, [row[:, ::-1].tobytes() for row in draw(3)], top_down=True),
        "os2.bmp": bmp(12, 24, [row[:, ::-1].tobytes() for row in draw(3)]),
        "rgbx.bmp": bmp(40, 32, [row[:, [2, 1, 0, 2]].tobytes() for row in draw(3)]),
        "rgba.bmp": bmp_rgba(),
        "palette.gif": saved(PALETTE, "GIF", interlace=0),
        "interlaced.gif": saved(PALETTE, "GIF", interlace=1),
        "animated.gif": saved(PALETTE, "GIF", save_all=True, append_images=[turned.quantize(20)]),
        "transparent.gif": saved(PALETTE, "GIF", transparency=2),
        "lossless.webp": saved(RGB, "WEBP", lossless=True),
        "lossy.webp": saved(RGB, "WEBP", quality=90),
        "rgba.webp": saved(RGBA, "WEBP", lossless=True, exact=True),
    }


def pixels_of(name, data):
    """[HEIGHT, WIDTH, 4] and [HEIGHT, WIDTH] of grey."""
    image = Image.open(io.BytesIO(data))
    if name == "grey_16.png":
        image = GREY
    if name.endswith("transparent.gif") or name == "palette_opacity.png" and False:
        image = image.convert("RGB")
    rgba, rgb = np.asarray(image.convert("RGBA")), np.asarray(image.convert("RGB")).astype(int)
    grey = np.asarray(image.convert("RGB").convert("L"))
    if name.endswith(".png"):
        truncated = (9797 * rgb[..., 0] + 19234 * rgb[..., 1] + 3737 * rgb[..., 2]) >> 15
        same = (rgb[..., 0] == rgb[..., 1]) & (rgb[..., 1] == rgb[..., 2])
        grey = np.where(same, rgb[..., 0], truncated)
    if name.endswith(".jpg") and image.mode == "RGB":
        image.draft("L", None)
        fresh = Image.open(io.BytesIO(data))
        fresh.draft("L", None)
        grey = np.asarray(fresh)
    return rgba, grey


def bytes_of(values):
    return ", ".join(str(value) for value in np.frombuffer(bytes(values), "uint8"))


def main():
    out = ["/* Written by image_golden.py. */",
           f"enum {{ HEIGHT = {HEIGHT}, WIDTH = {WIDTH}, PIXELS = HEIGHT * WIDTH }};",
           "static const struct golden_image {\n    const char *name;\n    size_t size;\n    uint8_t bytes[2048], "
           "rgba[PIXELS * 4], grey[PIXELS];\n} golden_images[] = {"]
    for name, data in images().items():
        assert len(data) < 2048, (name, len(data))
        rgba, grey = pixels_of(name, data)
        out.append(f'    {{"{name}", {len(data)}, {{{bytes_of(data)}}}, {{{bytes_of(rgba.astype("uint8").tobytes())}}}, '
                   f'{{{bytes_of(grey.astype("uint8").tobytes())}}}}},')
        for folder in sys.argv[1:]:
            pathlib.Path(folder, name.replace(".", "_")).write_bytes(data)
    out.append("};")
    pathlib.Path(__file__).with_suffix(".h").write_text("\n".join(out) + "\n")


main()
