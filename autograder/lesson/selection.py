"""Which questions a chapter opens with: what the reader missed some chapters ago, then the chapter's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autograder.lesson.questions import Question

# Chapters ago: soon, later, much later.
DISTANCES = (1, 3, 6)
ITEMS = 3


def earlier_chapters(chapter: str) -> list[str]:
    """Return the chapters that ``chapter`` looks back to, the nearest first. Raises nothing for a chNN."""
    number = int(chapter[2:])
    return [f"ch{number - distance:02d}" for distance in DISTANCES if number >= distance]


def choose(
    chapter: str,
    questions: Mapping[str, Sequence[Question]],
    first_answers: Mapping[str, Mapping[str, Any]],
    items: int = ITEMS,
) -> list[Question]:
    """Return the questions that ``chapter`` opens with.

    Arguments: the chapter (``ch04``); the questions of each chapter, chapters without any left out; the first
    answer to each question, as ``progress.first_answers`` gives them; and how many to choose.

    Missed questions of the chapters 1, 3 and 6 before come first, one of each distance before a second of
    any. The chapter's own recall questions fill up. Predictions are left out: they speak of a cell that is
    not here. Raises nothing for a chapter without questions; the list is then shorter or empty.
    """
    missed = [
        [question for question in questions.get(earlier, ()) if _missed(question, first_answers)]
        for earlier in earlier_chapters(chapter)
    ]
    chosen: list[Question] = []
    longest = max((len(each) for each in missed), default=0)
    for turn in range(longest):
        chosen.extend(each[turn] for each in missed if turn < len(each))
    own = [question for question in questions.get(chapter, ()) if question.kind == "recall"]
    return [*chosen, *own][:items]


def _missed(question: Question, first_answers: Mapping[str, Mapping[str, Any]]) -> bool:
    return question.kind != "predict" and first_answers.get(question.id, {}).get("right") is False
