"""The class report: one page that needs nothing else, for a screen or for paper, and one table with every verdict."""

from __future__ import annotations

import hashlib
import re
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from autograder.grading.course import Course, seed_of
from autograder.instructor.class_results import ClassResults
from autograder.instructor.item_analysis import WEAK_DISCRIMINATION, analyse_items
from autograder.instructor.near_identical import MOST_COMPARED, Alike, near_identical
from autograder.instructor.plots import bars, histogram, stacked
from autograder.instructor.spreadsheet import Cell, write_csv
from autograder.instructor.verdicts import (
    Concern,
    ExerciseVerdicts,
    Finding,
    Standing,
    exercise_verdicts,
    findings,
    standing,
)
from autograder.messages import UsageError
from autograder.registry import exercise_names, load_exercise, load_misconceptions

TO_TAKE_UP = 3
SLOWEST = 3


@dataclass
class Report:
    """Everything that the page and the table show, with students as they are to be called."""

    found: ClassResults
    called: dict[str, str]
    verdicts: list[ExerciseVerdicts]
    findings: list[Finding]
    alike: list[Alike]
    notes: list[str] = field(default_factory=list)


def write_report(found: ClassResults, course: Course, target: Path, anonymous: bool = False) -> list[Path]:
    """Write CHAPTER.html and CHAPTER.csv into ``target`` and return both. Raises UsageError where that cannot be.

    With ``anonymous`` students are numbers, the same in each report of this course, and what the judge quoted from
    their code is left out.
    """
    report = Report(
        found,
        names_of_students(found, seed_of(course.config, course.root) if anonymous else None),
        exercise_verdicts(found),
        findings(found),
        list(_alike(found, course)),
        list(_notes(found)),
    )
    page, table = target / f"{found.chapter}.html", target / f"{found.chapter}.csv"
    text = _page(report, anonymous)
    write_csv(table, _rows(report, anonymous), mark=True)
    try:
        page.touch(mode=0o600)
        page.chmod(0o600)
        page.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{page} cannot be written: {error.strerror}.") from None
    return [page, table]


def names_of_students(found: ClassResults, secret: int | None) -> dict[str, str]:
    """Return what each student is called: the id, or with a secret a number that cannot be traced without it."""
    students = [*(result.student for result in found.results), *found.not_graded, *found.nothing]
    if secret is None:
        return {student: student for student in students}
    hidden = sorted(students, key=lambda student: hashlib.sha256(f"{secret} {student}".encode()).digest())
    return {student: f"student {number}" for number, student in enumerate(hidden, start=1)}


def _alike(found: ClassResults, course: Course) -> Iterator[Alike]:
    names = exercise_names()
    shared = [source for cell, source in found.released.items() if cell.endswith("_check")]
    shared += _chapter_code(found, course)
    for item in found.items:
        name = item.exercise
        answers = {result.student: result.answers[name] for result in found.results if name in result.answers}
        templates = [load_exercise(name).hints.template] if name in names else []
        yield from near_identical(name, answers, templates, [found.released.get(name, ""), *shared])


def _chapter_code(found: ClassResults, course: Course) -> list[str]:
    """Return the code that the chapter shows to everybody: the released notebooks' cells."""
    from autograder.grading.grade import read_notebook

    folder = Path(course.directory.format_path(course.directory.release_directory, ".", found.chapter))
    code = []
    for file in sorted(folder.glob("*.ipynb")):
        try:
            code.extend(cell.source for cell in read_notebook(file.read_bytes()).cells if cell.cell_type == "code")
        except (OSError, ValueError):
            continue
    return code


def _notes(found: ClassResults) -> Iterator[str]:
    unknown = sum(not result.judgements for result in found.results)
    if unknown:
        yield (
            f"{unknown} of {len(found.results)} submissions were graded without a verdict on record: run "
            f"autograder grade {found.chapter}, which takes stored results where there are some."
        )
    if len(found.results) > MOST_COMPARED:
        yield f"Answers are not compared with each other in classes of more than {MOST_COMPARED}."


