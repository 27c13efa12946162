"""Tests compare.py: a build equals itself, and one that takes another seed, or prints another sentence, is found out.

usage: self.py TANDEM

Where the environment names an older build in TANDEM_OLDER, everything is compared with that too."""
import os
import pathlib
import subprocess
import sys
import tempfile

COMPARE = pathlib.Path(__file__).resolve().parent / "compare.py"
OTHER_SEED = 'exec "{tandem}" $(printf "%s " "$@" | sed "s/--seed 3/--seed 4/")'
OTHER_SENTENCE = '"{tandem}" "$@" && echo "$1" is done'


def compare(old, new, *options):
    done = subprocess.run([sys.executable, COMPARE, "--old", old, "--new", new, *options], stdout=subprocess.PIPE, text=True,
                          check=False)
    print(done.stdout, end="", flush=True)
    return done.returncode


def main():
    tandem = pathlib.Path(sys.argv[1]).resolve()
    wrong = []
    if compare(tandem, tandem, "--only", "keras/mlp_adam", "--only", "resumed/lenet5") != 0:
        wrong.append("a build differs from itself")
    with tempfile.TemporaryDirectory() as folder:
        for script, case in ((OTHER_SEED, "keras/mlp_adam/two"), (OTHER_SENTENCE, "told/summary/averages")):
            other = pathlib.Path(folder) / "other"
            other.write_text("#!/bin/sh\n" + script.format(tandem=tandem) + "\n", encoding="utf-8")
            other.chmod(0o755)
            if compare(tandem, other, "--only", case) != 1:
                wrong.append(f"{case} is taken for the same with: {script}")
    older = os.environ.get("TANDEM_OLDER")
    if older and compare(older, tandem) != 0:
        wrong.append(f"it differs from {older}")
    print(*wrong, sep="\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
