"""Exports as their readers read them: Canvas' and Moodle's columns, and no text that a spreadsheet would calculate."""

from __future__ import annotations

import csv
import subprocess
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.instructor.spreadsheet import guarded, write_csv
from tests.grading import classroom
from tests.grading.classroom import CHAPTER
from tests.instructor.conftest import HONEST, OVERRIDDEN, PLANTED


def _export(course: Path, exporter: str, target: Path, *options: str) -> subprocess.CompletedProcess:
    plugin = f"--exporter=autograder.instructor.export.{exporter}"
    return classroom.run(course, "nbgrader", "export", plugin, "--to", str(target), *options)


def _rows(course: Path, exporter: str, target: Path, *options: str) -> list[list[str]]:
    done = _export(course, exporter, target, *options)
    assert done.returncode == 0, done.stderr
    with target.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def test_canvas_finds_its_columns_and_its_students(graded_class: Path, tmp_path: Path) -> None:
    target = tmp_path / "canvas.csv"
    header, possible, *students = _rows(graded_class, "CanvasExport", target)
    # What Canvas' importer asks for: these five in this order, and "Points Possible" in the second row.
    assert header == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", CHAPTER]
    assert "Points Possible" in possible[0] and possible[-1] == "11"
    assert not target.read_bytes().startswith(b"\xef\xbb\xbf")
    by_login = {row[3]: row for row in students}
    assert set(by_login) == {*HONEST, *PLANTED, "absent", "unreadable"} and all(len(row) == 6 for row in students)
    assert by_login["s001"][0] == 'Lovelace, Countess, Ada "Augusta"'
    assert by_login["s002"][0] == "Gödel, Kurt Friedrich" and by_login["s003"][0].startswith("'=HYPERLINK")
    assert by_login["absent"][-1] == "0" and by_login["unreadable"][-1] == ""
    assert float(by_login[OVERRIDDEN][-1]) <= 9.5


def test_moodle_gets_one_row_a_student_and_a_dash_for_an_open_score(graded_class: Path, tmp_path: Path) -> None:
    header, *students = _rows(graded_class, "MoodleExport", tmp_path / "m.csv", "--MoodleExport.missing=open")
    assert header == ["First name", "Surname", "Username", CHAPTER]
    scores = {row[2]: row[3] for row in students}
    assert scores["absent"] == scores["unreadable"] == "-" and 0 <= float(scores["s001"]) <= 11


def test_the_plain_one_has_nbgraders_columns_and_every_field_as_it_was(graded_class: Path, tmp_path: Path) -> None:
    target = tmp_path / "plain.csv"
    header, *rows = _rows(graded_class, "PlainExport", target)
    assert target.read_bytes().startswith(b"\xef\xbb\xbf")
    found = {row["student_id"]: row for row in (dict(zip(header, each, strict=True)) for each in rows)}
    assert found["s002"]["first_name"] == "Kurt\nFriedrich" and found["s001"]["first_name"] == 'Ada "Augusta"'
    assert found["s003"]["first_name"] == "'+49 30" and found["s003"]["max_score"] == "11"


def test_what_waits_is_told_and_who_is_unknown_stops_it(graded_class: Path, tmp_path: Path) -> None:
    done = _export(graded_class, "PlainExport", tmp_path / "a.csv")
    assert "handed in and not graded, left open: unreadable" in done.stderr
    done = _export(graded_class, "PlainExport", tmp_path / "b.csv", "--student", "['nemo']")
    assert done.returncode != 0 and "knows no student nemo; nothing was exported." in done.stderr
    assert "Traceback" not in done.stderr and not (tmp_path / "b.csv").exists()


def test_a_chapter_that_nobody_has_handed_in_is_exported_only_when_named(graded_class: Path, tmp_path: Path) -> None:
    with Gradebook(f"sqlite:///{graded_class / 'gradebook.db'}") as gradebook:
        gradebook.add_assignment("ch04_hooks")
    try:
        done = _export(graded_class, "MoodleExport", tmp_path / "all.csv")
        assert "Left out, because nobody has handed it in" in done.stderr and "ch04_hooks" in done.stderr
        named = _rows(graded_class, "MoodleExport", tmp_path / "named.csv", "--assignment", "['ch04_hooks']")
    finally:
        with Gradebook(f"sqlite:///{graded_class / 'gradebook.db'}") as gradebook:
            gradebook.remove_assignment("ch04_hooks")
    assert (tmp_path / "all.csv").read_text(encoding="utf-8").splitlines()[0].endswith(f",{CHAPTER}")
    assert named[0][-1] == "ch04_hooks" and {row[-1] for row in named[1:]} == {"0"}


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1+2", "@SUM(A1)", "\t=1", "\r=1", "  =1", "＝1"])
def test_a_formula_becomes_text(text: str) -> None:
    assert guarded(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "-", "a=b", "O'Neill", "Ö-Ü", "3 + 4"])
def test_other_text_stays_as_it_is(text: str) -> None:
    assert guarded(text) == text


def test_numbers_stay_numbers_and_awkward_text_comes_back(tmp_path: Path) -> None:
    row = ["a,b", 'say "no"', "two\nlines", "ß; ü"]
    write_csv(tmp_path / "x.csv", [[*row, -1.5, 2.0, 1 / 3, 7, None]])
    with (tmp_path / "x.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [[*row, "-1.5", "2", "0.33", "7", ""]]
