"""Grading a class: submissions are found, graded on any executor, and recorded by one writer, in any order.

A run can be cut short at any moment. What was recorded stays; what was executed and not yet recorded is in the store;
the next run does the rest.
"""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from nbgrader.coursedir import CourseDirectory

from autograder.grading.grade import Graded, Settings, Submission, grade
from autograder.grading.gradebook import GradebookError, NotRecorded, Writer, timestamp_of
from autograder.grading.limits import LARGEST_NOTEBOOK, Limits
from autograder.grading.sandbox import SandboxError
from autograder.grading.store import Journal, environment_digest
from autograder.grading.submitted_files import Unreadable, files_beside, links_beside, read_files, shown


@dataclass
class Outcome:
    """What became of one submission: recorded, unchanged, failed, or left (the run was stopped before it)."""

    student: str
    state: str
    sentence: str = ""
    points: dict[str, float] = field(default_factory=dict)
    judgements: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    replayed: bool = False
    memory: int = 0


@dataclass
class Report:
    """A run's outcomes in the order in which they came, and what was noticed on the way."""

    chapter: str
    outcomes: list[Outcome] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    stopped: bool = False
    verified: list[dict[str, Any]] = field(default_factory=list)

    def count(self, state: str) -> int:
        """Return how many submissions ended in a state."""
        return sum(outcome.state == state for outcome in self.outcomes)

    def note(self, *sentences: str) -> None:
        """Keep sentences that were not said before."""
        self.notes.extend(sentence for sentence in dict.fromkeys(sentences) if sentence not in self.notes)


def submitted_students(course: CourseDirectory, chapter: str, student: str = "*") -> list[str]:
    """Return who has a folder for the chapter, whether or not there is a notebook in it."""
    place = Path(course.format_path(course.submitted_directory, "{student}", chapter))
    parts = place.parts
    base = Path(*parts[: parts.index("{student}")])
    rest = Path(*parts[parts.index("{student}") + 1 :])
    if student != "*":
        return [student] if (base / student / rest).is_dir() else []
    try:
        found = sorted(entry.name for entry in os.scandir(base) if not entry.name.startswith("."))
    except OSError:
        return []
    return [name for name in found if (base / name / rest).is_dir()]


def read_submission(course: CourseDirectory, chapter: str, student: str, settings: Settings) -> Submission:
    """Read what a student handed in. Raises Unreadable with one sentence where it cannot be graded."""
    folder = Path(course.format_path(course.submitted_directory, student, chapter))
    limits = settings.limits
    notebooks: dict[str, bytes] = {}
    for notebook in settings.assignment.notebooks:
        file = folder / f"{notebook.name}.ipynb"
        if not file.exists():
            continue
        try:
            if file.is_symlink() or not file.is_file():
                raise Unreadable(f"{file.name} is not an ordinary file.")
            if file.stat().st_size > LARGEST_NOTEBOOK:
                raise Unreadable(f"{file.name} has more than {LARGEST_NOTEBOOK >> 20} MB.")
            notebooks[notebook.name] = file.read_bytes()
        except OSError as error:
            raise Unreadable(f"{file.name} cannot be read: {error.strerror}.") from None
    if not notebooks:
        wanted = " or ".join(f"{notebook.name}.ipynb" for notebook in settings.assignment.notebooks)
        there = sorted(shown(path.name) for path in folder.glob("*.ipynb"))[:3]
        beside = f" (there is {', '.join(there)})" if there else ""
        raise Unreadable(f"its folder holds no {wanted}{beside}.")
    links = tuple(links_beside(folder, course.ignore))
    return Submission(student, notebooks, _files(course, chapter, folder, limits, links), links)


def _files(
    course: CourseDirectory, chapter: str, folder: Path, limits: Limits, links: Sequence[str]
) -> tuple[tuple[str, bytes], ...]:
    """Return the files beside the notebooks but for the links, the instructor's own in place of the student's."""
    files = dict(read_files(folder, course.ignore, limits, links))
    for name, path in files_beside(course.format_path(course.source_directory, ".", chapter), course.ignore):
        files[name] = Path(path).read_bytes()
    return tuple(sorted(files.items()))


def digest_of(submission: Submission, settings: Settings, times: object) -> str:
    """Return a digest of all that a submission's grade depends on, for knowing whether it has to be graded again.

    ``times`` is when it was handed in and when it was due.
    """
    parts = [settings.assignment.digest, settings.seed, settings.devices, asdict(settings.limits), str(times)]
    digest = hashlib.sha256(repr([*parts, environment_digest()]).encode())
    for name, data in (*sorted(submission.notebooks.items()), *submission.files):
        digest.update(os.fsencode(f"\0{name}\0{len(data)}\0") + data)
    return digest.hexdigest()


@contextmanager
def finishing_on_interrupt() -> Iterator[Callable[[], bool]]:
    """Turn the first SIGINT into an answer: what is running is finished and recorded. The second one interrupts."""
    asked: list[int] = []

    def note(number: int, frame: object) -> None:
        asked.append(number)
        signal.signal(signal.SIGINT, previous)

    previous = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(asked)
    finally:
        signal.signal(signal.SIGINT, previous)


