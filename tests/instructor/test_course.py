"""``autograder course``: a whole course that nbgrader and formgrader know at once, or nothing."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import sys
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from autograder.cli import main
from autograder.instructor.due_dates import as_utc, read_due_date
from autograder.instructor.points import points_of, scaled
from autograder.messages import UsageError
from tests.grading.classroom import environment, run
from tests.jupyterlab_server import jupyterlab

TWO, THREE = "ch02_parameter_registration", "ch03_buffers_and_state"
DUE = (datetime.now(UTC) + timedelta(days=40)).date()
ROSTER = "\ufeffid;First name;Surname;Email\r\nada;Ada;Lovelace;ada@example.org\r\nrene;Renée;Müller;\r\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """A course of two chapters and two students, moved after it was made."""
    place = tmp_path_factory.mktemp("term")
    (place / "roster.csv").write_text(ROSTER, encoding="utf-8", newline="")
    made = place / "networks inside 2027"
    arguments = ["course", made, "--root", root, "--chapters", "ch03", "ch02", "--roster", place / "roster.csv"]
    arguments += ["--due", f"ch03={DUE}", "--timezone", "Europe/Zurich", "--points", "ch03=20", "--seed", "a phrase"]
    arguments += ["--exchange", place / "exchange", "--late-per-day", "10%", "--grace-minutes", "30"]
    assert main(list(map(str, arguments))) == 0
    return made.rename(place / "moved")


@pytest.fixture(scope="module")
def released(made: Path) -> Path:
    """The same after nbgrader has made the students' notebook of chapter 3."""
    done = run(made, "nbgrader", "generate_assignment", THREE)
    assert done.returncode == 0, done.stdout + done.stderr
    return made


def _notebook(folder: Path, chapter: str) -> nbformat.NotebookNode:
    return nbformat.read(folder / chapter / f"{chapter}.ipynb", as_version=4)


def test_the_chosen_chapters_are_there_and_no_text_with_their_solutions(made: Path) -> None:
    assert sorted(file.name for file in (made / "source").rglob("*") if file.is_file()) == [
        f"{TWO}.ipynb",
        f"{THREE}.ipynb",
    ]


def test_the_gradebook_has_students_due_dates_and_the_courses_name(made: Path) -> None:
    with Gradebook(f"sqlite:///{made / 'gradebook.db'}") as gradebook:
        assert [(each.id, each.first_name, each.last_name, each.email) for each in gradebook.students] == [
            ("ada", "Ada", "Lovelace", "ada@example.org"),
            ("rene", "Renée", "Müller", None),
        ]
        due = {each.name: each.duedate for each in gradebook.assignments}
    assert due == {TWO: None, THREE: as_utc(read_due_date(f"{DUE}T23:59", "Europe/Zurich"))}


def test_nobody_else_can_look_into_it_and_the_seed_is_its_own(made: Path) -> None:
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert stat.S_IMODE((made / "grading_seed.txt").stat().st_mode) == 0o600
    assert (made / "grading_seed.txt").read_text() == "a phrase"


def test_points_are_scaled_in_the_checks_and_in_the_cards(released: Path, root: Path) -> None:
    notebook = _notebook(released / "release", THREE)
    points = points_of(notebook)
    ours = points_of(_notebook(root / "notebooks", THREE))
    assert sum(points.values()) == pytest.approx(20, abs=1e-9)
    assert all(points[name] == pytest.approx(ours[name] * 20 / sum(ours.values()), abs=0.01) for name in ours)
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    for name, value in points.items():
        card = prose.split(f"### Exercise `{name.removesuffix('_check')}`")[1].split("**What it must do**")[0]
        assert f"| **Points** | {value} |" in card
    assert points_of(_notebook(released / "source", TWO)) == points_of(_notebook(root / "notebooks", TWO))


def test_what_students_get_holds_no_solution(released: Path) -> None:
    assert [file.name for file in (released / "release" / THREE).iterdir()] == [f"{THREE}.ipynb"]
    cells = [cell for cell in _notebook(released / "release", THREE).cells if cell.metadata.get("nbgrader")]
    answers = [cell for cell in cells if cell.metadata.nbgrader.solution]
    assert len(answers) == 3 and all("raise NotImplementedError" in cell.source for cell in answers)


def test_nbgrader_and_its_plugins_know_the_course(made: Path) -> None:
    code = """if True:
        from nbgrader.apps import NbGrader
        from nbgrader.preprocessors import AssignLatePenalties
        app = NbGrader(); app.initialize([])
        step = AssignLatePenalties(config=app.config); step.init_plugin()
        print(app.coursedir.course_id, app.coursedir.db_url, step.plugin_inst.late_submission_penalty("ada", 10, 1900))
    """
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=made, env=environment(), capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split() == ["networks_inside_2027", f"sqlite:///{made}/gradebook.db", "1.0"], done.stderr


