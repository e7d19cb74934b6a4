"""Own pace: the state of the course in a terminal, the watch, the reset that loses nothing, the preflight."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.authoring.build import student_file
from autograder.cli import main
from autograder.student.preflight import preflight
from autograder.student.reset import reset
from autograder.student.state import check_chapter, watch
from tests.grading.answers import SUBMISSIONS

CHAPTER = "ch03_buffers_and_state"


def _change(course: Path, act: Any) -> Path:
    file = student_file(course, CHAPTER)
    notebook = nbformat.read(file, as_version=4)
    act(notebook)
    nbformat.write(notebook, file)
    return file


def _cell(notebook: Any, name: str) -> Any:
    return next(cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == name)


def _answer(student: str) -> Any:
    def act(notebook: Any) -> None:
        for name, source in SUBMISSIONS[student].items():
            _cell(notebook, name).source = source

    return act


def test_check_prints_what_each_check_says_and_leaves_the_file(course: Path, capsys: pytest.CaptureFixture) -> None:
    file = _change(course, _answer("cleo_biased_running_var"))
    before = file.read_bytes()
    assert main(["check", "ch03", "--root", str(course)]) == 0
    said = capsys.readouterr().out
    assert "  ✗ my_batchnorm: public checks 22 of 31. First difference: running_var after step 1" in said
    assert "  ✓ my_dropout: public checks 15 of 15 agree with torch" in said and "2 of 3 exercises pass." in said
    assert file.read_bytes() == before


def test_a_saved_notebook_is_checked_again_and_an_unchanged_one_is_remembered(course: Path, monkeypatch) -> None:
    first = check_chapter(course, CHAPTER)
    assert [sign for _, sign, _ in first] == ["·", "·", "·"]
    monkeypatch.setattr("autograder.student.state._run", lambda *a: pytest.fail("unchanged code was run again"))
    assert check_chapter(course, CHAPTER) == first
    (course / ".course" / "state.json").write_text("{", encoding="utf-8")
    monkeypatch.setattr("autograder.student.state._run", lambda *a: [("x", "✓", "x: passed")])
    assert check_chapter(course, CHAPTER) == [("x", "✓", "x: passed")]

    said: list[str] = []

    def save(line: str) -> None:
        said.append(line)
        if len(said) == 1:
            _change(course, _answer("ada_all_right"))

    watch(course, ["ch03"], save, rounds=2)
    assert said[0].startswith("Watching 1 notebooks") and said[1].startswith(CHAPTER) and said[2] == "  ✓ x: passed"


def test_an_unreadable_notebook_is_a_line_of_the_report(course: Path) -> None:
    student_file(course, CHAPTER).write_text("{", encoding="utf-8")
    ((_, sign, said),) = check_chapter(course, CHAPTER)
    assert sign == "!" and "is no valid notebook" in said
    student_file(course, CHAPTER).unlink()
    ((_, sign, said),) = check_chapter(course, CHAPTER)
    assert sign == "!" and "No such file" in said


def test_reset_keeps_the_answers_beside_the_fresh_chapter(course: Path) -> None:
    fresh = student_file(course, CHAPTER).read_text(encoding="utf-8")
    assert reset(course, "ch03") == (student_file(course, CHAPTER), None)
    file = _change(course, _answer("ada_all_right"))
    answers = file.read_text(encoding="utf-8")
    again, kept = reset(course, "ch03")
    assert again.read_text(encoding="utf-8") == fresh and kept.read_text(encoding="utf-8") == answers
    assert kept.parent == file.parent and "-answers-20" in kept.name
    _change(course, _answer("ada_all_right"))
    assert reset(course, "ch03")[1] != kept


def test_a_reset_that_cannot_write_changes_nothing(course: Path, monkeypatch, capsys: pytest.CaptureFixture) -> None:
    file = _change(course, _answer("ada_all_right"))
    answers = file.read_text(encoding="utf-8")

    def full(self: Path, *arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    assert main(["reset", "ch03", "--root", str(course)]) == 2
    assert "No space left on device); nothing was changed" in capsys.readouterr().err
    assert file.read_text(encoding="utf-8") == answers


def _drop(name: str) -> Any:
    return lambda notebook: notebook.cells.remove(_cell(notebook, name))


def _double(notebook: Any) -> None:
    cell = nbformat.from_dict(dict(_cell(notebook, "my_dropout_check")))
    cell.id = "copied"
    notebook.cells.append(cell)


def _retype(notebook: Any) -> None:
    cell = _cell(notebook, "my_dropout_check")
    place = notebook.cells.index(cell)
    notebook.cells[place] = nbformat.v4.new_markdown_cell(cell.source, metadata=cell.metadata)


def _move(notebook: Any) -> None:
    cell = _cell(notebook, "my_dropout_check")
    notebook.cells.remove(cell)
    notebook.cells.insert(0, cell)


def _rewrite(notebook: Any) -> None:
    _cell(notebook, "my_dropout_check").source = "1.0"


def _unparsable(notebook: Any) -> None:
    _cell(notebook, "my_dropout").source = "class MyDropout(:\n    pass"


def _fat(notebook: Any) -> None:
    notebook.cells[1].outputs = [nbformat.v4.new_output("stream", text="x" * 11_000_000)]


def _stranger(notebook: Any) -> None:
    for cell in notebook.cells:
        cell.metadata.pop("nbgrader", None)


@pytest.mark.parametrize(
    ("act", "serious", "sentence"),
    [
        (_drop("my_dropout_check"), True, "the check cell of my_dropout is missing"),
        (_drop("my_dropout"), True, "the answer cell of my_dropout is missing"),
        (_double, True, "the check cell of my_dropout is there 2 times"),
        (_retype, True, "the check cell of my_dropout has become markdown"),
        (_move, True, "the check cell of my_dropout stands before its answer"),
        (_rewrite, False, "the check cell of my_dropout was changed; grading uses the original"),
        (_unparsable, True, "the answer to my_dropout does not parse"),
        (_fat, False, "the outputs have 10 MB"),
        (_stranger, True, "is it another chapter's notebook?"),
        (lambda notebook: None, False, "my_dropout is still to be written"),
    ],
)
def test_the_preflight_names_what_would_break_grading(course: Path, act: Any, serious: bool, sentence: str) -> None:
    _change(course, act)
    found = [one for one in preflight(course, "ch03") if sentence in one.what]
    assert [one.serious for one in found] == [serious] and found[0].remedy


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b'{"cells": [', "is cut off or damaged at line 1"),
        (b"", "is cut off or damaged at line 1"),
        (b"\xff\xfe\x00a", "is not UTF-8 text"),
        (b'{\n<<<<<<< HEAD\n"cells": []\n=======\n>>>>>>> other\n}', "holds the marks of a merge conflict"),
        (b'{"worksheets": [], "metadata": {}, "nbformat": 3, "nbformat_minor": 0}', "has notebook format 3"),
        (b"[1, 2]", "is no valid notebook"),
    ],
)
def test_the_preflight_names_a_broken_file(course: Path, content: bytes, sentence: str) -> None:
    student_file(course, CHAPTER).write_bytes(content)
    (fault,) = preflight(course, "ch03")
    assert fault.serious and sentence in fault.what


def test_the_preflight_finds_a_renamed_file_and_a_good_one(course: Path, capsys: pytest.CaptureFixture) -> None:
    file = _change(course, _answer("ada_all_right"))
    assert main(["preflight", "ch03", "--root", str(course)]) == 0
    assert "ch03 can be handed in." in capsys.readouterr().out
    other = file.with_name("final (2).ipynb")
    file.rename(other)
    (fault,) = preflight(course, "ch03")
    assert "is not there. Beside it: final (2).ipynb" in fault.what
    (fault,) = preflight(course, "ch03", other)
    assert "the file is called final (2).ipynb" in fault.what
