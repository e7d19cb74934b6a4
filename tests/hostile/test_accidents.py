"""Accidents of a run: killed, out of room, locked out, bereft of its helpers. Afterwards: every score, exactly once."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from tests.grading import classroom
from tests.grading.classroom import CHAPTER
from tests.hostile.case import LONGEST_RUN, answered, new_course, run_again, short_notebook
from tests.hostile.classmates import CLASSMATES

# HOSTILE_MOMENTS=20 make hostile: more moments at which the run is killed.
MOMENTS = int(os.environ.get("HOSTILE_MOMENTS", "3"))


@pytest.fixture(scope="module")
def handed_in(released: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A class of nine that has handed in."""
    course = new_course(released, tmp_path_factory.mktemp("accidents") / "course")
    blank = short_notebook(course)
    for student, answers in CLASSMATES.items():
        classroom.write(course, student, nbformat.writes(answered(blank, answers)))
    return course


@pytest.fixture
def course(handed_in: Path, tmp_path: Path) -> Path:
    """The same class, for one accident."""
    return Path(shutil.copytree(handed_in, tmp_path / "course"))


def _start(course: Path, *options: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "autograder.cli", "grade", CHAPTER, *options]
    return subprocess.Popen(
        command, cwd=course, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=classroom.environment()
    )


def _grade(course: Path) -> subprocess.CompletedProcess:
    return classroom.run(course, "autograder.cli", "grade", CHAPTER, seconds=LONGEST_RUN)


