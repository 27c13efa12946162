"""A process that is measured: started once, then told to work a round at a time (bench/peers/peer.py has the protocol)."""
import json
import os
import select
import signal
import statistics
import subprocess
import time


class Failed(Exception):
    """With the reason, in a few words."""


class Missing(Failed):
    """It is not there to be measured, which is no failure of its own."""


class Contender:
    def __init__(self, name, title, command, cores, log, patience, environment=None):
        """`patience`: seconds until the first step is done, and for a round. `environment`: variables beyond this process's.
        Its first step is to be awaited."""
        self.name, self.title, self.log, self.patience = name, title, log, patience
        self.rounds, self.facts, self.buffer = [], {}, b""
        environment = dict(os.environ, JAX_PLATFORMS="cpu", CUDA_VISIBLE_DEVICES="", PYTHONWARNINGS="ignore",
                           BENCH_STARTED=repr(time.monotonic()), **(environment or {}))
        with open(log, "wb") as errors:
            self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=errors, env=environment, start_new_session=True,
                                            preexec_fn=lambda: os.sched_setaffinity(0, cores))

    def await_first(self):
        """Until its first step is done. Raises Failed."""
        self.facts.update(self.hear())

    def hear(self):
        """The next line of JSON; other lines are a library's chatter."""
        end = time.monotonic() + self.patience
        while True:
            line, newline, rest = self.buffer.partition(b"\n")
            if newline:
                self.buffer = rest
                if line.startswith(b"{"):
                    return json.loads(line)
                continue
            if not select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]:
                self.kill()
                raise Failed(f"no answer within {self.patience:.0f} s")
            more = os.read(self.process.stdout.fileno(), 65536)
            if not more:
                raise Failed(self.last_words())
            self.buffer += more

    def last_words(self):
        status = self.process.wait()
        with open(self.log, encoding="utf-8", errors="replace") as log:
            lines = [line.strip() for line in log if line.strip()]
        return f"{lines[-1][:160] if lines else 'ended'} (exit status {status}; {self.log})"

    def round(self, seconds, tick=None):
        """Microseconds a step, of at least `seconds` of work, or of calls at ticks."""
        try:
            self.process.stdin.write(f"round {seconds} {tick or ''}\n".encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failed(self.last_words()) from None
        return self.hear()["us"]

    def measure(self, seconds):
        began = time.monotonic()
        self.rounds.append(self.round(seconds))
        return time.monotonic() - began

    def end(self):
        self.process.stdin.close()
        self.facts.update(self.hear())
        self.process.wait()

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def result(self, base):
        """As written to the JSON file. `base`: Tandem's rounds, or None."""
        found = {"title": self.title, "us": statistics.median(self.rounds), "least": min(self.rounds),
                 "most": max(self.rounds), "rounds": len(self.rounds), "first": self.facts["first"],
                 "parameters": self.facts["parameters"], "kilobytes": self.facts.get("kilobytes")}
        found.update((name, self.facts[name]) for name in ("percentiles", "at_ticks", "overhead") if name in self.facts)
        if base:
            ratios = sorted(mine / tandem for mine, tandem in zip(self.rounds, base))
            found["ratio"] = statistics.median(ratios)
            found["noise"] = spread(ratios)
        return found


def spread(ordered):
    """Half of what the middle half of the values spans, relative to the median."""
    if len(ordered) < 3:
        return 0.1
    lower, _, upper = statistics.quantiles(ordered, n=4, method="inclusive")
    return (upper - lower) / 2 / statistics.median(ordered)
