"""A class graded with one command: the same scores as cold kernels and as nbgrader, resumed where it was cut short."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

from autograder.grading.sameness import notebook_differences
from tests.grading import classroom
from tests.grading.answers import RIGHT_BATCHNORM, RIGHT_DROPOUT, SUBMISSIONS
from tests.grading.classroom import CHAPTER

TORCHS_OWN = {"my_batchnorm": "MyBatchNorm = nn.BatchNorm1d", "my_dropout": "class MyDropout(nn.Dropout):\n    pass"}
HOSTILE = {
    "my_batchnorm": RIGHT_BATCHNORM,
    "my_dropout": "import os\nos._exit(0)",
}
FORGING = {
    "my_batchnorm": (
        "class MyBatchNorm(nn.Module):\n    pass\n\n\n"
        "import autograder.checking\nimport autograder.verdict\n"
        "check = lambda *parts: 4.0\n"
        "autograder.checking.check = check\nautograder.verdict.judge = None\n"
    ),
    "my_dropout": RIGHT_DROPOUT,
}


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """A course whose class of eight has been graded once."""
    folder = classroom.make_course(root, tmp_path_factory.mktemp("class"))
    for student, answers in SUBMISSIONS.items():
        classroom.hand_in(folder, student, answers)
    classroom.hand_in(folder, "fred_torchs_own", TORCHS_OWN)
    classroom.hand_in(folder, "gil_leaves_early", HOSTILE)
    classroom.hand_in(folder, "hal_forges", FORGING)
    done, summary = classroom.grade(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder / "first.json").write_text(json.dumps(summary))
    return folder


@pytest.fixture(scope="module")
def scores(course: Path) -> dict[str, dict[str, float]]:
    """What the gradebook holds."""
    return classroom.scores(course)


def test_everyone_is_graded(course: Path, scores: dict) -> None:
    students = {*SUBMISSIONS, "fred_torchs_own", "gil_leaves_early", "hal_forges"}
    assert set(scores) == students
    summary = json.loads((course / "first.json").read_text())
    assert {outcome["student"] for outcome in summary["outcomes"]} == students
    assert {outcome["state"] for outcome in summary["outcomes"]} == {"recorded"}
    assert summary["exit_code"] == 0 and not summary["stopped"]


def test_right_wrong_and_untouched(scores: dict) -> None:
    assert scores["ada_all_right"] == {"my_batchnorm": 4, "my_dropout": 3, "save_and_resume": 4}
    assert scores["ben_untouched"] == {"my_batchnorm": 0, "my_dropout": 0, "save_and_resume": 0}
    assert 0 < scores["cleo_biased_running_var"]["my_batchnorm"] < 4


def test_torchs_own_layers_earn_nothing_and_the_reason_is_there(course: Path, scores: dict) -> None:
    assert scores["fred_torchs_own"] == {"my_batchnorm": 0, "my_dropout": 0, "save_and_resume": 0}
    text = (course / "autograded" / "fred_torchs_own" / CHAPTER / f"{CHAPTER}.ipynb").read_text()
    assert "MyBatchNorm is torch's own BatchNorm1d" in text and "inherits from torch's Dropout" in text


def test_a_process_that_ends_keeps_the_points_before(course: Path, scores: dict) -> None:
    assert scores["gil_leaves_early"] == {"my_batchnorm": 4, "my_dropout": 0, "save_and_resume": 0}
    text = (course / "autograded" / "gil_leaves_early" / CHAPTER / f"{CHAPTER}.ipynb").read_text()
    assert "ended with exit code 0" in text


def test_replacing_the_check_and_the_comparison_earns_nothing(scores: dict) -> None:
    assert scores["hal_forges"]["my_batchnorm"] == 0


def test_neither_secret_nor_observations_stay_in_the_notebooks(course: Path) -> None:
    for file in (course / "autograded").rglob("*.ipynb"):
        text = file.read_text()
        assert "vnd.deep-framework-mechanics" not in text and classroom.SECRET not in text
        assert file.stat().st_mode & 0o777 == 0o444


def test_a_second_run_grades_nothing_again(course: Path, scores: dict) -> None:
    done, summary = classroom.grade(course)
    assert done.returncode == 0
    assert {outcome["state"] for outcome in summary["outcomes"]} == {"unchanged"}
    assert classroom.scores(course) == scores


def test_a_changed_submission_is_graded_again_and_no_other(course: Path, scores: dict) -> None:
    classroom.hand_in(course, "ben_untouched", {"my_dropout": RIGHT_DROPOUT})
    done, summary = classroom.grade(course)
    assert done.returncode == 0
    assert [each["student"] for each in summary["outcomes"] if each["state"] == "recorded"] == ["ben_untouched"]
    assert classroom.scores(course)["ben_untouched"]["my_dropout"] == 3
    classroom.hand_in(course, "ben_untouched", {})
    classroom.grade(course, "--student", "ben_untouched")
    assert classroom.scores(course) == scores


def test_cold_kernels_and_nbgrader_give_the_same_scores_and_outputs(course: Path, scores: dict, tmp_path: Path) -> None:
    """A share on cold kernels; then all of it with ``nbgrader autograde``, which takes what is stored, and again
    without the store, which executes. Only the warm way puts back a check that a submission has replaced: on a cold
    kernel the forger's hands over nothing."""
    honest = tmp_path / "honest"
    shutil.copytree(course, honest)
    shutil.rmtree(honest / "submitted" / "hal_forges")
    done, summary = classroom.grade(honest, "--verify", "20")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(summary["verified"]) == 2 and not any(each["differences"] for each in summary["verified"])
    copy = tmp_path / "again"
    shutil.copytree(course, copy, ignore=shutil.ignore_patterns("autograded", ".grading", "gil_leaves_early"))
    done = classroom.run(copy, "nbgrader", "autograde", CHAPTER, "--force")
    assert done.returncode == 0, done.stdout + done.stderr
    assert classroom.scores(copy) == scores
    for student in sorted(set(scores) - {"gil_leaves_early"}):
        ours, theirs = (
            nbformat.read(folder / "autograded" / student / CHAPTER / f"{CHAPTER}.ipynb", as_version=4)
            for folder in (course, copy)
        )
        assert notebook_differences(ours, theirs) == []


