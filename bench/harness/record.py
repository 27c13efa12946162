"""The last ratios written down, in bench/record.json, and whether a run falls below them by more than noise."""
import json
import pathlib

from . import report

PATH = pathlib.Path(__file__).resolve().parent.parent / "record.json"
LEAST_NOISE = 0.08  # two runs of the same program differ by so much


def load():
    return json.loads(PATH.read_text(encoding="utf-8"))["machines"] if PATH.exists() else []


def is_same(machine, other):
    """L3 aside: hosts show a virtual machine the whole of theirs, or a share, as they like."""
    return {**machine, "l3": None} == {**other, "l3": None}


def of_machine(machine):
    return next((entry for entry in load() if is_same(entry["machine"], machine)), None)


def is_comparable(case):
    """The ratios written down are MNIST's: more of its pixels are blank than Fashion-MNIST's, which Tandem uses."""
    return not report.is_scaling(case) and case.get("digits") in (None, "MNIST")


def ratios(cases):
    return {name: {way: {"ratio": round(found["ratio"], 3), "noise": round(found["noise"], 3)}
                   for way, found in report.peers_of(case).items() if "ratio" in found}
            for name, case in cases.items() if is_comparable(case)}


def write(machine, versions, cases):
    """The ratios that were measured replace those written down for this machine; the others stay."""
    machines = load()
    entry = next((entry for entry in machines if is_same(entry["machine"], machine)), None)
    if not entry:
        entry = {"machine": machine, "ratios": {}}
        machines.append(entry)
    entry["versions"] = versions
    for name, ways in ratios(cases).items():
        entry["ratios"].setdefault(name, {}).update(ways)
    PATH.write_text(json.dumps({"machines": machines}, indent=1) + "\n", encoding="utf-8")


def fallen(entry, cases):
    """(way, sentence): which ratio is below the one written down for the machine by more than the noise of both."""
    written = entry["ratios"] if entry else {}
    found = []
    for name, ways in ratios(cases).items():
        for way, now in ways.items():
            before = written.get(name, {}).get(way)
            if not before:
                continue
            noise = max(LEAST_NOISE, before["noise"] + now["noise"])
            if now["ratio"] < before["ratio"] * (1 - noise):
                found.append((way, f"{name}: {way} takes {now['ratio']:.2f} times as long as Tandem, {before['ratio']:.2f} times "
                              f"when last written down (noise {noise:.0%})"))
    return found
