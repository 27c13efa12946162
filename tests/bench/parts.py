"""The programs of the bench keep to its protocol; ratios, floors, tables and the picture are right for made-up results."""
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT, TANDEM, STEPS, ROOFLINE = pathlib.Path(sys.argv.pop(1)), sys.argv.pop(1), sys.argv.pop(1), sys.argv.pop(1)
sys.path.insert(0, str(ROOT / "bench"))
sys.dont_write_bytecode = True
from harness import contender, floor, machine, picture, record, report, setup  # noqa: E402
from harness.cases import CASES, VARIANTS, WAYS, is_quick  # noqa: E402


def found(us, **more):
    return {"title": "someone", "us": us, "least": us, "most": us, "first": 1.0, "parameters": 7, "kilobytes": 1024, **more}


ROOFLINE_MADE = {"threads": 2, "fp32_flops": {"one": 1e9, "all": 2e9}, "handover_ns": {"least": 50.0, "median": 60.0},
              **{f"{kind}_{who}": [[1024, 4e9], [4096, 1e9]] for kind in ("read", "update") for who in ("one", "all")}}


def case(**peers):
    return {"title": "a case", "what": "fit", "when": "now", "reach": 2, "reach_beside": (), "tandem": found(100.0), "peers": peers,
            "left_out": {"someone else": "not installed"}, "foreign": 0.2, "handover_ns": [50, None], "roofs": ROOFLINE_MADE,
            "floor": {"us": 50.0, "flops": 1e6, "bytes": 1e6, "speed": 1e9, "in_use": 1e6}}


