"""The course's own questions: what a reader missed one, three and six chapters ago comes back, and nothing else."""

from __future__ import annotations

import pytest

from autograder.lesson import progress, questions
from autograder.lesson.questions import QUESTIONS_FOLDER, chapters, load_chapter
from autograder.lesson.show import recall

COURSE = QUESTIONS_FOLDER


@pytest.fixture(autouse=True)
def questions_of_the_course(questions_of_the_tests: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "QUESTIONS_FOLDER", COURSE)


def _quizzes(chapter: str) -> list:
    return [one for one in load_chapter(chapter) if one.kind == "quiz"]


def _answer(question, right: bool) -> None:
    number = question.answer if right else question.answer % len(question.options) + 1
    progress.record("quiz", question.id, {"option": number, "right": right})


def _shown(chapter: str, capsys: pytest.CaptureFixture) -> str:
    recall(chapter)
    return capsys.readouterr().out


@pytest.mark.parametrize("number", range(1, 10))
def test_what_was_missed_one_three_and_six_chapters_ago_comes_back(number: int, capsys: pytest.CaptureFixture) -> None:
    chapter = f"ch{number:02d}"
    before = _shown(chapter, capsys)
    assert before.count("Recall ") == 3
    missed = {distance: _quizzes(f"ch{number - distance:02d}")[0] for distance in (1, 3, 6) if number >= distance}
    for other in chapters():
        for question in _quizzes(other):
            # Missed elsewhere, at other distances, or right at these: none of that is asked again.
            _answer(question, right=int(other[2:]) in {number - distance for distance in missed})
    assert _shown(chapter, capsys) == before
    progress.location().unlink()
    for question in missed.values():
        _answer(question, right=False)
        _answer(question, right=True)
    shown = _shown(chapter, capsys)
    places = [shown.index(question.prompt) for question in missed.values()]
    assert places == sorted(places) and shown.count("Recall ") == 3
