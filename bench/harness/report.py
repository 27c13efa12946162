"""Tables of the results, as text."""


def number(value):
    """Three digits that say something."""
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def best(case):
    """(way, result) of the fastest peer; (None, None) without any."""
    return min(case["peers"].items(), key=lambda item: item[1]["us"], default=(None, None))


def ratio_to_best(case):
    way, result = best(case)
    return result.get("ratio") if way else None


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
        rows[0] = ("", "us, median", "99 %", "99.9 %", "/ Tandem", "first step", "memory")
    for found in contenders:
        middle = (number(found["least"]), number(found["most"]))
        if "percentiles" in found:
            middle = (number(found["percentiles"]["99"]), number(found["percentiles"]["99.9"]))
        rows.append((found["title"], number(found["us"]), *middle, number(found.get("ratio", 1.0 if tandem else None)),
                     f"{found['first']:.3f} s", f"{(found['kilobytes'] or 0) / 1024:.0f} MB"))
    lines = ["", f"{case['title']} ({case['when']})"] + table(rows)
    if case["floor"]:
        lines.append(f"floor {number(case['floor']['us'])} us: {case['floor']['flops'] / 1e6:.1f} MFLOP, "
                     f"{case['floor']['bytes'] / 1e6:.2f} MB at {case['floor']['speed'] / 1e9:.0f} GB/s; hand-over "
                     f"{' and '.join(f'{ns:.0f}' for ns in case['handover_ns'] if ns)} ns before and after")
    lines += [f"left out: {title}: {reason}" for title, reason in case["left_out"].items()]
    different = {found["parameters"] for found in contenders}
    if len(different) > 1:
        lines.append(f"warning: not the same network: {sorted(different)} parameters")
    return lines


def summary(cases):
    """One row a case."""
    rows = [("us a step", "Tandem", "best peer", "", "ratio", "aim", "floor", "/ floor", "memory", "peer's", "first step",
             "peer's")]
    for case in cases.values():
        tandem, (_, peer), floor = case["tandem"], best(case), case["floor"]
        rows.append((case["title"], number(tandem and tandem["us"]), number(peer and peer["us"]),
                     peer["title"] if peer else "-", number(ratio_to_best(case)), number(case["reach"] or None),
                     number(floor and floor["us"]), number(floor and tandem and tandem["us"] / floor["us"]),
                     f"{tandem['kilobytes'] / 1024:.0f} MB" if tandem else "-",
                     f"{peer['kilobytes'] / 1024:.0f} MB" if peer else "-",
                     f"{tandem['first']:.3f} s" if tandem else "-", f"{peer['first']:.1f} s" if peer else "-"))
    return table(rows)
