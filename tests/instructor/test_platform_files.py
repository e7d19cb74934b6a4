"""Downloads from Moodle, Canvas and Google Classroom, named as those name them, through nbgrader's zip_collect."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from autograder.cli import main
from autograder.grading.limits import LARGEST_NOTEBOOK
from autograder.instructor.platform_files import sort_files
from autograder.instructor.roster import Student
from tests.grading.classroom import run

NOTEBOOK = "ch02_parameter_registration.ipynb"
CHAPTER = "ch02_parameter_registration"
CLASS = [
    Student("ada", "Ada", "Lovelace", lms_user_id="4711"),
    Student("rene", "Renée", "Müller-Łoś"),
    Student("kim1", "Kim", "Lee"),
    Student("kim2", "Kim", "Lee", lms_user_id="4712"),
]


@pytest.mark.parametrize(
    ("path", "owner"),
    [
        ("Ada Lovelace_12345_assignsubmission_file_/NOTEBOOK", "ada"),
        ("all/Ada Lovelace_12345_assignsubmission_file/NOTEBOOK", "ada"),
        ("LOVELACE Ada_12345_assignsubmission_file_NOTEBOOK", "ada"),
        ("Renée Müller-Łoś_12_assignsubmission_file_/my work/NOTEBOOK", "rene"),
        ("Renée Müller-Łoś_12_assignsubmission_file_/NOTEBOOK".encode().decode("cp437"), "rene"),
        ("lovelaceada_4711_98765_NOTEBOOK", "ada"),
        ("lovelace_byron_LATE_4711_98765_NOTEBOOK", "ada"),
        ("müllerłośrenée_late_1_98765_NOTEBOOK", "rene"),
        ("mullerłosrenee_1_98765_NOTEBOOK", "rene"),
        ("leekim_4712_98765_NOTEBOOK", "kim2"),
        ("HW 2/Ada Lovelace - NOTEBOOK", "ada"),
        ("Rene\u0301e Mu\u0308ller-Łos\u0301 - NOTEBOOK", "rene"),
        ("kim1/NOTEBOOK", "kim1"),
        ("kim1/ch02/deep/NOTEBOOK", "kim1"),
    ],
)
@pytest.mark.parametrize("again", ["", "-1", " (2)", "(1)", "-Copy1"])
def test_each_platforms_names_are_read(path: str, owner: str, again: str) -> None:
    path = path.replace("NOTEBOOK", NOTEBOOK.replace(".ipynb", f"{again}.ipynb"))
    assert sort_files([path], CLASS, [NOTEBOOK]).owners == {path: (owner, NOTEBOOK)}


@pytest.mark.parametrize(
    "path",
    [
        NOTEBOOK,
        f"Grace Hopper_12_assignsubmission_file_/{NOTEBOOK}",
        f"Participant_12_assignsubmission_file_/{NOTEBOOK}",
        f"hoppergrace_4713_98765_{NOTEBOOK}",
        f"anon_5fGh2_98765_{NOTEBOOK}",
        f"leekim_4714_98765_{NOTEBOOK}",
        f"Kim Lee - {NOTEBOOK}",
    ],
)
def test_a_name_that_fits_nobody_or_two_is_nobodys(path: str) -> None:
    found = sort_files([path], CLASS, [NOTEBOOK])
    assert not found.owners and found.unknown[0].startswith(path)
    assert ("kim1, kim2" in found.unknown[0]) == ("Kim" in path or "leekim" in path)


@pytest.mark.parametrize(
    ("path", "owner"),
    [
        ("Renée Müller-Łoś_7_assignsubmission_file_/Ada Lovelace - NOTEBOOK", "rene"),
        ("Renée Müller-Łoś_7_assignsubmission_file_/ada/NOTEBOOK", "rene"),
        ("leekim_4712_98765_work/ada/NOTEBOOK", "kim2"),
        ("leekim_4712_98765_lovelaceada_4711_98765_NOTEBOOK", "kim2"),
        ("kim1/Ada Lovelace_12345_assignsubmission_file_NOTEBOOK", "kim1"),
        ("Grace Hopper_12_assignsubmission_file_/Ada Lovelace - NOTEBOOK", None),
    ],
)
def test_nobody_hands_in_as_somebody_else_by_what_they_call_their_files(path: str, owner: str | None) -> None:
    found = sort_files([path.replace("NOTEBOOK", NOTEBOOK)], CLASS, [NOTEBOOK])
    assert [who for who, _ in found.owners.values()] == ([owner] if owner else [])


def test_a_notebook_with_another_name_keeps_it() -> None:
    path = "Ada Lovelace_1_assignsubmission_file_/final version.ipynb"
    assert sort_files([path], CLASS, [NOTEBOOK]).owners == {path: ("ada", "final version.ipynb")}


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """A course with a class, and the chapter as it would be released."""
    place = tmp_path_factory.mktemp("term")
    lines = (",".join((s.id, s.first_name, s.last_name, s.lms_user_id or "")) for s in CLASS)
    (place / "roster.csv").write_text("id,first_name,last_name,lms_user_id\n" + "\n".join(lines), encoding="utf-8")
    arguments = ["course", place / "course", "--root", root, "--chapters", "ch02", "--roster", place / "roster.csv"]
    assert main(list(map(str, arguments))) == 0
    shutil.copytree(root / "notebooks" / CHAPTER, place / "course" / "release" / CHAPTER)
    return place / "course"


@pytest.fixture
def course(empty: Path, tmp_path: Path) -> Path:
    """A copy of it, with the folder for what was downloaded."""
    shutil.copytree(empty, tmp_path / "course")
    (tmp_path / "course" / "downloaded" / CHAPTER / "archive").mkdir(parents=True)
    return tmp_path / "course"


def _drop(course: Path, name: str, files: dict[str, str | bytes]) -> None:
    """Put a zip file, or a folder where the name has no ending, into the course as it was downloaded."""
    place = course / "downloaded" / CHAPTER / "archive" / name
    if place.suffix == ".zip":
        with zipfile.ZipFile(place, "w") as archive:
            for path, text in files.items():
                archive.writestr(path, text)
        return
    for path, text in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text, encoding="utf-8")


def _zipped(files: dict[str, str | bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return data.getvalue()


def _tarred(files: dict[str, bytes], links: dict[str, str]) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        for path, target in links.items():
            entry = tarfile.TarInfo(path)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)
    return data.getvalue()


def _collect(course: Path, *options: str) -> subprocess.CompletedProcess:
    return run(course, "nbgrader", "zip_collect", CHAPTER, *options)


def _submitted(course: Path) -> dict[str, str]:
    folder = course / "submitted"
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_all_three_at_once_and_a_second_download(course: Path) -> None:
    _drop(course, "moodle.zip", {f"Renée Müller-Łoś_7_assignsubmission_file_/{NOTEBOOK}": "of renée"})
    _drop(
        course, "canvas.zip", {f"lovelaceada_LATE_4711_55_{NOTEBOOK}": "of ada", "__MACOSX/._x.ipynb": "", "a.txt": ""}
    )
    _drop(course, "drive", {f"HW/{NOTEBOOK}/readme.txt": "", f"kim1/{NOTEBOOK}": "of kim"})
    done = _collect(course)
    assert done.returncode == 0, done.stderr
    assert "Canvas marks as late" in done.stderr and "ada" in done.stderr.split("Canvas marks as late")[1]
    assert done.stdout == "3 of 4 students have handed in; nothing here from: kim2.\n"
    assert len(done.stderr.splitlines()) < 5, done.stderr
    expected = {f"rene/{CHAPTER}/{NOTEBOOK}": "of renée", f"ada/{CHAPTER}/{NOTEBOOK}": "of ada"}
    assert _submitted(course) == {**expected, f"kim1/{CHAPTER}/{NOTEBOOK}": "of kim"}
    _drop(course, "moodle.zip", {f"Renée Müller-Łoś_7_assignsubmission_file_/{NOTEBOOK}": "better"})
    assert _collect(course).returncode == 1 and _submitted(course)[f"rene/{CHAPTER}/{NOTEBOOK}"] == "of renée"
    assert _collect(course, "--force").returncode == 0
    assert _submitted(course)[f"rene/{CHAPTER}/{NOTEBOOK}"] == "better"


def test_two_submissions_of_one_and_an_unknown_student_stop_it_before_anything_is_collected(course: Path) -> None:
    _drop(course, "one.zip", {f"lovelaceada_4711_55_{NOTEBOOK}": "1", "hoppergrace_1_2_x.ipynb": "?"})
    _drop(course, "two", {f"Ada Lovelace - {NOTEBOOK}": "2", f"kim1/{NOTEBOOK}": "of kim"})
    done = _collect(course)
    assert done.returncode == 1 and not (course / "submitted").exists()
    assert f"ada has handed in {NOTEBOOK} twice: one/lovelaceada_4711_55_{NOTEBOOK} and two/Ada" in done.stderr
    assert "nobody in the gradebook: one/hoppergrace_1_2_x.ipynb" in done.stderr
    shutil.rmtree(course / "downloaded" / CHAPTER / "archive" / "two")
    done = _collect(course, "--PlatformFileCollector.skip_unknown=True")
    assert done.returncode == 0, done.stderr
    assert _submitted(course) == {f"ada/{CHAPTER}/{NOTEBOOK}": "1"} and "Passed over" in done.stderr


def test_archives_of_students_cost_nobody_else_anything(course: Path) -> None:
    too_large = b"0" * (LARGEST_NOTEBOOK + 1)
    moodle = {
        "Ada Lovelace_1_assignsubmission_file_/work.zip": _zipped({NOTEBOOK: "of ada", "../../out.ipynb": "out"}),
        "Renée Müller-Łoś_2_assignsubmission_file_/work.tar.gz": _tarred(
            {f"deep/{NOTEBOOK}": "of renée".encode()}, {"link.ipynb": "/etc/passwd"}
        ),
        "Renée Müller-Łoś_2_assignsubmission_file_/weights.pt.gz": b"no archive at all",
        "Kim One_3_assignsubmission_file_/work.zip": _zipped({NOTEBOOK: "of kim"})[:-30],
        "Kim Two_4_assignsubmission_file_/work.zip": _zipped({NOTEBOOK: too_large}),
    }
    _drop(course, "moodle.zip", moodle)
    done = _collect(course)
    assert done.returncode == 0, done.stderr
    assert _submitted(course) == {f"ada/{CHAPTER}/{NOTEBOOK}": "of ada", f"rene/{CHAPTER}/{NOTEBOOK}": "of renée"}
    warned = [line for line in done.stderr.splitlines() if "Passed over" in line]
    assert len(warned) == 3
    assert "leads out of the archive: moodle.zip/Ada Lovelace" in warned[0]
    assert "damaged one): moodle.zip/Kim One" in warned[1]
    assert f"more than {LARGEST_NOTEBOOK >> 20} MB: moodle.zip/Kim Two" in warned[2]


def test_a_submission_that_is_there_already_stops_it_before_anything_is_collected(course: Path) -> None:
    there = course / "submitted" / "kim2" / CHAPTER / NOTEBOOK
    there.parent.mkdir(parents=True)
    there.write_text("from the exchange")
    _drop(course, "drop", {f"ada/{NOTEBOOK}": "of ada", f"kim2/{NOTEBOOK}": "of kim"})
    done = _collect(course)
    assert done.returncode == 1 and "kim2 has a submission already" in done.stderr
    assert _submitted(course) == {f"kim2/{CHAPTER}/{NOTEBOOK}": "from the exchange"}
