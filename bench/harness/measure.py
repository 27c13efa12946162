"""Measures a case: every contender is started, then each works a round in turn, so that what disturbs the machine disturbs
all of them alike."""
import os
import shutil
import time

from . import floor, machine, setup
from .cases import TICK, VARIANTS, WAYS, is_quick
from .contender import Contender, Failed

BEGAN = time.monotonic()
SLOW_ROUND = 0.8  # seconds: who takes longer is measured in fewer rounds


def progress(words):
    print(f"[{time.monotonic() - BEGAN:4.0f} s] {words}", flush=True)


class Plan:
    """How long to measure."""

    def __init__(self, quick):
        self.quick = quick
        self.rounds = 5 if quick else 7
        self.slow_rounds = 2 if quick else 3
        self.seconds = 0.15 if quick else 0.4  # of a round, at least
        self.tick_rounds = 2 if quick else 4
        self.patience = 60 if quick else 150


def data_of(case):
    if case.digits:
        return setup.digits()
    return "bytes" if case.images and case.what == "fit" else "float"


def tandem_command(case, path, devices=None):
    return [setup.program("bench_steps"), case.what, path, case.batch, case.steps, case.classes, data_of(case),
            devices or case.devices, case.precision]


def peer_command(case, way, path, python):
    return [python, setup.PEERS / f"{WAYS[way].program}.py", case.name, way, path]


class Measurement:
    def __init__(self, case, python, roofline, plan, peers):
        self.case, self.python, self.plan, self.roofline = case, python, plan, roofline
        self.cores = roofline.cores
        self.path = setup.model(python, case)
        self.left_out, self.measured, self.foreign = {}, [], []
        self.base = []  # Tandem's rounds
        self.ways = [way for way in case.ways if self.wanted(way, peers)]

    def wanted(self, way, peers):
        if way in VARIANTS:
            return True
        if way not in peers if peers is not None else self.plan.quick and not is_quick(self.case, way):
            return False
        if not setup.has(self.python, WAYS[way].module):
            self.left_out[WAYS[way].title] = f"{WAYS[way].module} is not installed"
            return False
        return True

    def start(self, name, title, command, cores=None):
        """None when it fails, which is noted."""
        logs = setup.BUILD / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        progress(f"{self.case.name}: starting {title}")
        try:
            started = Contender(name, title, command, cores or self.cores, logs / f"{self.case.name}-{name}.log", self.plan.patience)
            started.await_first()
            started.round(self.plan.seconds)  # warms up
            return started
        except Failed as reason:
            self.leave_out(title, reason)
            return None

    def leave_out(self, title, reason):
        self.left_out[title] = str(reason)
        progress(f"{self.case.name}: left out: {title}: {reason}")

    def start_tandem(self):
        return self.start("tandem", "Tandem", tandem_command(self.case, self.path))

    def start_variant(self, way):
        title, count, each = VARIANTS[way]
        cores = set(sorted(self.cores)[:count])
        devices = ",".join(f"cpu:{i}" for i in range(each * len(cores))) or "cpu"
        return self.start(way, title, tandem_command(self.case, self.path, devices), cores)

    def start_peer(self, way):
        if way in VARIANTS:
            return self.start_variant(way)
        return self.start(way, WAYS[way].title, peer_command(self.case, way, self.path, self.python))

    def run_rounds(self, group):
        """Rounds of all in turn; the slow ones leave early."""
        progress(f"{self.case.name}: {self.plan.rounds} rounds")
        spent = dict.fromkeys(group, 0.0)
        pids = [contender.process.pid for contender in group] + [os.getpid()]
        began, before, own = time.monotonic(), machine.busy_seconds(), sum(map(machine.process_seconds, pids))
        for number in range(self.plan.rounds):
            for contender in list(group):
                if number >= self.plan.slow_rounds and spent[contender] > SLOW_ROUND * number:
                    continue
                time.sleep(0.02)  # until the threads of the one before sleep
                try:
                    spent[contender] += contender.measure(self.plan.seconds)
                except Failed as reason:
                    self.leave_out(contender.title, reason)
                    group.remove(contender)
        for _ in range(self.plan.tick_rounds if self.case.what != "fit" else 0):
            self.run_ticks(group)
        foreign = machine.busy_seconds() - before - sum(map(machine.process_seconds, pids)) + own
        self.foreign.append(max(0.0, foreign / (time.monotonic() - began) / os.cpu_count()))

    def run_ticks(self, group):
        for contender in list(group):
            time.sleep(0.02)  # until the threads of the one before sleep
            try:
                contender.round(self.plan.seconds, TICK)
            except Failed as reason:
                self.leave_out(contender.title, reason)
                group.remove(contender)

    def finish(self, group, tandem):
        for contender in list(group):
            try:
                contender.end()
            except Failed as reason:
                self.leave_out(contender.title, reason)
                contender.kill()
                group.remove(contender)
                continue
            result = contender.result(tandem.rounds if tandem else None)
            if contender.name != "tandem":
                self.measured.append((contender.name, result))

    def run_group(self, ways):
        tandem = self.start_tandem()
        group = [contender for contender in [tandem] + [self.start_peer(way) for way in ways] if contender]
        self.run_rounds(group)
        self.finish(group, tandem)
        for contender in group:
            contender.kill()
        if tandem and tandem in group:
            self.base.append(tandem)

    def forget(self):
        """Each first start of the case is the first on a machine: no choice that timing made, no compiled code is remembered."""
        cache = setup.BUILD / "cache"
        shutil.rmtree(cache, ignore_errors=True)
        os.environ.update(TANDEM_CACHE=str(cache / "tandem"), TORCHINDUCTOR_CACHE_DIR=str(cache / "torch"))

    def first_step_again(self):
        """Seconds, of another start; None when it failed."""
        tandem = self.start_tandem()
        if not tandem:
            return None
        tandem.kill()
        return tandem.facts["first"]

    def tandem_result(self):
        """Of all groups together."""
        if not self.base:
            return None
        every = self.base[0]
        for other in self.base[1:]:
            every.rounds += other.rounds
        return dict(every.result(None), again=self.first_step_again())

    def run(self):
        """As written to the JSON file."""
        case = self.case
        self.forget()
        handover = machine.handover(self.cores)
        for ways in [self.ways] if case.together else [[way] for way in self.ways] or [[]]:
            self.run_group(ways)
        roofline = self.roofline.again()
        plan = floor.plan(case, self.path, self.cores)
        digits = setup.digits_name() if case.digits else None
        return {"title": case.title.replace("MNIST", digits or "MNIST"), "digits": digits, "batch": case.batch,
                "what": case.what, "devices": case.devices, "precision": case.precision, "reach": case.reach,
                "reach_beside": case.reach_beside, "when": time.strftime("%Y-%m-%d %H:%M"),
                "tandem": self.tandem_result(), "peers": dict(self.measured), "left_out": self.left_out,
                "foreign": max(self.foreign, default=0.0),
                "handover_ns": [handover, roofline["handover_ns"] and roofline["handover_ns"]["median"]], "roofs": roofline,
                "floor": plan and floor.of_step(plan, roofline)}
