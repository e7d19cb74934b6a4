"""An assignment on a real JupyterHub: an instructor and two students, each in a server and a home of their own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.authoring.build import clean_copy
from autograder.grading.ticket import grading_seed
from tests.grading.answers import RIGHT_DROPOUT, UNSCALED_DROPOUT
from tests.grading.classroom import CHAPTER, SECRET, scores
from tests.instructor.accounts import why_shared
from tests.instructor.jupyterhub_server import PASSWORD, Hub, Server, jupyterhub, needs_jupyterhub

pytestmark = [needs_jupyterhub, pytest.mark.timeout(420)]

needs_accounts = pytest.mark.skipif(why_shared() is not None, reason=str(why_shared()))
COURSE = "deep_framework_mechanics"
EXERCISE = "my_dropout"
NOTEBOOK = f"{CHAPTER}/{CHAPTER}.ipynb"
ANSWERS = {"amara": RIGHT_DROPOUT, "bogdan": UNSCALED_DROPOUT}
ABOUT_IT = {"course_id": COURSE, "assignment_id": CHAPTER}


def _short_course(root: Path, folder: Path) -> None:
    """Copy the course, its chapter cut down to the first cell and one exercise."""
    folder.mkdir(parents=True)
    clean_copy(root, folder)
    with (folder / "nbgrader_config.py").open("a", encoding="utf-8") as file:
        file.write(f"\nc.ExecuteForGrading.grading_seed = {SECRET!r}\n")
    source = folder / "solutions" / NOTEBOOK
    notebook = nbformat.read(source, as_version=4)
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    names = {EXERCISE, f"{EXERCISE}_check"}
    kept = [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id") in names]
    notebook.cells = [first, *kept]
    nbformat.write(notebook, source)


def _press(instructor: Server, button: str) -> None:
    said = instructor.post(f"formgrader/api/assignment/{CHAPTER}/{button}")
    assert said["success"], said


def _fetch_and_hand_in(student: Server, answer: str) -> dict[str, Any]:
    """What one student does: fetch, solve, validate, submit. Returns what validating said and the submissions."""
    student.post("assignments/fetch", **ABOUT_IT)
    notebook = student.get(f"api/contents/{NOTEBOOK}")["content"]
    cell = next(cell for cell in notebook["cells"] if cell["metadata"].get("nbgrader", {}).get("grade_id") == EXERCISE)
    released, cell["source"] = cell["source"], answer
    student.put(f"api/contents/{NOTEBOOK}", {"type": "notebook", "content": notebook})
    validated = student.post("assignments/validate", path=NOTEBOOK)
    submissions = student.post("assignments/submit", **ABOUT_IT)
    return {"released": released, "validated": validated, "submissions": submissions["value"]}


def _read_feedback(student: Server) -> str:
    """Fetch the feedback and read the page that the list of submissions then names."""
    answer = student.post("assignments/fetch_feedback", **ABOUT_IT)
    submitted = [entry for entry in answer["value"] if entry["status"] == "submitted"]
    page = Path(submitted[0]["submissions"][0]["notebooks"][0]["local_feedback_path"])
    return student.get(f"api/contents/{CHAPTER}/feedback/{page.parent.name}/{page.name}?type=file&format=text")[
        "content"
    ]


@pytest.fixture(scope="module")
def hub(root: Path) -> Iterator[Hub]:
    """A hub; the course folder is in the instructor's home."""
    # Not below pytest's own folder, which no other user may enter.
    folder = Path(tempfile.mkdtemp(prefix="hub-"))
    try:
        with jupyterhub(folder, ["instructor", *ANSWERS]) as running:
            instructor = running.accounts[0]
            _short_course(root, instructor.home / "course")
            instructor.own(instructor.home / "course")
            yield running
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def term(hub: Hub) -> dict[str, Any]:
    """The whole assignment, from release to the feedback that each student reads."""
    course = hub.accounts[0].home / "course"
    instructor, *students = hub.start("instructor", *ANSWERS)
    _press(instructor, "assign")
    _press(instructor, "release")
    with ThreadPoolExecutor() as at_once:
        handed_in = dict(zip(ANSWERS, at_once.map(_fetch_and_hand_in, students, ANSWERS.values()), strict=True))
    _press(instructor, "collect")
    done = hub.accounts[0].run("autograder.cli", "grade", CHAPTER, folder=course)
    assert done.returncode == 0, done.stdout + done.stderr
    _press(instructor, "generate_feedback")
    _press(instructor, "release_feedback")
    feedback = dict(zip(ANSWERS, map(_read_feedback, students), strict=True))
    strangers = students[0].session.get(f"{students[1].address}/api/contents/{NOTEBOOK}", timeout=60)
    owners = {
        path.name.split("+")[0]: path.stat().st_uid
        for path in (course.parents[2] / "exchange" / COURSE / "inbound").iterdir()
    }
    return {
        "handed in": handed_in,
        "scores": scores(course),
        "feedback": feedback,
        "stranger": strangers.status_code,
        "owners": owners,
    }


def test_students_get_the_chapter_without_its_solution(term: dict) -> None:
    for student in ANSWERS:
        assert "NotImplementedError" in term["handed in"][student]["released"]


def test_validating_tells_right_from_wrong_before_handing_in(term: dict) -> None:
    said = {student: term["handed in"][student]["validated"] for student in ANSWERS}
    assert said["amara"]["success"] and said["bogdan"]["success"]
    assert "failed" not in said["amara"]["value"]
    assert [cell["source"] for cell in said["bogdan"]["value"]["failed"]] == [f'check("{EXERCISE}", MyDropout)']


def test_both_submissions_are_collected_and_graded(term: dict) -> None:
    assert set(term["scores"]) == set(ANSWERS)
    assert term["scores"]["amara"][EXERCISE] == 3
    assert 0 < term["scores"]["bogdan"][EXERCISE] < 3


def test_each_student_reads_their_own_verdict(term: dict) -> None:
    assert "✓ " in term["feedback"]["amara"] and "3 of 3" in term["feedback"]["amara"]
    assert "To read:" in term["feedback"]["bogdan"] and "To read:" not in term["feedback"]["amara"]


@pytest.mark.parametrize("student", ANSWERS)
def test_feedback_has_no_one_elses_data_and_no_secret(term: dict, student: str) -> None:
    page = term["feedback"][student]
    secrets = {SECRET, str(grading_seed(SECRET)), "BEGIN SOLUTION", "instructor/course", *(set(ANSWERS) - {student})}
    found = {secret for secret in secrets if secret in page}
    assert not found
    assert len(page) < 1_000_000


def test_a_student_cannot_enter_another_ones_server(term: dict) -> None:
    assert term["stranger"] == 403


def test_only_who_knows_the_password_gets_in(hub: Hub) -> None:
    assert hub.sign_in("amara", "a guess").answer.status_code == 403
    assert hub.sign_in("nobody", PASSWORD).answer.status_code == 403


@needs_accounts
def test_what_was_handed_in_is_owned_by_who_handed_it_in(hub: Hub, term: dict) -> None:
    assert term["owners"] == {account.name: account.user for account in hub.accounts[1:]}
