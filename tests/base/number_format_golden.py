"""Writes tests/base/number_format_golden.h: what Python's own format() makes of numbers. Needs Python 3.11, whose mini-language
it is; run once, what it writes is in the tree. An argument is another number of random cases, and a path to write them to."""
import pathlib
import random
import sys

FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 0.123456, 0.9166666666666666, 2.0, 1234567.891, 0.1 + 0.2, 1e-4, 9.9999e-5, 1e16, 123456789012345680.0,
          9999999999999998.0, 1e22, 5e-324, 1.7976931348623157e308, -0.0004, 0.99999, 999999.5, 1e100, 100.0, 0.045, 2.5, 3.5, 1 / 3,
          float("inf"), float("-inf"), float("nan")]
INTS = [0, 1, 7, -7, 12, 65, 955, 999, 1000, 12345, -123456789, 2**31, 2**63 - 1, -2**63, 128516]
BY_HAND = ["", "d", "02d", "03d", ">4", "<4", "^5", "=+5", "+d", " d", "_", ",", "x", "#x", "#X", "#o", "#b", "_b", "#_x", "c", "5c", "<5c", "n",
           ".2f", ".1%", "%", "e", "g", "G", "E", "F", ".0f", "#.0f", "z.1f", "08.3f", "010,.2f", "*^12.3e", "€>9.2f", "+.3", ".1", "#.3g",
           "#", ",.2f", "_.2f", "012_x", "<012d", "=>5d", "0>5d", "05", "-5d", "z", "q", "s", ".2d", ".f", ",_d", "_,d", ",x", ",n", "+c", "#c",
           "zd", "5.", "5 ", "d5", "00005d", "04,", "09,", "#.0e", "#g", ".17g", ".30f", "{", "z#012_.3f"]


def pick(random, choices, chance=0.5):
    return random.choice(choices) if random.random() < chance else ""


def specification(random):
    align = pick(random, "<>=^", 0.4)
    fill = pick(random, "*0 x€", 0.5) if align else ""
    return (fill + align + pick(random, "+- ", 0.3) + pick(random, "z", 0.15) + pick(random, "#", 0.2) + pick(random, "0", 0.25)
            + pick(random, ["1", "4", "9", "13", "24"]) + pick(random, ",_", 0.3) + pick(random, [".0", ".1", ".3", ".8", ".20"], 0.5)
            + pick(random, "bcdeEfFgGnoxX%s", 0.8))


def answer(value, text):
    try:
        made = format(value, text)
        made.encode()
        return None if "\0" in made else made
    except (ValueError, OverflowError):
        return None


def c_text(text):
    if text is None:
        return "NULL"
    return '"' + "".join(f"\\{ord(c):03o}" if c < " " else "\\" + c if c in '"\\' else c for c in text) + '"'


def c_float(value):
    return {"inf": "INFINITY", "-inf": "-INFINITY", "nan": "NAN"}.get(repr(value), repr(value))


def c_int(value):
    return "INT64_MIN" if value == -2**63 else f"{value}"


def table(kind, name, values, write, count):
    source = random.Random(7)
    cases = [(source.choice(values), text) for text in BY_HAND] + [(value, "") for value in values]
    cases += [(source.choice(values), specification(source)) for _ in range(count)]
    rows = [f"    {{{write(value)}, {c_text(text)}, {c_text(answer(value, text))}}}," for value, text in dict.fromkeys(cases)]
    return [f"static const struct {{ {kind} value; const char *specification, *text; }} {name}[] = {{", *rows, "};"]


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    path = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else pathlib.Path(__file__).parent / "number_format_golden.h"
    lines = ["/* What Python's format() writes, NULL: it refuses; made by number_format_golden.py. */", "/* clang-format off */",
             *table("int64_t", "int_golden", INTS, c_int, count), *table("double", "float_golden", FLOATS, c_float, count)]
    path.write_text("\n".join(lines) + "\n")


main()
