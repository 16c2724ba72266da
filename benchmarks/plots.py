"""Plots as SVG, drawn here: bars, and lines over a common scale. They load nothing, and can be read
on light and on dark pages, because each brings its own paper."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

Points = Sequence[tuple[float, float]]

WIDTH = 900
LEFT, RIGHT, TOP = 230, 150, 56
BAR, GAP = 20, 6
COLOURS = ("ours", "other", "third")
STYLE = """<style>
text{font:13px sans-serif;fill:#2b3137}.h{font-weight:bold;font-size:15px}.r{text-anchor:end}
.m{text-anchor:middle}.paper{fill:#fff}.ours{fill:#2b7bba;stroke:#2b7bba}
.other{fill:#98a3ad;stroke:#98a3ad}.third{fill:#c77d1e;stroke:#c77d1e}
.limit{stroke:#c0392b;stroke-dasharray:6 4}.axis{stroke:#98a3ad}.shade{fill:#c0392b;opacity:.14}
polyline{fill:none;stroke-width:2}
@media (prefers-color-scheme: dark){text{fill:#d7dde2}.paper{fill:#1d2228}
.ours{fill:#5aa5e0;stroke:#5aa5e0}.other{fill:#77828c;stroke:#77828c}}
</style>"""


def bars(title: str, unit: str, groups: Mapping[str, Sequence[tuple[str, float, str]]]) -> str:
    """Groups of (name, value, remark); the first of a group is ours. Each group has a scale of its
    own: what is compared stands together."""
    parts: list[str] = []
    y = TOP
    for group, rows in groups.items():
        parts.append(f'<text x="20" y="{y + 4}" class="h">{escape(group)}</text>')
        y += 16
        most = max(value for _, value, _ in rows)
        for place, (name, value, remark) in enumerate(rows):
            wide = max(1.0, (WIDTH - LEFT - RIGHT) * value / most)
            middle = y + BAR * 0.75
            parts += [
                f'<text x="{LEFT - 8}" y="{middle}" class="r">{escape(name)}</text>',
                f'<rect x="{LEFT}" y="{y}" width="{wide:.1f}" height="{BAR}" '
                f'class="{COLOURS[min(place, 1)]}"/>',
                f'<text x="{LEFT + wide + 6:.1f}" y="{middle}">{_number(value)} {escape(unit)}'
                f"{escape(remark)}</text>",
            ]
            y += BAR + GAP
        y += 22
    return _svg(title, y, parts)


def lines(
    title: str,
    across: str,
    upward: str,
    series: Mapping[str, Points],
    *,
    limit: float | None = None,
    shade: tuple[float, float, str] | None = None,
) -> str:
    """Lines over a common scale that begins at zero; `limit` is a level, `shade` a time."""
    left, right, low, high = 70, WIDTH - 20, 330, TOP + 26
    points = [point for some in series.values() for point in some]
    most_x = max(x for x, _ in points) or 1.0
    most_y = max([*(y for _, y in points), limit or 0.0]) * 1.1 or 1.0

    def at(x: float, y: float) -> str:
        return f"{left + (right - left) * x / most_x:.1f},{low - (low - high) * y / most_y:.1f}"

    parts: list[str] = []
    if shade is not None:
        begin, end, what = shade
        x, wide = left + (right - left) * begin / most_x, (right - left) * (end - begin) / most_x
        parts += [
            f'<rect x="{x:.1f}" y="{high}" width="{wide:.1f}" height="{low - high}" '
            'class="shade"/>',
            f'<text x="{x + wide / 2:.1f}" y="{high + 16}" class="m">{escape(what)}</text>',
        ]
    if limit is not None:
        (x1, y1), (x2, y2) = (at(x, limit).split(",") for x in (0.0, most_x))
        parts.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" class="limit"/>')
        parts.append(f'<text x="{right}" y="{float(y1) - 6:.1f}" class="r">limit {limit:g}</text>')
    for x in _ticks(most_x):
        across_at = at(x, 0).split(",")[0]
        parts.append(f'<text x="{across_at}" y="{low + 18}" class="m">{_number(x)}</text>')
    for y in _ticks(most_y):
        up_at = float(at(0, y).split(",")[1]) + 4
        parts.append(f'<text x="{left - 8}" y="{up_at:.1f}" class="r">{_number(y)}</text>')
    parts.append(f'<line x1="{left}" y1="{low}" x2="{right}" y2="{low}" class="axis"/>')
    parts.append(f'<text x="{right}" y="{low + 38}" class="r">{escape(across)}</text>')
    parts.append(f'<text x="20" y="{TOP + 10}">{escape(upward)}</text>')
    for place, (name, some) in enumerate(series.items()):
        colour = COLOURS[place]
        path = " ".join(at(x, y) for x, y in some)
        parts.append(f'<polyline points="{path}" class="{colour}" style="fill:none"/>')
        x = left + 280 * place
        parts.append(f'<rect x="{x}" y="{low + 29}" width="14" height="10" class="{colour}"/>')
        parts.append(f'<text x="{x + 20}" y="{low + 39}">{escape(name)}</text>')
    return _svg(title, low + 56, parts)


def _svg(title: str, height: float, parts: Sequence[str]) -> str:
    return (
        "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" '
                'role="img">',
                f"<title>{escape(title)}</title>",
                STYLE,
                f'<rect width="{WIDTH}" height="{height:g}" class="paper"/>',
                f'<text x="20" y="28" class="h">{escape(title)}</text>',
                *parts,
                "</svg>",
            ]
        )
        + "\n"
    )


def _ticks(most: float) -> list[float]:
    """Round numbers from zero to `most`, about five."""
    power = 10.0 ** math.floor(math.log10(most / 5))
    step = next(times * power for times in (1, 2, 5, 10) if times * power * 6 >= most)
    return [step * place for place in range(int(most / step) + 1)]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
