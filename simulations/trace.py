"""A trace: what real torch objects did, as plain data. Players draw it; it holds no torch object and no address.

The picture at step k is the fold of everything that the events 0 to k set. See ``Trace.as_data`` for the form.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

VERSION = 1
SIGNIFICANT_DIGITS = 4
_ROUNDING = 1e-7


@dataclass
class Trace:
    """One recording. Build it with ``node`` and ``event``; read it with ``as_data``.

    ``views`` says what is drawn: dicts with ``kind`` (tree, detail, cards, grid, bins, code, timeline, series or
    flow), ``place`` (full, left or right), ``title`` and what the kind needs. ``facts`` are the numbers in the head.
    """

    simulation: str
    title: str
    point: str
    views: list[dict[str, Any]] = field(default_factory=list)
    facts: list[dict[str, str]] = field(default_factory=list)
    sources: list[dict[str, Any]] = field(default_factory=list)
    nodes: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    pace: int = 900
    even: bool = False
    # The step at which the figure opens: one that shows the point, so that a glance is worth something.
    opens: int = 0
    # What a plot reads again; not part of the recorded data.
    curves: dict[str, list] = field(default_factory=dict)
    first_facts: dict[str, Any] = field(default_factory=dict)

    def node(self, id: str, label: str, kind: str, parent: str | None = None, **more: Any) -> str:
        """Add a node and return its id.

        ``kind`` is module, parameter, buffer, plain, entry or cell. ``registered`` False draws it as an orphan;
        ``shape`` stands at the right; ``details`` are pairs for the side; ``state`` is what holds before event 0.
        """
        self.nodes.append({"id": id, "label": label, "kind": kind, "parent": parent, **more})
        return id

    def event(self, kind: str, say: str, node: str | None = None, tone: str = "plain", **more: Any) -> int:
        """Add an event and return its index.

        ``say`` is one sentence: caption and screen-reader text. ``set`` maps node ids to the values that are new
        from here on (a pair ``[tone, text]`` is drawn as a badge); ``facts`` maps fact ids to numbers; ``level`` 2
        is shown on request only; ``line`` is ``[source, line]``, counted from 0.
        """
        self.events.append({"kind": kind, "say": say, "node": node, "tone": tone, **more})
        return len(self.events) - 1

    def as_data(self) -> dict[str, Any]:
        """Return the trace as plain data: dicts, lists, strings, finite numbers, booleans and None."""
        data = {
            "version": VERSION,
            "simulation": self.simulation,
            "title": self.title,
            "point": self.point,
            "torch": torch.__version__.split("+")[0],
            "views": self.views,
            "facts": self.facts,
            "sources": self.sources,
            "nodes": [_without_empty(node) for node in self.nodes],
            "events": [_without_empty(event) for event in self.events],
            "pace": self.pace,
            "even": self.even,
            "opens": self.opens % len(self.events),
        }
        return _plain(data)


def _without_empty(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if value is not None and value != {} and value != []}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return rounded(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    raise TypeError(f"a trace holds plain data only, and this is {type(value).__name__}: {value!r}")


def rounded(value: float, digits: int = SIGNIFICANT_DIGITS) -> float | None:
    """Return ``value`` cut to so many significant digits, the same on every machine; None for nan and infinity."""
    if not math.isfinite(value):
        return None
    return float(f"{value:.{digits - 1}e}")


def snapped(values: Mapping[str, float]) -> dict[str, float]:
    """Return the values with those below 1e-5 of the largest set to 0: rounding noise that differs by machine."""
    largest = max((abs(value) for value in values.values() if math.isfinite(value)), default=0.0)
    return {name: 0.0 if abs(value) < 1e-5 * largest else value for name, value in values.items()}


def number(value: float, digits: int = 3) -> str:
    """Return a number as text with so many significant digits: 0.0312, 1.2e-07, nan."""
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    return f"{value:.{digits}g}"


def norm_text(norm: float) -> str:
    """Return a norm as text. Next to nothing is not spelled out: those digits are rounding, and differ by machine."""
    return number(norm) if norm == 0 or not norm < _ROUNDING else f"below {_ROUNDING:g}"


def shape_text(shape: Sequence[int]) -> str:
    """Return a shape as 4×16; the shape of a single number as ``number``."""
    return "×".join(str(size) for size in shape) if len(shape) else "number"


def encoded(data: Any) -> str:
    """Return data as JSON, always the same text for the same data, safe inside an HTML script element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), sort_keys=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
