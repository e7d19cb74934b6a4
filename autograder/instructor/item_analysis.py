"""Classical item analysis: how difficult each exercise was, and whether it tells those who can from those who can't.

Difficulty is the proportion of an item's points that the class earned, from 0 (nobody earned any) to 1: the item's mean
divided by its maximum (Crocker & Algina, Introduction to Classical and Modern Test Theory, 1986, chapter 14).

Discrimination is the corrected item-total correlation: Pearson's r between the points on the item and the points on
all the others, which leaves the item out of its own criterion (Henrysson, Psychometrika 28, 1963; Nunnally &
Bernstein, Psychometric Theory, 1994). Its interval is Fisher's: z = artanh r, give or take 1.96 / sqrt(n - 3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from autograder.instructor.class_results import ClassResults, Item

# Ebel & Frisbie, Essentials of Educational Measurement, 1991: below this an item should be looked at again.
WEAK_DISCRIMINATION = 0.2


@dataclass(frozen=True)
class ItemStatistics:
    """One item over ``students`` who have a score for it.

    ``difficulty`` is from 0 to 1. ``discrimination`` is from -1 to 1, with its 95 % interval; None where it is not
    defined: fewer than four students, a single item, or nothing that varies.
    """

    item: Item
    students: int
    mean: float
    difficulty: float
    discrimination: float | None
    interval: tuple[float, float] | None


def analyse_items(found: ClassResults) -> list[ItemStatistics]:
    """Return the statistics of each item that somebody has a score for, in the order of the chapter."""
    cells = [item.cell for item in found.items]
    scores = np.array(
        [[_number(each.points.get(cell)) for cell in cells] for each in found.results], dtype=float
    ).reshape(len(found.results), len(cells))
    statistics = []
    for column, item in enumerate(found.items):
        own = scores[:, column]
        known = ~np.isnan(own)
        if not known.any():
            continue
        mean = float(own[known].mean())
        r = _rest_correlation(scores, column)
        count = int((~np.isnan(scores).any(axis=1)).sum())
        statistics.append(ItemStatistics(item, int(known.sum()), mean, mean / item.maximum, r, _interval(r, count)))
    return statistics


def _number(points: float | None) -> float:
    return math.nan if points is None else points


def _rest_correlation(scores: np.ndarray, column: int) -> float | None:
    """Return the correlation of one column with the sum of the others, over the complete rows; None if undefined."""
    complete = scores[~np.isnan(scores).any(axis=1)]
    if len(complete) < 4 or complete.shape[1] < 2:
        return None
    own = complete[:, column]
    rest = np.delete(complete, column, axis=1).sum(axis=1)
    if np.ptp(own) == 0 or np.ptp(rest) == 0:
        return None
    return float(np.corrcoef(own, rest)[0, 1])


def _interval(r: float | None, students: int) -> tuple[float, float] | None:
    if r is None or abs(r) >= 1:
        return None
    z, half = math.atanh(r), 1.959964 / math.sqrt(students - 3)
    return math.tanh(z - half), math.tanh(z + half)
