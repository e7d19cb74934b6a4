"""The one writer: what was graded goes into nbgrader's gradebook and folders, one transaction for each submission."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
import warnings
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbgrader import utils
from nbgrader.api import Gradebook, InvalidEntry, MissingEntry
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import AssignLatePenalties, NbGraderPreprocessor, SaveAutoGrades
from sqlalchemy import exc, make_url
from tornado.log import app_log
from traitlets.config import Config

from autograder.grading.grade import Graded
from autograder.grading.submitted_files import files_beside, links_beside
from autograder.messages import UsageError


class GradebookError(RuntimeError):
    """The gradebook cannot be read or written; the sentence says what to look at."""


class NotRecorded(RuntimeError):
    """One submission could not be written, for a reason that is its own; the sentence says which."""


# What stops every submission alike: no room, no permission for anybody, a broken disk.
_EVERYBODYS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


class _SaveGrades(SaveAutoGrades):
    """nbgrader's own step, on a gradebook that is open already."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        names = resources["nbgrader"]
        self.notebook_id, self.assignment_id, self.student_id = names["notebook"], names["assignment"], names["student"]
        self.gradebook = resources["gradebook"]
        return NbGraderPreprocessor.preprocess(self, nb, resources)


class _LatePenalties(AssignLatePenalties):
    """nbgrader's own rule for late submissions, on a gradebook that is open already."""

    def assign(self, gradebook: Gradebook, notebook: str, assignment: str, student: str) -> None:
        self.init_plugin()
        submission = gradebook.find_submission(assignment, student)
        found = gradebook.find_submission_notebook(notebook, assignment, student)
        found.late_submission_penalty = None
        late = submission.total_seconds_late
        if late > 0:
            penalty = self.plugin_inst.late_submission_penalty(student, found.score, late)
            if penalty is not None:
                found.late_submission_penalty = self._check_late_penalty(found, penalty)
        gradebook.db.commit()


def open_gradebook(course: CourseDirectory) -> Gradebook:
    """Open the course's gradebook. Raises GradebookError when it cannot be opened, or not be written to."""
    url = course.db_url
    if url.startswith("sqlite:///") and not url.startswith("sqlite:///file:"):
        file = Path(course.root) / url.removeprefix("sqlite:///")
        if not file.exists():
            raise UsageError(f"There is no gradebook at {file}. First: nbgrader generate_assignment CHAPTER")
        if not os.access(file, os.R_OK | os.W_OK) or not os.access(file.parent, os.W_OK):
            raise GradebookError(f"The gradebook {file} cannot be written to by this user; nothing was graded.")
    try:
        return Gradebook(url, course.course_id)
    except ImportError as error:
        remedy = "pip install -c requirements.lock -e '.[postgresql]'"
        raise GradebookError(
            f"The gradebook {_shown(url)} needs a driver ({error}). For PostgreSQL: {remedy}"
        ) from None
    except (exc.SQLAlchemyError, OSError) as error:
        raise GradebookError(f"The gradebook {_shown(url)} cannot be opened: {_reason(error)}") from None


def _shown(url: str) -> str:
    """Return an address without the password in it."""
    try:
        return make_url(url).render_as_string(hide_password=True)
    except exc.SQLAlchemyError:
        return url.partition(":")[0]


def _reason(error: BaseException) -> str:
    text = str(getattr(error, "orig", None) or error).strip().splitlines()
    return text[0] if text else type(error).__name__


