"""A class reviewed in nbgrader's formgrader, in a real browser, and what a student gets to read afterwards."""

from __future__ import annotations

import html
import inspect
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook

from autograder.grading.ticket import grading_seed
from autograder.registry import load_exercise
from tests.grading.answers import SUBMISSIONS
from tests.grading.classroom import CHAPTER, SECRET, grade, hand_in, make_course, run
from tests.jupyterlab_server import chromium, jupyterlab, needs_chromium

pytestmark = [pytest.mark.browser, needs_chromium]

ADA, CLEO, EVA = "ada_all_right", "cleo_biased_running_var", "eva_a_cell_that_raises"
EXERCISES = ("my_batchnorm", "my_dropout")
COMMENT = "Your forward is right; I counted the running variance half."
# Grading in the server takes as long as the machine lets it: it is what the page waits for.
PATIENCE = 150_000


def _row(page: Any, student: str) -> Any:
    return page.locator("#main-table tr", has=page.locator("td.student-id", has_text=student))


def _press_autograde(page: Any, address: str, student: str) -> str:
    """Press the button of one student in the list of submissions, and return the score that the list shows then."""
    page.goto(f"{address}/formgrader/manage_submissions/{CHAPTER}")
    row = _row(page, student)
    assert "needs autograding" in row.locator("td.status").inner_text()
    row.locator("td.autograde a").click()
    modal = page.locator(".modal.in")
    modal.wait_for(timeout=PATIENCE)
    assert "Successfully autograded" in modal.inner_text(), modal.inner_text()
    page.goto(f"{address}/formgrader/manage_submissions/{CHAPTER}")
    return row.locator("td.score").inner_text()


def _open(page: Any, address: str, course: Path, student: str) -> None:
    """Open a student's submission and wait until its scores and comments are there."""
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        submission = gradebook.find_submission_notebook(CHAPTER, CHAPTER, student).id
    page.goto(f"{address}/formgrader/submissions/{submission}", wait_until="domcontentloaded")
    page.wait_for_function("formgrader.loaded && formgrader.grades.loaded && formgrader.comments.loaded")


def _write(page: Any, selector: str, text: str) -> None:
    """Fill a field of formgrader and leave it, which is when formgrader sends it."""
    field = page.locator(selector)
    field.fill(text)
    with page.expect_response(lambda answer: answer.request.method == "PUT") as sent:
        field.blur()
    assert sent.value.ok


def _given(course: Path, student: str, exercise: str) -> tuple[float, float | None, str | None]:
    """What the gradebook has: the points of the check, the points by hand, the comment by hand."""
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        points = gradebook.find_grade(f"{exercise}_check", CHAPTER, CHAPTER, student)
        comment = gradebook.find_comment(exercise, CHAPTER, CHAPTER, student)
        return points.auto_score, points.manual_score, comment.manual_comment


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """A course with three submissions, none of them graded."""
    folder = make_course(root, tmp_path_factory.mktemp("formgrader"))
    for student in (ADA, CLEO, EVA):
        hand_in(folder, student, SUBMISSIONS[student], only=EXERCISES)
    return folder


@pytest.fixture(scope="module")
def review(course: Path) -> dict[str, Any]:
    """An instructor's sitting: grade one by the button, read her verdict, give points and a comment by hand."""
    seen: dict[str, Any] = {}
    with jupyterlab(course) as address, chromium() as page:
        seen["score in the list"] = _press_autograde(page, address, CLEO)
        seen["grades"] = _given(course, CLEO, "my_batchnorm")
        _open(page, address, course, CLEO)
        seen["verdict"] = page.locator(".output_html", has_text="my_batchnorm:").last.inner_text()
        seen["score in the page"] = page.locator("#my_batchnorm_check").get_attribute("placeholder")
        _write(page, "#my_batchnorm_check", "3.5")
        _write(page, "#my_batchnorm-comment", COMMENT)
        _open(page, address, course, CLEO)
        seen["by hand"] = page.locator("#my_batchnorm_check").input_value()
        seen["comment"] = page.locator("#my_batchnorm-comment").input_value()
        seen["network"] = page.seen
    return seen


def test_the_list_shows_what_the_button_has_graded(review: dict) -> None:
    points = review["grades"][0]
    assert 0 < points < 4
    assert review["score in the list"] == f"{points + 3:g} / 11"
    assert float(review["score in the page"]) == points