def _descendants(process: int) -> Iterator[tuple[int, str]]:
    """Yield (number, command line) of every process below one."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(entry.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        children.setdefault(parent, []).append(int(entry.parent.name))
    waiting = children.get(process, [])
    while waiting:
        number = waiting.pop()
        waiting.extend(children.get(number, []))
        try:
            yield number, Path(f"/proc/{number}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue


def _everything_is_there(course: Path, undisturbed: dict) -> None:
    """Every score as in an undisturbed run, each exactly once, with a notebook for each and nothing half done."""
    assert classroom.scores(course) == undisturbed
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        students = [submission.student.id for submission in gradebook.assignment_submissions(CHAPTER)]
        assert sorted(students) == sorted(undisturbed)
        for submission in gradebook.assignment_submissions(CHAPTER):
            assert [len(notebook.grades) for notebook in submission.notebooks] == [3]
    for student in undisturbed:
        folder = course / "autograded" / student
        assert [entry.name for entry in folder.iterdir()] == [CHAPTER]
        nbformat.read(folder / CHAPTER / f"{CHAPTER}.ipynb", as_version=4)


def test_a_run_killed_at_random_moments_and_resumed(course: Path, undisturbed: dict) -> None:
    """SIGKILL, again and again, until a run comes to its end."""
    chance, killed = random.Random(11), 0
    whole = _time_of_a_run(course)
    for _ in range(MOMENTS):
        process = _start(course, "--jobs", "1")
        try:
            process.wait(whole * chance.random())
        except subprocess.TimeoutExpired:
            below = [number for number, _ in _descendants(process.pid)]
            process.kill()
            killed += 1
            process.wait()
            _all_end(below)
        if killed and chance.random() < 0.3:
            shutil.rmtree(course / ".grading", ignore_errors=True)  # Stored results may go at any time.
    assert killed
    done = _grade(course)
    assert done.returncode == 0, done.stdout + done.stderr
    _everything_is_there(course, undisturbed)


def _time_of_a_run(course: Path) -> float:
    """How long it takes here until everything is graded, found on a copy."""
    copy = shutil.copytree(course, course.with_name("timed"))
    began = time.monotonic()
    _grade(Path(copy))
    return time.monotonic() - began


def _all_end(numbers: list[int]) -> None:
    until = time.monotonic() + 60
    while any(Path(f"/proc/{number}/exe").exists() for number in numbers):
        assert time.monotonic() < until, "a process of a killed run lives on"
        time.sleep(0.05)


def test_the_warm_parents_killed_while_they_work(course: Path, undisturbed: dict) -> None:
    """A lost sandbox is started again, and its submission is run again."""
    process = _start(course, "--jobs", "1")
    journal, killed = course / ".grading" / "journal" / f"{CHAPTER}.jsonl", 0
    while process.poll() is None:
        done = journal.read_text().count("\n") if journal.exists() else 0
        if done >= 1 + 3 * killed and killed < 2:
            for number, command in _descendants(process.pid):
                if "autograder.grading.worker" in command and "bwrap" not in command:
                    try:
                        os.kill(number, signal.SIGKILL)
                    except ProcessLookupError:
                        continue
            killed += 1
        time.sleep(0.02)
    said = process.communicate()[0]
    assert killed and process.returncode == 0, said
    _everything_is_there(course, undisturbed)


def test_a_worker_process_killed(course: Path, undisturbed: dict) -> None:
    """Without its worker a run stops with one sentence, and the next one goes on."""
    process = _start(course, "--jobs", "1")
    journal = course / ".grading" / "journal" / f"{CHAPTER}.jsonl"
    while not journal.exists() and process.poll() is None:
        time.sleep(0.02)
    for number, command in _descendants(process.pid):
        if "spawn_main" in command:
            os.kill(number, signal.SIGKILL)
    said = process.communicate(timeout=LONGEST_RUN)[0]
    assert process.returncode in (0, 3), said
    if process.returncode == 3:
        assert "Run the command again" in said
        done = _grade(course)
        assert done.returncode == 0, done.stdout + done.stderr
    _everything_is_there(course, undisturbed)


def test_a_locked_gradebook(course: Path, undisturbed: dict) -> None:
    """Somebody else is writing and does not stop: one sentence, and nothing that was graded is lost."""
    with sqlite3.connect(course / "gradebook.db", isolation_level=None) as connection:
        connection.execute("BEGIN IMMEDIATE")
        done = _grade(course)
        assert done.returncode == 3 and "database is locked" in done.stderr, done.stdout + done.stderr
        connection.execute("ROLLBACK")
    found = run_again(course)
    assert found.exit_code == 0 and any(outcome["replayed"] for outcome in found.outcomes)
    _everything_is_there(course, undisturbed)


def _inside(course: Path, *arguments: str) -> list[str]:
    """Return the beginning of a command that sees the course's folder, or a file in it, in another way."""
    program = shutil.which("bwrap")
    if program is None:
        pytest.skip("bubblewrap is missing, by which this test makes a small or read-only disk")
    start = [program, "--dev-bind", "/", "/", *arguments, "--chdir", str(course)]
    if subprocess.run([*start, "true"], capture_output=True).returncode:
        pytest.skip("bubblewrap may not mount here, by which this test makes a small or read-only disk")
    return start


def test_a_gradebook_that_is_read_only(course: Path, undisturbed: dict) -> None:
    """Said before anything is graded."""
    file = str(course / "gradebook.db")
    start = _inside(course, "--ro-bind", file, file)
    command = [*start, sys.executable, "-m", "autograder.cli", "grade", CHAPTER]
    done = subprocess.run(command, capture_output=True, text=True, env=classroom.environment(), timeout=LONGEST_RUN)
    assert done.returncode == 3 and "cannot be written to by this user; nothing was graded" in done.stderr
    assert _grade(course).returncode == 0
    _everything_is_there(course, undisturbed)


_ON_A_FULL_DISK = """
cp -r {original}/. . && rm -rf autograder simulations && room=$(df --output=avail -k . | tail -n 1)
head -c $(( (room - 160) * 1024 )) /dev/zero > filler
{grade} > first.txt 2>&1; code=$?
rm filler
cp first.txt {out}/first.txt; echo $code > {out}/code
{grade} > {out}/second.txt 2>&1; echo $? > {out}/second
cp -r . {out}/course
"""


