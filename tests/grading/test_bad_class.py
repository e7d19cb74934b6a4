"""Bad input: the class is graded, the one submission is reported with one clear line, and nothing is lost."""

from __future__ import annotations

import contextlib
import copy
import errno
import json
import os
import shutil
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from autograder.cli import main
from autograder.grading import command, engine, gradebook
from autograder.grading.grade import close_sandboxes
from tests.grading import classroom
from tests.grading.answers import RIGHT_BATCHNORM, RIGHT_DROPOUT
from tests.grading.classroom import CHAPTER

ONLY = ("my_batchnorm", "my_dropout")
ANSWERS = {"my_batchnorm": RIGHT_BATCHNORM, "my_dropout": RIGHT_DROPOUT}
FULL = {"my_batchnorm": 4, "my_dropout": 3, "save_and_resume": 0}


def _marked(notebook: NotebookNode, name: str) -> int:
    ids = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells]
    return ids.index(name)


def _rewrite(course: Path, student: str, change) -> None:
    folder = classroom.hand_in(course, student, ANSWERS, only=ONLY)
    notebook = nbformat.read(folder / f"{CHAPTER}.ipynb", as_version=4)
    change(notebook)
    classroom.write(course, student, nbformat.writes(notebook))


def _without_a_test(notebook: NotebookNode) -> None:
    del notebook.cells[_marked(notebook, "my_batchnorm_check")]


def _with_a_test_twice(notebook: NotebookNode) -> None:
    place = _marked(notebook, "my_dropout_check")
    again = copy.deepcopy(notebook.cells[place])
    again.source = "pass"
    notebook.cells.insert(place, again)


def _with_a_test_from_elsewhere(notebook: NotebookNode) -> None:
    again = copy.deepcopy(notebook.cells[_marked(notebook, "my_dropout_check")])
    again.metadata.nbgrader.grade_id = "my_linear_check"
    notebook.cells.append(again)


def _with_a_test_changed(notebook: NotebookNode) -> None:
    cell = notebook.cells[_marked(notebook, "my_dropout_check")]
    cell.source = "1000.0"
    cell.metadata.nbgrader.points = 1000


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """A released course in which nobody has handed in."""
    return classroom.make_course(root, tmp_path_factory.mktemp("bad"))


