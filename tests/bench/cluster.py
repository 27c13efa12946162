"""bench/cluster's own parts: groups of processes keep to the bench's protocol, one that fails ends its group with its words,
sums of vectors are right, and tables and aims are right for made-up results. No peer is needed, nothing is held against the
clock."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT, BUILD = pathlib.Path(sys.argv.pop(1)), pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(ROOT / "bench"))
sys.dont_write_bytecode = True
from harness import cluster, cluster_report, engine, group, report, setup  # noqa: E402
from harness.contender import Failed, Missing  # noqa: E402

CORES = (sorted(os.sched_getaffinity(0)) * 2)[:2]  # one core twice, where there is no other

MEMBER = """
import json, os, sys
rank = int(os.environ["RANK"])
if rank == 1 and "fails" in sys.argv:
    sys.exit("no luck")
print(json.dumps({"first": 1.0, "parameters": 7}), flush=True)
for line in sys.stdin:
    print(json.dumps({"us": 100.0 * (rank + 1)}), flush=True)
print(json.dumps({"kilobytes": 1024}), flush=True)
"""

FIT = """
import json, os, sys
words = sys.argv[1:]
if "fails" in words:
    sys.exit("tandem fit: no luck")
if os.environ["RANK"] == "0" or "alone" in words:
    with open(words[words.index("--log") + 1], "a") as log:
        for epoch in range(int(words[words.index("--epochs") + 1])):
            print(json.dumps({"epoch": epoch, "steps": 10, "seconds": 9.0 if epoch == 0 else 0.5}), file=log, flush=True)
