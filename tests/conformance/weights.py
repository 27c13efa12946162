"""weights.py: sample_weight, class_weight and weighted_metrics: `tandem fit` and `tandem evaluate` against Keras's from the same
file, in the same order: weights after training, logs of each epoch and its validation, results of an evaluation."""
import csv
import dataclasses
import os
import pathlib
import re
import sys
import tempfile

import keras
import numpy as np
from keras import layers

sys.path.insert(0, os.path.dirname(__file__))
from support import tandem  # noqa: E402

SAMPLES, HELD, BATCH, EPOCHS = 70, 21, 8, 2
TOLERANCE = 2e-5
random = np.random.default_rng(7)


@dataclasses.dataclass
class Case:
    name: str
    model: object                       # compiled
    y: list                             # targets of SAMPLES + HELD samples
    weights: list = ()                  # sample weights: none, one array, or one for each target
    class_weight: dict = None
    options: tuple = ()                 # of `tandem fit`
    recompiled: dict = None             # of compile, where Keras's file leaves something out
    evaluated: tuple = ()               # options of `tandem evaluate`


def dense(units, activation=None, features=6):
    return keras.Sequential([layers.Input((features,)), layers.Dense(9, activation="tanh"), layers.Dense(units, activation)])


def sequence(units, activation=None):
    return keras.Sequential([layers.Input((5, 3)), layers.LSTM(4, return_sequences=True), layers.Dense(units, activation)])


def two():
    x = layers.Input((6,))
    h = layers.Dense(7, activation="tanh")(x)
    return keras.Model(x, [layers.Dense(3, activation="softmax", name="kind")(h), layers.Dense(2, name="place")(h)])


def labels(classes, *shape):
    return random.integers(0, classes, (SAMPLES + HELD, *shape)).astype("int32")


def numbers(*shape):
    return random.normal(size=(SAMPLES + HELD, *shape)).astype("float32")


def weights(*shape):
    drawn = random.uniform(0, 3, (SAMPLES + HELD, *shape)).astype("float32")
    drawn[random.uniform(size=drawn.shape) < 0.2] = 0
    drawn[8:16] = 0  # a batch that does not count at all
    return drawn


def compiled(model, loss, optimizer=None, **more):
    model.compile(optimizer or keras.optimizers.SGD(0.1, momentum=0.5), loss, **more)
    return model


def cases():
    sparse = keras.losses.SparseCategoricalCrossentropy
    one_hot = np.eye(3, dtype="float32")
    yield Case("a weight a sample", compiled(dense(3), sparse(from_logits=True), metrics=["accuracy"], weighted_metrics=["accuracy", "accuracy"]),
               [labels(3)], [weights()])
    for shards in 2, 4:
        yield Case(f"... on {shards} replicas", compiled(dense(3), sparse(from_logits=True), metrics=["accuracy"], weighted_metrics=["accuracy"]),
                   [labels(3)], [weights()], options=("--devices", ",".join(["cpu:0", "cpu:1"][:2]), "--shards", shards))
    yield Case("... as [samples, 1], with gradients accumulated",
               compiled(dense(3, "softmax"), "sparse_categorical_crossentropy", keras.optimizers.Adam(0.01, gradient_accumulation_steps=3)),
               [labels(3)], [weights(1)])
    yield Case("one-hot, smoothed", compiled(dense(3, "softmax"), keras.losses.CategoricalCrossentropy(label_smoothing=0.1),
                                            weighted_metrics=["accuracy", keras.metrics.TopKCategoricalAccuracy(2), keras.metrics.F1Score(average="macro")]),
               [one_hot[labels(3)]], [weights()])
    two_classes = [keras.metrics.AUC(num_thresholds=20), keras.metrics.Precision(), keras.metrics.Recall(), "accuracy", keras.metrics.BinaryIoU(name="iou"),
                   keras.metrics.IoU(2, [1], dtype="float32", name="fractions")]
    yield Case("two classes", compiled(dense(1, "sigmoid"), "binary_crossentropy", metrics=["accuracy"], weighted_metrics=two_classes),
               [labels(2, 1).astype("float32")], [weights()])
    yield Case("several labels", compiled(dense(4, "sigmoid"), "binary_crossentropy", weighted_metrics=[keras.metrics.AUC(multi_label=True, num_labels=4, num_thresholds=10), "accuracy"]),
               [labels(2, 4).astype("float32")], [weights()])
    for loss in "mse", "mae", "huber":
        yield Case(f"regression, {loss}",
                   compiled(dense(4), loss, metrics=["mae"], weighted_metrics=["mse", keras.metrics.RootMeanSquaredError(), "mae"]), [numbers(4)], [weights()])
    yield Case("a weight a position", compiled(sequence(3), sparse(from_logits=True), weighted_metrics=["accuracy", keras.metrics.MeanIoU(3, sparse_y_pred=False)]),
               [labels(3, 5)], [weights(5)])
    yield Case("a weight for all positions of a sample", compiled(sequence(3), sparse(from_logits=True)), [labels(3, 5)], [weights(1)])
    ignoring = dict(loss=sparse(from_logits=True, ignore_class=2))
    yield Case("a class that is ignored, and weights", compiled(sequence(3), sparse(from_logits=True)), [labels(3, 5)], [weights(5)],
               options=("--ignore-class", 2), recompiled=ignoring, evaluated=("--ignore-class", 2))
    yield Case("... on two replicas", compiled(sequence(3), sparse(from_logits=True)), [labels(3, 5)], [weights(5)],
               options=("--ignore-class", 2, "--devices", "cpu:0,cpu:1", "--shards", 2), recompiled=ignoring, evaluated=("--ignore-class", 2))
    both = ["sparse_categorical_crossentropy", "mse"]
    yield Case("two outputs, weights of their own", compiled(two(), both, loss_weights=[1.0, 0.5], metrics=[["accuracy"], ["mae"]], weighted_metrics=[["accuracy"], ["mae"]]),
               [labels(3), numbers(2)], [weights(), weights()])
    yield Case("two outputs that share weights", compiled(two(), both, weighted_metrics=[["accuracy"], ["mae"]]), [labels(3), numbers(2)], [weights()])
    lossless = [both[0], None]
    yield Case("an output without a loss", compiled(two(), lossless, metrics=[["accuracy"], []], weighted_metrics=[[], ["mae"]]), [labels(3), numbers(2)],
               [weights(), weights()])
    yield Case("... that shares weights", compiled(two(), lossless, weighted_metrics=[["accuracy"], ["mae"]]), [labels(3), numbers(2)], [weights()])
    yield Case("... that is the first", compiled(two(), [None, "mse"]), [labels(3), numbers(2)], [weights(), weights()])
    yield Case("class weights", compiled(dense(3), sparse(from_logits=True), metrics=["accuracy"], weighted_metrics=["accuracy"]), [labels(3)],
               class_weight={0: 1.0, 1: 0.25, 2: 3.0})
    yield Case("class weights of some, one-hot", compiled(dense(3, "softmax"), "categorical_crossentropy"), [one_hot[labels(3)]], class_weight={1: 4.0},
               options=("--devices", "cpu:0,cpu:1", "--shards", 2))
    yield Case("class weights of two", compiled(dense(1), keras.losses.BinaryCrossentropy(from_logits=True)), [labels(2, 1).astype("float32")], class_weight={0: 0.5, 1: 5.0})


