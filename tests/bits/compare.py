"""Compares two builds of the command: whether they make the same models, predictions and sentences, byte for byte.

usage: compare.py --old TANDEM --new TANDEM [--only PATTERN] [--explain] [--keep FOLDER] [--list]

Each build makes its own start models by `tandem new` and trains them on small made-up data, alone and on several devices, as
the cases in cases.py say; then everything written and printed is compared. A line a case; at the end exit status 1 where
anything differed. What an archive holds is compared member by member, without the date on which it was saved."""
import argparse
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

import cases

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "formats" / "golden"
SECONDS = 120  # that one command may take


class Build:
    """One build of the command, with the folder that its cases run in."""

    def __init__(self, command, root):
        self.command = pathlib.Path(command).resolve()
        self.start = root / "start"  # data and models to begin with
        self.root = root
        self.environment = {"PATH": os.environ["PATH"], "HOME": "", "TANDEM_CACHE": "off", "LC_ALL": "C.UTF-8"}

    def run(self, line, folder):
        """What a command printed, how it ended before that."""
        words = [word.replace("@", os.path.relpath(self.start, folder)) for word in line.split()]
        done = subprocess.run([self.command, *words], cwd=folder, env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=SECONDS, check=False)
        return f"$ tandem {line}\nexit {done.returncode}\n".encode() + done.stdout + done.stderr

    def make_models(self):
        cases.make_data(self.start)
        for name, of in cases.NEW.items():
            printed = self.run(f"new {of} --seed 7 --quiet --output @/{name}.keras", self.root)
            if not (self.start / f"{name}.keras").exists():
                sys.exit(f"compare: {self.command} makes no {name}:\n{printed.decode()}")
        for name in cases.GOLDEN:
            shutil.copy(GOLDEN / f"{name}.keras", self.start)
        for name, (source, change) in cases.EDITED.items():
            cases.edit(self.start / f"{source}.keras", self.start / f"{name}.keras", change)

    def outcome(self, name, lines, first=None):
        """Everything that a case makes: the bytes of each file, and what was printed. `first`: the build that runs the first
        command instead."""
        folder = self.root / name.replace("/", "-")
        folder.mkdir()
        builds = [first or self] + [self] * (len(lines) - 1)
        printed = [build.run(line, folder) for build, line in zip(builds, lines)]
        found = {f"command {number}": text for number, text in enumerate(printed, 1)}
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                found.update(held_in(path, str(path.relative_to(folder))))
        shutil.rmtree(folder)
        return found


def held_in(path, name):
    """The bytes of a file by name, or of each member of an archive."""
    if not zipfile.is_zipfile(path):
        return {name: path.read_bytes()}
    with zipfile.ZipFile(path) as archive:
        return {f"{name}:{member}": without_date(archive.read(member)) for member in archive.namelist()}


def without_date(held):
    return re.sub(rb'"date_saved": "[^"]*"', b'"date_saved": ""', held)


def failed(outcome):
    """The commands of a case that ended otherwise than with 0."""
    return [text for name, text in outcome.items() if name.startswith("command") and b"\nexit 0\n" not in text[:4096]]


def differences(old, new):
    for name in sorted(old.keys() | new.keys()):
        if name not in new or name not in old:
            yield f"{name}: only the {'old' if name in old else 'new'} build makes it"
        elif old[name] != new[name]:
            yield f"{name}: {first_difference(old[name], new[name])}"


def first_difference(old, new):
    at = next((i for i, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))
    count = sum(a != b for a, b in zip(old, new))
    return f"{len(old)} and {len(new)} bytes, {count} differ, first at {at}: {old[at:at + 60]!r} and {new[at:at + 60]!r}"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", required=True, metavar="TANDEM", help="the command of the older build")
    parser.add_argument("--new", required=True, metavar="TANDEM", help="the command of the present build")
    parser.add_argument("--only", action="append", metavar="PATTERN", help="cases of this name, and those below it; * may stand in it")
    parser.add_argument("--explain", action="store_true", help="compare what explain says, and that alone")
    parser.add_argument("--list", action="store_true", help="print the cases' commands, and run none")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER", help="write what differs there, as old/ and new/")
    return parser.parse_args()


def chosen(options):
    every = cases.explained() if options.explain else cases.every_case()
    patterns = options.only or ["*"]
    named = {name: lines for name, lines in every.items()
             if any(fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(name, f"{pattern}/*") for pattern in patterns)}
    return named or sys.exit("compare: there is no such case; --list prints them")


def keep(folder, case, outcomes):
    for build, outcome in zip(("old", "new"), outcomes):
        for name, held in outcome.items():
            path = folder / build / case / name.replace(":", "/").replace(" ", "_")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(held)


def compare(old, new, case, lines, options):
    """Whether both builds make the same; says so."""
    began = time.monotonic()
    outcomes = [build.outcome(case, lines) for build in (old, new)]
    found = list(differences(*outcomes))
    if case.startswith("resumed/") and not found:
        outcomes[1] = new.outcome(case, lines, first=old)
        found = [f"begun by the old build: {sentence}" for sentence in differences(*outcomes)]
    refused = [] if case.startswith("told/") else failed(outcomes[0])
    word = "DIFFERS" if found else "FAILS" if refused else "same"
    print(f"{word:8}{case} ({time.monotonic() - began:.1f} s)", *found, *(text.decode() for text in refused), sep="\n    ", flush=True)
    if found and options.keep:
        keep(options.keep, case, outcomes)
    return not found and not refused


def main():
    options = arguments()
    named = chosen(options)
    if options.list:
        print("\n".join(f"{name}\n    " + "\n    ".join(lines) for name, lines in named.items()))
        return 0
    with tempfile.TemporaryDirectory(prefix="tandem-bits-") as folder:
        builds = []
        for name, command in (("old", options.old), ("new", options.new)):
            root = pathlib.Path(folder) / name
            (root / "start").mkdir(parents=True)
            builds.append(Build(command, root))
            builds[-1].make_models()
        same = [compare(*builds, name, lines, options) for name, lines in named.items()]
    print(f"{sum(same)} of {len(same)} cases are the same to the bit")
    return int(not all(same))


if __name__ == "__main__":
    sys.exit(main())
