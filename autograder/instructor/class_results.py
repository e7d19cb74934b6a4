"""What is known of a class after grading: points from the gradebook, verdicts from the journal, answers as handed in.

Names and addresses of students are never read here: a student is an id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook, MissingEntry

from autograder.grading.course import Course
from autograder.grading.engine import submitted_students
from autograder.grading.grade import read_notebook
from autograder.grading.gradebook import open_gradebook
from autograder.grading.store import Journal
from autograder.grading.ticket import Judgement
from autograder.messages import UsageError


@dataclass(frozen=True)
class Item:
    """One graded cell of the chapter: its name in the gradebook, the exercise it checks (or its name), its points."""

    cell: str
    exercise: str
    maximum: float


@dataclass
class Result:
    """One student's graded submission.

    ``points`` maps cells to what counts, an instructor's override before the automatic score; None is a score that a
    person still has to give. ``judgements`` maps cells to the judge's findings and is empty for a submission that
    ``autograder grade`` has not graded. ``answers`` maps answer cells to their source as it was handed in.
    """

    student: str
    points: dict[str, float | None]
    overridden: frozenset[str] = frozenset()
    penalty: float = 0.0
    seconds_late: float = 0.0
    judgements: dict[str, Judgement] = field(default_factory=dict)
    seconds: float | None = None
    answers: dict[str, str] = field(default_factory=dict)
    changed_since: bool = False

    @property
    def total(self) -> float:
        """The points so far, before a penalty for being late."""
        return sum(points or 0.0 for points in self.points.values())


@dataclass
class ClassResults:
    """A chapter's class. ``not_graded`` handed in and have no grade; ``nothing`` are on the roster and did not."""

    chapter: str
    items: list[Item]
    results: list[Result]
    not_graded: list[str]
    nothing: list[str]
    released: dict[str, str]

    @property
    def maximum(self) -> float:
        """The points of the whole chapter."""
        return sum(item.maximum for item in self.items)


def read_class(course: Course, chapter: str) -> ClassResults:
    """Return what is known of a chapter's class.

    Raises UsageError when the gradebook does not know the chapter or nobody's submission is graded, and
    GradebookError when it cannot be opened.
    """
    gradebook = open_gradebook(course.directory)
    try:
        return _read(course, gradebook, chapter)
    finally:
        gradebook.close()


def _read(course: Course, gradebook: Gradebook, chapter: str) -> ClassResults:
    try:
        assignment = gradebook.find_assignment(chapter)
    except MissingEntry:
        known = ", ".join(sorted(entry.name for entry in gradebook.assignments)) or "none yet"
        raise UsageError(f'The gradebook knows no assignment "{chapter}" (it knows: {known}).') from None
    journal = Journal(course.state / "journal" / f"{chapter}.jsonl").read()
    handed_in = submitted_students(course.directory, chapter)
    results = [
        _result(course, submission, journal.get(submission.student.id))
        for submission in gradebook.assignment_submissions(chapter)
    ]
    results.sort(key=lambda each: each.student)
    if not results:
        raise UsageError(f"Nobody's {chapter} is graded yet. First: autograder grade {chapter}")
    graded = {each.student for each in results}
    cells = [cell for notebook in assignment.notebooks for cell in [*notebook.grade_cells, *notebook.task_cells]]
    exercises = {judged.cell: judged.exercise for each in results for judged in each.judgements.values()}
    items = [
        Item(cell.name, exercises.get(cell.name) or cell.name.removesuffix("_check"), cell.max_score)
        for cell in cells
        if cell.max_score
    ]
    released = {cell.name: cell.source or "" for notebook in assignment.notebooks for cell in notebook.source_cells}
    roster = {student.id for student in gradebook.students}
    return ClassResults(
        chapter,
        items,
        results,
        sorted(set(handed_in) - graded),
        sorted(roster - graded - set(handed_in)),
        released,
    )


def _result(course: Course, submission: Any, entry: Mapping[str, Any] | None) -> Result:
    student, chapter = submission.student.id, submission.assignment.name
    grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
    points = {grade.name: None if _is_open(grade) else float(grade.score) for grade in grades}
    folder = Path(course.directory.format_path(course.directory.submitted_directory, student, chapter))
    files = [folder / f"{notebook.name}.ipynb" for notebook in submission.notebooks]
    result = Result(
        student,
        points,
        frozenset(grade.name for grade in grades if grade.manual_score is not None),
        float(submission.late_submission_penalty or 0.0),
        float(submission.total_seconds_late),
        answers=_answers(files),
    )
    if entry is not None:
        result.judgements = {judged.cell: judged for judged in _judgements(entry)}
        result.seconds = entry.get("seconds")
        result.changed_since = any(file.exists() and file.stat().st_mtime > entry["time"] + 1 for file in files)
    return result


def _is_open(grade: Any) -> bool:
    return grade.needs_manual_grade or (grade.auto_score is None and grade.manual_score is None)


def _judgements(entry: Mapping[str, Any]) -> Iterable[Judgement]:
    """Yield what a journal's entry says was judged; fields of another version are passed over."""
    for judged in entry.get("judgements", ()):
        known = {name: judged[name] for name in Judgement.__dataclass_fields__ if name in judged}
        yield Judgement(**{**known, "differing": tuple(known.get("differing", ()))})


def _answers(files: Sequence[Path]) -> dict[str, str]:
    """Return answer cell -> source; a notebook that cannot be read has none."""
    answers: dict[str, str] = {}
    for file in files:
        try:
            cells = read_notebook(file.read_bytes()).cells
        except (OSError, ValueError):
            continue
        for cell in cells:
            mark = cell.get("metadata", {}).get("nbgrader", {})
            if mark.get("solution") and cell.get("cell_type") == "code":
                answers[str(mark.get("grade_id"))] = str(cell.get("source", ""))
    return answers