def test_formgrader_shows_the_course_at_once(released: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(released)
    with jupyterlab(released) as address:
        with urllib.request.urlopen(f"{address}/formgrader/api/assignments") as answer:
            assignments = {each["name"]: each for each in json.load(answer)}
        with urllib.request.urlopen(f"{address}/formgrader/api/students") as answer:
            students = {each["id"] for each in json.load(answer)}
    assert set(assignments) == {TWO, THREE} and students == {"ada", "rene"}
    assert assignments[THREE]["status"] == "draft" and assignments[THREE]["max_score"] == pytest.approx(20)
    due = as_utc(read_due_date(f"{DUE}T23:59", "Europe/Zurich"))
    assert assignments[THREE]["duedate"] == due.isoformat()


def test_a_newer_class_list_adds_and_changes_and_removes_nobody(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Reading a course's configuration goes to its folder, as nbgrader does.
    monkeypatch.chdir(tmp_path)
    course, newer = tmp_path / "course", tmp_path / "new.csv"
    shutil.copytree(made, course)
    newer.write_text("id,last_name\nrene,Møller\nzoe,\n", encoding="utf-8")
    assert main(["roster", str(newer), "--root", str(course)]) == 0
    assert "1 are new" in (said := capsys.readouterr().out) and "left as they are: ada." in said
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        assert {each.id: (each.first_name, each.last_name) for each in gradebook.students} == {
            "ada": ("Ada", "Lovelace"),
            "rene": ("Renée", "Møller"),
            "zoe": (None, None),
        }
    newer.write_text("id\nADA\n", encoding="utf-8")
    assert main(["roster", str(newer), "--root", str(course)]) == 2
    assert "other capital letters" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--due", "ch03=2020-01-31"], "The due date Fri 31 Jan 2020 23:59"),
        (["--due", "ch03=31.1.2027"], "is no due date"),
        (["--due", "2027-01-31"], "takes CHAPTER=VALUE"),
        (["--due", f"ch03={DUE}", f"{THREE}={DUE}"], f"--due names {THREE} twice"),
        (["--chapters", "ch02", "--due", f"ch03={DUE}"], f"{THREE} is not among the chosen chapters"),
        (["--chapters", "ch77"], "There is no chapter 'ch77'"),
        (["--timezone", "Zurich"], "is no time zone"),
        (["--points", "ch03=0"], "--points takes a number above 0"),
        (["--points", "ch03=0.02"], "cannot be shared out among 3 exercises"),
        (["--late-per-day", "ten"], "takes 10% (of the score) or 2 (points)"),
        (["--name", "a/b"], "cannot name a course"),
        (["--roster", "twice.csv"], "line 3 has the id 'ada', which line 2 has already"),
        (["--root", "."], "holds no folder solutions/"),
    ],
)
def test_bad_input_gets_a_sentence_and_writes_nothing(
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("twice.csv").write_text("id\nada\nada\n")
    assert main(["course", "new", "--root", str(root), *arguments]) == 2
    assert said in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["twice.csv"]


def test_a_folder_that_exists_is_left_alone(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "mine.txt").write_text("kept")
    assert main(["course", str(tmp_path), "--root", str(root)]) == 2
    assert main(["course", str(tmp_path / "mine.txt"), "--root", str(root)]) == 2
    said = capsys.readouterr().err
    assert "exists and is not empty; nothing was changed" in said and "is a file; nothing was changed" in said
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    ("text", "timezone", "moment"),
    [
        ("2027-02-12", "Europe/Zurich", datetime(2027, 2, 12, 22, 59)),
        ("2027-07-12 18:00", "Europe/Zurich", datetime(2027, 7, 12, 16, 0)),
        ("2027-02-12T18:00-05:00", "Europe/Zurich", datetime(2027, 2, 12, 23, 0)),
        ("2027-02-12T18:00Z", "", datetime(2027, 2, 12, 18, 0)),
    ],
)
def test_due_dates_reach_the_gradebook_in_utc(text: str, timezone: str, moment: datetime) -> None:
    assert as_utc(read_due_date(text, timezone, now=datetime(2027, 1, 1, tzinfo=UTC))) == moment


@pytest.mark.parametrize("total", [1, 7.77, 10, 33.33, 100])
def test_shared_points_add_up_exactly(total: float) -> None:
    given = scaled({"a": 3, "b": 2, "c": 2, "d": 3.5}, total)
    assert round(sum(given.values()), 9) == total and min(given.values()) > 0
    with pytest.raises(UsageError):
        scaled({"a": 1000, "b": 1}, 1)
