"""metrics.py: models compiled with Keras's metrics, trained by Keras and by `tandem fit` from the same file: what is logged of
each epoch, of the training and of the validation part, has the same names and the same values, on one device and on two; the
file that Tandem saves holds the same metrics, with which Keras evaluates to the same numbers."""
import dataclasses
import json
import os
import subprocess
import tempfile

os.environ.setdefault("KERAS_BACKEND", "jax")
import keras
import numpy as np
from keras import layers, losses, metrics

TANDEM = os.environ["TANDEM"]
TOLERANCE = 2e-5
SAMPLES, VALIDATION, BATCH, EPOCHS = 53, 21, 8, 2
DEVICES = "cpu", "cpu:0,cpu:1"


def random():
    return np.random.default_rng(11)


def numbers(*shape):
    return random().normal(size=(SAMPLES + VALIDATION, *shape)).astype("float32")


def labels(count, *shape):
    return random().integers(0, count, (SAMPLES + VALIDATION, *shape))


@dataclasses.dataclass
class Case:
    name: str
    model: keras.Model
    y: object
    loss: object
    metrics: list


def sequential(shape, *stack):
    return keras.Sequential([layers.Input(shape), *stack])


def dense(units, activation=None):
    return sequential((6,), layers.Dense(9, activation="tanh"), layers.Dense(units, activation=activation))


def pixels(units, activation=None):
    return sequential((6, 5, 2), layers.Conv2D(8, 3, padding="same", activation="tanh"), layers.Conv2D(units, 1, activation=activation))


def classification():
    sparse, one_hot = losses.SparseCategoricalCrossentropy(from_logits=True), losses.CategoricalCrossentropy(from_logits=True)
    yield Case("class numbers", dense(7), labels(7), sparse,
               ["accuracy", metrics.SparseTopKCategoricalAccuracy(k=3), metrics.SparseTopKCategoricalAccuracy(),
                metrics.SparseTopKCategoricalAccuracy(k=2, name="top_2"), "sparse_categorical_accuracy"])
    yield Case("class numbers by place", sequential((4, 6), layers.Dense(5)), labels(5, 4), sparse,
               ["acc", metrics.SparseTopKCategoricalAccuracy(k=2), metrics.MeanIoU(5, sparse_y_pred=False)])
    yield Case("one-hot", dense(7), np.eye(7, dtype="float32")[labels(7)], one_hot,
               ["accuracy", "top_k_categorical_accuracy", metrics.TopKCategoricalAccuracy(k=2), metrics.Precision(thresholds=0),
                metrics.Recall(thresholds=[0.25]), metrics.Recall(class_id=3, thresholds=0.0),
                metrics.MeanIoU(7, sparse_y_true=False, sparse_y_pred=False)])
    yield Case("two classes", dense(1, "sigmoid"), labels(2, 1), "binary_crossentropy",
               ["accuracy", metrics.BinaryAccuracy(threshold=0.4), "binary_accuracy", metrics.Precision(), metrics.Recall(),
                metrics.Precision(thresholds=0.45, name="strict"), metrics.BinaryIoU(), metrics.BinaryIoU([1], 0.55)])
    yield Case("several labels", dense(4, "sigmoid"), labels(2, 4), "binary_crossentropy",
               [metrics.Precision(), metrics.Recall(), metrics.Precision(class_id=2), metrics.Recall(thresholds=0.3),
                "precision", metrics.BinaryAccuracy(threshold=0.6)])


