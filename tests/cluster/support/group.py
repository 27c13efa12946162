"""Processes of a group, for tests: started by hand with addresses of their own, or by tandem launch; ended by their numbers."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

BITS = pathlib.Path(__file__).resolve().parent.parent.parent / "bits"
sys.path.insert(0, str(BITS))
import cases  # noqa: E402  pylint: disable=wrong-import-position
import compare  # noqa: E402  pylint: disable=wrong-import-position

SECONDS = 120  # that anything may take
TANDEM = pathlib.Path(sys.argv[1]).resolve()
LAUNCHERS = re.compile("^(TF_CONFIG|TANDEM_(SECRET_FILE|GROUPS)|KERAS_DISTRIBUTION_.*|RANK|WORLD_SIZE|MASTER_.*|SLURM_.*|OMPI_.*|PMI.*)$")


class Checks:
    """What was found wrong."""

    def __init__(self):
        self.wrong = 0
        self.name = ""

    def begin(self, name):
        self.name = name
        print(name, flush=True)

    def expect(self, holds, sentence):
        if not holds:
            self.wrong += 1
            print(f"FAILED: {self.name}: {sentence}", flush=True)

    def finish(self):
        print("all passed" if not self.wrong else f"{self.wrong} failed")
        sys.exit(int(self.wrong > 0))


check = Checks()


def environment(**more):
    """This process's, without what describes a cluster."""
    kept = {name: value for name, value in os.environ.items() if not LAUNCHERS.match(name)}
    return {**kept, "TANDEM_CACHE": "off", "LC_ALL": "C.UTF-8", **more}


def run(line, folder, **more):
    """A command that ends, in its folder: a CompletedProcess whose output is text."""
    return subprocess.run([TANDEM, *line.split()], cwd=folder, env=environment(**more), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=SECONDS, check=False)


def until(condition, what):
    """Waits for something that another process does."""
    end = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"FAILED: {check.name}: in {SECONDS} s it did not come that {what}")
        time.sleep(0.01)


class Ports:
    """Ports of the system's choice. Their sockets hold them, and let processes that say SO_REUSEADDR too bind them."""

    def __init__(self, count, host="127.0.0.1"):
        self.sockets = []
        for _ in range(count):
            taken = socket.socket()
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind((host, 0))
            self.sockets.append(taken)
        self.addresses = [f"{host}:{taken.getsockname()[1]}" for taken in self.sockets]
        self.numbers = [taken.getsockname()[1] for taken in self.sockets]

    def close(self):
        for taken in self.sockets:
            taken.close()


class Task:
    """A process, whose output goes to files."""

    def __init__(self, line, folder, name, env, command=None):
        self.folder, self.name = folder, name
        self.paths = [pathlib.Path(folder) / f"{name}.{end}" for end in ("out", "err")]
        with open(self.paths[0], "wb") as out, open(self.paths[1], "wb") as err:
            self.process = subprocess.Popen([*(command or [TANDEM]), *line.split()], cwd=folder, env=env, stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=err, start_new_session=True)

    def wait(self):
        """Its exit status; -9: it was killed. None, and a failure: it hung, and was killed now."""
        try:
            return self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            check.expect(False, f"{self.name} hangs; so far it said: {self.err}")
            self.process.kill()
            self.process.wait()
            return None

    def kill(self, number):
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)

    @property
    def out(self):
        return self.paths[0].read_text(encoding="utf-8")

    @property
    def err(self):
        return self.paths[1].read_text(encoding="utf-8")


class Group:
    """Tasks worker 0, the chief, to worker N - 1, on loopback. `lines`: what each runs, in a folder of its own."""

    def __init__(self, folder, count, **options):
        self.folder = pathlib.Path(folder)
        self.ports = Ports(count)
        self.addresses = self.ports.addresses
        self.tasks = []
        self.secret = self.folder / "secret"
        self.options = options
        if not self.secret.exists():
            self.secret.write_bytes(os.urandom(32))
            self.secret.chmod(0o600)

    def config(self, index, addresses=None):
        return json.dumps({"cluster": {"worker": addresses or self.addresses}, "task": {"type": "worker", "index": index}})

    def environment(self, index, **more):
        return environment(**{"TF_CONFIG": self.config(index), "TANDEM_SECRET_FILE": str(self.secret), **more})

    def start(self, index, line, folder=None, name=None, **more):
        folder = pathlib.Path(folder or self.folder / f"task{index}")
        folder.mkdir(exist_ok=True)
        env = {key: value for key, value in self.environment(index, **more).items() if value is not None}
        task = Task(line, folder, name or f"task{index}", env)
        self.tasks.append(task)
        return task

    def start_all(self, *lines, **more):
        for index in range(len(self.addresses)):
            self.start(index, lines[min(index, len(lines) - 1)], **more)
        return self.tasks

    def wait(self):
        return [task.wait() for task in self.tasks]

    def close(self):
        for task in self.tasks:
            if task.process.poll() is None:
                task.kill(signal.SIGKILL)
                task.process.wait()
        self.ports.close()


@contextlib.contextmanager
def group(folder, count):
    made = Group(folder, count)
    try:
        yield made
    finally:
        made.close()


@contextlib.contextmanager
def workplace():
    """A folder with the data and the models of tests/bits in start/, which is removed."""
    with tempfile.TemporaryDirectory(prefix="tandem-group-") as name:
        root = pathlib.Path(name).resolve()
        (root / "start").mkdir()
        compare.Build(TANDEM, root).make_models()
        yield root


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def outcome(folder, but=()):
    """What a folder's files hold, by name; of archives each member."""
    found = {}
    for path in sorted(pathlib.Path(folder).rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file() and not any(re.search(pattern, name) for pattern in but):
            found.update(compare.held_in(path, name))
    return found


def expect_same(one, other, what):
    for difference in compare.differences(one, other):
        check.expect(False, f"{what}: {difference}")


def is_gone(pid):
    """Not running: a zombie counts as gone."""
    try:
        return "\nState:\tZ" in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return True


def children(pid):
    """The processes that a launcher has started, the chief first."""
    return sorted(int(text) for text in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split())
