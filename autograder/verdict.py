"""The verdict on one implementation: comparing records, scoring, and what a caller gets to read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from autograder.compare import difference
from autograder.exercise import Exercise
from autograder.observe import Record, Stop


@dataclass(frozen=True)
class Difference:
    """One observation that is not as the reference's: in which case, which observation, and how, in words."""

    case: str
    observation: str
    words: str


@dataclass
class Verdict:
    """What was found.

    ``score`` runs from 0 to 1. ``agreeing`` and ``differing`` hold observation names, each once, in the order in which
    they were first seen; ``differences`` has one entry a case. ``problem`` is a sentence when the implementation could
    not be looked at at all. ``misconception`` is the name of the one it equals, or None; ``question`` and ``read`` are
    that one's.
    """

    exercise: str
    passed: bool = False
    score: float = 0.0
    agreeing: list[str] = field(default_factory=list)
    differing: list[str] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    stop: Stop | None = None
    stopped_in: str | None = None
    problem: str | None = None
    unsolved: bool = False
    misconception: str | None = None
    question: str | None = None
    read: str | None = None
    printed: str = ""
    warned: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """How many differently named observations the exercise makes."""
        return len(self.agreeing) + len(self.differing)


def record_differences(expected: Record, got: Record) -> list[Difference]:
    """Return every difference between two records of one case, in the order of the reference's observations.

    Where the implementation stopped early, the observations it did not reach differ, the first of them by the stop.
    """
    return list(each_difference(expected, got))


def each_difference(expected: Record, got: Record) -> Iterator[Difference]:
    """Yield the differences of ``record_differences`` one by one: who asks only whether there is one pays for one."""
    seen = {observation.name: observation for observation in got.observations}
    stop_told = False
    for observation in expected.observations:
        if observation.name in seen:
            said = difference(observation.value, seen[observation.name].value, observation.tolerance)
        elif got.stop is not None:
            said = "was not reached" if stop_told else stop_words(got.stop)
            stop_told = True
        else:
            said = "was not seen"
        if said:
            yield Difference(expected.case, observation.name, said)


def stop_words(stop: Stop) -> str:
    """Return one sentence on why a probe ended early, with the student's line where it is known."""
    where = f" in your line {stop.line}" if stop.line else ""
    code = f": `{stop.text}`" if stop.text else ""
    if stop.out_of_time:
        return f"it did not return within the time allowed; it was still busy{where}{code}"
    message = stop.message.removesuffix(".") if where or code else stop.message
    said = f"{stop.type_name}: {message}" if message else stop.type_name
    return f"stopped with {said}{where}{code}"


def judge(exercise: Exercise, expected: Sequence[Record], got: Sequence[Record]) -> Verdict:
    """Compare an implementation's records with the reference's, case by case, and score the agreement.

    The score is the weighted share of observations that agree: an observation seen in several cases counts once,
    by the share of those cases in which it agrees.
    """
    verdict = Verdict(exercise.name)
    cases_with: dict[str, int] = {}
    cases_agreeing: dict[str, int] = {}
    for reference, record in zip(expected, got, strict=True):
        differences = record_differences(reference, record)
        verdict.differences.extend(differences)
        differing = {entry.observation for entry in differences}
        for observation in reference.observations:
            cases_with[observation.name] = cases_with.get(observation.name, 0) + 1
            agrees = observation.name not in differing
            cases_agreeing[observation.name] = cases_agreeing.get(observation.name, 0) + agrees
        _note_surroundings(verdict, record)
    for name, count in cases_with.items():
        (verdict.agreeing if cases_agreeing[name] == count else verdict.differing).append(name)
    weights = {name: exercise.weight(name) for name in cases_with}
    earned = sum(weights[name] * cases_agreeing[name] / count for name, count in cases_with.items())
    total = sum(weights.values())
    unwritten = any(record.stop and is_stub(record.stop, exercise) for record in got)
    verdict.unsolved = unwritten and not (exercise.written_in_steps and any(cases_agreeing.values()))
    verdict.passed = not verdict.differences and all(record.stop is None for record in got)
    verdict.score = 0.0 if verdict.unsolved else (1.0 if verdict.passed else min(earned / total, 0.99))
    return verdict


def is_stub(stop: Stop, exercise: Exercise) -> bool:
    """Whether an unwritten part ended the probe: torch raises NotImplementedError too, for what it cannot compute."""
    raised_by_hand = (stop.text or "").startswith("raise NotImplementedError")
    return stop.type_name == "NotImplementedError" and (stop.message == exercise.name or raised_by_hand)


def _note_surroundings(verdict: Verdict, record: Record) -> None:
    if verdict.stop is None and record.stop is not None:
        verdict.stop = record.stop
        verdict.stopped_in = record.case
    verdict.printed = verdict.printed or record.printed
    verdict.warned.extend(text for text in record.warned if text not in verdict.warned)