def split(arrays, held):
    return [a[SAMPLES:] if held else a[:SAMPLES] for a in arrays]


def write(folder, name, x, y, w):
    arrays = {"x": x}
    arrays |= {"y": y[0]} if len(y) == 1 else {f"y{i}": a for i, a in enumerate(y)}
    arrays |= {"sample_weight": w[0]} if len(w) == 1 else {f"sample_weight{i}": a for i, a in enumerate(w)}
    np.savez(folder / name, **arrays)


def bare(arrays):
    return None if not arrays else arrays[0] if len(arrays) == 1 else list(arrays)


def run_tandem(case, folder, x):
    for name, held in ("train.npz", False), ("held.npz", True):
        write(folder, name, *split([x], held), split(case.y, held), split(case.weights, held))
    by_class = [] if not case.class_weight else ["--class-weight", ",".join(f"{c}:{w}" for c, w in case.class_weight.items())]
    tandem.run(folder, "fit", "start.keras", "--train", "train.npz", "--validation", "held.npz", "--no-shuffle", "--epochs", EPOCHS,
               "--batch-size", BATCH, "--output", "end.keras", "--csv-log", "log.csv", *case.options, *by_class)
    return tandem.run(folder, "evaluate", "end.keras", "--data", "held.npz", "--quiet", "--batch-size", BATCH, *case.evaluated)


def run_keras(case, folder, x):
    model = case.model
    model.save(folder / "start.keras")
    if case.recompiled:
        model.compile(model.optimizer, **case.recompiled)
    train, held = ([bare(split(a, side)) for a in ([x], case.y, case.weights)] for side in (False, True))
    if len(case.y) > 1 and len(case.weights) == 1:
        held[2] = [held[2]] * len(case.y)
    model.fit(train[0], train[1], BATCH, EPOCHS, sample_weight=train[2], class_weight=case.class_weight, shuffle=False, verbose=0,
              validation_data=tuple(held if held[2] is not None else held[:2]), callbacks=[keras.callbacks.CSVLogger(folder / "keras.csv")])
    return model, model.evaluate(held[0], held[1], BATCH, sample_weight=held[2], verbose=0, return_dict=True)


def same(a, b):
    return np.isclose(float(a), float(b), rtol=TOLERANCE, atol=1e-6)


def check(case, folder):
    x = numbers(*case.model.input_shape[1:])
    expected, results = run_keras(case, folder, x)
    said = run_tandem(case, folder, x)
    seen = keras.saving.load_model(folder / "end.keras")
    for a, b in zip(expected.weights, seen.weights):
        off = tandem.relative(keras.ops.convert_to_numpy(b), keras.ops.convert_to_numpy(a))
        assert off <= TOLERANCE, f"{a.path} is off by {off:.3g}"
    with open(folder / "keras.csv", newline="") as a, open(folder / "log.csv", newline="") as b:
        for wanted, logged in zip(list(csv.DictReader(a)), list(csv.DictReader(b)), strict=True):
            assert set(wanted) == set(logged), f"the log has {sorted(logged)}, Keras's {sorted(wanted)}"
            for key in wanted:
                assert same(wanted[key], logged[key]), f"epoch {wanted['epoch']}: {key} is {logged[key]}, Keras's {wanted[key]}"
    printed = dict(re.findall(r"^(\S+): (\S+)$", said, re.M))
    assert list(printed) == list(results) or set(printed) == set(results), f"{sorted(printed)}, not {sorted(results)}"
    for key, value in results.items():
        assert np.isclose(float(printed[key]), float(value), rtol=1e-4, atol=1e-6), f"evaluate: {key} is {printed[key]}, Keras's {value}"
    print(f"ok: {case.name}", flush=True)


def main():
    keras.utils.set_random_seed(4)
    failed = 0
    for case in cases():
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(case, pathlib.Path(folder))
            except AssertionError as error:
                print(f"FAILED: {case.name}: {error}", flush=True)
                failed += 1
    sys.exit(1 if failed else 0)


main()