def speak(*words, rounds=("round 0.01",) * 2):
    """The lines of JSON that a program of the bench answers."""
    lines = "".join(f"{line}\n" for line in rounds)
    run = subprocess.run([str(word) for word in words], input=lines, stdout=subprocess.PIPE, text=True,
                         check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


class Programs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.model = pathlib.Path(self.folder.name) / "mlp.keras"
        subprocess.run([TANDEM, "new", "mlp", "--quiet", "--output", self.model], check=True)

    def tearDown(self):
        self.folder.cleanup()

    def explain(self, *options):
        return json.loads(subprocess.run([TANDEM, "explain", self.model, "--json", *options], stdout=subprocess.PIPE,
                                         check=True).stdout)

    def test_epochs(self):
        first, *rounds, end = speak(STEPS, "fit", self.model, 8, 3, 10, "bytes", "cpu", "float32")
        self.assertEqual(first["parameters"], 269322)
        self.assertEqual(len(rounds), 2)
        self.assertTrue(all(entry["us"] > 0 for entry in rounds))
        self.assertGreater(end["kilobytes"], 0)

    def test_calls(self):
        for what in ("train", "predict"):
            rounds = ("round 0.01", "round 0.01", "round 0.03 0.002")
            *_, end = speak(STEPS, what, self.model, 1, 1, 10, "float", "cpu", "float32", rounds=rounds)
            for kind in ("percentiles", "at_ticks"):
                values = [end[kind][name] for name in ("50", "99", "99.9")]
                self.assertEqual(values, sorted(values))
            self.assertLessEqual(end["at_ticks"]["calls"], 16)

    def test_what_is_around_the_kernels(self):
        core = min(os.sched_getaffinity(0))
        *_, end = speak("taskset", "-c", core, STEPS, "predict", self.model, 1, 1, 10, "float", "cpu", "float32")
        self.assertGreater(end["overhead"]["kernels"], 0)
        self.assertGreater(end["overhead"]["call"], 0)

    def test_handover_of_one_core(self):
        self.assertIsNone(speak(ROOFLINE, 1, "meet", rounds=())[0]["handover_ns"])

    def test_plan(self):
        total = floor.of_step(self.explain(), ROOFLINE_MADE)
        self.assertGreater(total["flops"], 2 * 3 * 32 * 784 * 256 * 0.66)  # the first layer has no gradient of its input
        self.assertGreater(total["us"], total["flops"] / 2e9 * 1e6 * 0.99)

    def test_one_floor(self):
        """The bench and `tandem explain --time` reckon alike, step by step, from the same roofline."""
        for options in ((), ("--precision", "bfloat16", "--batch-size", "100"), ("--mode", "predict", "--batch-size", "1"),
                        ("--shards", "2")):
            found = self.explain("--time", *options)
            time = found["time"]
            self.assertAlmostEqual(floor.of_step(found, time["roofs"])["us"] / time["floor_us"], 1, places=6)
            in_use = found["state_bytes"] + found["activation_bytes"] * found["parts"]
            for step in found["steps"]:
                seconds = floor.of_op(step, 1 if step["once"] else found["parts"], in_use, time["roofs"])
                self.assertAlmostEqual(seconds * 1e6, step["floor_us"], places=6)


class Numbers(unittest.TestCase):
    def test_bandwidth_between_sizes(self):
        for size, speed in ((1, 4e9), (1024, 4e9), (2560, 2.5e9), (4096, 1e9), (1 << 30, 1e9)):
            self.assertAlmostEqual(machine.bandwidth(ROOFLINE_MADE, "read", 2, size), speed)

    def test_the_better_of_two_rooflines(self):
        faster = json.loads(json.dumps(ROOFLINE_MADE).replace("4000000000.0", "5000000000.0"))
        best = machine.best_of([ROOFLINE_MADE, faster])
        self.assertEqual(best["read_all"], [[1024, 5e9], [4096, 1e9]])

    def test_spread(self):
        self.assertAlmostEqual(contender.spread([8, 9, 10, 11, 12]), 0.1)

    def test_a_ratio_falls_by_more_than_noise(self):
        entry = {"ratios": {"mlp": {"torch": {"ratio": 3.0, "noise": 0.05}}}}
        for ratio, count in ((3.0, 0), (2.71, 0), (2.5, 1)):
            cases = {"mlp": case(torch=found(300.0, ratio=ratio, noise=0.05))}
            self.assertEqual(len(record.fallen(entry, cases)), count, ratio)

    def test_a_machine_not_written_down_has_no_falls(self):
        self.assertEqual(record.fallen(None, {"mlp": case(torch=found(1.0, ratio=0.01, noise=0))}), [])

    def test_a_peer_not_written_down_cannot_fall(self):
        self.assertEqual(record.fallen({"ratios": {}}, {"mlp": case(torch=found(1.0, ratio=0.01, noise=0))}), [])

    def test_other_digits_are_not_held_against_mnist(self):
        entry = {"ratios": {"mlp": {"torch": {"ratio": 3.0, "noise": 0.05}}}}
        for digits, count in (("MNIST", 1), ("Fashion-MNIST", 0)):
            cases = {"mlp": dict(case(torch=found(250.0, ratio=2.5, noise=0.05)), digits=digits)}
            self.assertEqual(len(record.fallen(entry, cases)), count, digits)


class Digits(unittest.TestCase):
    """setup.digits() with made-up scripts/digits that finds one data set or the other, or none."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.before = setup.ROOT, setup.BUILD
        setup.ROOT, setup.BUILD = self.root, self.root / "build"

    def tearDown(self):
        setup.ROOT, setup.BUILD = self.before
        self.folder.cleanup()

    def offer(self, name):
        """The script finds a folder of this name, or none."""
        script = self.root / "scripts" / "digits"
        script.parent.mkdir(exist_ok=True)
        script.write_text(f"#!/bin/sh\necho {self.root / name}\n" if name else "#!/bin/sh\nexit 1\n", encoding="ascii")
        script.chmod(0o755)
        if name:
            (self.root / name).mkdir()
            for file in setup.DIGIT_FILES:
                (self.root / name / f"{file}.gz").write_bytes(gzip.compress(f"{name} {file}".encode()))

    def test_none(self):
        self.offer(None)
        self.assertRaises(contender.Failed, setup.digits)

    def test_fashion_until_mnist_is_there(self):
        for name, title in (("fashion-mnist", "Fashion-MNIST"), ("mnist", "MNIST"), (None, "MNIST")):
            self.offer(name)
            folder = setup.digits()
            self.assertEqual((folder.name, setup.digits_name()), (title.lower(), title))
            self.assertEqual(setup.unpacked_digits(), folder)
            self.assertEqual((folder / setup.DIGIT_FILES[1]).read_text(), f"{folder.name} {setup.DIGIT_FILES[1]}")


class Reports(unittest.TestCase):
    def setUp(self):
        scaling = case(**{way: found(80.0, ratio=0.8, noise=0.0) for way in VARIANTS})
        slow = found(900.0, ratio=9.0, noise=0.1)
        self.cases = {"mlp": case(torch=found(300.0, ratio=3.0, noise=0.1), **{"jax-jit": slow}), "lstm": case(),
                      "scaling-mlp": scaling}

    def test_best_peer(self):
        self.assertEqual(report.best(self.cases["mlp"])[0], "torch")
        near = case(torch=found(300.0, ratio=3.0), **{"jax-jit": found(310.0, ratio=2.9)})  # a round in turn says more than the medians
        self.assertEqual(report.best(near)[0], "jax-jit")
        alone = case(torch=found(300.0), **{"jax-jit": found(310.0)})  # without Tandem beside it
        self.assertEqual(report.best(alone)[0], "torch")
        self.assertEqual(report.best(self.cases["lstm"]), (None, None))
        self.assertEqual(report.best(self.cases["scaling-mlp"]), (None, None))

    def test_below_its_aim(self):
        for ratio, count in ((3.0, 0), (1.9, 1)):
            cases = {"mlp": case(torch=found(100 * ratio, ratio=ratio)), "lstm": case()}
            self.assertEqual(len(list(report.below_aims(cases))), count, ratio)

    def test_an_aim_beside_some_peers(self):
        made = dict(case(torch=found(150.0, ratio=1.5), **{"torch-float32": found(250.0, ratio=2.5)}),
                    reach_beside=("torch-float32",))
        self.assertEqual(report.best(made)[0], "torch")
        self.assertEqual(list(report.below_aims({"resnet50-bf16": made})), [])
        self.assertIn("beside peers in float32; no bfloat16 here", *report.below_aims({"resnet50-bf16": dict(made, reach=3)}))
        made["roofs"] = dict(ROOFLINE_MADE, bf16_vector_flops={"one": 2e9, "all": 4e9})
        self.assertRegex("\n".join(report.summary({"resnet50-bf16": made})), r"beside peers in float32 +250 +someone +2.5 +2")

    def test_tandem_fails(self):
        self.assertEqual(list(report.failures(self.cases)), [])
        self.assertEqual(list(report.failures({"lstm": dict(case(), left_out={"Tandem, 1 core": "killed"})})),
                         ["lstm: Tandem, 1 core: killed"])

    def test_quick_keeps_the_best_peers(self):
        self.assertTrue(is_quick(CASES["mlp"], "jax-scan") and is_quick(CASES["resnet50-predict"], "keras-tf-call"))
        self.assertFalse(is_quick(CASES["mlp"], "keras-tf") or is_quick(CASES["resnet50"], "keras-jax"))

    def test_tables(self):
        results = {"machine": {"processor": "P", "threads": 2, "features": []}, "versions": {"jax": "1"}}
        text = "\n".join(report.whole(results, self.cases) + report.detail(self.cases["mlp"]) + report.short(self.cases))
        for words in ("hand-over", "left out: someone else", "speed-up", "not installed", "other processes had 20%"):
            self.assertIn(words, text)

    def test_calls_at_ticks(self):
        times = {"percentiles": {"calls": 999, "50": 2.0, "99": 3.0, "99.9": 4.0},
                 "at_ticks": {"calls": 1000, "50": 8.0, "99": 9.0, "99.9": 21.0}}
        calls = dict(case(torch=found(300.0, ratio=3.0, **times)), what="predict")
        calls["tandem"] = found(100.0, overhead={"call": 2.5, "kernels": 1.9, "around": 0.6}, **dict(times, at_ticks={"calls": 99, "50": 4.0, "99": 5.0,
                                                                                                   "99.9": 6.0}))
        text = "\n".join(report.detail(calls))
        self.assertRegex(text, r"someone +8 +9 +21 +2\n")
        self.assertRegex(text, r"someone +4 +- +- +1\n")
        self.assertRegex(text, r"someone +300 +3 +- +3 ")
        self.assertIn("its kernels alone, in turn with it: 1.90; around them: 0.60", text)

    def test_page(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            page.write_text(f"above\n{report.BEGIN}\nold\n{report.END}\nbelow\n")
            for lines in (["one"], ["two", "three"]):
                report.insert(page, lines)
            self.assertEqual(page.read_text(), f"above\n{report.BEGIN}\n```text\ntwo\nthree\n```\n{report.END}\nbelow\n")

    def test_picture(self):
        drawn = xml.etree.ElementTree.fromstring(picture.draw(self.cases, "a & b"))
        self.assertTrue(drawn.tag.endswith("svg"))

    def test_every_way_is_known(self):
        for name, made in CASES.items():
            for way in made.ways:
                self.assertTrue(way in WAYS or way in VARIANTS, f"{name}: {way}")

    def test_help(self):
        run = subprocess.run([sys.executable, ROOT / "bench" / "run", "--help"], stdout=subprocess.PIPE, text=True, check=True)
        self.assertIn("--record", run.stdout)


unittest.main()
