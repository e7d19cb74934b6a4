"""A course folder: chapters with their due dates and points, a class list, a secret, and nbgrader's configuration.

It is made beside its place and moved there at the end, so that there is a whole course or none.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook

from autograder.authoring.build import chapters, solution_file
from autograder.grading.course import course_secret
from autograder.instructor.due_dates import as_utc
from autograder.instructor.late_penalty import PERCENT
from autograder.instructor.points import points_of, scale_notebook
from autograder.instructor.roster import Student
from autograder.messages import UsageError

_COURSE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_LEFT_OUT = (".ipynb_checkpoints", "__pycache__", "*.pyc", "*.new", "ch[0-9][0-9]_*.py")

_OWN = """

# ---- This course ---------------------------------------------------------------------------------------------------
# What stands here wins over what stands above.

import os.path  # noqa: E402

c.CourseDirectory.course_id = {course_id!r}
# This file's folder, so that the course may be moved and JupyterLab be started above it.
c.CourseDirectory.root = os.path.dirname(os.path.abspath(__file__))
c.CourseDirectory.db_url = "sqlite:///" + os.path.join(c.CourseDirectory.root, "gradebook.db")
c.CourseDirectory.source_directory = "source"
c.CourseDirectory.release_directory = "release"
c.ExecuteForGrading.source_directory = "source"

# The folder through which students and instructors hand notebooks to each other, on a machine that they share.
{exchange}
# The time zone in which the exchange writes down when something was handed in.
{timezone}

# What a day of lateness costs, in "percent" of the score or in "points"; nothing within the grace period.
c.AssignLatePenalties.plugin_class = "autograder.instructor.late_penalty.PenaltyPerDay"
c.PenaltyPerDay.per_day = {per_day!r}
c.PenaltyPerDay.unit = {unit!r}
c.PenaltyPerDay.grace_minutes = {grace_minutes!r}
c.PenaltyPerDay.at_most = None