"""


class WithFolder(unittest.TestCase):
    def setUp(self):
        self.holder = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.holder.name)

    def tearDown(self):
        self.holder.cleanup()

    def script(self, text):
        path = self.folder / "script.py"
        path.write_text(text, encoding="ascii")
        return [sys.executable, path]


class Groups(WithFolder):
    def open(self, *words):
        return group.Group("made", "made up", [*self.script(MEMBER), *words], CORES, self.folder / "log", 60)

    def test_a_round_lasts_as_long_as_its_slowest_process(self):
        made = self.open()
        made.measure(0)
        made.measure(0)
        made.end()
        found = made.result([100.0, 50.0])
        self.assertEqual((found["us"], found["least"], found["ratio"], found["kilobytes"]), (200.0, 200.0, 3.0, 2048))

    def test_who_fails_ends_all_in_its_words(self):
        with self.assertRaisesRegex(Failed, "no luck"):
            self.open("fails")

    def test_every_process_is_told_who_it_is(self):
        first, second = group.environments(2)
        self.assertEqual((first["RANK"], second["RANK"]), ("0", "1"))
        self.assertEqual(first["MASTER_PORT"], second["MASTER_PORT"])
        self.assertIn('"index": 1', second["TF_CONFIG"])
        self.assertEqual(len(set(group.free_ports(8))), 8)


class TandemGroups(WithFolder):
    def open(self, *words):
        return group.TandemGroup("made", "made up", [*self.script(FIT), *words], CORES, self.folder, 60)

    def test_the_first_epoch_warms_up(self):
        made = self.open()
        self.assertEqual(made.epochs, 1 + group.LEAST_EPOCHS)
        made.measure(0)
        self.assertEqual(made.result([25000.0]), {"title": "made up", "us": 50000.0, "least": 50000.0, "most": 50000.0, "rounds": 1,
                                                  "ratio": 2.0, "noise": 0.1})

    def test_processes_that_train_alone(self):
        with self.assertRaisesRegex(Failed, "the log has 6 lines for 3 epochs"):
            self.open("alone")

    def test_who_fails_ends_all_in_its_words(self):
        with self.assertRaisesRegex(Failed, r"process \d: tandem fit: no luck \(exit status 1\)"):
            self.open("fails")


class AllReduce(unittest.TestCase):
    def setUp(self):
        self.before, setup.BUILD = setup.BUILD, BUILD

    def tearDown(self):
        setup.BUILD = self.before

    def test_sums_are_right(self):
        for way in ("tandem-tls", "tandem-ucx", "socket"):
            times = {}
            try:
                engine.take_turn(way, sys.executable, CORES, {64: 30, 4096: 30, 1000004: 5}, times)
            except Missing as reason:
                print(f"{way}: {reason}")
                continue
            self.assertEqual({size: len(us) for size, us in times.items()}, {64: 24, 4096: 24, 1000004: 4})
            self.assertTrue(all(us > 0 for rounds in times.values() for us in rounds))

    def test_another_secret(self):
        program = setup.program("bench_allreduce")
        with tempfile.TemporaryDirectory() as folder:
            runs = [subprocess.Popen([program, "tls", folder, "64:1"], stderr=subprocess.PIPE, text=True,
                                     env={**os.environ, **environment, "BENCH_SECRET": str(rank) * 32})
                    for rank, environment in enumerate(group.environments(2))]
            for run in runs:
                self.assertIn("the exchange: ", run.communicate()[1].replace("the link: ", "the exchange: "))
                self.assertEqual(run.returncode, 1)

    def test_words_that_are_none(self):
        for words in (["magic", "/tmp", "64:1"], ["tls", "/tmp/none/such", "64:1"], ["tls"]):
            run = subprocess.run([setup.program("bench_allreduce"), *words], stderr=subprocess.PIPE, text=True, check=False,
                                 env={**os.environ, "RANK": "0"})
            self.assertIn(run.returncode, (1, 2))
            self.assertIn("bench_allreduce", run.stderr)

    def test_a_round_is_from_the_first_begin_to_the_last_end(self):
        lines = [{"began": [0, 5000, 9000], "ended": [2000, 7000, 9500]}, {"began": [1000, 6000, 9000], "ended": [3000, 6500, 9900]}]
        self.assertEqual(engine.microseconds(lines), [2.0, 0.9])  # the first one warms up

    def test_what_is_missing_is_said(self):
        found = engine.measure(pathlib.Path("/no/python"), CORES, [], True)
        self.assertEqual((found["ways"], found["left_out"]), ({}, {}))


def case(**groups):
    return {"title": "a case", "when": "now", "one": {"title": "Tandem, one process", **found(100.0)}, "groups": groups,
            "left_out": {"Tandem, TLS": "no luck", "Tandem, shared memory": "not there"}, "failed": ["Tandem, TLS"],
            "foreign": 0.2}


def found(us, **more):
    return {"title": "someone", "us": us, "least": us, "most": us, "rounds": 3, **more}


class Reports(unittest.TestCase):
    def setUp(self):
        self.cases = {"mlp": case(ddp=found(900.0, ratio=9.0), **{"tandem-tls": found(300.0, ratio=3.0),
                                                                 "tandem-ucx": found(180.0, ratio=1.8)})}

    def test_aims(self):
        self.assertEqual(list(cluster_report.below_aims(self.cases)),
                         ["mlp: shared memory takes 1.80 times as long as one process; at most 1.7",
                          "mlp: DDP takes 3.00 times as long as TLS; at least 4"])
        self.assertEqual(list(cluster_report.below_aims({"mlp": case()})), [])
        alone = {"ways": {"tandem-ucx": {"sizes": {"4096": {"least": 0.5}, "1048576": {"least": 40.0}}}}}
        self.assertEqual(list(cluster_report.engine_below_aims(alone)),
                         ["all-reduce of 1 MiB: shared memory takes 40 us; at most 30"])
        self.assertEqual(list(cluster_report.engine_below_aims({"ways": {}})), [])

    def test_every_case_has_its_aims(self):
        for name in cluster.NAMES:
            self.assertGreater(cluster_report.MOST_OF_ONE[name], 1)
            self.assertGreater(cluster_report.LEAST_OF_DDP[name], 1)

    def test_tandem_fails(self):
        results = {"cases": self.cases, "engine": {"left_out": {"MPI, TCP": "none"}, "failed": ["MPI, TCP"]}}
        self.assertEqual(list(cluster_report.failures(results)), ["mlp: Tandem, TLS: no luck"])

    def test_tables(self):
        sizes = {"4096": {"least": 5.0, "us": 6.0}, "100000000": {"least": 1e5, "us": 2e5}}
        results = {"machine": {"processor": "P", "threads": 2, "features": []}, "versions": {"torch": "1"}, "cases": self.cases,
                   "engine": {"when": "now", "foreign": 0, "left_out": {"MPI, TCP": "no mpirun"},
                              "ways": {"socket": {"title": "a socket", "sizes": sizes}}}}
        text = "\n".join(cluster_report.whole(results))
        for words in ("torch 1", "DDP takes 3 x; aim 4", "at most 1.7 x one process", "left out: Tandem, TLS: no luck",
                      "other processes had 20%", "4 KiB: least", "100 MB: least", "left out: MPI, TCP: no mpirun"):
            self.assertIn(words, text)
        self.assertRegex(text, r"a socket +5 +6 +100000 +200000\n")

    def test_page(self):
        page = (ROOT / "docs" / "performance-cluster.md").read_text(encoding="utf-8")
        self.assertIn(report.BEGIN_CLUSTER, page)
        self.assertIn(report.END, page.partition(report.BEGIN_CLUSTER)[2])

    def test_why_a_package_was_not_built(self):
        text = "a.cc: In function\n  /x/site-packages/torch/a.h:9:2: error: #error C++20 is required\nb.h:1: error: more\n"
        self.assertEqual(setup.first_error(text), "torch/a.h:9:2: error: #error C++20 is required")
        self.assertEqual(setup.first_error("error: subprocess-exited-with-error\n"), None)

    def test_help(self):
        run = subprocess.run([sys.executable, ROOT / "bench" / "cluster", "--help"], stdout=subprocess.PIPE, text=True, check=True)
        self.assertIn("--engine", run.stdout)


unittest.main(warnings="ignore")
