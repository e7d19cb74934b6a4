"""Which questions a chapter opens with."""

from __future__ import annotations

import pytest

from autograder.lesson.questions import Option, Question
from autograder.lesson.selection import choose, earlier_chapters


def question(identifier: str, kind: str = "quiz") -> Question:
    return Question(identifier, kind, "about", "prompt", (Option("yes", "y"), Option("no", "n")), 1)


COURSE = {
    "ch00": [question("ch00-a"), question("ch00-b")],
    "ch03": [question("ch03-guess", "predict"), question("ch03-a"), question("ch03-b", "recall")],
    "ch04": [question("ch04-a")],
    "ch05": [question("ch05-a"), question("ch05-b")],
    "ch06": [question("ch06-a"), *(question(f"ch06-own-{number}", "recall") for number in range(4))],
}
WRONG, RIGHT = {"option": 2, "right": False}, {"option": 1, "right": True}


def chosen(answers: dict[str, dict], items: int = 3) -> list[str]:
    return [each.id for each in choose("ch06", COURSE, answers, items)]


def test_without_any_answer_the_chapter_asks_its_own() -> None:
    assert chosen({}) == ["ch06-own-0", "ch06-own-1", "ch06-own-2"]


def test_what_was_missed_comes_first_and_its_own_fill_up() -> None:
    assert chosen({"ch03-a": WRONG, "ch05-a": RIGHT}) == ["ch03-a", "ch06-own-0", "ch06-own-1"]


def test_each_distance_has_a_turn_before_any_has_a_second() -> None:
    answers = dict.fromkeys(["ch00-a", "ch00-b", "ch03-a", "ch05-a", "ch05-b"], WRONG)
    assert chosen(answers) == ["ch05-a", "ch03-a", "ch00-a"]
    assert chosen(answers, items=5) == ["ch05-a", "ch03-a", "ch00-a", "ch05-b", "ch00-b"]


def test_missed_recall_items_come_back_and_predictions_do_not() -> None:
    assert chosen({"ch03-b": WRONG, "ch03-guess": WRONG}) == ["ch03-b", "ch06-own-0", "ch06-own-1"]


def test_other_distances_and_right_answers_are_left_alone() -> None:
    answers = {"ch04-a": WRONG, "ch05-a": RIGHT, "ch06-a": WRONG, "ch00-a": RIGHT}
    assert chosen(answers) == ["ch06-own-0", "ch06-own-1", "ch06-own-2"]


def test_answers_to_questions_that_are_gone_are_ignored() -> None:
    assert chosen({"ch05-removed": WRONG, "nothing": {}}) == ["ch06-own-0", "ch06-own-1", "ch06-own-2"]


@pytest.mark.parametrize(
    ("name", "earlier"),
    [("ch00", []), ("ch02", ["ch01"]), ("ch03", ["ch02", "ch00"]), ("ch09", ["ch08", "ch06", "ch03"])],
)
def test_a_chapter_looks_back_one_three_and_six(name: str, earlier: list[str]) -> None:
    assert earlier_chapters(name) == earlier


def test_a_chapter_with_nothing_gives_nothing() -> None:
    assert choose("ch00", {}, {}) == []