def test_a_full_disk(course: Path, undisturbed: dict, tmp_path: Path, root: Path) -> None:
    """The disk fills while a class is graded: one sentence. With room again, the next run does the rest."""
    original, out = tmp_path / "original", tmp_path / "out"
    shutil.copytree(course, original)
    out.mkdir()
    start = _inside(course, "--size", str(64 << 20), "--tmpfs", str(course))
    grade = f"{sys.executable} -m autograder.cli grade {CHAPTER}"
    script = _ON_A_FULL_DISK.format(original=original, out=out, grade=grade)
    environment = {**classroom.environment(), "PYTHONPATH": str(root)}
    done = subprocess.run(
        [*start, "sh", "-c", script], capture_output=True, text=True, env=environment, timeout=LONGEST_RUN
    )
    assert done.returncode == 0, done.stderr
    first = (out / "first.txt").read_text()
    assert (out / "code").read_text().strip() == "3", first
    assert "was not recorded: " in first and "Traceback" not in first
    assert (out / "second").read_text().strip() == "0", (out / "second.txt").read_text()
    _everything_is_there(out / "course", undisturbed)


_CLOCK = """
import itertools, time
_real, _steps = time.time, itertools.count()
time.time = lambda: _real() - 3600.0 * next(_steps)
"""


def test_the_clock_set_back(course: Path, undisturbed: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour back at every look: what is measured is measured by another clock, and a resumed run is one."""
    (tmp_path / "clock").mkdir()
    (tmp_path / "clock" / "sitecustomize.py").write_text(_CLOCK)
    before = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(tmp_path / "clock"), before])))
    process = _start(course, "--jobs", "1")
    journal = course / ".grading" / "journal" / f"{CHAPTER}.jsonl"
    while not journal.exists() and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=LONGEST_RUN)
    for file in (course / ".grading").rglob("*"):
        os.utime(file, (time.time() + 10**7, time.time() + 10**7))
    found = run_again(course)
    assert found.exit_code == 0 and 0 <= min(outcome["seconds"] for outcome in found.outcomes)
    assert "unchanged" in {outcome["state"] for outcome in found.outcomes}
    _everything_is_there(course, undisturbed)


def test_a_worker_of_a_dask_cluster_lost(course: Path, undisturbed: dict) -> None:
    """What the lost worker had is done by another."""
    distributed = pytest.importorskip(
        "distributed", reason="Dask is missing: pip install -c requirements.lock -e '.[cluster]'"
    )
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, memory_limit=0
    ) as cluster:
        process = _start(course, "--scheduler", cluster.scheduler_address)
        _wait(lambda: process.poll() is not None or _is_busy(cluster))
        os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
        said = process.communicate(timeout=LONGEST_RUN)[0]
    assert process.returncode == 0, said
    _everything_is_there(course, undisturbed)


def _is_busy(cluster: object) -> bool:
    return any(worker.processing for worker in cluster.scheduler.workers.values())


def _wait(until: Callable[[], bool]) -> None:
    while not until():
        time.sleep(0.05)


def test_the_journal_is_one_line_for_each_that_was_recorded(course: Path, undisturbed: dict) -> None:
    """A line that was cut short, or is no line at all, costs that student's work once more and nothing else."""
    assert _grade(course).returncode == 0
    journal = course / ".grading" / "journal" / f"{CHAPTER}.jsonl"
    lines = journal.read_text().splitlines()
    assert sorted(json.loads(line)["student"] for line in lines) == sorted(undisturbed)
    journal.write_text("\n".join([*lines[:-1], lines[-1][: len(lines[-1]) // 2]]))
    found = run_again(course)
    assert found.exit_code == 0
    assert sorted(outcome["state"] for outcome in found.outcomes) == ["recorded"] + ["unchanged"] * 8
    _everything_is_there(course, undisturbed)
