"""Late and repeated submissions: what they cost, and that only what changed is graded again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from traitlets import TraitError
from traitlets.config import Config

from autograder.cli import main
from autograder.instructor.late_penalty import PenaltyPerDay
from tests.grading import classroom
from tests.grading.answers import SUBMISSIONS
from tests.grading.classroom import CHAPTER

HOUR, DAY = 3600, 86400
ON_TIME, LATE, CHANGING = "ada_all_right", "cleo_biased_running_var", "ben_untouched"


@pytest.mark.parametrize(
    ("settings", "late", "penalty"),
    [
        ({}, 3 * DAY, None),
        ({"per_day": 10}, 1, 2.0),
        ({"per_day": 10}, DAY, 2.0),
        ({"per_day": 10}, DAY + 1, 4.0),
        ({"per_day": 10}, 40 * DAY, 20.0),
        ({"per_day": 10, "at_most": 50}, 40 * DAY, 10.0),
        ({"per_day": 10, "grace_minutes": 60}, HOUR, None),
        ({"per_day": 10, "grace_minutes": 60}, HOUR + 1, 2.0),
        ({"per_day": 3, "unit": "points"}, 2 * DAY, 6.0),
        ({"per_day": 3, "unit": "points", "at_most": 5}, 2 * DAY, 5.0),
        ({"per_day": 3, "unit": "points"}, 40 * DAY, 20.0),
    ],
)
def test_what_a_day_costs(settings: dict, late: float, penalty: float | None) -> None:
    plugin = PenaltyPerDay(config=Config({"PenaltyPerDay": settings}))
    assert plugin.late_submission_penalty("ada", 20.0, late) == penalty


@pytest.mark.parametrize("settings", [{"per_day": -1}, {"unit": "euros"}, {"grace_minutes": -1}, {"at_most": -1}])
def test_a_penalty_that_cannot_be_meant_is_refused(settings: dict) -> None:
    with pytest.raises(TraitError):
        PenaltyPerDay(**settings)


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """A course made with the command, whose three students have handed in: one of them a day and an hour late."""
    folder = tmp_path_factory.mktemp("term") / "course"
    due = datetime.now(UTC) + timedelta(days=1)
    arguments = ["--root", root, "--chapters", "ch03", "--due", f"ch03={due.isoformat()}", "--points", "ch03=22"]
    arguments += ["--late-per-day", "10%", "--grace-minutes", "30"]
    assert main(list(map(str, ["course", folder, *arguments]))) == 0
    done = classroom.run(folder, "nbgrader", "generate_assignment", CHAPTER)
    assert done.returncode == 0, done.stderr
    for student, late in ((ON_TIME, -HOUR), (LATE, DAY + HOUR), (CHANGING, -HOUR)):
        _hand_in(folder, student, SUBMISSIONS[student], due + timedelta(seconds=late))
    done, _ = classroom.grade(folder, "--jobs", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def _hand_in(course: Path, student: str, answers: dict[str, str], moment: datetime) -> None:
    notebook = classroom.nbformat.read(course / "release" / CHAPTER / f"{CHAPTER}.ipynb", as_version=4)
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        cell.source = answers.get(name, cell.source)
    folder = classroom.write(course, student, classroom.nbformat.writes(notebook))
    (folder / "timestamp.txt").write_text(f"{moment:%Y-%m-%d %H:%M:%S.%f %Z}")


def _standing(course: Path) -> dict[str, tuple[float, float]]:
    """Student -> (score, what is taken off), as the gradebook has them."""
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        return {
            each.student.id: (round(each.score, 2), round(each.late_submission_penalty or 0, 2))
            for each in gradebook.assignment_submissions(CHAPTER)
        }


def _recorded(summary: dict) -> list[str]:
    return [each["student"] for each in summary["outcomes"] if each["state"] == "recorded"]


def test_two_days_that_have_begun_cost_a_fifth_of_the_score(course: Path) -> None:
    found = _standing(course)
    assert found[ON_TIME] == (22, 0) and found[CHANGING] == (0, 0)
    score, off = found[LATE]
    assert 10 < score < 22 and off == pytest.approx(score / 5, abs=0.01)


def test_feedback_states_the_points_of_this_course(course: Path) -> None:
    text = (course / "autograded" / ON_TIME / CHAPTER / f"{CHAPTER}.ipynb").read_text(encoding="utf-8")
    assert "8.00 of 8 points" in text and "6.00 of 6 points" in text and "of 4 points" not in text


def test_nbgraders_own_autograde_takes_off_the_same(course: Path) -> None:
    before = _standing(course)
    done = classroom.run(course, "nbgrader", "autograde", CHAPTER, "--student", LATE, "--force")
    assert done.returncode == 0, done.stdout + done.stderr
    assert _standing(course) == before


def test_another_due_date_and_an_extension_take_the_penalty_back(course: Path) -> None:
    before = _standing(course)
    score, off = before[LATE]
    assert off > 0
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        gradebook.grant_extension(CHAPTER, LATE, days=2)
    _, summary = classroom.grade(course, "--jobs", "1")
    assert _recorded(summary) == [LATE] and _standing(course) == {**before, LATE: (score, 0)}
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        gradebook.grant_extension(CHAPTER, LATE)
    _, summary = classroom.grade(course, "--jobs", "1")
    assert _recorded(summary) == [LATE] and _standing(course) == before


def test_a_second_submission_is_graded_and_no_other(course: Path) -> None:
    before = _standing(course)
    _hand_in(course, CHANGING, {"my_dropout": SUBMISSIONS[ON_TIME]["my_dropout"]}, datetime.now(UTC))
    _, summary = classroom.grade(course, "--jobs", "1")
    assert _recorded(summary) == [CHANGING]
    assert _standing(course) == {**before, CHANGING: (6, 0)}
    _, summary = classroom.grade(course, "--jobs", "1")
    assert _recorded(summary) == []


def test_an_unknown_student_is_named_and_nothing_is_graded(course: Path) -> None:
    before = _standing(course)
    done = classroom.run(course, "autograder.cli", "grade", CHAPTER, "--student", "adda")
    assert done.returncode == 2 and _standing(course) == before
    assert f"no folder submitted/adda/{CHAPTER}, and the gradebook knows no student adda" in done.stderr
