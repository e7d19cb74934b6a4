"""Grades for Canvas, for Moodle and as plain CSV: export plugins of nbgrader.

    nbgrader export --exporter=autograder.instructor.export.CanvasExport --to canvas.csv

nbgrader's own CSV export neither quotes nor guards: a name with a comma moves every column after it. These three do,
and where a submission waits to be graded they leave the score open instead of writing a zero. Every score is what
counts: overrides included, the penalty for being late taken off, never below zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nbgrader.api import Assignment, Gradebook, Student, SubmittedAssignment
from nbgrader.plugins import ExportPlugin
from traitlets import Dict, Enum, Unicode

from autograder.grading.engine import submitted_students
from autograder.instructor.spreadsheet import Cell, guarded, write_csv
from autograder.messages import UsageError

ZERO, OPEN = "zero", "open"


@dataclass(frozen=True)
class Standing:
    """One student in one assignment. ``submission`` is None where nothing is graded; ``waiting``: it soon will be."""

    assignment: Assignment
    student: Student
    submission: SubmittedAssignment | None
    waiting: bool

    @property
    def score(self) -> float | None:
        """What counts, or None where there is nothing graded."""
        if self.submission is None:
            return None
        return max(0.0, self.submission.score - (self.submission.late_submission_penalty or 0.0))


class _Export(ExportPlugin):
    """What the three have in common: whom and what to export, and the sentences about it."""

    missing = Enum((ZERO, OPEN), ZERO, help="What who handed in nothing gets: zero, or a score left open.").tag(
        config=True
    )
    default_file = ""
    byte_order_mark = False

    def export(self, gradebook: Gradebook) -> None:
        """Write the file. Ends the program with one sentence for what cannot be meant or written."""
        try:
            file = Path(self.to or self.default_file)
            students = self._chosen(
                "student", [str(each) for each in self.student], sorted(gradebook.students, key=_place), "id"
            )
            assignments = self._chosen(
                "assignment", [str(each) for each in self.assignment], gradebook.assignments, "name"
            )
            found = {assignment.name: self._standings(gradebook, assignment, students) for assignment in assignments}
            if not self.assignment:
                assignments = self._handed_in(assignments, found)
            self._warn(found, students)
            write_csv(file, self.rows(students, assignments, found), mark=self.byte_order_mark)
            self.log.info("Wrote %d students and %d assignments to %s", len(students), len(assignments), file)
        except UsageError as error:
            raise SystemExit(str(error)) from None

    def rows(
        self, students: Sequence[Student], assignments: Sequence[Assignment], found: dict[str, dict[str, Standing]]
    ) -> Iterator[list[Cell]]:
        """Yield the file's rows; ``found`` maps assignment and student to how they stand."""
        raise NotImplementedError

    def score(self, standing: Standing) -> float | None:
        """Return what to write for a student, None for a score that is left open."""
        if standing.submission is None and not standing.waiting and self.missing == ZERO:
            return 0.0
        return standing.score

    def _chosen(self, what: str, wanted: Sequence[str], known: Sequence, attribute: str) -> list:
        names = {str(getattr(entry, attribute)): entry for entry in known}
        unknown = [name for name in wanted if name not in names]
        if unknown:
            raise UsageError(f"The gradebook knows no {what} {', '.join(unknown)}; nothing was exported.")
        if not names:
            raise UsageError(f"The gradebook holds no {what}s; nothing was exported.")
        return [names[name] for name in wanted] if wanted else list(names.values())

    def _handed_in(
        self, assignments: Sequence[Assignment], found: dict[str, dict[str, Standing]]
    ) -> Sequence[Assignment]:
        """Return the assignments that somebody has handed in: a whole class's zeros are what nobody asked for."""
        kept = [each for each in assignments if any(s.submission or s.waiting for s in found[each.name].values())]
        if left_out := [each.name for each in assignments if each not in kept]:
            self.log.warning(
                "Left out, because nobody has handed it in (name it with --assignment): %s", ", ".join(left_out)
            )
        if not kept:
            raise UsageError("Nobody has handed anything in; nothing was exported.")
        return kept

    def _standings(
        self, gradebook: Gradebook, assignment: Assignment, students: Sequence[Student]
    ) -> dict[str, Standing]:
        graded = {each.student.id: each for each in gradebook.assignment_submissions(assignment.name)}
        course = getattr(self.parent, "coursedir", None)
        waiting = set(submitted_students(course, assignment.name)) - set(graded) if course is not None else set()
        return {
            student.id: Standing(assignment, student, graded.get(student.id), student.id in waiting)
            for student in students
        }

    def _warn(self, found: dict[str, dict[str, Standing]], students: Sequence[Student]) -> None:
        for name, standings in found.items():
            if waiting := [each.student.id for each in standings.values() if each.waiting]:
                self.log.warning("%s: handed in and not graded, left open: %s", name, ", ".join(waiting))
            manual = [s.student.id for s in standings.values() if s.submission and s.submission.needs_manual_grade]
            if manual:
                self.log.warning("%s: still without a person's points: %s", name, ", ".join(manual))
        if changed := [student.id for student in students if guarded(student.id) != student.id]:
            self.log.warning(
                "These ids begin like a formula and are written with an apostrophe in front, so that no importer "
                "will know them: %s",
                ", ".join(changed),
            )