@pytest.fixture(scope="module")
def course(empty: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A class in which most is wrong with what was handed in, graded once."""
    folder = tmp_path_factory.mktemp("class") / "course"
    shutil.copytree(empty, folder)
    classroom.hand_in(folder, "ada", ANSWERS, only=ONLY)
    classroom.write(folder, "bad_json", "{this is no notebook")
    classroom.write(folder, "bad_list", "[]")
    classroom.write(folder, "bad_cells", '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": 7}')
    (classroom.write(folder, "bad_bytes", "") / f"{CHAPTER}.ipynb").write_bytes(b"\xff\xfe\x00{")
    place = classroom.write(folder, "empty_folder", "")
    (place / f"{CHAPTER}.ipynb").unlink()
    place = classroom.hand_in(folder, "other_name", ANSWERS, only=ONLY)
    (place / f"{CHAPTER}.ipynb").rename(place / "homework.ipynb")
    place = classroom.hand_in(folder, "many_files", ANSWERS, only=ONLY)
    (place / "data").mkdir()
    for number in range(10_000):
        (place / "data" / f"{number}.txt").touch()
    _rewrite(folder, "no_test", _without_a_test)
    _rewrite(folder, "test_twice", _with_a_test_twice)
    _rewrite(folder, "test_changed", _with_a_test_changed)
    _rewrite(folder, "test_from_elsewhere", _with_a_test_from_elsewhere)
    (folder / "submitted" / "a_stray_file.txt").touch()
    done, summary = classroom.grade(folder)
    (folder / "said.json").write_text(json.dumps({"code": done.returncode, "err": done.stderr, "out": done.stdout}))
    (folder / "summary.json").write_text(json.dumps(summary))
    return folder


@pytest.fixture
def said(course: Path) -> dict:
    """What the run over the class printed, and its exit code."""
    return json.loads((course / "said.json").read_text())


@pytest.mark.parametrize(
    ("student", "sentence"),
    [
        ("bad_json", f"{CHAPTER}.ipynb cannot be graded: it is not a notebook: its text is not JSON."),
        ("bad_list", "it is JSON, and no notebook"),
        ("bad_cells", "it is JSON, and no notebook"),
        ("bad_bytes", "its text is not UTF-8."),
        ("empty_folder", f"its folder holds no {CHAPTER}.ipynb."),
        ("other_name", f"its folder holds no {CHAPTER}.ipynb (there is homework.ipynb)."),
        ("many_files", "it brings more than 1000 files."),
    ],
)
def test_one_clear_line_for_each(course: Path, said: dict, student: str, sentence: str) -> None:
    assert said["code"] == 1
    lines = [line for line in said["err"].splitlines() if line.startswith(f"{student}: ")]
    assert len(lines) == 1 and sentence in lines[0], said["err"]
    assert f"not graded: {student}: " in said["out"]
    outcomes = {each["student"]: each for each in json.loads((course / "summary.json").read_text())["outcomes"]}
    assert outcomes[student]["state"] == "failed"
    assert "Traceback" not in said["err"] + said["out"] and "Warning" not in said["err"]


@pytest.mark.parametrize("student", ["ada", "no_test", "test_twice", "test_changed", "test_from_elsewhere"])
def test_the_others_are_graded_and_test_cells_are_the_instructors(course: Path, student: str) -> None:
    assert classroom.scores(course)[student] == FULL


def test_a_mended_submission_is_graded_and_nobody_else_again(course: Path) -> None:
    classroom.hand_in(course, "bad_json", ANSWERS, only=ONLY)
    done, summary = classroom.grade(course, "--student", "bad_json")
    assert done.returncode == 0, done.stderr
    assert [each["state"] for each in summary["outcomes"]] == ["recorded"]
    assert classroom.scores(course)["bad_json"] == FULL


def _main(course: Path, *options: str) -> int:
    return main(["grade", CHAPTER, "--root", str(course), *options])


@pytest.fixture(scope="module")
def thread() -> Iterator[ThreadPoolExecutor]:
    """One thread of this process that grades for all tests, with one sandbox, which ends with the thread."""
    with ThreadPoolExecutor(1) as pool:
        yield pool
        pool.submit(close_sandboxes).result()


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, empty: Path, thread: ThreadPoolExecutor) -> Path:
    """A course of its own for the test, graded by that thread."""
    monkeypatch.setattr(command, "executor", lambda options, submissions: contextlib.nullcontext((thread, 1)))
    monkeypatch.chdir(tmp_path)
    shutil.copytree(empty, tmp_path / "course")
    return tmp_path / "course"


def test_nobody_has_handed_in(here: Path, capsys: pytest.CaptureFixture) -> None:
    assert _main(here) == 2
    assert f"nobody has a folder submitted/STUDENT/{CHAPTER}" in capsys.readouterr().err
    assert _main(here, "--student", "zoe") == 2
    assert f"no folder submitted/zoe/{CHAPTER}, and the gradebook knows no student zoe" in capsys.readouterr().err


def test_a_chapter_that_does_not_exist(here: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["grade", "ch33_nothing", "--root", str(here)]) == 2
    said = capsys.readouterr().err
    assert 'no assignment "ch33_nothing"' in said and CHAPTER in said and len(said.strip().splitlines()) == 1


def test_a_folder_that_is_no_course(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["grade", CHAPTER, "--root", str(tmp_path)]) == 2
    assert "holds no nbgrader_config.py" in capsys.readouterr().err


@pytest.mark.parametrize("option", [["--jobs", "-1"], ["--verify", "101"]])
def test_options_that_mean_nothing(here: Path, option: list[str], capsys: pytest.CaptureFixture) -> None:
    assert _main(here, *option) == 2
    assert "--jobs takes a number from 1" in capsys.readouterr().err


def test_a_gradebook_that_is_missing_or_unreadable(here: Path, capsys: pytest.CaptureFixture) -> None:
    classroom.hand_in(here, "ada", ANSWERS, only=ONLY)
    (here / "gradebook.db").write_bytes(b"these are not the pages of a database" * 100)
    assert _main(here) == 3
    said = capsys.readouterr().err
    assert "cannot be opened: file is not a database" in said and len(said.strip().splitlines()) == 1
    (here / "gradebook.db").unlink()
    assert _main(here) == 2
    assert "There is no gradebook" in capsys.readouterr().err


def test_a_gradebook_that_cannot_be_written(here: Path, capsys: pytest.CaptureFixture) -> None:
    classroom.hand_in(here, "ada", ANSWERS, only=ONLY)
    before = (here / "gradebook.db").read_bytes()
    with (here / "nbgrader_config.py").open("a") as config:
        config.write(f"\nc.CourseDirectory.db_url = 'sqlite:///file:{here}/gradebook.db?mode=ro&uri=true'\n")
    assert _main(here) == 3
    said = capsys.readouterr()
    assert "readonly database" in said.err and "Traceback" not in said.err
    assert "1 is left" in said.out
    assert (here / "gradebook.db").read_bytes() == before
    assert not (here / "autograded" / "ada" / CHAPTER).exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to any file")
def test_a_gradebook_that_this_user_may_not_write(here: Path, capsys: pytest.CaptureFixture) -> None:
    classroom.hand_in(here, "ada", ANSWERS, only=ONLY)
    (here / "gradebook.db").chmod(0o444)
    assert _main(here) == 3
    assert "cannot be written to by this user; nothing was graded" in capsys.readouterr().err


def _class_of_three(course: Path) -> None:
    for number, student in enumerate(("ada", "ben", "cleo")):
        answers = {"my_dropout": f"# {number}\n{RIGHT_DROPOUT}"}
        classroom.hand_in(course, student, answers, only=("my_dropout",))


@pytest.mark.parametrize(("number", "code"), [(errno.ENOSPC, 3), (errno.EACCES, 1)])
def test_a_full_disk_stops_the_run_and_one_folder_does_not(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, number: int, code: int
) -> None:
    _class_of_three(here)
    replace = gradebook._replace

    def refuse(fresh: Path, final: Path) -> None:
        if "ben" in final.parts:
            raise OSError(number, os.strerror(number), str(final))
        replace(fresh, final)

    monkeypatch.setattr(gradebook, "_replace", refuse)
    assert _main(here, "--json", "-") == code
    said = capsys.readouterr()
    assert os.strerror(number) in said.err and "Traceback" not in said.err
    left = {"my_batchnorm": 0, "my_dropout": 3, "save_and_resume": 0}
    assert classroom.scores(here) == {student: left for student in (["ada"] if code == 3 else ["ada", "cleo"])}
    assert not list((here / "autograded" / "ben").iterdir())
    monkeypatch.undo()
    assert _main(here) == 0
    assert "1 were already" in capsys.readouterr().out or code == 1
    assert classroom.scores(here) == dict.fromkeys(("ada", "ben", "cleo"), left)


def test_a_store_and_a_journal_without_room_cost_only_the_resume(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    _class_of_three(here)

    def full(*details: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("autograder.grading.store.Store.put", full)
    monkeypatch.setattr("autograder.grading.store.Journal.add", full)
    assert _main(here) == 0
    assert "The journal cannot be written (No space left on device)" in capsys.readouterr().out
    assert len(classroom.scores(here)) == 3


def test_an_interrupt_finishes_what_is_running_and_a_second_one_ends_it(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    _class_of_three(here)
    told = engine.Engine._tell
    sent: list[str] = []

    def interrupt(self: engine.Engine, outcome: engine.Outcome) -> None:
        told(self, outcome)
        if not sent:
            sent.append(outcome.student)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(engine.Engine, "_tell", interrupt)
    handler = signal.getsignal(signal.SIGINT)
    assert _main(here, "--json", "-") == 130
    said = capsys.readouterr().out
    assert "To go on where this stopped: autograder grade" in said
    assert '"stopped": true' in said and '"state": "left"' in said
    assert signal.getsignal(signal.SIGINT) is handler

    def interrupt_twice(self: engine.Engine, outcome: engine.Outcome) -> None:
        told(self, outcome)
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(engine.Engine, "_tell", interrupt_twice)
    assert _main(here, "--force") == 130
    assert "Traceback" not in capsys.readouterr().err
    monkeypatch.setattr(engine.Engine, "_tell", told)
    assert _main(here) == 0
    assert len(classroom.scores(here)) == 3


def test_force_grades_again_and_one_student_alone(here: Path, capsys: pytest.CaptureFixture) -> None:
    _class_of_three(here)
    assert _main(here, "--student", "ben") == 0
    assert set(classroom.scores(here)) == {"ben"}
    assert _main(here, "--json", str(here / "summary.json")) == 0
    summary = json.loads((here / "summary.json").read_text())
    assert {each["student"]: each["state"] for each in summary["outcomes"]} == {
        "ada": "recorded",
        "ben": "unchanged",
        "cleo": "recorded",
    }
    assert _main(here, "--force", "--json", str(here / "summary.json")) == 0
    summary = json.loads((here / "summary.json").read_text())
    assert [each["state"] for each in summary["outcomes"]] == ["recorded"] * 3
    assert not any(each["replayed"] for each in summary["outcomes"])
    capsys.readouterr()
    assert _main(here, "--json", str(here / "nowhere" / "summary.json")) == 0
    assert "cannot be written" in capsys.readouterr().err
