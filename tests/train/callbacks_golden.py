"""Writes tests/train/callbacks_golden.h: what real Keras's callbacks do over epochs whose logs are given. Needs Keras; run
once, what it writes is in the tree."""
import os
import pathlib
import tempfile

os.environ.setdefault("KERAS_BACKEND", "jax")
import keras  # noqa: E402
import numpy as np  # noqa: E402

VAL_LOSS = [1.0, 0.9, 0.95, 0.85, 0.86, 0.87, 0.851, 0.88, 0.8, 0.81, 0.82, 0.83, 0.84, 0.85]
ACCURACY = [0.5, 0.6, 0.55, 0.58, 0.7, 0.69, 0.68, 0.7, 0.66, 0.71, 0.72, 0.5, 0.4, 0.3]
STOPPING = [dict(patience=2), dict(patience=3), dict(patience=2, min_delta=0.06), dict(patience=3, baseline=0.9),
            dict(patience=1, start_from_epoch=4), dict(patience=2, monitor="accuracy", mode="max"), dict(patience=0)]
PLATEAU = [dict(patience=1), dict(patience=2, factor=0.5), dict(patience=1, factor=0.5, cooldown=2),
           dict(patience=1, factor=0.2, min_lr=0.001), dict(patience=2, factor=0.5, min_delta=0.06),
           dict(patience=1, factor=0.5, monitor="accuracy", mode="max")]
CHECKPOINT = [dict(), dict(save_best_only=True), dict(save_best_only=True, monitor="accuracy", mode="max"),
              dict(save_best_only=True, initial_value_threshold=0.84)]


def network():
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    return model


def drive(callback, model):
    """Yields the epoch after each end; sets its number as the weights, so that restoring shows."""
    callback.set_model(model)
    model.stop_training = False
    callback.on_train_begin()
    for epoch, (loss, accuracy) in enumerate(zip(VAL_LOSS, ACCURACY)):
        callback.on_epoch_begin(epoch)
        model.set_weights([np.full((1, 1), epoch), np.zeros(1)])
        callback.on_epoch_end(epoch, {"loss": loss + 0.1, "val_loss": loss, "accuracy": accuracy})
        yield epoch
        if model.stop_training:
            break
    callback.on_train_end()


def stopping(options):
    model = network()
    epochs = len(list(drive(keras.callbacks.EarlyStopping(restore_best_weights=True, **options), model)))
    return epochs, int(model.get_weights()[0][0][0])


def plateau(options):
    model = network()
    return [float(model.optimizer.learning_rate) for _ in drive(keras.callbacks.ReduceLROnPlateau(**options), model)]


def checkpoint(options):
    with tempfile.TemporaryDirectory() as folder:
        pattern = folder + "/{epoch:02d}-{val_loss:.3f}.keras"
        list(drive(keras.callbacks.ModelCheckpoint(pattern, **options), network()))
        return sorted(os.listdir(folder))


def numbers(values):
    return ", ".join(f"{value!r}" for value in values)


def main():
    lines = ["/* What real Keras's callbacks do; made by callbacks_golden.py. */",
             f"static const double val_loss[] = {{{numbers(VAL_LOSS)}}};",
             f"static const double accuracy[] = {{{numbers(ACCURACY)}}};",
             "/* Epochs run, and the epoch whose weights are restored. */",
             "static const int stopping_golden[][2] = {" + ", ".join(f"{{{a}, {b}}}" for a, b in map(stopping, STOPPING)) + "};",
             "/* The learning rate behind each epoch. */",
             "static const double plateau_golden[][14] = {"
             + ", ".join("{" + numbers(plateau(options)) + "}" for options in PLATEAU) + "};",
             "static const char *const checkpoint_golden[][15] = {"
             + ", ".join("{" + ", ".join(f'"{name}"' for name in checkpoint(options)) + "}" for options in CHECKPOINT) + "};"]
    (pathlib.Path(__file__).parent / "callbacks_golden.h").write_text("\n".join(lines) + "\n")


main()
