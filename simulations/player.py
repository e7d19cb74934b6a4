"""The HTML of a simulation: recorded traces, one dependency-free player, and a table for where no script may run."""

from __future__ import annotations

import functools
import html
import re
from pathlib import Path
from typing import Any

from simulations.trace import Trace, encoded

_FOLDER = Path(__file__).parent / "player"
_SCRIPTS = ("frame.js", "views.js", "drawings.js", "start.js")
MOST_ROWS_IN_TABLE = 60


class Page:
    """One or several recordings shown as one figure, between which a reader can switch.

    ``variants`` maps a label to a trace. Displayed in a notebook, it is the player; elsewhere a line of text.
    """

    def __init__(self, variants: dict[str, Trace], selected: int = 0) -> None:
        if not variants:
            raise ValueError("a page needs at least one trace")
        self.variants = variants
        self.selected = selected

    @property
    def title(self) -> str:
        """The title of the first trace, which all share."""
        return next(iter(self.variants.values())).title

    def as_data(self) -> dict[str, Any]:
        """Return what the player reads, as plain data."""
        variants = [{"label": label, "trace": trace.as_data()} for label, trace in self.variants.items()]
        return {"title": self.title, "selected": self.selected, "variants": variants}

    def __repr__(self) -> str:
        steps = ", ".join(f"{label}: {len(trace.events)} steps" for label, trace in self.variants.items())
        return f"{self.title} ({steps})"

    def _repr_html_(self) -> str:
        return as_html(self)

    def save(self, file: str | Path) -> Path:
        """Write a page that opens in any browser, without a network or a kernel. Returns its path."""
        text = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(self.title)}</title><body>'
        path = Path(file)
        path.write_text(f"{text}{as_html(self)}</body></html>\n", encoding="utf-8")
        return path


def as_html(page: Page) -> str:
    """Return the figure as one piece of HTML that needs nothing else. The same page gives the same text."""
    return (
        f'<div data-simulation="{html.escape(page.title)}"><div data-host>{_table(page)}</div>'
        f'<script type="application/json">{encoded(page.as_data())}</script>'
        f"<script>{_script()}</script></div>"
    )


@functools.cache
def _script() -> str:
    code = "\n".join(_without_comments((_FOLDER / name).read_text(encoding="utf-8")) for name in _SCRIPTS)
    style = re.sub(r"/\*.*?\*/|\n\s*", "", (_FOLDER / "style.css").read_text(encoding="utf-8"), flags=re.DOTALL)
    # A closing tag inside the script would end it.
    return f"(() => {{\nconst STYLE = {encoded(style)};\n{code}}})();"


def _without_comments(text: str) -> str:
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def _table(page: Page) -> str:
    """What is left where scripts are removed (an untrusted notebook, a mail): every step in words."""
    title = html.escape(page.title)
    parts = [f"<p><b>{title}</b>. The steps recorded from real torch; trust the notebook to play them.</p>"]
    for label, trace in page.variants.items():
        steps = [event for event in trace.events if event.get("level", 1) < 2]
        rows = "".join(
            f"<tr><td>{index}</td><td>{html.escape(event.get('tag') or event['kind'])}</td>"
            f"<td>{html.escape(event['say'])}</td></tr>"
            for index, event in enumerate(steps[:MOST_ROWS_IN_TABLE], start=1)
        )
        more = f"<p>… and {len(steps) - MOST_ROWS_IN_TABLE} more</p>" if len(steps) > MOST_ROWS_IN_TABLE else ""
        heading = f"{html.escape(label)}: {len(steps)} steps"
        parts.append(f"<details><summary>{heading}</summary><table>{rows}</table>{more}</details>")
    return "".join(parts)
