"""Trains and evaluates in groups of processes: what they write equals what one process writes.

usage: same.py TANDEM [PATTERN...]

With --shards every byte is the same: weights, optimizer's state, logs, and what evaluation prints. Without, files are the same but
for numbers, which are within 3e-6. Cases are those of tests/bits and the lines below. A test runs some of them; with
TANDEM_GROUPS=all in the environment it runs all, and patterns choose others."""
import array
import fnmatch
import itertools
import math
import os
import re
import shutil
import struct
import sys
import zipfile

from support.group import BITS, cases, check, expect_same, fresh, group, outcome, run, workplace

import data  # of tests/bits, which support.group has put on the path

IMAGES, COLOURS, SERIES = cases.IMAGES, cases.COLOURS, cases.SERIES
LEARNT = COLOURS.replace("--validation @/colour.npz ", "")  # a deep network's predictions after one step multiply what is tiny
SGD = "--optimizer sgd --learning-rate 0.05"
CLASSES = "accuracy,sparse_categorical_accuracy,sparse_top_k_categorical_accuracy,mean_io_u"
BINARY = "binary_accuracy,precision,recall,auc,binary_io_u"
ERRORS = "mean_squared_error,mean_absolute_error,root_mean_squared_error"
TOLERANCE = 3e-6


def own_cases():
    fit = cases.fit
    ignored = "--ignore-class 3"
    monitored = "--monitor loss --log log.jsonl"
    return {
        "own/ignored": fit("mlp", f"{IMAGES} {ignored}", 1) + [f"evaluate out.keras --data @/grey --quiet {ignored}"],
        "own/ignored/cnn": fit("lenet5", f"{IMAGES} {ignored} {SGD} --global-clipnorm 0.1", 1),
        "own/class_weight": fit("mlp", f"{IMAGES} --class-weight 0:2,3:0.5,9:7 --weighted-metrics accuracy", 1),
        "own/sample_weight": fit("mlp_adam", "--train @/weighed.npz --seed 3 --batch-size 16 --weighted-metrics accuracy"),
        "own/outputs": fit("heads", "--train @/heads.npz --seed 3 --batch-size 16 --optimizer adam --loss-weights 1,0.5 --loss "
                           "sparse_categorical_crossentropy,mean_squared_error")[::2],
        "own/few_rows": fit("mlp", IMAGES.replace("32", "3"), 1, "--batch-size 3"),
        "own/one_row": fit("lenet5", IMAGES.replace("32", "1") + " --steps-per-epoch 5", 1, "--batch-size 1"),
        "own/split": fit("mlp", "--train @/grey --validation-split 0.2 --seed 3 --batch-size 16"),
        "own/metrics/classes": fit("mlp", f"{IMAGES} --metrics {CLASSES}", 1),
        "own/metrics/errors": fit("lstm", f"{SERIES} --metrics {ERRORS}", 1),
        "own/metrics/binary": fit("binary", f"--train @/binary.npz --seed 3 --batch-size 16 --metrics {BINARY}"),
        "own/confusion": fit("lenet5", IMAGES, 1) + ["evaluate out.keras --data @/grey --quiet --confusion --confusion-file c.csv"],
        "own/execution": fit("mlp", f"{IMAGES} --steps-per-execution 2"),
        "own/stop": fit("mlp", f"{IMAGES} --early-stopping 1,min_delta=100,restore_best_weights {monitored}", 6),
        "own/plateau": fit("mlp", f"{IMAGES} --reduce-lr 0,factor=0.5,min_delta=100 {monitored}", 4),
        "own/checkpoints": fit("mlp", f"{IMAGES} --checkpoint c{{epoch}}-{{batch}}.keras --checkpoint-options save_freq=2"),
        "own/folder": fit("lenet5", "--train @/pictures --validation @/pictures --seed 3 --batch-size 4 --augment flip,crop=2"),
        "own/records": fit("mlp_adam", "--train @/some.tfrecord --features x=x,y=y --seed 3 --batch-size 8", 2, "--features x=x,y=y"),
        "own/records/stream": fit("mlp_adam", "--train @/some.tfrecord --features x=x,y=y --shuffle-buffer 7 --seed 3 --batch-size 8", 2,
                                  "--features x=x,y=y"),
        "own/csv": fit("averages", "--train @/table.csv --features x=a,b,c,y=y,a --scale 0.01 --seed 3 --batch-size 16", 2,
                       "--features x=a,b,c,y=y,a --scale 0.01"),
        "own/buffer": fit("mlp", f"{IMAGES} --shuffle-buffer 10 --drop-remainder --train @/grey --interleave 2", 1),
        "own/trace": fit("lenet5", f"{IMAGES} --trace trace.json", 1),
    }


