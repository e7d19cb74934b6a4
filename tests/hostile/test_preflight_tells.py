"""Preflight over the broken corpus: what would cost a student the grading, it says beforehand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from autograder import preflight as from_the_notebook
from autograder.authoring.build import clean_copy
from autograder.messages import UsageError
from autograder.student import preflight
from tests.grading.classroom import CHAPTER
from tests.hostile import test_broken_files, test_files_beside, test_notebooks_changed
from tests.hostile.case import Case, answered
from tests.hostile.classmates import CLASSMATES, RIGHT

CORPUS = [case for module in (test_broken_files, test_files_beside, test_notebooks_changed) for case in module.CASES]
# Nothing in the structure shows these: the cell is Python, and wrong.
ONLY_RUNNING_TELLS = {
    "an_import_that_is_missing",
    "an_instance",
    "the_first_cell_emptied",
    "the_wrong_name",
    "check_of_something_else",
    "outputs_of_the_judge_written_in",
}
# Two files that the folder's watch does not need to be slowed by: tens of megabytes.
LARGE = {"eighty_megabytes_of_pictures", "ten_million_values", "ten_thousand_empty_cells", "a_cell_of_a_million_lines"}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """A student's copy of the course."""
    folder = tmp_path_factory.mktemp("own") / "course"
    folder.mkdir()
    clean_copy(root, folder)
    return folder


@pytest.fixture(scope="module")
def original(own: Path) -> Iterator[str]:
    """The chapter as it was handed out; made once, though each look asks for it."""
    text = preflight.student_text(own, CHAPTER)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(preflight, "student_text", lambda root, chapter: text)
        yield text


def _faults(own: Path, course: Path, case: Case, original: str) -> list[preflight.Fault]:
    (course / "gradebook.db").touch()
    case.hand_in(course, nbformat.reads(original, as_version=4))
    return preflight.preflight(own, CHAPTER, course / "submitted" / case.name / CHAPTER / f"{CHAPTER}.ipynb")


@pytest.mark.parametrize("case", [each for each in CORPUS if each.name not in LARGE], ids=lambda case: case.name)
def test_what_breaks_grading_is_told(own: Path, tmp_path: Path, case: Case, original: str) -> None:
    tmp_path.joinpath("course").mkdir()
    found = _faults(own, tmp_path / "course", case, original)
    assert all(one.what and one.remedy and "\n" not in one.what for one in found)
    if case.scores is None:
        assert any(one.serious for one in found)
    elif sum(case.scores.values()) < 11 and case.name not in ONLY_RUNNING_TELLS:
        assert found
    preflight.report(CHAPTER, found).encode("utf-8")


@pytest.mark.parametrize("student", CLASSMATES)
def test_an_honest_notebook_can_be_handed_in(own: Path, tmp_path: Path, student: str, original: str) -> None:
    notebook = answered(nbformat.reads(original, as_version=4), CLASSMATES[student])
    file = tmp_path / f"{CHAPTER}.ipynb"
    nbformat.write(notebook, file)
    assert not [one for one in preflight.preflight(own, CHAPTER, file) if one.serious]


def test_it_can_be_asked_for_in_the_notebook(
    own: Path, original: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    folder = own / "notebooks" / CHAPTER
    nbformat.write(answered(nbformat.reads(original, as_version=4), RIGHT), folder / f"{CHAPTER}.ipynb")
    monkeypatch.chdir(folder)
    from_the_notebook()
    assert capsys.readouterr().out == f"{CHAPTER} can be handed in.\n"
    from_the_notebook("ch03")
    assert "ch03 can be handed in." in capsys.readouterr().out


def test_outside_a_course_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="is in no course's folder"):
        from_the_notebook()
