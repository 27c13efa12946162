"""run.py KERAS_PYTHON SCRIPT [ARGUMENT...]: runs a script with real Keras, or skips it (exit status 77) saying why."""
import os
import subprocess
import sys

python, script = sys.argv[1], sys.argv[2:]
if not python:
    print("skipped: TANDEM_KERAS_PYTHON is not set")
    sys.exit(77)
found = subprocess.run([python, "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('keras') is None)"])
if found.returncode != 0:
    print(f"skipped: {python} has no keras")
    sys.exit(77)
os.execv(python, [python, *script])