# Run by each test.
OFTEN = ("mlp_dropout/two", "resnet20/two", "synchronized/two", "stateful/reset", "lstm_dropout/two", "run/augment", "resumed/mlp",
         "optimizer/clipnorm/shards", "optimizer/everything/shards", "own/ignored", "own/outputs", "own/sample_weight", "own/few_rows",
         "own/metrics/classes", "own/metrics/binary", "own/confusion", "own/stop", "own/plateau", "own/checkpoints", "own/folder",
         "own/records/stream", "own/csv")
# Without shards: with a momentum alone a small difference stays small. Batch norm per replica is by devices.
CLOSE = {
    "close/mlp": ("mlp", f"{IMAGES} {SGD} --momentum 0.9"),
    "close/dropout": ("mlp_dropout", f"{IMAGES} {SGD} --global-clipnorm 0.5 --ignore-class 3"),
    "close/cnn": ("lenet5", f"{IMAGES} {SGD} --gradient-accumulation-steps 2 --use-ema"),
    "close/augment": ("cifar_dropout", f"{COLOURS} --scale 0.004 {SGD} --augment flip,crop=4"),
    "close/replicas": ("resnet20", f"{LEARNT} --scale 0.004 --learning-rate 0.001 --steps-per-epoch 1"),
    "close/synchronized": ("synchronized", f"{LEARNT} --scale 0.004 --learning-rate 0.001 --steps-per-epoch 1"),
    "close/lstm": ("lstm", f"{SERIES} {SGD} --clipnorm 1"),
    "close/stateful": ("stateful", f"--train @/states.npz --seed 3 --no-shuffle {SGD}"),
    "close/one_row": ("lenet5", IMAGES.replace("32", "1") + f" --steps-per-epoch 5 {SGD}"),
}
OFTEN_CLOSE = ("close/dropout", "close/replicas", "close/synchronized", "close/stateful")
GOLDEN = BITS.parent / "formats" / "golden"


# ---- data ----

def crc32c(held):
    rest = 0xFFFFFFFF
    for byte in held:
        rest ^= byte
        for _ in range(8):
            rest = rest >> 1 ^ (0x82F63B78 if rest & 1 else 0)
    return rest ^ 0xFFFFFFFF


