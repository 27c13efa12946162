"""What every source file keeps to: under 900 lines, no notes of work left undone."""
import pathlib
import re
import sys

FOLDERS = ("include", "src", "tools", "examples", "tests", "bench", "scripts", "cmake", "docs")
UNDONE = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
LONGEST = 900


def text_of(path):
    try:
        return path.read_text()
    except UnicodeDecodeError:
        return ""


def main(root):
    errors, seen = [], 0
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*") if path.is_file()):
        lines = text_of(path).splitlines()
        seen += 1
        if path.suffix in (".c", ".h", ".py") and len(lines) > LONGEST:
            errors.append(f"{path.relative_to(root)}: {len(lines)} lines; split it, at most {LONGEST}")
        for number, line in enumerate(lines, 1):
            if UNDONE.search(line):
                errors.append(f"{path.relative_to(root)}:{number}: work left undone: {line.strip()}")
    if seen < 50:
        errors.append(f"only {seen} files found below {root}: this check reads the wrong folder")
    if errors:
        sys.exit("\n".join(errors))


main(pathlib.Path(sys.argv[1]))
