"""Five submissions through plain nbgrader: release, autograde with partial credit, feedback with the diagnosis."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import torch
from nbgrader.api import Gradebook
from torch import nn

from autograder import evaluate
from autograder.authoring.build import clean_copy
from autograder.grading.ticket import grading_seed
from autograder.registry import load_exercise, load_misconceptions
from tests.grading.answers import SUBMISSIONS

CHAPTER = "ch03_buffers_and_state"
SECRET = "a phrase that only this test knows"
EXERCISES = ("my_batchnorm", "my_dropout", "save_and_resume")


def _nbgrader(course: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "nbgrader", *arguments]
    # nbgrader starts `alembic` by name when it makes a gradebook, as it does in an activated environment.
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": programs}
    done = subprocess.run(command, cwd=course, capture_output=True, text=True, env=environment, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def _submit(course: Path, student: str, answers: dict[str, str]) -> None:
    notebook = nbformat.read(course / "notebooks" / CHAPTER / f"{CHAPTER}.ipynb", as_version=4)
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name in answers:
            cell.source = answers[name]
    folder = course / "submitted" / student / CHAPTER
    folder.mkdir(parents=True)
    nbformat.write(notebook, folder / f"{CHAPTER}.ipynb")


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """A course folder after generate, five submissions, autograde and feedback."""
    folder = tmp_path_factory.mktemp("course")
    clean_copy(root, folder)
    with (folder / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        config.write(f"\nc.ExecuteForGrading.grading_seed = {SECRET!r}\n")
    _nbgrader(folder, "generate_assignment", CHAPTER, "--force")
    for student, answers in SUBMISSIONS.items():
        _submit(folder, student, answers)
    _nbgrader(folder, "autograde", CHAPTER)
    _nbgrader(folder, "generate_feedback", CHAPTER)
    return folder


@pytest.fixture(scope="module")
def scores(course: Path) -> dict[str, dict[str, float]]:
    """Student -> exercise -> points, as the gradebook has them."""
    found: dict[str, dict[str, float]] = {}
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        for submission in gradebook.assignment_submissions(CHAPTER):
            grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
            assert not any(grade.needs_manual_grade for grade in grades)
            found[submission.student.id] = {grade.name.removesuffix("_check"): grade.score for grade in grades}
    return found


def _points(name: str) -> float:
    return load_exercise(name).points


def _expected(source: str, exercise: str) -> float:
    """What a submission's source is worth by ``evaluate``, the seed being the course's."""
    namespace: dict = {"torch": torch, "nn": nn}
    exec(source, namespace)
    parts = [namespace[part] for part in load_exercise(exercise).parts]
    return round(evaluate(exercise, *parts, seed=grading_seed(SECRET)).score * _points(exercise), 2)


def test_every_submission_is_scored_in_every_exercise(scores: dict) -> None:
    assert {student: set(given) for student, given in scores.items()} == {
        student: set(EXERCISES) for student in SUBMISSIONS
    }


def test_all_right_gets_every_point(scores: dict) -> None:
    assert scores["ada_all_right"] == {name: _points(name) for name in EXERCISES}


def test_untouched_gets_nothing(scores: dict) -> None:
    assert scores["ben_untouched"] == dict.fromkeys(EXERCISES, 0)


@pytest.mark.parametrize(
    ("student", "exercise"),
    [("cleo_biased_running_var", "my_batchnorm"), ("dan_dropout_without_scaling", "my_dropout")],
)
def test_one_mistake_costs_a_part(scores: dict, student: str, exercise: str) -> None:
    given = scores[student]
    assert 0.3 * _points(exercise) < given[exercise] < 0.9 * _points(exercise)
    assert given[exercise] == _expected(SUBMISSIONS[student][exercise], exercise)
    others = set(EXERCISES) - {exercise}
    assert {name: given[name] for name in others} == {name: _points(name) for name in others}


def test_a_cell_that_raises_costs_its_exercise_and_no_other(scores: dict) -> None:
    given = scores["eva_a_cell_that_raises"]
    # The class was defined before its cell stopped, so that its check still sees it: only what is missing is lost.
    assert given["my_batchnorm"] == _points("my_batchnorm")
    assert given["my_dropout"] < _points("my_dropout")
    assert given["my_dropout"] == _expected(SUBMISSIONS["eva_a_cell_that_raises"]["my_dropout"], "my_dropout")
    assert given["save_and_resume"] == _points("save_and_resume")


def _feedback(course: Path, student: str) -> str:
    return (course / "feedback" / student / CHAPTER / f"{CHAPTER}.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("student", "exercise", "misconception"),
    [
        ("cleo_biased_running_var", "my_batchnorm", "biased_running_variance"),
        ("dan_dropout_without_scaling", "my_dropout", "no_scaling"),
    ],
)
def test_the_feedback_shows_the_diagnosis(course: Path, student: str, exercise: str, misconception: str) -> None:
    question = next(entry.question for entry in load_misconceptions(exercise) if entry.name == misconception)
    opening = question.split("`")[0].split("'")[0][:40]
    assert opening in _feedback(course, student)
    assert opening not in _feedback(course, "ada_all_right")


def test_the_feedback_names_the_line_that_raised(course: Path) -> None:
    text = _feedback(course, "eva_a_cell_that_raises")
    assert "toorch" in text and "NameError" in text and "in your line" in text


def test_the_feedback_tells_an_untouched_exercise_from_a_wrong_one(course: Path) -> None:
    assert "my_batchnorm: still to be written" in _feedback(course, "ben_untouched")


def test_neither_seed_nor_solutions_reach_the_students_files(course: Path) -> None:
    for student in SUBMISSIONS:
        assert SECRET not in _feedback(course, student)
        names = {path.name for path in (course / "autograded" / student / CHAPTER).iterdir()}
        assert not {name for name in names if name.endswith(".py")}
