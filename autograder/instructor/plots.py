"""The report's figures: matplotlib's SVG put into the page, so that it follows the page's colours, also on paper."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Mapping, Sequence

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

# Colours that stand for the page's own until the figure is in the page.
INK, SOFT, LINE, PAPER = "#010101", "#020202", "#030303", "#040404"
SERIES = ("#050501", "#050502", "#050503", "#050504", "#050505", "#050506")
_IN_PAGE = {
    INK: "var(--ink)",
    SOFT: "var(--soft)",
    LINE: "var(--line)",
    PAPER: "var(--paper)",
    **{colour: f"var(--series-{place})" for place, colour in enumerate(SERIES)},
}
# Beside its colour each part of a bar has a pattern, for paper without colours and for eyes that do not tell them.
PATTERNS = ("", "////", "....", "xxxx", "\\\\\\\\", "")
_STYLE = {
    "svg.fonttype": "none",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": LINE,
    "axes.labelcolor": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "hatch.linewidth": 0.6,
}


def histogram(values: Sequence[float], edges: Sequence[float], label: str, words: str, middle: float, name: str) -> str:
    """Return a histogram as SVG. ``edges`` bound the bars, ``middle`` is marked, ``words`` say what it shows."""
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": name}):
        figure, axes = _figure(5.4, 2.7)
        axes.hist(values, bins=list(edges), color=SERIES[0], edgecolor=PAPER, linewidth=1.5)
        axes.axvline(middle, color=INK, linewidth=1.2, linestyle=(0, (4, 2)))
        axes.annotate(
            f"median {middle:.4g}",
            (middle, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(4 if middle < (edges[0] + edges[-1]) / 2 else -4, 2),
            textcoords="offset points",
            ha="left" if middle < (edges[0] + edges[-1]) / 2 else "right",
        )
        axes.set_xlim(edges[0], edges[-1])
        axes.set_xlabel(label)
        axes.set_ylabel("students")
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5, steps=[1, 2, 5, 10]))
        return _in_page(figure, words, name)


def stacked(rows: Mapping[str, Sequence[int]], parts: Sequence[str], words: str, name: str) -> str:
    """Return one stacked bar a row as SVG; ``rows`` maps a row's name to its counts, ``parts`` names them."""
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": name}):
        figure, axes = _figure(5.4, 0.62 + 0.45 * len(rows) + 0.22 * ((len(parts) + 1) // 2))
        names = list(rows)[::-1]
        left = [0] * len(names)
        for place, part in enumerate(parts):
            counts = [rows[row][place] for row in names]
            bars = axes.barh(
                names,
                counts,
                left=left,
                color=SERIES[place],
                edgecolor=PAPER,
                hatch=PATTERNS[place],
                label=part,
                height=0.72,
            )
            for bar, count in zip(bars, counts, strict=True):
                if count >= sum(rows[names[0]]) / 25:
                    text = axes.annotate(
                        str(count), bar.get_center(), ha="center", va="center", fontsize=9, color=INK, fontweight="bold"
                    )
                    text.set_bbox({"boxstyle": "round,pad=0.15", "facecolor": PAPER, "edgecolor": "none"})
            left = [before + count for before, count in zip(left, counts, strict=True)]
        axes.set_xlim(0, max(left))
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        axes.set_xlabel("students")
        figure.legend(loc="outside upper left", ncols=2, frameon=False, fontsize=9, handlelength=1.4, columnspacing=1.2)
        return _in_page(figure, words, name)


def bars(counts: Mapping[str, int], largest: int, words: str, name: str) -> str:
    """Return one horizontal bar an entry as SVG, on a scale from 0 to ``largest``."""
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": name}):
        figure, axes = _figure(5.4, 0.55 + 0.3 * len(counts))
        names = list(counts)[::-1]
        drawn = axes.barh(names, [counts[each] for each in names], color=SERIES[1], height=0.7)
        axes.bar_label(drawn, padding=3)
        axes.set_xlim(0, largest * 1.08)
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6, steps=[1, 2, 5, 10]))
        axes.set_xlabel("students")
        return _in_page(figure, words, name)


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.add_subplot()
    axes.set_axisbelow(True)
    return figure, axes


def _in_page(figure: Figure, words: str, name: str) -> str:
    """Return a figure as an element of a page: without a prolog, with the page's colours, with words instead of ids."""
    out = io.StringIO()
    figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = out.getvalue()[out.getvalue().index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    for colour, variable in _IN_PAGE.items():
        svg = svg.replace(colour, variable)
    # matplotlib names the ids of its shapes by their content: two figures of a page must not share them.
    svg = re.sub(r'(id="|#)([hmp][0-9a-f]{10})', rf"\1{name}-\2", svg)
    svg = re.sub(r'<svg ([^>]*?)width="[^"]*" ?', r"<svg \1", svg, count=1)
    svg = re.sub(r'<svg ([^>]*?)height="[^"]*" ?', r"<svg \1", svg, count=1)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{html.escape(words)}" ', 1)
