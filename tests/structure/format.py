"""Every C file is as clang-format 14 leaves it, the version the tree is formatted with; others differ in details."""
import pathlib
import re
import shutil
import subprocess
import sys

VERSION = 14
FOLDERS = ("include", "src", "tools", "examples", "tests", "bench")


def find_clang_format():
    for name in (f"clang-format-{VERSION}", "clang-format"):
        program = shutil.which(name)
        if program:
            said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
            if re.search(rf"version {VERSION}\.", said):
                return program
    return None


def main(root):
    program = find_clang_format()
    if not program:
        print(f"clang-format {VERSION} is not installed")
        sys.exit(77)
    files = sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.[ch]"))
    sys.exit(subprocess.run([program, "--dry-run", "-Werror", *files]).returncode)


main(pathlib.Path(sys.argv[1]))
