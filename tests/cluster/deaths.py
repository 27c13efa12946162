"""Processes of a group that are told to stop, are killed, are stopped for a while, or are slow.

usage: deaths.py TANDEM

With TANDEM_GROUPS=all in the environment more signals come to more of them."""
import os
import pathlib
import re
import signal
import subprocess

from support.group import Task, check, children, environment, expect_same, fresh, group, is_gone, outcome, run, until, workplace

ENDLESS = ("fit {start}/mlp.keras --train {start}/grey --seed 3 --epochs 2000000000 --quiet --devices cpu:0 --log log.jsonl "
           "--output out.keras")
LONG = ("fit {start}/mlp_dropout.keras --train {start}/grey --seed 3 --epochs 25 --batch-size 8 --quiet --shards 3 --csv-log log.csv "
        "--output out.keras")
ALL = os.environ.get("TANDEM_GROUPS") == "all"


def trains(folder):
    """Whoever writes the log has been through an epoch."""
    log = pathlib.Path(folder) / "log.jsonl"
    return lambda: log.exists() and log.stat().st_size > 0


def kept(folder):
    """The model that was saved can be opened, as a whole."""
    return run(f"evaluate out.keras --data {folder.parent.parent}/start/grey --quiet --devices cpu:0", folder).returncode == 0


# ---- asked to stop ----

def asked(root):
    """A signal to the chief or to a worker ends all of them after the step; the model is saved."""
    for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        for whom in (0, 2) if ALL else (0,) if number == signal.SIGTERM else (2,):
            check.begin(f"{number.name} to {'a worker' if whom else 'the chief'}")
            with group(fresh(root / "group"), 3) as tasks:
                started = tasks.start_all(ENDLESS.format(start=root / "start"))
                until(trains(started[0].folder), "they train")
                started[whom].kill(number)
                statuses = tasks.wait()
                check.expect(statuses[whom] == status, f"{statuses}: {[task.err for task in started]}")
                check.expect(all(one in (0, status) for one in statuses), f"{statuses}: {[task.err for task in started]}")
                check.expect(kept(started[0].folder), f"nothing was saved: {started[0].err}")


def asked_while_waiting(root):
    """One that is stopped while it waits for the others ends at once; started again, it takes its place."""
    check.begin("SIGINT while it waits for the others")
    line = ENDLESS.format(start=root / "start").replace("2000000000", "1").replace("--quiet", "")
    with group(fresh(root / "group"), 3) as tasks:
        chief, first = tasks.start(0, line), tasks.start(1, line)
        until(lambda: "waits for worker 2" in chief.err, "the chief says for whom it waits")
        first.kill(signal.SIGINT)
        check.expect(first.wait() == -signal.SIGINT, f"status {first.wait()}: {first.err}")
        rest = [chief, tasks.start(1, line, name="again"), tasks.start(2, line)]
        check.expect([task.wait() for task in rest] == [0, 0, 0], f"{[task.err for task in rest]}")


def launched(root, signals):
    """What the launcher is sent: the whole group ends."""
    for number, status in signals:
        check.begin(f"{number.name} to the launcher")
        folder = fresh(root / "launched")
        task = Task(f"launch -n 3 -- {ENDLESS.format(start=root / 'start')}", folder, "launch", environment())
        until(trains(folder), "they train")
        processes = children(task.process.pid)
        task.kill(number)
        check.expect(task.wait() == status, f"{task.wait()}: {task.err}")
        until(lambda: all(is_gone(pid) for pid in processes), "all are gone")
        check.expect(status == -signal.SIGKILL or (folder / "out.keras").exists(), f"nothing was saved: {task.err}")


# ---- killed ----

def killed(root):
    """The others end, with a sentence that names the dead one."""
    for whom, name in ((2, "worker 2"), (0, "worker 0")):
        check.begin(f"SIGKILL to {name}")
        with group(fresh(root / "group"), 3) as tasks:
            started = tasks.start_all(ENDLESS.format(start=root / "start"))
            until(trains(started[0].folder), "they train")
            started[whom].kill(signal.SIGKILL)
            statuses = tasks.wait()
            for index, task in enumerate(started):
                if index != whom:
                    check.expect(statuses[index] == 1, f"{task.name}: status {statuses[index]}: {task.err}")
                    check.expect(re.search(rf"{name} \(127\.0\.0\.1:\d+\) is lost: ", task.err), f"{task.name}: {task.err}")


def killed_and_resumed(root):
    """With --backup-dir the same command goes on, in as many processes or another number, to the bits of an undisturbed run."""
    check.begin("a group that is killed goes on from its backup")
    line = LONG.format(start=root / "start").replace(" --shards 3", " --shards 4 --backup-dir backup --save-freq 7")
    alone = fresh(root / "alone")
    check.expect(run(line, alone).returncode == 0, "the run that is not killed")
    folder = fresh(root / "launched")
    for processes in (3, 2, 4) if ALL else (3, 2):
        before = {path: path.stat().st_mtime_ns for path in folder.glob("backup/*.npz")}
        task = Task(f"launch -n {processes} -- {line} --devices cpu:0", folder, "launch", environment())
        until(lambda: task.process.poll() is not None or any(
            path.stat().st_mtime_ns != before.get(path) for path in folder.glob("backup/*.npz")), "a backup is made")
        found = children(task.process.pid) if task.process.poll() is None else []
        for pid in found[-1:]:
            os.kill(pid, signal.SIGKILL)
        task.wait()
    done = run(f"launch -n 1 -- {line}", folder) if not (folder / "out.keras").exists() else None
    check.expect(not done or done.returncode == 0, done and done.stderr)
    expect_same(outcome(alone), outcome(folder, but=("launch.",)), "an undisturbed run")


# ---- slow ----

def slow(root):
    """A process that stands still for two seconds, and a core that is busy, change no bit."""
    line = LONG.format(start=root / "start")
    alone = fresh(root / "alone")
    check.expect(run(line, alone).returncode == 0, "alone")
    for whom in (1, 0) if ALL else (1,):
        check.begin(f"SIGSTOP to {'a worker' if whom else 'the chief'}, beside a busy core")
        with group(fresh(root / "group"), 3) as tasks:
            busy = subprocess.Popen(["sh", "-c", "while :; do :; done"])
            try:
                started = tasks.start_all(f"{line} --devices cpu:0")
                until(lambda: (started[0].folder / "log.csv").exists(), "they train")
                started[whom].kill(signal.SIGSTOP)
                subprocess.run(["sleep", "2"], check=True)
                started[whom].kill(signal.SIGCONT)
                check.expect(tasks.wait() == [0, 0, 0], f"{[task.err for task in started]}")
            finally:
                busy.kill()
                busy.wait()
            expect_same(outcome(alone), outcome(started[0].folder, but=("task0",)), "an undisturbed run")


def main():
    with workplace() as root:
        asked(root)
        asked_while_waiting(root)
        launched(root, ((signal.SIGINT, 130),))
        if ALL:
            launched(root, ((signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)))
        killed(root)
        killed_and_resumed(root)
        slow(root)
    check.finish()


if __name__ == "__main__":
    main()
