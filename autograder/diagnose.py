"""Diagnosis: which misconception shows the same observations as the student's implementation."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from autograder.exercise import Exercise, Misconception
from autograder.observe import Record, observe_all
from autograder.registry import load_exercise, load_misconceptions
from autograder.verdict import each_difference


@functools.lru_cache(maxsize=64)
def misconception_records(name: str, seed: int, device: str) -> tuple[tuple[Misconception, list[Record]], ...]:
    """Return every misconception of an exercise with what it shows on the cases of that seed and device."""
    exercise = load_exercise(name)
    cases = exercise.cases(seed, device)
    return tuple((entry, observe_all(exercise, entry.parts, cases)) for entry in load_misconceptions(name))


def diagnose(
    exercise: Exercise, expected: Sequence[Record], got: Sequence[Record], seed: int, device: str
) -> Misconception | None:
    """Return the misconception that explains what differs, or None.

    One whose records equal the student's in everything wins. Otherwise one fits when the student shows each of its
    deviations from the reference, with the same values, and it explains more of the student's deviations than any
    other that fits. Of two equally good ones, the one that explains the first deviation wins, because that is the one
    the student reads first; when both do or neither does, nothing is named: a wrong diagnosis is worse than none.
    """
    ours = _deviations(expected, got)
    if not ours:
        return None
    fitting: list[tuple[Misconception, set[tuple[str, str]]]] = []
    for misconception, records in misconception_records(exercise.name, seed, device):
        if all(_same(theirs, mine) for theirs, mine in zip(records, got, strict=True)):
            return misconception
        theirs = _deviations_within(set(ours), expected, records)
        if theirs and _agree_on(theirs, records, got):
            fitting.append((misconception, theirs))
    most = max((len(theirs) for _, theirs in fitting), default=0)
    best = [(misconception, theirs) for misconception, theirs in fitting if len(theirs) == most]
    if len(best) > 1:
        best = [(misconception, theirs) for misconception, theirs in best if ours[0] in theirs]
    return best[0][0] if len(best) == 1 else None


def _deviations(expected: Sequence[Record], got: Sequence[Record]) -> list[tuple[str, str]]:
    """Return what differs, as pairs of case and observation, in the order in which it is told."""
    return [
        (entry.case, entry.observation)
        for reference, record in zip(expected, got, strict=True)
        for entry in each_difference(reference, record)
    ]


def _deviations_within(
    ours: set[tuple[str, str]], expected: Sequence[Record], got: Sequence[Record]
) -> set[tuple[str, str]]:
    """Return the deviations, or none at all once one is not among ``ours``: most misconceptions end there."""
    found: set[tuple[str, str]] = set()
    for reference, record in zip(expected, got, strict=True):
        for entry in each_difference(reference, record):
            if (entry.case, entry.observation) not in ours:
                return set()
            found.add((entry.case, entry.observation))
    return found


def _same(one: Record, other: Record) -> bool:
    if len(one.observations) != len(other.observations) or bool(one.stop) != bool(other.stop):
        return False
    if one.stop and other.stop and one.stop.type_name != other.stop.type_name:
        return False
    return next(each_difference(one, other), None) is None


def _agree_on(deviations: set[tuple[str, str]], theirs: Sequence[Record], ours: Sequence[Record]) -> bool:
    """Whether both records hold the same values wherever the misconception deviates (a stop: of the same kind)."""
    for one, other in zip(theirs, ours, strict=True):
        wanted = {observation for case, observation in deviations if case == one.case}
        if wanted and any(entry.observation in wanted for entry in each_difference(one, other)):
            return False
        if one.stop and (other.stop is None or other.stop.type_name != one.stop.type_name):
            return False
        if one.stop and len(one.observations) != len(other.observations):
            return False
    return True