def _page(report: Report, anonymous: bool) -> str:
    environment = Environment(
        loader=PackageLoader("autograder.instructor", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(code=_with_code, spaced=lambda name: name.replace("_", " "), number=_number)
    found = report.found
    totals = [result.total for result in found.results]
    seconds = [result.seconds for result in found.results if result.seconds is not None]
    eyes = {entry.student for entry in report.findings} | {
        student for group in report.alike for student in group.students
    }
    return environment.get_template("report.html").render(
        style=Markup(Path(__file__).with_name("report.css").read_text(encoding="utf-8")),
        chapter=found.chapter,
        made=datetime.now().astimezone().strftime("%d %B %Y, %H:%M %Z").lstrip("0"),
        anonymous=anonymous,
        called=report.called,
        found=found,
        graded=len(found.results),
        roster=len(report.called),
        median=statistics.median(totals),
        mean=statistics.fmean(totals),
        perfect=sum(total >= found.maximum - 0.005 for total in totals),
        late=sum(result.seconds_late > 0 for result in found.results),
        overridden=sum(bool(result.overridden) for result in found.results),
        eyes=len(eyes),
        notes=report.notes,
        first=_to_take_up(report),
        distribution=_distribution(totals, found.maximum),
        standings=_standings(report),
        items=analyse_items(found),
        weak=WEAK_DISCRIMINATION,
        exercises=[_exercise(entry, report) for entry in report.verdicts],
        concerns=[(concern, [e for e in report.findings if e.concern is concern]) for concern in Concern],
        alike=report.alike,
        times=_times(found, seconds) if seconds else None,
    )


def _with_code(text: str) -> Markup:
    """Return text with its `code` marked up, everything else escaped."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def _number(value: float | None, digits: int = 2) -> str:
    """Return a number for reading; a true minus sign, and a dash where there is none."""
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "−")


def _to_take_up(report: Report) -> list[dict[str, Any]]:
    """Return the misconceptions that most students share, over all exercises."""
    shared = [
        {"exercise": entry.item.exercise, "name": name, "students": len(students), **_told(entry.item.exercise, name)}
        for entry in report.verdicts
        for name, students in entry.misconceptions.items()
        if len(students) > 1
    ]
    return sorted(shared, key=lambda each: -each["students"])[:TO_TAKE_UP]


def _told(exercise: str, name: str) -> dict[str, str]:
    """Return a misconception's summary and question; empty texts for one that this version no longer has."""
    known = load_misconceptions(exercise) if exercise in exercise_names() else ()
    for misconception in known:
        if misconception.name == name:
            return {"summary": misconception.summary, "question": misconception.question}
    return {"summary": "", "question": ""}


def _distribution(totals: list[float], maximum: float) -> Markup:
    # The last bar holds the full score as well: its right edge belongs to it.
    edges = np.linspace(0, max(maximum, max(totals)), 12 if maximum == 11 else 11)
    counts, _ = np.histogram(totals, edges)
    told = ", ".join(
        f"{low:.3g} to {high:.3g} points: {n}" for low, high, n in zip(edges, edges[1:], counts, strict=False)
    )
    middle = statistics.median(totals)
    words = f"Histogram of the students' points. Median {middle:.4g} of {maximum:g}. {told}."
    return Markup(histogram(totals, edges, f"points of {maximum:g}", words, middle, "distribution"))


def _standings(report: Report) -> Markup:
    used = [part for part in Standing if any(entry.standings[part] for entry in report.verdicts)]
    rows = {entry.item.exercise: [entry.standings[part] for part in used] for entry in report.verdicts}
    told = "; ".join(
        f"{name}: " + ", ".join(f"{count} {part}" for part, count in zip(used, counts, strict=True))
        for name, counts in rows.items()
    )
    return Markup(
        stacked(rows, [str(part) for part in used], f"How each exercise went, in students. {told}.", "standings")
    )


def _exercise(entry: ExerciseVerdicts, report: Report) -> dict[str, Any]:
    # One scale for all exercises, so that their bars can be compared.
    largest = max(len(students) for each in report.verdicts for students in [[], *each.misconceptions.values()])
    name, graded = entry.item.exercise, len(report.found.results)
    counts = {each: len(students) for each, students in entry.misconceptions.items()}
    figure = None
    if counts:
        told = ", ".join(f"{each.replace('_', ' ')}: {count}" for each, count in counts.items())
        words = f"Misconceptions in {name}, in students of {graded}. {told}."
        shown = {each.replace("_", " "): count for each, count in counts.items()}
        figure = Markup(bars(shown, largest, words, f"misconceptions-{name}"))
    rows = [
        {"name": each, "students": [report.called[s] for s in students], **_told(name, each)}
        for each, students in entry.misconceptions.items()
    ]
    return {
        "name": name,
        "standings": entry.standings,
        "figure": figure,
        "rows": rows,
        "observations": entry.observations,
    }


def _times(found: ClassResults, seconds: list[float]) -> dict[str, Any]:
    middle = statistics.median(seconds)
    edges = np.linspace(0, max(seconds) * 1.02, 21)
    words = f"Histogram of the seconds that grading took. Median {middle:.2g} s, longest {max(seconds):.2g} s."
    slowest = sorted((result for result in found.results if result.seconds is not None), key=lambda each: -each.seconds)
    return {
        "figure": Markup(histogram(seconds, edges, "seconds of grading", words, middle, "times")),
        "median": middle,
        "ninetieth": float(np.quantile(seconds, 0.9)),
        "sum": sum(seconds),
        "slowest": slowest[:SLOWEST],
    }


HEADER = (
    "student exercise points maximum standing misconception reason differing overridden seconds_late late_penalty "
    "grading_seconds near_identical_to"
).split()


def _rows(report: Report, anonymous: bool) -> Iterator[list[Cell]]:
    yield list(HEADER)
    for result in report.found.results:
        for item in report.found.items:
            judged = result.judgements.get(item.cell)
            near = _near(report, result.student, item.exercise)
            yield [
                report.called[result.student],
                item.exercise,
                result.points.get(item.cell),
                item.maximum,
                str(standing(report.found, result, item)),
                judged.misconception if judged else None,
                judged.reason if judged and not anonymous else None,
                "; ".join(judged.differing) if judged else None,
                "yes" if item.cell in result.overridden else "no",
                result.seconds_late,
                result.penalty,
                result.seconds,
                ", ".join(report.called[student] for student in near),
            ]


def _near(report: Report, student: str, exercise: str) -> Iterable[str]:
    groups = [group.students for group in report.alike if group.exercise == exercise and student in group.students]
    return sorted({other for group in groups for other in group if other != student})