# Reads the file names of Moodle, Canvas and Google Classroom: nbgrader zip_collect
# Without nbgrader's three lines a file, what has to be read can be found.
c.ZipCollectApp.log_level = "WARN"
c.ZipCollectApp.extractor_plugin = "autograder.instructor.unpacking.NotebookExtractor"
c.ZipCollectApp.collector_plugin = "autograder.instructor.platform_files.PlatformFileCollector"
"""


@dataclass
class Plan:
    """What a new course is to have. Chapters are folder names; due dates are aware of their time zone."""

    chapters: list[str]
    course_id: str = ""
    due: dict[str, datetime] = field(default_factory=dict)
    points: dict[str, float] = field(default_factory=dict)
    students: list[Student] = field(default_factory=list)
    seed: str = ""
    exchange: str = ""
    timezone: str = ""
    late_per_day: float = 0.0
    late_unit: str = PERCENT
    grace_minutes: float = 0.0


def chapter_named(root: Path, text: str, chosen: Sequence[str] = ()) -> str:
    """Return the chapter's folder name for ``ch03`` or the whole name.

    Raises UsageError for an unknown chapter, and for one that is not among ``chosen``.
    """
    found = chapters(root, [text])[0]
    if chosen and found not in chosen:
        raise UsageError(f"{found} is not among the chosen chapters: {', '.join(chosen)}.")
    return found


def make_course(root: Path, folder: Path, plan: Plan) -> dict[str, float]:
    """Make the course folder from the repository ``root``; return the points of each chapter.

    Raises UsageError, and writes nothing, where the folder cannot be made or is there already with something in it.
    """
    plan.course_id = plan.course_id or re.sub(r"[^A-Za-z0-9_.-]+", "_", folder.name).strip("_.-")
    if not _COURSE_ID.fullmatch(plan.course_id):
        raise UsageError(
            f"{plan.course_id!r} cannot name a course: letters without accents, digits, _ . and - can. Give --name."
        )
    _refuse_existing(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}.new-", dir=folder.parent))
    except OSError as error:
        raise UsageError(f"{folder} cannot be made: {error.strerror} ({error.filename}).") from None
    try:
        points = {chapter: _source(root, fresh, chapter, plan.points.get(chapter)) for chapter in plan.chapters}
        _write_config(root, fresh, plan)
        _write_secret(fresh, plan.seed)
        _write_gradebook(fresh, plan)
        with suppress(FileNotFoundError):
            folder.rmdir()
        fresh.rename(folder)
    except OSError as error:
        raise UsageError(f"{folder} cannot be made: {error.strerror} ({error.filename}).") from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return points


def _refuse_existing(folder: Path) -> None:
    if not os.path.lexists(folder):
        return
    if not folder.is_dir():
        raise UsageError(f"{folder} is a file; nothing was changed. Give the course another place.")
    if any(folder.iterdir()):
        raise UsageError(f"{folder} exists and is not empty; nothing was changed. Give the course another place.")


def _source(root: Path, folder: Path, chapter: str, total: float | None) -> float:
    """Copy the chapter's instructor notebook and what lies beside it; return the chapter's points."""
    if not solution_file(root, chapter).is_file():
        raise UsageError(f"{solution_file(root, chapter)} is missing. Run: make notebooks CHAPTER={chapter}")
    target = folder / "source" / chapter
    shutil.copytree(root / "solutions" / chapter, target, ignore=shutil.ignore_patterns(*_LEFT_OUT))
    file = target / f"{chapter}.ipynb"
    notebook = nbformat.read(file, as_version=4)
    if total is not None:
        scale_notebook(notebook, total)
        nbformat.write(notebook, file)
    return sum(points_of(notebook).values())


def _write_config(root: Path, folder: Path, plan: Plan) -> None:
    exchange = f"c.Exchange.root = {plan.exchange!r}"
    timezone = f"c.Exchange.timezone = {plan.timezone!r}"
    own = _OWN.format(
        course_id=plan.course_id,
        exchange=exchange if plan.exchange else '# c.Exchange.root = "/usr/local/share/nbgrader/exchange"',
        timezone=timezone if plan.timezone else '# c.Exchange.timezone = "UTC"',
        per_day=plan.late_per_day,
        unit=plan.late_unit,
        grace_minutes=plan.grace_minutes,
    )
    text = (root / "nbgrader_config.py").read_text(encoding="utf-8").rstrip("\n")
    (folder / "nbgrader_config.py").write_text(text + own, encoding="utf-8")


def _write_secret(folder: Path, seed: str) -> None:
    if seed:
        file = folder / "grading_seed.txt"
        file.touch(mode=0o600)
        file.write_text(seed, encoding="utf-8")
    course_secret(folder)


def _write_gradebook(folder: Path, plan: Plan) -> None:
    with programs_on_path(), Gradebook(f"sqlite:///{folder / 'gradebook.db'}", plan.course_id) as gradebook:
        for chapter in plan.chapters:
            due = plan.due.get(chapter)
            gradebook.update_or_create_assignment(chapter, duedate=due and as_utc(due))
        for student in plan.students:
            gradebook.update_or_create_student(student.id, **_details(student))


def _details(student: Student) -> Mapping[str, str | None]:
    return {name: value for name, value in vars(student).items() if name != "id"}


@contextmanager
def programs_on_path() -> Iterator[None]:
    """Let nbgrader find alembic, which it starts by name for a new gradebook, without an activated environment."""
    before = os.environ.get("PATH", "")
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{before}"
    try:
        yield
    finally:
        os.environ["PATH"] = before


def enrol(folder: Path, students: Sequence[Student]) -> tuple[list[str], list[str]]:
    """Add a class list to a course's gradebook and bring known students up to date; nobody is removed.

    Returns (who is new, who is in the gradebook and not on the list), as ids. What the list leaves empty stays as
    the gradebook has it.
    """
    from autograder.grading.course import load_course
    from autograder.grading.gradebook import open_gradebook

    gradebook = open_gradebook(load_course(folder).directory)
    try:
        known = {student.id for student in gradebook.students}
        if clashes := [
            s.id for s in students if s.id not in known and s.id.casefold() in {k.casefold() for k in known}
        ]:
            raise UsageError(
                f"The gradebook has {', '.join(clashes)} with other capital letters; nothing was changed. "
                "Write the id as it is there."
            )
        for student in students:
            given = {name: value for name, value in _details(student).items() if value is not None}
            gradebook.update_or_create_student(student.id, **given)
    finally:
        gradebook.close()
    listed = {student.id for student in students}
    return [student.id for student in students if student.id not in known], sorted(known - listed)