def masked(held):
    whole = crc32c(held)
    return struct.pack("<I", ((whole >> 15 | whole << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def message(number, held):
    """A field of a protocol buffer."""
    length, left = b"", len(held)
    while left > 127:
        length, left = length + bytes([left & 127 | 128]), left >> 7
    return bytes([number << 3 | 2]) + length + bytes([left]) + held


def records(path, rows):
    """TFRecord of examples with x, 12 floats, and y, a class of three."""
    draw = data.random.Random(10)
    with open(path, "wb") as out:
        for _ in range(rows):
            x = message(2, message(1, array.array("f", (draw.uniform(-1, 1) for _ in range(12))).tobytes()))
            y = message(3, message(1, bytes([draw.randrange(3)])))
            pairs = [message(1, message(1, name) + message(2, value)) for name, value in ((b"x", x), (b"y", y))]
            example = message(1, b"".join(pairs))
            head = struct.pack("<Q", len(example))
            out.write(head + masked(head) + example + masked(example))


def pictures(folder, classes, each):
    """BMP files of 28 x 28 pixels in a folder for each class."""
    draw = data.random.Random(11)
    for label in range(classes):
        (folder / f"c{label}").mkdir(parents=True)
        for number in range(each):
            pixels = draw.randbytes(28 * 28 * 3)
            head = b"BM" + struct.pack("<IIIIiiHHIIiiII", 54 + len(pixels), 0, 54, 40, 28, 28, 1, 24, 0, len(pixels), 0, 0, 0, 0)
            (folder / f"c{label}" / f"{number}.bmp").write_bytes(head + pixels)


def make_data(start):
    draw = data.random.Random(9)
    of_three, of_two = data.labels(draw, 49, 3), data.labels(draw, 49, 2)
    weights = array.array("f", (draw.choice((0, 0.5, 1, 3)) for _ in range(49)))
    x = data.floats(draw, (49, 4, 3))
    data.npz(start / "weighed.npz", x=x, y=(of_three, (49,)), sample_weight=(weights, (49,)))
    data.npz(start / "heads.npz", x=data.floats(draw, (49, 3)), y0=(of_two, (49,)), y1=data.floats(draw, (49, 2)))
    binary = array.array("f", (float(one) for one in of_two))
    data.npz(start / "binary.npz", x=data.floats(draw, (49, 12, 4)), y=(binary, (49, 1)))
    records(start / "some.tfrecord", 33)
    pictures(start / "pictures", 10, 2)


def make_binary(config):
    """A classifier of two classes out of the forecaster."""
    config["config"]["layers"][-1]["config"]["activation"] = "sigmoid"
    config["compile_config"]["loss"] = "binary_crossentropy"


def make_models(start):
    shutil.copy(GOLDEN / "heads.keras", start)
    cases.edit(start / "lstm.keras", start / "binary.keras", make_binary)


# ---- the same bits ----

def in_shards(line):
    """One process's command: in four shards, whatever its devices were."""
    line = re.sub(r" --devices \S+| --shards \d+", "", line)
    return f"{line} --shards 4" if line.startswith(("fit", "evaluate")) else line


def in_group(line, processes):
    return f"launch -n {processes} -- {line} --devices cpu:0" if line.startswith(("fit", "evaluate")) else line


def run_all(lines, folder):
    """All that is printed and written."""
    fresh(folder)
    printed = {}
    for number, line in enumerate(lines, 1):
        done = run(line.replace("@", "../start"), folder)
        check.expect(done.returncode == 0, f"status {done.returncode}: tandem {line}\n{done.stdout}{done.stderr}")
        printed[f"printed {number}"] = re.sub("(?m)^worker [0-9]+: .*\n", "", done.stdout + done.stderr).encode()
    return {**printed, **outcome(folder, but=("trace",))}


def compare_bits(name, lines, root):
    check.begin(name)
    lines = [in_shards(line) for line in lines if not line.startswith("predict")]
    alone = run_all(lines, root / "alone")
    for processes in (2, 3) if os.environ.get("TANDEM_GROUPS") else (3,):
        many = run_all([in_group(line, processes) for line in lines], root / "many")
        without_time = [{key: re.sub(rb'"seconds[a-z_]*": [-+0-9.e]*', b"", held) for key, held in one.items()} for one in (alone, many)]
        expect_same(*without_time, f"{processes} processes")


# ---- close ----

def numbers(held, kind):
    return memoryview(held[:len(held) // 4 * 4]).cast(kind)


def farthest(one, other):
    """The largest difference of two files of weights, which are the same but for numbers."""
    if len(one) != len(other):
        return math.inf
    differ = [i for i, (a, b) in enumerate(zip(numbers(one, "I"), numbers(other, "I"))) if a != b]
    floats = numbers(one, "f"), numbers(other, "f")
    pairs = [(floats[0][i], floats[1][i]) for i in differ]
    return max((abs(a - b) if math.isfinite(a) and math.isfinite(b) else math.inf for a, b in pairs), default=0)


def weights_of(path):
    with zipfile.ZipFile(path) as archive:
        return archive.read("model.weights.h5")


def compare_close(name, model, options, devices, root):
    """Each of `devices` is a process's; alone all are one process's."""
    check.begin(f"{name} on {' + '.join(str(count) for count in devices)} devices")
    folder = fresh(root / "close")
    line = f"fit {root}/start/{model}.keras {options.replace('@', str(root / 'start'))} --quiet --epochs 1"
    done = run(f"{line} --output alone.keras --csv-log alone.csv --devices {listed(sum(devices))}", folder)
    check.expect(done.returncode == 0, f"alone: {done.stderr}")
    with group(folder, len(devices)) as tasks:
        for index, count in enumerate(devices):
            tasks.start(index, f"{line} --output many.keras --csv-log many.csv --devices {listed(count)}")
        check.expect(not any(tasks.wait()), f"{[task.err for task in tasks.tasks]}")
    if (folder / "task0" / "many.keras").exists():
        far = farthest(weights_of(folder / "alone.keras"), weights_of(folder / "task0" / "many.keras"))
        check.expect(far <= TOLERANCE, f"weights differ by {far}")
        compare_logs((folder / "alone.csv").read_text(), (folder / "task0" / "many.csv").read_text())
    written = sorted(path.name for path in folder.rglob("task[1-9]/*") if path.suffix not in (".out", ".err"))
    check.expect(not written, f"workers wrote {written}")


def listed(count):
    return ",".join(f"cpu:{number}" for number in range(count))


def compare_logs(one, other):
    for a, b in itertools.zip_longest(re.split("[,\n]", one), re.split("[,\n]", other)):
        same = a == b or (a and b and a[-1:].isdigit() and math.isclose(float(a), float(b), rel_tol=1e-5, abs_tol=1e-6))
        check.expect(same, f"logs differ: {a} and {b}")


# ---- all ----

def chosen(names):
    patterns = sys.argv[2:] or (["*"] if os.environ.get("TANDEM_GROUPS") == "all" else [*OFTEN, *OFTEN_CLOSE])
    return [name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]


def is_of_groups(lines):
    return lines[0].startswith("fit") and not any("--shard " in line or "launch" in line for line in lines)


def main():
    bits = {name: lines for name, lines in cases.every_case().items() if is_of_groups(lines) and not name.startswith("told")}
    bits.update(own_cases())
    with workplace() as root:
        make_data(root / "start")
        make_models(root / "start")
        for name in chosen(bits):
            compare_bits(name, bits[name], root)
        for name in chosen(CLOSE):
            for devices in ((1, 2, 3), (2, 1), (1, 1, 1, 1, 1)) if os.environ.get("TANDEM_GROUPS") else ((1, 2, 3),):
                compare_close(name, *CLOSE[name], devices, root)
    check.finish()


if __name__ == "__main__":
    main()