class Engine:
    """One run over a class."""

    def __init__(
        self,
        course: CourseDirectory,
        settings: Settings,
        writer: Writer,
        journal: Journal,
        told: Callable[[Outcome, int, int], None] = lambda outcome, done, total: None,
    ) -> None:
        self.course = course
        self.settings = settings
        self.writer = writer
        self.journal = journal
        self.told = told
        self.chapter = settings.assignment.name
        self.report = Report(self.chapter)
        self.total = 0
        self._digests: dict[str, str] = {}

    def run(self, executor: Executor, jobs: int, students: Sequence[str], stopping: Callable[[], bool]) -> Report:
        """Grade and record these students' submissions. Raises SandboxError when nothing can be executed at all, and
        GradebookError when the gradebook takes nothing; both leave what was recorded before.
        """
        self.total = len(students)
        try:
            self._run(executor, jobs, students, stopping)
        finally:
            self._leave(students)
        self.report.stopped = stopping()
        return self.report

    def _run(self, executor: Executor, jobs: int, students: Sequence[str], stopping: Callable[[], bool]) -> None:
        waiting, running = self._new(students), {}
        more = True
        while running or more:
            while more and len(running) < 2 * jobs and not stopping():
                submission = next(waiting, None)
                if submission is None:
                    more = False
                    break
                running[executor.submit(grade, self.settings, submission)] = submission.student
            if stopping():
                more = False
                for future in [future for future in running if future.cancel()]:
                    running.pop(future)
            if running:
                done, _ = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in done:
                    self._take(running.pop(future), future)

    def _new(self, students: Sequence[str]) -> Iterator[Submission]:
        """Yield the submissions that have to be graded; those that need not are told at once."""
        graded = {} if self.settings.force else self.journal.read()
        for student in students:
            folder = self.course.format_path(self.course.submitted_directory, student, self.chapter)
            try:
                submission = read_submission(self.course, self.chapter, student, self.settings)
            except Unreadable as error:
                self._tell(Outcome(student, "failed", str(error)))
                continue
            # Another due date, or an extension, is another penalty for the same work.
            times = (timestamp_of(folder), self.writer.due_date(self.chapter, student))
            digest = self._digests[student] = digest_of(submission, self.settings, times)
            if submission.left_out:
                names = ", ".join(map(shown, submission.left_out[:3]))
                self.report.note(f"{student}: what is a link to elsewhere was left out ({names}).")
            entry = graded.get(student)
            final = Path(self.course.format_path(self.course.autograded_directory, student, self.chapter))
            if entry and entry.get("digest") == digest and final.is_dir():
                self._tell(Outcome(student, "unchanged", points=entry["points"], judgements=entry["judgements"]))
                continue
            yield submission

    def _take(self, student: str, future: Future) -> None:
        try:
            result: Graded = future.result()
        except SandboxError:
            raise
        except BrokenProcessPool:
            raise SandboxError("A worker process ended unexpectedly (out of memory?). Run the command again.") from None
        except Exception as error:
            self._tell(Outcome(student, "failed", f"grading it failed ({type(error).__name__}: {error})."))
            return
        self.report.note(*result.notes)
        if result.environment != environment_digest():
            self.report.note("A worker has other versions of torch or of this course than this machine.")
        judgements = [asdict(each) for notebook in result.notebooks for each in notebook.judgements]
        outcome = Outcome(student, "failed", result.problem or "", judgements=judgements, seconds=result.seconds)
        outcome.replayed = bool(result.notebooks) and all(notebook.replayed for notebook in result.notebooks)
        outcome.memory = max((notebook.usage.get("memory", 0) for notebook in result.notebooks), default=0)
        if result.problem is None:
            try:
                outcome.points = self.writer.record(self.chapter, result)
            except NotRecorded as error:
                outcome.sentence = str(error)
            except (GradebookError, SandboxError):
                raise
            except Exception as error:  # One submission that cannot be written down must not end the others' run.
                outcome.sentence = f"recording it failed ({type(error).__name__}: {str(error)[:200]})."
            else:
                outcome.state = "recorded"
                outcome.sentence = " ".join(notebook.unfinished for notebook in result.notebooks if notebook.unfinished)
                self._remember(outcome)
        self._tell(outcome)

    def _remember(self, outcome: Outcome) -> None:
        entry = {"student": outcome.student, "digest": self._digests[outcome.student], "time": round(time.time())}
        kept = {"points": outcome.points, "judgements": outcome.judgements, "seconds": round(outcome.seconds, 3)}
        try:
            self.journal.add({**entry, **kept})
        except OSError as error:
            self.report.note(f"The journal cannot be written ({error.strerror}): the next run will grade all again.")

    def _tell(self, outcome: Outcome) -> None:
        self.report.outcomes.append(outcome)
        self.told(outcome, len(self.report.outcomes), self.total)

    def _leave(self, students: Sequence[str]) -> None:
        known = {outcome.student for outcome in self.report.outcomes}
        self.report.outcomes.extend(Outcome(student, "left") for student in students if student not in known)


def verify(engine: Engine, executor: Executor, students: Sequence[str]) -> list[dict[str, Any]]:
    """Grade these submissions again on cold kernels and return, for each, in what it differs from the warm result."""
    from autograder.grading.sameness import differences

    found = []
    cold = replace(engine.settings, cold=True, store=None, force=True)
    submissions = {name: read_submission(engine.course, engine.chapter, name, engine.settings) for name in students}
    futures = {name: executor.submit(grade, cold, each) for name, each in submissions.items()}
    for name, future in futures.items():
        warm = Path(engine.course.format_path(engine.course.autograded_directory, name, engine.chapter))
        found.append({"student": name, "differences": differences(future.result(), warm)})
    return found


__all__ = ["Engine", "GradebookError", "Outcome", "Report", "SandboxError", "submitted_students", "verify"]
