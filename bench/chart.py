#!/usr/bin/env python3
"""Draws docs/images/headline.svg from the table "Headline figures" of bench/RESULTS.md.

    bench/chart.py            writes the image
    bench/chart.py --check    fails if the image is not the one that the table gives
"""

import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "RESULTS.md"
IMAGE = ROOT / "docs" / "images" / "headline.svg"
HEADING = "## Headline figures"

WIDTH = 800
LABEL_WIDTH = 300
BAR_LENGTH_MAX = 310
BAR_HEIGHT = 22
ROW_HEIGHT = 32
OWN_COLOUR, OTHER_COLOUR = "#1f6feb", "#9aa4af"


def rows(text):
    """The cells of the first table below the heading: workload, system, figure, unit."""
    lines = iter(text.splitlines())
    for line in lines:
        if line == HEADING:
            break
    table = []
    for line in lines:
        if line.startswith("|"):
            table.append([cell.strip() for cell in line.strip("|").split("|")])
        elif table:
            break
    return table[2:]  # without the head and the line below it


def panels(table):
    """Rows by workload, in the order of the table."""
    by_workload = {}
    for workload, system, figure, unit in table:
        value = float(figure.replace(",", ""))
        by_workload.setdefault(workload, []).append((system, figure, value, unit))
    return by_workload


def bar(y, longest, system, figure, value, unit):
    """One row of a panel. The length is proportional to the value; the axis begins at 0."""
    length = BAR_LENGTH_MAX * value / longest
    own = system.startswith("Windrow")
    middle = y + BAR_HEIGHT / 2 + 5
    weight = ' font-weight="bold"' if own else ""
    return [
        f'<text x="{LABEL_WIDTH - 10}" y="{middle:.0f}" text-anchor="end"{weight}>{escape(system)}</text>',
        f'<rect x="{LABEL_WIDTH}" y="{y}" width="{length:.1f}" height="{BAR_HEIGHT}" '
        f'fill="{OWN_COLOUR if own else OTHER_COLOUR}"/>',
        f'<text x="{LABEL_WIDTH + length + 8:.1f}" y="{middle:.0f}"{weight}>{escape(figure)} {escape(unit)}</text>',
    ]


def draw(table):
    body = []
    y = 16
    for workload, systems in panels(table).items():
        y += 18
        body.append(f'<text x="16" y="{y}" font-size="15" font-weight="bold">{escape(workload)}</text>')
        y += 12
        longest = max(value for _, _, value, _ in systems)
        for system in systems:
            body += bar(y, longest, *system)
            y += ROW_HEIGHT
    height = y + 8
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" role="img" font-family="sans-serif" font-size="14" fill="#1f2328">',
        "<title>Headline figures of Windrow</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        *body,
        "</svg>",
        "",
    ])


def main():
    image = draw(rows(RESULTS.read_text()))
    if "--check" in sys.argv[1:]:
        if IMAGE.read_text() != image:
            sys.exit("docs/images/headline.svg is out of date: run bench/chart.py")
    else:
        IMAGE.parent.mkdir(parents=True, exist_ok=True)
        IMAGE.write_text(image)


if __name__ == "__main__":
    main()
