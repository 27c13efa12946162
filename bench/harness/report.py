"""Tables of the results, as text."""
from . import machine
from .cases import TICK, VARIANTS

BEGIN, END = "<!-- bench/run --record writes from here -->", "<!-- to here -->"
BEGIN_CLUSTER = "<!-- bench/cluster --record writes from here -->"


def number(value):
    """Three digits that say something."""
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def peers_of(case):
    """Without Tandem itself on other cores."""
    return {way: found for way, found in case["peers"].items() if way not in VARIANTS}


def best(case):
    """(way, result) of the peer that comes nearest to Tandem round by round, or without it is the fastest; (None, None) without any."""
    return min(peers_of(case).items(), key=lambda item: item[1].get("ratio", item[1]["us"]), default=(None, None))


def is_scaling(case):
    return bool(case["peers"]) and not peers_of(case)


def ratio_to_best(case):
    way, result = best(case)
    return result.get("ratio") if way else None


def as_aimed(case):
    """The case with the peers alone beside which its aim was set."""
    ways = case["reach_beside"] or case["peers"]
    return dict(case, peers={way: found for way, found in case["peers"].items() if way in ways})


def beside(case):
    """Which peers those are, and what the machine has not."""
    narrow = any(name.startswith("bf16") for name in case["roofs"])
    return "beside peers in float32" + ("" if narrow else "; no bfloat16 here")


def below_aims(cases):
    """Sentences."""
    for name, case in cases.items():
        ratio = ratio_to_best(as_aimed(case))
        if ratio is not None and ratio < case["reach"]:
            yield f"{name}: {ratio:.2f} of {case['reach']:g}" + (f" {beside(case)}" if case["reach_beside"] else "")