def thresholds():
    binary, several = labels(2, 1), labels(2, 4)
    yield Case("areas", dense(1, "sigmoid"), binary, "binary_crossentropy",
               ["auc", metrics.AUC(curve="PR"), metrics.AUC(curve="PRGAIN"), metrics.AUC(num_thresholds=7, summation_method="minoring"),
                metrics.AUC(num_thresholds=5, curve="PR", summation_method="majoring", name="above"),
                metrics.AUC(thresholds=[0.45, 0.5, 0.62, 0.3]), metrics.AUC(thresholds=[0.25, 0.5, 0.75]),
                metrics.AUC(num_thresholds=2)])
    yield Case("areas of logits", dense(1), binary, losses.BinaryCrossentropy(from_logits=True),
               [metrics.AUC(from_logits=True), metrics.AUC(), metrics.AUC(curve="PR", from_logits=True),
                metrics.Precision(thresholds=[0.0, 0.5, 1.0])])
    yield Case("areas of labels", dense(4, "sigmoid"), several, "binary_crossentropy",
               [metrics.AUC(multi_label=True), metrics.AUC(multi_label=True, num_labels=4, curve="PR", num_thresholds=11), metrics.AUC(),
                metrics.AUC(multi_label=True, thresholds=[1 / 3, 2 / 3], summation_method="majoring"), metrics.AUC(multi_label=True, curve="PRGAIN"),
                metrics.Recall(thresholds=[0.55, 0.4, 0.45]), metrics.Precision(thresholds=[0.5, 0.4], class_id=1, name="lists")])
    yield Case("weighted areas of labels", dense(4, "sigmoid"), several, "binary_crossentropy",
               [metrics.AUC(multi_label=True, label_weights=[1.0, 0.25, 0.0, 3.0]),
                metrics.AUC(multi_label=True, label_weights=[2, 1, 1, 0.5], curve="PR", num_thresholds=11, name="curve")])
    yield Case("areas of pixels", pixels(1, "sigmoid"), labels(2, 6, 5, 1), "binary_crossentropy",
               [metrics.AUC(), metrics.AUC(curve="PR", num_thresholds=300), metrics.Precision(thresholds=[0.3, 0.5, 0.6])])
    yield Case("F1 of labels", dense(4, "sigmoid"), several, "binary_crossentropy",
               [metrics.F1Score(threshold=0.5), metrics.F1Score("micro", 0.5), metrics.F1Score("macro", 0.45, name="mean"),
                metrics.F1Score("weighted", 0.4), "f1_score"])
    yield Case("F1 of classes", dense(5, "softmax"), np.eye(5, dtype="float32")[labels(5)], "categorical_crossentropy",
               [metrics.F1Score(), metrics.F1Score("macro"), metrics.F1Score("micro"), metrics.F1Score("weighted")])
    yield Case("F1 of soft targets", dense(3, "softmax"), np.random.default_rng(4).dirichlet([1, 1, 1], SAMPLES + VALIDATION).astype("float32"),
               "categorical_crossentropy", [metrics.F1Score("macro"), metrics.F1Score(), metrics.F1Score("weighted", threshold=0.3)])
    yield Case("F1 of one class", dense(1, "sigmoid"), binary, "binary_crossentropy", [metrics.F1Score(threshold=0.5), metrics.F1Score("macro")])


def segmentation():
    y = labels(5, 6, 5)
    some = losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=4)
    yield Case("a class is ignored", pixels(4), y, some,
               ["accuracy", metrics.MeanIoU(4, sparse_y_pred=False), metrics.MeanIoU(4, sparse_y_pred=False, ignore_class=0),
                metrics.IoU(4, [2], sparse_y_pred=False), metrics.IoU(4, [0, 3], sparse_y_pred=False, name="ends"),
                metrics.MeanIoU(3, sparse_y_pred=False, name="fewer"), metrics.MeanIoU(6, sparse_y_pred=False, name="more")])
    yield Case("void is 255", pixels(5, "softmax"), np.where(y == 4, 255, y),
               losses.SparseCategoricalCrossentropy(ignore_class=255),
               [metrics.MeanIoU(5, sparse_y_pred=False, ignore_class=255), metrics.SparseCategoricalAccuracy(name="pixels")])
    yield Case("a mask", pixels(1, "sigmoid"), labels(2, 6, 5, 1), "binary_crossentropy",
               [metrics.BinaryIoU(target_class_ids=[1]), metrics.MeanIoU(2), metrics.BinaryIoU(threshold=0.45)])


def regression():
    yield Case("errors", dense(3), numbers(3), "mean_squared_error",
               ["mae", metrics.RootMeanSquaredError(), "mse", metrics.MeanAbsoluteError(name="apart"), "MeanSquaredError",
                metrics.MeanSquaredError()])
    yield Case("one number", dense(1), numbers(1), "mse", ["mean_absolute_error", metrics.RootMeanSquaredError(name="rmse")])
    yield Case("class numbers of a regression", dense(1), labels(4, 1), "mse", [metrics.MeanIoU(4), metrics.IoU(3, [0, 1])])


