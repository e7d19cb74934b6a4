"""A class graded on a Dask cluster whose workers share nothing with the instructor but the scheduler's address."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.grading import classroom
from tests.grading.answers import BROKEN_DROPOUT, RIGHT_DROPOUT, UNSCALED_DROPOUT
from tests.grading.classroom import CHAPTER

pytest.importorskip("distributed", reason="Dask is not installed: pip install -e '.[cluster]'")

DROPOUTS = (RIGHT_DROPOUT, UNSCALED_DROPOUT, BROKEN_DROPOUT)
CLASS = {f"student{number:02}": {"my_dropout": f"# {number}\n{DROPOUTS[number % 3]}"} for number in range(12)}


@pytest.fixture
def course(tmp_path: Path, root: Path) -> Path:
    """A course whose class of twelve has handed in."""
    folder = classroom.make_course(root, tmp_path / "class")
    for student, answers in CLASS.items():
        classroom.hand_in(folder, student, answers, only=("my_dropout",))
    return folder


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[str]:
    """A scheduler's address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port)]
    with (tmp_path / "scheduler.log").open("w") as log:
        process = subprocess.Popen([*command, "--no-dashboard"], cwd=tmp_path, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield f"tcp://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(30)


@pytest.fixture
def workers(tmp_path: Path, root: Path, scheduler: str) -> Iterator[list[subprocess.Popen]]:
    """Two workers, each with its own copy of the package, its own home and its own working folder."""
    started = []
    for name in ("one", "two"):
        place = tmp_path / name
        (place / "home").mkdir(parents=True)
        (place / "work").mkdir()
        for package in ("autograder", "simulations"):
            shutil.copytree(root / package, place / "installed" / package, ignore=shutil.ignore_patterns("__pycache__"))
        kept = {key: value for key, value in os.environ.items() if key in ("PATH", "LANG", "TMPDIR")}
        environment = {**kept, "HOME": str(place / "home"), "PYTHONPATH": str(place / "installed")}
        command = [sys.executable, "-m", "distributed.cli.dask_worker", scheduler, "--name", name, "--nthreads", "1"]
        with (place / "log").open("w") as log:
            started.append(
                subprocess.Popen(
                    [*command, "--no-nanny", "--no-dashboard"],
                    cwd=place / "work",
                    env=environment,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            )
    try:
        yield started
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(30)


def _started(course: Path, scheduler: str, workers: list[subprocess.Popen]) -> subprocess.Popen:
    """Start grading once both workers are there."""
    from distributed import Client

    with Client(scheduler, timeout=60) as client:
        client.wait_for_workers(len(workers), timeout=60)
    command = [sys.executable, "-m", "autograder.cli", "grade", CHAPTER, "--scheduler", scheduler]
    return subprocess.Popen(
        [*command, "--json", "summary.json"],
        cwd=course,
        env=classroom.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.timeout(600)
def test_a_lost_worker_loses_no_submission_and_no_point(
    course: Path, scheduler: str, workers: list[subprocess.Popen]
) -> None:
    journal = course / ".grading" / "journal" / f"{CHAPTER}.jsonl"
    grading = _started(course, scheduler, workers)
    until = time.monotonic() + 280
    while not journal.exists() or not journal.read_text():
        assert grading.poll() is None and time.monotonic() < until, "it ended before the first was graded"
        time.sleep(0.02)
    workers[0].send_signal(signal.SIGKILL)
    left = len(CLASS) - journal.read_text().count("\n")
    said, _ = grading.communicate(timeout=250)
    assert grading.returncode == 0, said
    summary = json.loads((course / "summary.json").read_text())
    assert left > 1, "the worker was lost when everything was done: this proves nothing"
    assert {outcome["student"]: outcome["state"] for outcome in summary["outcomes"]} == dict.fromkeys(CLASS, "recorded")
    assert len(summary["outcomes"]) == len(CLASS) and not any(each["replayed"] for each in summary["outcomes"])
    points = {student: entry["my_dropout"] for student, entry in classroom.scores(course).items()}
    right, unscaled, broken = ({points[s] for s in sorted(CLASS)[kind::3]} for kind in range(3))
    assert right == {3} and len(unscaled) == len(broken) == 1 and 3 > max(unscaled) > max(broken) > 0
    # The workers' packages lie below /tmp: that is said, and what they load late is there all the same.
    assert all("submission gets an empty one of its own" in note for note in summary["notes"]), summary["notes"]
