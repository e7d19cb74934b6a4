"""A verdict as text and as HTML: what agrees, the first thing that does not, and a question. Never the fix."""

from __future__ import annotations

import html
from collections.abc import Iterable

from autograder.exercise import Exercise
from autograder.verdict import Difference, Verdict

MOST_DIFFERENCES_SHOWN = 2
MOST_NAMES_SHOWN = 6
LONGEST_PRINTED = 200


def summary(exercise: Exercise, verdict: Verdict) -> str:
    """Return the verdict in one sentence, as shown in an error line or a progress list."""
    if verdict.problem:
        return f"{exercise.name}: {verdict.problem}"
    if verdict.passed:
        return f"{exercise.name}: passed, {_public(verdict)}"
    first = first_differences(verdict)[0]
    return f"{exercise.name}: {_public(verdict)}. First difference: {_sentence(first)}"


def _sentence(entry: Difference) -> str:
    """Return a difference with its observation and its case; a name that both begin with is said once."""
    return f"{entry.observation} ({entry.case.removeprefix(f'{entry.observation}, ')}): {entry.words}"


def first_differences(verdict: Verdict) -> list[Difference]:
    """Return the first difference of each observation that differs, in the order of the sequence, without echoes.

    Observations that were not reached only follow from the stop before them, and are left out.
    """
    first: dict[str, Difference] = {}
    for entry in verdict.differences:
        if entry.words != "was not reached":
            first.setdefault(entry.observation, entry)
    return list(first.values()) or verdict.differences


def _public(verdict: Verdict) -> str:
    return f"public checks {len(verdict.agreeing)} of {verdict.total}"


def lines(exercise: Exercise, verdict: Verdict, maximum: float | None = None) -> list[tuple[str, str]]:
    """Return the report as (role, text) pairs; the roles are what the HTML styles and the text indents.

    ``maximum``, the points of the graded cell, words it for feedback: points instead of the promise that grading will
    follow. A course may give other points than the exercise has of itself.
    """
    graded = maximum is not None
    report: list[tuple[str, str]] = []
    points = f", {verdict.score * maximum:.2f} of {maximum:g} points" if graded else ""
    agreement = f"{exercise.name}: {_checks(verdict, graded)} agree with {exercise.compared_with}{points}"
    if verdict.unsolved:
        report.append(("title", f"{exercise.name}: still to be written{points}"))
        return report
    if verdict.problem:
        report.append(("title", f"✗ {exercise.name}{points}"))
        report.append(("difference", verdict.problem))
    elif verdict.passed:
        report.append(("passed", f"✓ {agreement}"))
    else:
        report.append(("title", f"✗ {agreement}"))
        report.extend(_difference_lines(verdict))
        if verdict.question:
            report.append(("question", verdict.question))
            report.append(("read", f"To read: {verdict.read}"))
        if verdict.agreeing:
            report.append(("agrees", f"Agrees already: {_some(verdict.agreeing)}"))
    if not graded and not verdict.problem:
        report.append(("note", "Grading repeats these checks on other shapes and seeds."))
    report.extend(_surroundings(verdict))
    return report


def _checks(verdict: Verdict, graded: bool) -> str:
    return f"{len(verdict.agreeing)} of {verdict.total} checks" if graded else _public(verdict)


def _difference_lines(verdict: Verdict) -> Iterable[tuple[str, str]]:
    found = first_differences(verdict)
    for entry in found[:MOST_DIFFERENCES_SHOWN]:
        yield "difference", _sentence(entry)
    if len(found) > MOST_DIFFERENCES_SHOWN:
        yield "more", f"and after that: {_some([entry.observation for entry in found[MOST_DIFFERENCES_SHOWN:]])}"


def _some(names: list[str]) -> str:
    hidden = len(names) - MOST_NAMES_SHOWN
    shown = ", ".join(names[:MOST_NAMES_SHOWN])
    return f"{shown} and {hidden} more" if hidden > 0 else shown


def _surroundings(verdict: Verdict) -> Iterable[tuple[str, str]]:
    if verdict.printed.strip():
        shown = verdict.printed.strip()[:LONGEST_PRINTED].replace("\n", " ⏎ ")
        yield "note", f"Your code printed while it was checked (not shown in full): {shown}"
    for text in verdict.warned[:2]:
        yield "note", f"A warning was raised while your code ran: {text.splitlines()[0][:LONGEST_PRINTED]}"


def as_text(exercise: Exercise, verdict: Verdict, maximum: float | None = None) -> str:
    """Return the report as plain text."""
    indents = {"passed": "", "title": ""}
    return "\n".join(indents.get(role, "  ") + text for role, text in lines(exercise, verdict, maximum))


_STYLES = {
    "passed": "font-weight:600;padding-left:.7em;border-left:4px solid #2e9e5b",
    "title": "font-weight:600",
    "difference": "margin:.35em 0;padding-left:.7em;border-left:3px solid var(--jp-warn-color1,#b45309)",
    "more": "padding-left:.95em;opacity:.85",
    "question": "margin:.6em 0 .1em;padding:.5em .7em;border-radius:4px;background:var(--jp-layout-color2,#eee)",
    "read": "padding-left:.7em;font-size:.93em",
    "agrees": "margin-top:.6em;font-size:.93em",
    "note": "font-size:.93em;opacity:.85",
}


def as_html(exercise: Exercise, verdict: Verdict, maximum: float | None = None) -> str:
    """Return the report as HTML that follows JupyterLab's theme; everything from the student is escaped."""
    report = lines(exercise, verdict, maximum)
    body = "".join(f'<div style="{_STYLES[role]}">{_code(text)}</div>' for role, text in report)
    return (
        '<div role="status" style="font-family:var(--jp-ui-font-family,sans-serif);line-height:1.5;max-width:60em">'
        f"{body}</div>"
    )


def _code(text: str) -> str:
    pieces = html.escape(text).split("`")
    return "".join(f"<code>{piece}</code>" if index % 2 else piece for index, piece in enumerate(pieces))
