"""What must be there before measuring: the programs, a Python environment with the peers, the models' files."""
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import zlib

from .contender import Failed

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build" / "bench-build"
PEERS = ROOT / "bench" / "peers"
ENVIRONMENT = ROOT / "build" / "bench-env"
FAILED_INSTALLS = ENVIRONMENT / "failed-installs.json"
# One by one, so that one that cannot be installed does not keep the others away.
PACKAGES = (("numpy",), ("keras==3.15.1",), ("jax",), ("tensorflow-cpu",), ("torch",))
DIGITS = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST"}  # what each folder holds
DIGIT_FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")


def build(*programs):
    """Programs of bench/, or the tandem command, as a user would build them."""
    quiet = {"stdout": subprocess.DEVNULL}
    subprocess.run(["cmake", "-S", ROOT, "-B", BUILD, "-DTANDEM_TESTS=OFF", "-DTANDEM_EXAMPLES=OFF"], check=True, **quiet)
    subprocess.run(["cmake", "--build", BUILD, "--parallel", str(len(os.sched_getaffinity(0))), "--target", *programs], check=True, **quiet)


def program(name):
    return BUILD / ("tandem" if name == "tandem" else f"bench/{name}")


def has(python, module):
    code = f"import importlib.util as u, sys; sys.exit(u.find_spec({module!r}) is None)"
    return subprocess.run([python, "-c", code], check=False).returncode == 0


def install(python, packages, **variables):
    """`variables`: of pip's environment. Returns why it failed, or None."""
    command = [python, "-m", "pip", "install", "-q", *packages]
    run = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
                         env={**os.environ, **variables})
    if run.returncode == 0:
        return None
    last = run.stderr.strip().splitlines()[-1:] or ["pip failed"]
    print(f"left out: {packages[0]}: {last[0]}", flush=True)
    return first_error(run.stderr) or last[0]


def first_error(text):
    """The compiler's first error in the log of a package that is built, or None."""
    errors = (line.strip() for line in text.splitlines() if re.search(r"\berror: (?!subprocess)", line))
    return next((re.sub(r"^\S*/(site-packages|tmp)/", "", line) for line in errors), None)


def own_python():
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        print(f"making {ENVIRONMENT} (some gigabytes from PyPI; once)", flush=True)
        subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
    for packages in PACKAGES:
        module = {"keras==3.15.1": "keras", "tensorflow-cpu": "tensorflow"}.get(packages[0], packages[0])
        if not has(python, module):
            install(python, packages)
    return python


def install_once(python, packages, module, **variables):
    """As `install`, into bench/run's own environment; one that failed there is not tried again."""
    notes = failed_installs()
    if has(python, module) or module in notes:
        return
    print(f"installing {packages[0]}", flush=True)
    reason = install(python, packages, **variables)
    if reason:
        FAILED_INSTALLS.write_text(json.dumps({**notes, module: reason[:300]}), encoding="utf-8")


def failed_installs():
    return json.loads(FAILED_INSTALLS.read_text(encoding="utf-8")) if FAILED_INSTALLS.exists() else {}


def why_missing(module):
    reason = failed_installs().get(module)
    return f"it does not install here: {reason}" if reason else f"{module} is not installed"


def versions(python, wanted=("keras", "jax", "tensorflow", "tensorflow-cpu", "torch", "numpy")):
    """{package: version} of what is measured."""
    code = ("import importlib.metadata as m\n"
            "for d in m.distributions():\n    print(d.metadata['Name'].lower().replace('_', '-'), d.version)")
    lines = subprocess.run([python, "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    found = dict(line.split() for line in lines)
    return {name: found[name] for name in wanted if name in found}


def unpack(source, target):
    """From source, or source.gz; whole or not at all. Raises Failed."""
    packed, aside = source.with_name(f"{source.name}.gz"), target.with_name(f"{target.name}.part")
    try:
        aside.write_bytes(gzip.decompress(packed.read_bytes()) if packed.exists() else source.read_bytes())
    except (OSError, EOFError, zlib.error) as reason:
        raise Failed(f"{source}: {reason}") from reason
    aside.rename(target)


def unpacked_digits():
    """The folder that digits() has filled, or None: MNIST's before Fashion-MNIST's."""
    folders = [BUILD / name for name in DIGITS]
    return next((folder for folder in folders if all((folder / name).exists() for name in DIGIT_FILES)), None)


def digits():
    """The folder with the training images and labels of MNIST, unpacked, or of Fashion-MNIST where MNIST cannot be had.
    Raises Failed."""
    folder = unpacked_digits()
    if folder and folder.name == "mnist":
        return folder
    found = subprocess.run([ROOT / "scripts" / "digits"], stdout=subprocess.PIPE, text=True, check=False)
    if found.returncode != 0:
        raise Failed("neither MNIST nor Fashion-MNIST is to be had: put MNIST into $TANDEM_DATA/mnist")
    source = pathlib.Path(found.stdout.strip())
    folder = BUILD / (source.name if source.name in DIGITS else "mnist")
    folder.mkdir(parents=True, exist_ok=True)
    for name in DIGIT_FILES:
        unpack(source / name, folder / name)
    return folder


def digits_name():
    """What the digits are called in tables."""
    folder = unpacked_digits()
    return DIGITS[folder.name] if folder else "MNIST"


def model(python, case):
    """The path of the network's .keras file, written by Keras; compiled, unless it is only to predict. Raises Failed."""
    purpose = "predict" if case.what == "predict" else "train"
    path = BUILD / "models" / f"{case.network}-{purpose}.keras"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        command = [python, PEERS / "networks.py", case.network, path, purpose]
        run = subprocess.run(command, stderr=subprocess.PIPE,
                             stdout=subprocess.DEVNULL, text=True, check=False)
        if run.returncode != 0:
            raise Failed(f"Keras did not write {path}: {(run.stderr.strip().splitlines() or ['?'])[-1]}")
    return path