def _start(course: Path) -> subprocess.Popen:
    command = [sys.executable, "-m", "autograder.cli", "grade", CHAPTER, "--jobs", "1"]
    return subprocess.Popen(
        command, cwd=course, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=classroom.environment()
    )


def _wait_for_journal(course: Path, process: subprocess.Popen) -> None:
    journal = course / ".grading" / "journal" / f"{CHAPTER}.jsonl"
    until = time.monotonic() + 100
    while not (journal.exists() and journal.read_text().count("\n")):
        assert process.poll() is None and time.monotonic() < until, "it ended before the first was graded"
        time.sleep(0.05)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_cut_short_goes_on(root: Path, tmp_path: Path, ending: signal.Signals) -> None:
    course = classroom.make_course(root, tmp_path / "course")
    for number in range(12):
        answers = {"my_dropout": f"# {number}\n{RIGHT_DROPOUT}"}
        classroom.hand_in(course, f"student{number:02}", answers, only=("my_dropout",))
    process = _start(course)
    _wait_for_journal(course, process)
    process.send_signal(ending)
    said = process.communicate(timeout=60)[0]
    if ending == signal.SIGINT:
        assert process.returncode == 130, said
        assert "To go on where this stopped: autograder grade" in said
    done, summary = classroom.grade(course)
    assert done.returncode == 0, done.stdout + done.stderr
    states = [outcome["state"] for outcome in summary["outcomes"]]
    assert len(states) == 12 and "unchanged" in states and set(states) <= {"unchanged", "recorded"}
    expected = {"my_batchnorm": 0, "my_dropout": 3, "save_and_resume": 0}
    assert classroom.scores(course) == {f"student{number:02}": expected for number in range(12)}
