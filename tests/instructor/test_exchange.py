"""nbgrader's exchange between an instructor and two students: release, fetch, submit, collect, submit again."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import pytest

from tests.instructor.accounts import Account, make_accounts, why_shared

CHAPTER = "ch02_parameter_registration"
needs_accounts = pytest.mark.skipif(why_shared() is not None, reason=str(why_shared()))


@dataclass
class Term:
    """Three people, the exchange between them, and what was seen on the way."""

    instructor: Account
    ada: Account
    ben: Account
    exchange: Path
    first: dict[str, str] = field(default_factory=dict)
    second: dict[str, str] = field(default_factory=dict)
    said: str = ""

    @property
    def course(self) -> Path:
        """The instructor's course folder."""
        return self.instructor.home / "course"

    @property
    def collected(self) -> dict[str, str]:
        """Student -> what was written into the first answer cell of the collected notebook."""
        folders = sorted((self.course / "submitted").iterdir())
        return {folder.name: _answer(folder / CHAPTER / f"{CHAPTER}.ipynb") for folder in folders}


def _answer_cell(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    return next(cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("solution"))


def _answer(file: Path) -> str:
    return _answer_cell(nbformat.read(file, as_version=4)).source


def _write_answer(student: Account, text: str) -> None:
    file = student.home / CHAPTER / f"{CHAPTER}.ipynb"
    notebook = nbformat.read(file, as_version=4)
    _answer_cell(notebook).source = text
    nbformat.write(notebook, file)


def _well(*all_done: object) -> None:
    for done in all_done:
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def term(root: Path) -> Iterator[Term]:
    """Both students have fetched and handed in; Ada again after the first collection."""
    # Not below pytest's own folder, which no other user may enter.
    place = Path(tempfile.mkdtemp(prefix="exchange-"))
    try:
        term = Term(*make_accounts(place, ["instructor", "ada", "ben"]), place / "exchange")
        _play(term, root)
        yield term
    finally:
        shutil.rmtree(place)


def _play(term: Term, root: Path) -> None:
    instructor, students = term.instructor, (term.ada, term.ben)
    term.exchange.mkdir()
    instructor.own(term.exchange)
    for student in students:
        config = student.home / ".jupyter" / "nbgrader_config.py"
        config.parent.mkdir()
        config.write_text(
            f'c = get_config()\nc.Exchange.root = {str(term.exchange)!r}\nc.CourseDirectory.course_id = "networks"\n'
        )
        student.own(config.parent)
    options = ["--root", str(root), "--chapters", "ch02", "--name", "networks", "--exchange", str(term.exchange)]
    _well(instructor.run("autograder.cli", "course", "course", *options))
    _well(instructor.run("nbgrader", "generate_assignment", CHAPTER, folder=term.course))
    _well(instructor.run("nbgrader", "release_assignment", CHAPTER, folder=term.course))
    with ThreadPoolExecutor(2) as pool:
        _well(*pool.map(lambda student: student.run("nbgrader", "fetch_assignment", CHAPTER), students))
        for student in students:
            _write_answer(student, f"first = '{student.name}'")
        _well(*pool.map(lambda student: student.submit(CHAPTER), students))
    _well(instructor.run("nbgrader", "collect", CHAPTER, folder=term.course))
    term.first = term.collected
    _write_answer(term.ada, "second = 'ada'")
    _well(term.ada.submit(CHAPTER))
    done = instructor.run("nbgrader", "collect", CHAPTER, "--update", folder=term.course)
    _well(done)
    term.second, term.said = term.collected, done.stderr


def test_every_submission_arrives_under_its_owners_name(term: Term) -> None:
    assert term.first == {"ada": "first = 'ada'", "ben": "first = 'ben'"}
    for name in ("ada", "ben"):
        assert (term.course / "submitted" / name / CHAPTER / "timestamp.txt").read_text().endswith("UTC")


def test_the_second_submission_replaces_the_first_and_no_other(term: Term) -> None:
    assert term.second == {"ada": "second = 'ada'", "ben": "first = 'ben'"}
    assert "Updating submission: ada" in term.said and "No newer submission to collect: ben" in term.said


def test_what_students_fetch_is_what_was_released_and_nothing_else(term: Term) -> None:
    outbound = term.exchange / "networks" / "outbound" / CHAPTER
    assert [path.name for path in outbound.iterdir()] == [f"{CHAPTER}.ipynb"]
    assert "raise NotImplementedError" in _answer(outbound / f"{CHAPTER}.ipynb")


@needs_accounts
def test_collect_finds_every_submission_owned_by_its_student(term: Term) -> None:
    owners = {path.name.split("+")[0]: path.stat().st_uid for path in _inbound(term).iterdir()}
    assert owners == {"ada": term.ada.user, "ben": term.ben.user}
    assert "cheating attempt" not in term.said


@needs_accounts
def test_no_student_sees_the_others_work_or_the_course(term: Term) -> None:
    # nbgrader lets everyone write into a submission whose path is known; that it cannot be known is the protection.
    assert all(len(path.name.split("+")[-1]) >= 12 for path in _inbound(term).iterdir())
    assert stat.S_IMODE(_inbound(term).stat().st_mode) & 0o777 == 0o733
    code = f"""if True:
        import os
        for path in {[str(_inbound(term)), str(term.ada.home), str(term.course / "source")]!r}:
            try:
                os.listdir(path); print("LISTED", path)
            except PermissionError: pass
        for path in {[str(term.course / "gradebook.db"), str(term.course / "grading_seed.txt")]!r}:
            try:
                open(path).close(); print("READ", path)
            except PermissionError: pass
        for path in {[str(term.exchange / "networks" / "outbound" / CHAPTER / "x"), str(term.course / "x")]!r}:
            try:
                open(path, "w").close(); print("WROTE", path)
            except PermissionError: pass
        print("done", os.getuid())
    """
    script = term.ben.home / "look.py"
    script.write_text(code)
    assert term.ben.run("look").stdout.split() == ["done", str(term.ben.user)]


@needs_accounts
def test_a_submission_under_anothers_name_is_left_out(term: Term) -> None:
    _well(term.ben.run("nbgrader", "submit", CHAPTER, "--student", "ada"))
    copy = term.instructor.home / "copy"
    shutil.copytree(term.course, copy, ignore=shutil.ignore_patterns("submitted"))
    term.instructor.own(copy)
    done = term.instructor.run("nbgrader", "collect", CHAPTER, folder=copy)
    _well(done)
    assert "bears the name of ada but belongs to ben; cheating attempt?" in done.stderr
    collected = copy / "submitted" / "ada" / CHAPTER / f"{CHAPTER}.ipynb"
    assert _answer(collected) == "second = 'ada'"
    # Where students share one account there is nothing to go by but the name.
    believing = ["--update", "--ExchangeCollect.check_owner=False"]
    _well(term.instructor.run("nbgrader", "collect", CHAPTER, *believing, folder=copy))
    assert _answer(collected) == "first = 'ben'"


def _inbound(term: Term) -> Path:
    return term.exchange / "networks" / "inbound"


def test_an_assignment_that_was_not_released_is_named(term: Term) -> None:
    done = term.ada.run("nbgrader", "fetch_assignment", "ch03_buffers_and_state")
    assert done.returncode != 0 and "Assignment not found" in done.stderr
    assert not os.path.exists(term.ada.home / "ch03_buffers_and_state")