def test_the_verdict_is_there_to_read(review: dict) -> None:
    assert re.search(r"my_batchnorm: \d+ of \d+ checks agree with torch, \d\.\d\d of 4 points", review["verdict"])
    assert "running_var after step 1" in review["verdict"] and "To read:" in review["verdict"]


def test_points_and_comment_by_hand_are_there_when_the_page_is_opened_again(review: dict) -> None:
    assert (review["by hand"], review["comment"]) == ("3.5", COMMENT)


def test_formgrader_asks_nothing_of_the_network_and_its_pages_raise_nothing(review: dict) -> None:
    assert review["network"] == {"outside": [], "errors": []}


@pytest.fixture(scope="module")
def graded_again(course: Path, review: dict) -> dict[str, Any]:
    """The same class by ``autograder grade --force`` with nothing stored, and one of it by ``nbgrader autograde``."""
    shutil.rmtree(course / ".grading")
    done, _ = grade(course, "--force")
    assert done.returncode == 0, done.stdout + done.stderr
    by_engine = _given(course, CLEO, "my_batchnorm")
    done = run(course, "nbgrader", "autograde", CHAPTER, "--student", CLEO, "--force")
    assert done.returncode == 0, done.stdout + done.stderr
    return {"autograder grade": by_engine, "nbgrader autograde": _given(course, CLEO, "my_batchnorm")}


@pytest.mark.parametrize("way", ["autograder grade", "nbgrader autograde"])
def test_a_regrade_gives_the_same_points_and_keeps_what_was_given_by_hand(
    review: dict, graded_again: dict, way: str
) -> None:
    assert graded_again[way] == (review["grades"][0], 3.5, COMMENT)


@pytest.fixture(scope="module")
def feedback(course: Path, graded_again: dict) -> dict[str, str]:
    """The page that each student gets."""
    done = run(course, "nbgrader", "generate_feedback", CHAPTER)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {student: course / "feedback" / student / CHAPTER / f"{CHAPTER}.html" for student in (ADA, CLEO, EVA)}
    return {student: page.read_text(encoding="utf-8") for student, page in pages.items()}


def test_feedback_opens_with_points_and_verdict_of_each_exercise(course: Path, feedback: dict) -> None:
    with chromium() as page:
        page.goto((course / "feedback" / CLEO / CHAPTER / f"{CHAPTER}.html").as_uri())
        rows = [" ".join(row.split()) for row in page.locator(".results tr").all_inner_texts()]
        assert re.match(r"my_batchnorm 3\.5 of 4 ✗ \d+ of \d+ checks agree with torch Your instructor changed", rows[1])
        assert re.match(r"my_dropout 3 of 3 ✓ (\d+) of \1 checks agree with torch$", rows[2])
        assert rows[-1] == f"my_batchnorm There is a comment: {COMMENT}"
        page.get_by_role("link", name="my_dropout").click()
        page.locator(".output_html", has_text="my_dropout:").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
        assert page.seen == {"outside": [], "errors": []}


def test_feedback_asks_the_question_of_the_misconception_and_never_states_the_fix(feedback: dict) -> None:
    assert "Which two variances" in feedback[CLEO] and "Which two variances" not in feedback[ADA]
    assert "toorch" in feedback[EVA] and "toorch" not in feedback[CLEO]


@pytest.mark.parametrize("student", [ADA, CLEO, EVA])
def test_feedback_holds_no_secret_and_nothing_of_anyone_else(course: Path, feedback: dict, student: str) -> None:
    others = {ADA, CLEO, EVA} - {student}
    hidden = {SECRET, str(grading_seed(SECRET)), "grading_seed", "BEGIN SOLUTION", "BEGIN HIDDEN", str(course), *others}
    # What the probe observes and how: the statements of the hidden test itself.
    probe = [line.strip() for line in inspect.getsource(load_exercise("my_batchnorm").observe).splitlines()]
    observing = {line for line in probe if line.startswith("yield ")}
    assert observing
    hidden |= observing
    page = html.unescape(re.sub(r"<[^>]+>", "", feedback[student]))
    assert [text for text in hidden if text in page] == []
    assert (COMMENT in page) == (student == CLEO)
    assert len(feedback[student]) < 1_000_000