def outputs():
    x = layers.Input((6,))
    hidden = layers.Dense(9, activation="tanh")(x)
    model = keras.Model(x, [layers.Dense(4, name="kind")(hidden), layers.Dense(2, name="size")(hidden)])
    yield Case("two outputs", model, [labels(4), numbers(2)],
               [losses.SparseCategoricalCrossentropy(from_logits=True), "mse"],
               [["accuracy", metrics.MeanIoU(4, sparse_y_pred=False)], ["mae", metrics.RootMeanSquaredError()]])


def save(path, x, y):
    arrays = {"y": y} if not isinstance(y, list) else {f"y{i}": one for i, one in enumerate(y)}
    np.savez(path, **({"x": x} if not isinstance(y, list) else {"x0": x}), **arrays)


def part(y, begin, end):
    return [one[begin:end] for one in y] if isinstance(y, list) else y[begin:end]


def by_tandem(devices):
    words = [TANDEM, "fit", "start.keras", "--train", "train.npz", "--validation", "validation.npz", "--epochs", str(EPOCHS),
             "--batch-size", str(BATCH), "--no-shuffle", "--devices", devices, "--log", "log.jsonl", "--output", "end.keras", "--quiet"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with open("log.jsonl") as file:
        rows = [json.loads(line) for line in file]
    os.remove("log.jsonl")
    others = {"epoch", "steps", "samples", "seconds", "seconds_waiting", "learning_rate"}
    return [{key: value for key, value in row.items() if key not in others} for row in rows]


def spread(logs):
    """Where Keras logs a list, Tandem logs its entries: f1_score[0], f1_score[1], ..."""
    for key, value in logs.items():
        if np.size(value) == 1:
            yield key, float(np.squeeze(value))
        else:
            yield from ((f"{key}[{i}]", float(entry)) for i, entry in enumerate(np.asarray(value)))


def compare(what, mine, wanted):
    assert sorted(mine) == sorted(wanted), f"{what}: {sorted(mine)}, but Keras has {sorted(wanted)}"
    for key in wanted:
        apart = abs(mine[key] - wanted[key]) / max(abs(wanted[key]), 1e-3)
        assert apart <= TOLERANCE, f"{what}: {key} is {mine[key]:.9g}, Keras's {wanted[key]:.9g}"


def config(model):
    return keras.saving.serialize_keras_object(model)["compile_config"]["metrics"]


def run(case):
    keras.utils.set_random_seed(3)
    x = np.random.default_rng(2).normal(size=(SAMPLES + VALIDATION, *case.model.input_shape[1:])).astype("float32")
    train, validation = (x[:SAMPLES], part(case.y, 0, SAMPLES)), (x[SAMPLES:], part(case.y, SAMPLES, None))
    case.model.compile(optimizer=keras.optimizers.SGD(0.05), loss=case.loss, metrics=case.metrics)
    case.model.save("start.keras")
    save("train.npz", *train)
    save("validation.npz", *validation)
    history = case.model.fit(*train, validation_data=validation, epochs=EPOCHS, batch_size=BATCH, shuffle=False, verbose=0).history
    wanted = [dict(spread({key: values[epoch] for key, values in history.items()})) for epoch in range(EPOCHS)]
    for devices in DEVICES:
        for epoch, mine in enumerate(by_tandem(devices)):
            compare(f"{case.name} ({devices}), epoch {epoch}", mine, wanted[epoch])
    reopened = keras.saving.load_model("end.keras")
    found = reopened.evaluate(*validation, batch_size=BATCH, verbose=0, return_dict=True)
    compare(f"{case.name}, saved by Tandem", {f"val_{key}": value for key, value in spread(found)},
            {key: value for key, value in wanted[-1].items() if key.startswith("val_")})


wrong = 0
for group in (classification, thresholds, segmentation, regression, outputs):
    for case in group():
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                run(case)
                print(f"ok: {case.name}", flush=True)
            except AssertionError as error:
                wrong += 1
                print(f"FAILED: {error}", flush=True)
            os.chdir("/")
raise SystemExit(f"{wrong} cases failed" if wrong else 0)
