"""generate.py: `tandem generate` without chance writes what Keras's predictions of the same file say, character by
character, whatever the length of the prompt; with --top-k 2, by chance, one of the two that Keras finds likeliest."""
import json
import os
import pathlib
import sys
import tempfile
import zipfile

import keras
import numpy as np
from keras import layers

sys.path.insert(0, os.path.dirname(__file__))
from support import tandem  # noqa: E402

WINDOW, LENGTH = 12, 40
PROMPTS = ("a", "büb", "fgab\ndeüc\nab", "abcdefgabcdefgabcdefgü\n")


def text():
    random = np.random.default_rng(5)
    return "".join(random.choice(list("abcdefgü\n"), 3000, p=[.2, .15, .15, .1, .1, .1, .1, .05, .05])) + "abc"


def train(folder):
    (folder / "text.txt").write_text(text(), encoding="utf-8", newline="\n")
    keras.utils.set_random_seed(3)
    model = keras.Sequential([layers.Input((WINDOW,), dtype="int32"), layers.Embedding(10, 8),
                              layers.LSTM(24, return_sequences=True), layers.Dense(10)])
    model.compile(keras.optimizers.Adam(1e-2), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.save(folder / "start.keras")
    tandem.run(folder, "fit", "start.keras", "--train", "text.txt", "--window", WINDOW, "--epochs", 3, "--quiet", "--output", "end.keras")
    with zipfile.ZipFile(folder / "end.keras") as archive:
        alphabet = [chr(c) for c in json.loads(archive.read("tandem.json"))["characters"]]
    return keras.saving.load_model(folder / "end.keras"), alphabet


def ranked(model, alphabet, written):
    """The characters there are, the likeliest next one first."""
    seen = [alphabet.index(c) for c in written[-WINDOW:]]
    scores = model.predict_on_batch(np.array([seen + [0] * (WINDOW - len(seen))]))[0, len(seen) - 1]
    return [alphabet[i] for i in np.argsort(-scores[:len(alphabet)], kind="stable")]


def check(model, alphabet, folder, prompt):
    expected = prompt
    for _ in range(LENGTH):
        expected += ranked(model, alphabet, expected)[0]
    seen = tandem.run(folder, "generate", "end.keras", "--prompt", prompt, "--length", LENGTH, "--temperature", 0)
    assert seen == expected + "\n", f"behind {prompt!r}: {seen!r}, Keras {expected!r}"
    seen = tandem.run(folder, "generate", "end.keras", "--prompt", prompt, "--length", LENGTH, "--top-k", 2, "--seed", 3)
    second = 0
    for i in range(len(prompt), len(seen) - 1):
        place = ranked(model, alphabet, seen[:i]).index(seen[i])
        assert place < 2, f"behind {seen[:i]!r}: {seen[i]!r} is number {place + 1}"
        second += place
    assert 0 < second < LENGTH, f"{second} of {LENGTH} were the second likeliest"


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model, alphabet = train(folder)
        for prompt in PROMPTS:
            check(model, alphabet, folder, prompt)
            print(f"ok: {prompt!r}")


try:
    main()
except AssertionError as error:
    sys.exit(str(error))
