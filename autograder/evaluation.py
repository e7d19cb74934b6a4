"""``evaluate``: a verdict without a screen. It never raises for what the student wrote."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from typing import Any

from autograder.accept import handed_to_torch, wrong_kind
from autograder.cases import PUBLIC_SEED, Case, devices
from autograder.diagnose import diagnose
from autograder.exercise import Exercise
from autograder.observe import Record, observe_all
from autograder.registry import load_exercise
from autograder.verdict import Verdict, judge

DEFAULT_SECONDS = 10.0


@functools.lru_cache(maxsize=64)
def reference_records(name: str, seed: int, device: str) -> tuple[tuple[Case, ...], tuple[Record, ...]]:
    """Return the cases of a seed and device with what the reference shows in them."""
    exercise = load_exercise(name)
    cases = tuple(exercise.cases(seed, device))
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
    kinds = devices(device)
    if said := wrong_kind(exercise, parts):
        return Verdict(name, problem=said)
    expected: list[Record] = []
    cases: list[Case] = []
    for kind in kinds:
        some_cases, some_records = reference_records(name, seed, kind)
        cases.extend(some_cases)
        expected.extend(some_records)
    got = observe_all(exercise, parts, cases, seconds)
    verdict = judge(exercise, expected, got)
    if not verdict.unsolved and not (verdict.stop and verdict.stop.out_of_time):
        if said := handed_to_torch(exercise, parts, cases[: len(cases) // len(kinds)], time.monotonic() + seconds):
            verdict.passed, verdict.score, verdict.problem = False, 0.0, said
            return verdict
    if verdict.differences and not verdict.unsolved:
        _explain(verdict, exercise, expected[: len(got)], got, seed, kinds)
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
    found = diagnose(exercise, expected[:count], got[:count], seed, kinds[0])
    if found is not None:
        verdict.misconception, verdict.question, verdict.read = found.name, found.question, found.read
