"""What ``make bench`` measures. Each module has ``rows()``, which yields rows; every row stands beside a peer."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple


class Row(NamedTuple):
    """One measurement: medians in milliseconds, ours and the peer's, taken turn by turn in the same run."""

    what: str
    ours: float
    peer: float
    peer_name: str
    aim: str


def medians(ours: Callable[[], object], peer: Callable[[], object], turns: int = 30) -> tuple[float, float]:
    """Return the median milliseconds of both, after one turn that is not counted.

    They run in turn, so that a machine that slows down slows both.
    """
    ours(), peer()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(turns):
        for action, taken in zip((ours, peer), times, strict=True):
            start = time.perf_counter()
            action()
            taken.append(1000 * (time.perf_counter() - start))
    return statistics.median(times[0]), statistics.median(times[1])


def table(rows: Iterator[Row]) -> Iterator[str]:
    """Yield the lines of a table, each as soon as its row is measured."""
    yield f"{'what':<46}{'ours ms':>9}{'peer ms':>9}{'ratio':>8}   peer; aim"
    for row in rows:
        yield f"{row.what:<46}{row.ours:>9.1f}{row.peer:>9.1f}{row.ours / row.peer:>8.3g}   {row.peer_name}; {row.aim}"
