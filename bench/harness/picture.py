"""The results as a picture: for each case, how many times Tandem's time each peer takes, on a logarithmic scale."""
import math
from xml.sax.saxutils import escape

from . import report
from .cases import WAYS

WIDTH, LEFT, RIGHT, BAR, GAP, TOP = 860, 250, 60, 11, 12, 46
COLOURS = {"keras-tf": "#e8883a", "keras-jax": "#c2476d", "jax": "#7a62c9", "torch": "#c9a227", "tandem": "#2f7d5b"}


def colour(way):
    return next(value for name, value in COLOURS.items() if way.startswith(name))


def text(x, y, words, anchor="start", size=11, weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}">'
            f"{escape(words)}</text>")


def bars_of(case):
    """(words, ratio, colour), Tandem first, then the peers, the fastest first."""
    tandem = case["tandem"]
    bars = [(f"Tandem, {duration(tandem['us'])}", 1.0, COLOURS["tandem"])]
    for way, found in sorted(case["peers"].items(), key=lambda item: item[1]["us"]):
        if "ratio" in found:
            bars.append((WAYS[way].title, found["ratio"], colour(way)))
    return bars


def duration(us):
    return f"{us / 1e3:.0f} ms" if us >= 1e5 else f"{us / 1e3:.3g} ms" if us >= 1e3 else f"{us:.0f} µs"


def draw(cases, words):
    """SVG. `words`: a line about the machine."""
    shown = {name: case for name, case in cases.items()
             if case["tandem"] and report.peers_of(case)}
    most = max([ratio for case in shown.values() for _, ratio, _ in bars_of(case)] + [2])
    decades = math.log10(most * 1.15)
    body, y = [], TOP

    def place(ratio):
        return LEFT + (WIDTH - LEFT - RIGHT) * max(0.0, math.log10(ratio) + 0.12) / (decades + 0.12)

    for case in shown.values():
        body.append(text(8, y + 9, case["title"], size=12, weight="bold"))
        y += BAR + 5
        for name, ratio, fill in bars_of(case):
            body.append(text(LEFT - 6, y + BAR - 2, name, "end"))
            body.append(f'<rect x="{LEFT}" y="{y}" width="{max(1.5, place(ratio) - LEFT):.1f}" height="{BAR}" rx="1.5" '
                        f'fill="{fill}"/>')
            body.append(text(max(place(ratio), LEFT + 2) + 4, y + BAR - 2, f"{ratio:.3g}"))
            y += BAR + 4
        y += GAP
    one = place(1.0)
    head = [text(8, 18, "Time of a training step or call, as a multiple of Tandem's (logarithmic)", size=13, weight="bold"),
            text(8, 34, words, size=10),
            f'<line x1="{one:.1f}" y1="{TOP - 4}" x2="{one:.1f}" y2="{y - GAP}" stroke="#888" stroke-dasharray="3 3"/>']
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}" '
            f'font-family="Helvetica, Arial, sans-serif" fill="#222">\n'
            f'<rect width="{WIDTH}" height="{y}" fill="#fff"/>\n' + "\n".join(head + body) + "\n</svg>\n")
