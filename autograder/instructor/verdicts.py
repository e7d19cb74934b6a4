"""What the class's verdicts come to: how each exercise went, which misconceptions, and what a person should look at."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from autograder.grading.ticket import Judgement
from autograder.instructor.class_results import ClassResults, Item, Result

MOST_OBSERVATIONS = 3


class Standing(StrEnum):
    """How one student's answer to one exercise stands. Every answer has exactly one."""

    RIGHT = "right"
    KNOWN = "a known misconception"
    OTHER = "wrong in another way"
    NOT_JUDGED = "could not be compared"
    UNTOUCHED = "not tried"
    UNKNOWN = "graded without a verdict"


class Concern(StrEnum):
    """Why a person should look at a submission, the gravest first."""

    CRASHED = "the notebook's process ended or ran out of time"
    FORGED = "what its check handed over is not what a check hands over"
    HANDED_OVER = "torch does the work that was asked for"
    DEFECT = "the check itself failed: a defect of the course"
    DID_NOT_RUN = "an answer cell did not run, so that its check found nothing"
    CHANGED = "handed in again after it was graded"
    MANUAL = "waits for a person's points"


@dataclass
class ExerciseVerdicts:
    """One exercise over the class: how many stand how, misconception -> its students, and what else differs most."""

    item: Item
    standings: Counter[Standing] = field(default_factory=Counter)
    misconceptions: dict[str, list[str]] = field(default_factory=dict)
    observations: list[tuple[str, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Finding:
    """One submission that needs eyes: whose, why, in which exercises, and what the judge said."""

    concern: Concern
    student: str
    exercises: tuple[str, ...] = ()
    sentence: str = ""


def standing(found: ClassResults, result: Result, item: Item) -> Standing:
    """Return how a student's answer to an item stands."""
    judged = result.judgements.get(item.cell)
    if judged is None:
        return Standing.UNKNOWN
    answer = result.answers.get(item.exercise)
    if not judged.points and answer is not None and answer.strip() == found.released.get(item.exercise, "").strip():
        return Standing.UNTOUCHED
    if judged.reason:
        return Standing.NOT_JUDGED
    if judged.misconception:
        return Standing.KNOWN
    return Standing.OTHER if judged.differing else Standing.RIGHT


def exercise_verdicts(found: ClassResults) -> list[ExerciseVerdicts]:
    """Return each item's verdicts over the class; misconceptions with the most students first."""
    verdicts = []
    for item in found.items:
        entry, differing = ExerciseVerdicts(item), Counter[str]()
        for result in found.results:
            stands = standing(found, result, item)
            entry.standings[stands] += 1
            judged = result.judgements.get(item.cell)
            if stands is Standing.KNOWN and judged and judged.misconception:
                entry.misconceptions.setdefault(judged.misconception, []).append(result.student)
            elif stands is Standing.OTHER and judged:
                differing.update(judged.differing)
        entry.misconceptions = dict(sorted(entry.misconceptions.items(), key=lambda each: (-len(each[1]), each[0])))
        entry.observations = differing.most_common(MOST_OBSERVATIONS)
        verdicts.append(entry)
    return verdicts


def findings(found: ClassResults) -> list[Finding]:
    """Return what a person should look at, one entry a student and concern, the gravest concern first."""
    entries = []
    for result in found.results:
        seen: dict[Concern, list[Judgement]] = {}
        for judged in result.judgements.values():
            if (concern := concern_of(judged)) is not None:
                seen.setdefault(concern, []).append(judged)
        if Concern.CRASHED in seen:
            # Whatever comes after the end of the process is its consequence.
            seen.pop(Concern.DID_NOT_RUN, None)
        for concern, judgements in seen.items():
            names = tuple(judged.exercise or judged.cell for judged in judgements)
            entries.append(Finding(concern, result.student, names, judgements[0].reason or ""))
        if result.changed_since:
            entries.append(Finding(Concern.CHANGED, result.student))
        if waiting := tuple(cell for cell, points in result.points.items() if points is None):
            entries.append(Finding(Concern.MANUAL, result.student, waiting))
    order = list(Concern)
    return sorted(entries, key=lambda each: (order.index(each.concern), each.student))


def concern_of(judged: Judgement) -> Concern | None:
    """Return why a judgement needs a person's eyes, or None when it does not. It is told by the judge's sentence."""
    said = judged.reason or ""
    if said.startswith("Not run:"):
        return Concern.CRASHED
    if "asks for your own code" in said:
        return Concern.HANDED_OVER
    if "ended with an error" in said:
        return Concern.DID_NOT_RUN
    if "could not be compared" in said:
        return Concern.DEFECT
    if said.startswith("No observations") or "cannot be read" in said or "none of them counts" in said:
        return Concern.FORGED
    return None