class Writer:
    """Records results. Not to be used by more than one process at a time."""

    def __init__(self, gradebook: Gradebook, course: CourseDirectory, config: Config, permissions: int = 444) -> None:
        self.gradebook = gradebook
        self.course = course
        self.permissions = int(str(permissions), 8)
        self.config = config
        self._save = _SaveGrades(config=config)
        self._late = _LatePenalties(config=config)
        excluded = config.get("Autograde", {}).get("exclude_overwriting") or {}
        self._kept: dict[str, list[str]] = dict(excluded)

    def due_date(self, assignment: str, student: str) -> datetime | None:
        """Return when a student's submission is due in UTC, with the student's extension; None where nothing is set.

        Raises GradebookError when the gradebook cannot be read.
        """
        try:
            return self.gradebook.find_submission(assignment, student).duedate
        except MissingEntry:
            return self.gradebook.find_assignment(assignment).duedate
        except exc.SQLAlchemyError as error:
            raise GradebookError(f"The gradebook cannot be read: {_reason(error)}") from None

    def record(self, assignment: str, result: Graded) -> dict[str, float]:
        """Write one submission's notebooks and grades; return the points of each graded cell.

        The folder is made beside its place and moved there within the transaction, so that neither is without the
        other for longer than a moment. Where it raises, the submission is as it was: GradebookError for what no other
        submission would escape, NotRecorded for what concerns this one.
        """
        final = Path(self._path(self.course.autograded_directory, result.student, assignment))
        fresh = final.with_name(f".{assignment}.new")
        try:
            _remove(fresh)
            self._fill(fresh, assignment, result)
            with self._transaction():
                points = self._record(assignment, result)
                _replace(fresh, final)
            return points
        except (exc.SQLAlchemyError, InvalidEntry, MissingEntry) as error:
            said = f"the gradebook did not take it: {_reason(error)}"
            if _is_everybodys(error):
                raise GradebookError(f"{result.student} was not recorded: {said}") from None
            raise NotRecorded(said) from None
        except OSError as error:
            said = f"{final} cannot be written: {error.strerror}."
            if error.errno in _EVERYBODYS:
                raise GradebookError(f"{result.student} was not recorded: {said}") from None
            raise NotRecorded(said) from None
        finally:
            with contextlib.suppress(OSError):
                _remove(fresh)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """Make every commit of nbgrader's part of one transaction, which is committed at the end or not at all."""
        session = self.gradebook.db
        with _without_tracebacks(), self.gradebook.engine.connect() as connection, connection.begin():
            session.remove()
            session.configure(bind=connection, join_transaction_mode="rollback_only")
            try:
                with warnings.catch_warnings():
                    # nbgrader builds a submission piece by piece; each commit of its own finds some not yet attached.
                    warnings.simplefilter("ignore", exc.SAWarning)
                    yield
            finally:
                session.remove()
                session.configure(bind=self.gradebook.engine)

    def _record(self, assignment: str, result: Graded) -> dict[str, float]:
        gradebook, student = self.gradebook, result.student
        gradebook.update_or_create_student(student)
        submitted = self._path(self.course.submitted_directory, student, assignment)
        stamp = timestamp_of(submitted)
        times = {"timestamp": stamp} if stamp else {}
        gradebook.update_or_create_submission(assignment, student, **times)
        graded = {notebook.name: notebook for notebook in result.notebooks}
        points: dict[str, float] = {}
        for notebook in gradebook.find_assignment(assignment).notebooks:
            if notebook.name in graded:
                names = {"notebook": notebook.name, "assignment": assignment, "student": student}
                self._save(graded[notebook.name].marked, {"nbgrader": names, "gradebook": gradebook})
                self._late.assign(gradebook, notebook.name, assignment, student)
            found = gradebook.find_submission_notebook(notebook.name, assignment, student)
            for grade in found.grades:
                if notebook.name not in graded:
                    grade.auto_score, grade.needs_manual_grade = 0, False
                points[grade.name] = grade.auto_score
        gradebook.db.commit()
        return points

    def _fill(self, folder: Path, assignment: str, result: Graded) -> None:
        submitted = self._path(self.course.submitted_directory, result.student, assignment)
        source = self._path(self.course.source_directory, ".", assignment)
        folder.mkdir(parents=True)
        self._copy(submitted, folder, set(links_beside(submitted, self.course.ignore)))
        self._copy(source, folder, set(self._kept.get(assignment, [])))
        for notebook in result.notebooks:
            (folder / f"{notebook.name}.ipynb").write_text(notebook.text, encoding="utf-8")
        for path in folder.rglob("*"):
            if path.is_file():
                path.chmod(self.permissions)

    def _copy(self, source: str, folder: Path, kept: set[str]) -> None:
        for name, path in files_beside(source, self.course.ignore):
            if name not in kept:
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with contextlib.suppress(FileNotFoundError):
                    target.unlink()
                shutil.copy(path, target)

    def _path(self, directory: str, student: str, assignment: str) -> str:
        return self.course.format_path(directory, student, assignment)


def _is_everybodys(error: BaseException | None) -> bool:
    """Whether the gradebook itself fails, and not only at this entry; nbgrader wraps what was raised first."""
    while error is not None:
        if isinstance(error, (exc.OperationalError, exc.InterfaceError, exc.InternalError)):
            return True
        error = error.__cause__ or error.__context__
    return False


@contextlib.contextmanager
def _without_tracebacks() -> Iterator[None]:
    """Keep nbgrader from printing the traceback of an error that is told in one sentence afterwards."""
    before = app_log.level
    app_log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        app_log.setLevel(before)


def timestamp_of(folder: str | Path) -> datetime | None:
    """Return when a submission was handed in, or None where its folder does not say it in a way that can be read."""
    try:
        return utils.parse_utc((Path(folder) / "timestamp.txt").read_text(encoding="utf-8").strip() or None)
    except (OSError, ValueError, OverflowError):
        return None


def _remove(folder: Path) -> None:
    if folder.exists():
        utils.rmtree(str(folder))


def _replace(fresh: Path, final: Path) -> None:
    old = final.with_name(f".{final.name}.old")
    _remove(old)
    if final.exists():
        os.rename(final, old)
    try:
        os.rename(fresh, final)
    except OSError:
        if old.exists():
            os.rename(old, final)
        raise
    with contextlib.suppress(OSError):
        _remove(old)