def table(rows):
    """Lines; the first row is the head, the first column is words."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join([row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]).rstrip()
            for row in rows]


def detail(case):
    """All contenders of a case."""
    tandem = case["tandem"]
    contenders = ([tandem] if tandem else []) + list(case["peers"].values())
    rows = [("", "us/step", "least", "most", "/ Tandem", "first step", "memory")]
    if case["what"] != "fit":
        rows[0] = ("us", "median", "99 %", "99.9 %", "/ Tandem", "first step", "memory")
    for found in contenders:
        middle = (number(found["least"]), number(found["most"]))
        if "percentiles" in found:
            middle = tails(found["percentiles"])
        rows.append((found["title"], number(found["us"]), *middle, number(found.get("ratio", 1.0 if tandem else None)),
                     f"{found['first']:.3f} s", f"{(found['kilobytes'] or 0) / 1024:.0f} MB"))
    lines = ["", f"{case['title']} ({case['when']})"] + table(rows) + at_ticks(contenders) + overhead(tandem)
    if case["floor"]:
        lines.append(f"floor {number(case['floor']['us'])} us: {case['floor']['flops'] / 1e6:.1f} MFLOP, "
                     f"{case['floor']['bytes'] / 1e6:.2f} MB at {case['floor']['speed'] / 1e9:.0f} GB/s; hand-over "
                     f"{' and '.join(f'{ns:.0f}' for ns in case['handover_ns'] if ns)} ns before and after")
    lines += [f"left out: {title}: {reason}" for title, reason in case["left_out"].items()]
    if case["foreign"] > 0.05:
        lines.append(f"warning: other processes had {case['foreign']:.0%} of the machine meanwhile")
    different = {found["parameters"] for found in contenders}
    if len(different) > 1:
        lines.append(f"warning: not the same network: {sorted(different)} parameters")
    return lines


def tails(times):
    """The 99th and 99.9th percentile, of calls enough that they are not the slowest one."""
    return tuple(number(times[name] if times["calls"] >= least else None) for name, least in (("99", 100), ("99.9", 1000)))


def at_ticks(contenders):
    """Lines: calls with sleep between them, as a control loop makes them."""
    paced = [found for found in contenders if "at_ticks" in found]
    if not paced:
        return []
    base = paced[0]["at_ticks"]["50"]
    rows = [(f"us, a call every {TICK * 1e3:g} ms", "median", "99 %", "99.9 %", f"/ {paced[0]['title']}")]
    for found in paced:
        times = found["at_ticks"]
        rows.append((found["title"], number(times["50"]), *tails(times), number(times["50"] / base)))
    return table(rows)


def overhead(tandem):
    """Lines: what of a call is not the kernels of its plan."""
    if not tandem or "overhead" not in tandem:
        return []
    return ["a call of Tandem's, back to back: {call:.2f} us; its kernels alone, in turn with it: {kernels:.2f}; around them: "
            "{around:.2f}".format(**tandem["overhead"])]


def failures(cases):
    """Sentences: where Tandem itself did not run, as itself or on other cores."""
    for name, case in cases.items():
        for title, reason in case["left_out"].items():
            if title.startswith("Tandem"):
                yield f"{name}: {title}: {reason}"


def summary(cases):
    """One row a case."""
    rows = [("us a step", "Tandem", "best peer", "", "ratio", "aim", "floor", "/ floor", "memory", "peer's", "first step",
             "again", "peer's")]
    for case in cases.values():
        if is_scaling(case):
            continue
        tandem, (_, peer), floor = case["tandem"], best(case), case["floor"]
        aim = case["reach"] if not case["reach_beside"] else None
        rows.append((case["title"], number(tandem and tandem["us"]), number(peer and peer["us"]),
                     peer["title"] if peer else "-", number(ratio_to_best(case)), number(aim or None),
                     number(floor and floor["us"]), number(floor and tandem and tandem["us"] / floor["us"]),
                     f"{tandem['kilobytes'] / 1024:.0f} MB" if tandem else "-",
                     f"{peer['kilobytes'] / 1024:.0f} MB" if peer else "-",
                     f"{tandem['first']:.3f} s" if tandem else "-",
                     f"{tandem['again']:.3f} s" if tandem and tandem.get("again") else "-",
                     f"{peer['first']:.1f} s" if peer else "-"))
        if case["reach_beside"]:
            rows.append(beside_aim(case))
    return table(rows)


def beside_aim(case):
    """A row about nothing but the aim, where that was set beside some of the peers."""
    _, peer = best(as_aimed(case))
    return (f"  {beside(case)}", "", number(peer and peer["us"]), peer["title"] if peer else "-",
            number(ratio_to_best(as_aimed(case))), number(case["reach"]), *[""] * 7)


def scaling(cases):
    """How many times as fast as one core all cores are, and each way to give Tandem the cores."""
    rows = [("us a step", "all cores", *(title.removeprefix("Tandem, ") for title, _, _ in VARIANTS.values()), "speed-up")]
    for case in cases.values():
        if case["tandem"] and is_scaling(case):
            found = [case["peers"].get(way, {}).get("us") for way in VARIANTS]
            rows.append((case["title"].partition(": ")[2], number(case["tandem"]["us"]), *map(number, found),
                         number(found[0] and found[0] / case["tandem"]["us"])))
    return table(rows) if len(rows) > 1 else []


def short(cases):
    """One row a case, for a page about something else."""
    rows = [("us a step", "Tandem", "best peer", "", "ratio")]
    for case in cases.values():
        if case["tandem"] and peers_of(case):
            _, peer = best(case)
            rows.append((case["title"], number(case["tandem"]["us"]), number(peer["us"]), peer["title"],
                         number(ratio_to_best(case))))
    return table(rows)


def whole(results, cases):
    """The machine, its roofline and the tables."""
    lines = [machine.sentence(results["machine"]),
             ", ".join(f"{name} {version}" for name, version in results["versions"].items()), ""]
    if not cases:
        return lines
    scaled = scaling(cases)
    roofline = machine.best_of([case["roofs"] for case in cases.values()])
    return (lines + machine.roofline_table(results["machine"], roofline) + [""] + summary(cases) +
            ([""] + scaled if scaled else []))


def insert(path, lines, below="", begin=BEGIN):
    """Between the marks in the page, as a block of text; `below` follows it."""
    before, _, rest = path.read_text(encoding="utf-8").partition(begin)
    _, found, after = rest.partition(END)
    if not found:
        raise SystemExit(f"bench: {path} has not the lines {begin} and {END}")
    block = "\n".join([begin, "```text", *lines, "```", *([below] if below else []), END])
    path.write_text(before + block + after, encoding="utf-8")
