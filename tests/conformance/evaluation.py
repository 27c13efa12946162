"""evaluation.py: `tandem evaluate --confusion` against what Keras counts of the same model and data: loss and metrics over an
uneven last batch, the matrix, per class precision and recall, and MeanIoU with a class that is ignored."""
import csv
import os
import re
import subprocess
import tempfile

os.environ.setdefault("KERAS_BACKEND", "jax")
import keras
import numpy as np

TANDEM = os.environ["TANDEM"]
rng = np.random.default_rng(5)


def evaluate(model, x, y, *options):
    model.save("model.keras")
    np.savez("data.npz", x=x, y=y)
    words = [TANDEM, "evaluate", "model.keras", "--data", "data.npz", "--quiet", "--batch-size", "32",
             "--confusion-file", "matrix.csv", *options]
    out = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    with open("matrix.csv") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["actual", *map(str, range(len(rows) - 1))], rows[0]
    return out, np.array([[int(cell) for cell in row[1:]] for row in rows[1:]])


def table(out):
    """{class or mean: [numbers]}"""
    rows = re.findall(r"^(\d+|mean|weighted)((?: +[-\d.]+)+)$", out.split("actual")[0], re.M)
    return {name: [np.nan if word == "-" else float(word) for word in numbers.split()] for name, numbers in rows}


def classes():
    x = rng.normal(size=(203, 7)).astype("float32")
    y = rng.integers(0, 5, 203)
    model = keras.Sequential([keras.Input((7,)), keras.layers.Dense(5)])
    model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    out, matrix = evaluate(model, x, y)
    predicted = model.predict(x, verbose=0).argmax(-1)
    wanted = np.zeros((5, 5), int)
    np.add.at(wanted, (y, predicted), 1)
    assert (matrix == wanted).all(), (matrix, wanted)
    loss, accuracy = model.evaluate(x, y, batch_size=32, verbose=0)
    exact = keras.losses.sparse_categorical_crossentropy(y, model.predict(x, verbose=0), from_logits=True)
    found = {name: float(value) for name, value in re.findall(r"^(\w+): (\S+)$", out, re.M)}
    assert abs(found["loss"] - np.mean(exact)) < 1e-5 and abs(found["accuracy"] - accuracy) < 1e-5, (found, loss, accuracy)
    for c in range(5):
        one = keras.metrics.Precision(), keras.metrics.Recall()
        for metric in one:
            metric.update_state(y == c, predicted == c)
        row = table(out)[str(c)]
        assert np.allclose(row[:2], [float(metric.result()) for metric in one], atol=1e-4), (c, row)
        assert row[3] == (y == c).sum()


def pixels():
    x = rng.normal(size=(37, 6, 4, 2)).astype("float32")
    y = rng.integers(0, 4, (37, 6, 4)).astype("uint8")
    model = keras.Sequential([keras.Input((6, 4, 2)), keras.layers.Conv2D(4, 3, padding="same", activation="softmax")])
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy")
    predicted = model.predict(x, verbose=0)
    for ignored in (None, 3):
        out, _ = evaluate(model, x, y, *([] if ignored is None else ["--ignore-class", str(ignored)]))
        metric = keras.metrics.MeanIoU(4, sparse_y_pred=False, ignore_class=ignored)
        metric.update_state(y, predicted)
        mean = table(out)["mean"][3]
        assert abs(mean - float(metric.result())) < 1e-4, (ignored, mean, float(metric.result()))
        for c in range(4):
            one = keras.metrics.IoU(4, [c], sparse_y_pred=False, ignore_class=ignored)
            one.update_state(y, predicted)
            assert abs(table(out)[str(c)][3] - float(one.result())) < 1e-4, (ignored, c, out)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    classes()
    pixels()
    print("evaluation: as Keras counts")
