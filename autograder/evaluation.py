"""``evaluate``: a verdict without a screen. It never raises for what the student wrote."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.accept import handed_to_torch, watching, wrong_kind
from autograder.cases import PUBLIC_SEED, Case, devices
from autograder.diagnose import diagnose
from autograder.exercise import Exercise
from autograder.observe import Record, observe_all
from autograder.registry import load_exercise
from autograder.verdict import Verdict, is_stub, judge

DEFAULT_SECONDS = 10.0


@functools.lru_cache(maxsize=64)
def drawn_cases(name: str, seed: int, device: str) -> tuple[Case, ...]:
    """Return the cases of an exercise for a seed and device."""
    return tuple(load_exercise(name).cases(seed, device))


@functools.lru_cache(maxsize=64)
def reference_records(name: str, seed: int, device: str) -> tuple[tuple[Case, ...], tuple[Record, ...]]:
    """Return the cases of a seed and device with what the reference shows in them."""
    exercise, cases = load_exercise(name), drawn_cases(name, seed, device)
    return cases, tuple(observe_all(exercise, exercise.reference, cases))


def evaluate(
    name: str, *parts: Any, seed: int | None = None, device: str | None = None, seconds: float = DEFAULT_SECONDS
) -> Verdict:
    """Run an exercise's probe on an implementation and on the reference, and compare.

    ``parts`` is the implementation: one class, or the functions in the exercise's order. ``seed`` None means the
    public cases. ``device`` None means the CPU and, where there is one, the GPU. ``seconds`` bounds the time of the
    implementation, all cases together.

    Raises UsageError for an unknown exercise and ValueError for a device that is not there; for whatever the
    implementation does, the answer is a Verdict.
    """
    exercise = load_exercise(name)
    seed = PUBLIC_SEED if seed is None else seed
    seen = observe_for(exercise, parts, seed, devices(device), seconds)
    return weigh(exercise, seen, seed)


@dataclass(frozen=True)
class Seen:
    """What an implementation showed: ``problem`` when it could not be looked at, else one list of records a device.

    ``handed`` is a sentence when torch was seen doing the exercise's work.
    """

    problem: str | None
    records: Mapping[str, Sequence[Record]]
    handed: str | None = None


def observe_for(
    exercise: Exercise, parts: Sequence[Any], seed: int, kinds: Sequence[str], seconds: float = DEFAULT_SECONDS
) -> Seen:
    """Observe an implementation on the cases of a seed, comparing nothing. No more is done where student code runs."""
    if said := wrong_kind(exercise, parts):
        return Seen(said, {})
    cases = {kind: drawn_cases(exercise.name, seed, kind) for kind in kinds}
    with watching(exercise) as called:
        got = observe_all(exercise, parts, [case for kind in kinds for case in cases[kind]], seconds)
    records: dict[str, Sequence[Record]] = {}
    start = 0
    for kind in kinds:
        records[kind] = got[start : start + len(cases[kind])]
        start += len(cases[kind])
    stops = [record.stop for record in got if record.stop is not None]
    if any(is_stub(stop, exercise) for stop in stops) and not exercise.written_in_steps:
        return Seen(None, records)
    return Seen(None, records, handed_to_torch(exercise, parts, called))


def weigh(exercise: Exercise, seen: Seen, seed: int) -> Verdict:
    """Compare what was seen with what the reference shows on the same cases, and explain what differs.

    Raises ValueError when the records are not those of the seed's cases.
    """
    if seen.problem is not None:
        return Verdict(exercise.name, problem=seen.problem)
    expected: list[Record] = []
    got: list[Record] = []
    for kind, records in seen.records.items():
        expected.extend(reference_records(exercise.name, seed, kind)[1])
        got.extend(records)
    verdict = judge(exercise, expected, got)
    if seen.handed and not verdict.unsolved:
        verdict.passed, verdict.score, verdict.problem = False, 0.0, seen.handed
    elif verdict.differences and not verdict.unsolved:
        _explain(verdict, exercise, expected[: len(got)], got, seed, list(seen.records))
    return verdict


def _explain(
    verdict: Verdict,
    exercise: Exercise,
    expected: Sequence[Record],
    got: Sequence[Record],
    seed: int,
    kinds: Sequence[str],
) -> None:
    """Add the diagnosis, from the cases of the first device: a misconception does not depend on the device."""
    count = len(got) // len(kinds)
    try:
        found = diagnose(exercise, expected[:count], got[:count], seed, kinds[0])
    except PermissionError:  # Where a notebook is graded neither the right answers nor the wrong ones can be read.
        found = None
    if found is not None:
        verdict.misconception, verdict.question, verdict.read = found.name, found.question, found.read
