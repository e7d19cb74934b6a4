"""What ``make bench`` measures. Each module has ``rows()``, which yields rows; every row stands beside a peer."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple


class Row(NamedTuple):
    """One measurement, ours and the peer's, of the same run: medians in milliseconds unless ``unit`` says else."""

    what: str
    ours: float
    peer: float
    peer_name: str
    aim: str
    unit: str = "ms"


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
    yield f"{'what':<46}{'ours':>9}{'peer':>9} {'':<4}{'ratio':>7}   peer; aim"
    for row in rows:
        numbers = f"{row.ours:>9.1f}{row.peer:>9.1f} {row.unit:<4}{row.ours / row.peer:>7.3g}"
        yield f"{row.what:<46}{numbers}   {row.peer_name}; {row.aim}"