class PlainExport(_Export):
    """One row a student and assignment, as nbgrader's own export, for any spreadsheet."""

    default_file = "grades.csv"
    byte_order_mark = True

    def rows(
        self, students: Sequence[Student], assignments: Sequence[Assignment], found: dict[str, dict[str, Standing]]
    ) -> Iterator[list[Cell]]:
        """Yield nbgrader's columns."""
        yield (
            "assignment duedate timestamp student_id last_name first_name email raw_score late_submission_penalty "
            "score max_score"
        ).split()
        for assignment in assignments:
            for student in students:
                standing = found[assignment.name][student.id]
                submission = standing.submission
                yield [
                    assignment.name,
                    str(assignment.duedate or ""),
                    str((submission and submission.timestamp) or ""),
                    student.id,
                    student.last_name,
                    student.first_name,
                    student.email,
                    submission.score if submission else self.score(standing),
                    (submission.late_submission_penalty or 0.0) if submission else 0.0,
                    self.score(standing),
                    assignment.max_score,
                ]


class CanvasExport(_Export):
    """Canvas' gradebook CSV: one row a student, one column an assignment, the points possible in the second row.

    Canvas asks for the columns Student, ID, SIS User ID, SIS Login ID and Section in this order, and knows a student
    by the first of the three ids that it finds. It knows an assignment by the number in parentheses behind its name,
    else by its whole name; any other column becomes a new assignment.
    """

    default_file = "canvas.csv"
    student_column = Enum(
        ("ID", "SIS User ID", "SIS Login ID"), "SIS Login ID", help="What nbgrader's student id is in Canvas."
    ).tag(config=True)
    columns = Dict(
        help="Assignment -> column in Canvas, such as {'ch03_buffers_and_state': 'Buffers and state (4711)'}."
    ).tag(config=True)
    section = Unicode("", help="What to write as the section; Canvas reads it from nobody.").tag(config=True)

    def rows(
        self, students: Sequence[Student], assignments: Sequence[Assignment], found: dict[str, dict[str, Standing]]
    ) -> Iterator[list[Cell]]:
        """Yield Canvas' header, the points possible, and the students."""
        ids = ("ID", "SIS User ID", "SIS Login ID")
        yield ["Student", *ids, "Section", *(self.columns.get(each.name, each.name) for each in assignments)]
        yield ["    Points Possible", *([""] * len(ids)), "", *(each.max_score for each in assignments)]
        for student in students:
            own = [student.id if name == self.student_column else "" for name in ids]
            scores = [self.score(found[each.name][student.id]) for each in assignments]
            yield [_sortable_name(student), *own, self.section, *scores]


class MoodleExport(_Export):
    """A CSV for Moodle's grade import: one row a student, one column an assignment, an open score as a dash.

    Moodle lets its user say which column is which: map ``student_column`` to the field of that name and each
    assignment to its grade item, whose maximum has to be the assignment's. It refuses the whole file when it does not
    know one of the students.
    """

    default_file = "moodle.csv"
    student_column = Enum(
        ("Username", "ID number", "Email address"),
        "Username",
        help="What identifies a student in Moodle: nbgrader's id as user name or ID number, or the address.",
    ).tag(config=True)
    columns = Dict(help="Assignment -> name of its grade item in Moodle.").tag(config=True)

    def rows(
        self, students: Sequence[Student], assignments: Sequence[Assignment], found: dict[str, dict[str, Standing]]
    ) -> Iterator[list[Cell]]:
        """Yield the header and the students."""
        by_address = self.student_column == "Email address"
        if by_address and (without := [student.id for student in students if not student.email]):
            raise UsageError(f"The gradebook has no address of {', '.join(without)}; nothing was exported.")
        yield [
            "First name",
            "Surname",
            self.student_column,
            *(self.columns.get(assignment.name, assignment.name) for assignment in assignments),
        ]
        for student in students:
            scores = [self.score(found[assignment.name][student.id]) for assignment in assignments]
            yield [
                _one_line(student.first_name),
                _one_line(student.last_name),
                student.email if by_address else student.id,
                *("-" if score is None else score for score in scores),
            ]


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def _sortable_name(student: Student) -> str:
    """Return ``Last, First`` as Canvas sorts by it, or the id where the gradebook has no name."""
    names = [name for name in (_one_line(student.last_name), _one_line(student.first_name)) if name]
    return ", ".join(names) or student.id


def _place(student: Student) -> tuple[str, str, str]:
    return student.last_name or "", student.first_name or "", student.id
