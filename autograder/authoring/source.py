"""Reading a chapter's source: percent text in, a notebook out, with cards and hints put in from the exercises."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import jupytext
import nbformat
from nbformat import NotebookNode

from autograder.exercise import Card, Exercise, Hints
from autograder.messages import UsageError
from autograder.registry import load_exercise

_PLACEHOLDER = re.compile(r"^\{\{(card|hints) ([a-z_]+)\}\}$")
_KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


def read_source(file: Path) -> NotebookNode:
    """Return the notebook of one source file: no outputs, stable cell ids, cards and hints filled in.

    Raises UsageError when a placeholder or a check cell does not fit its exercise.
    """
    notebook = jupytext.read(file, fmt="py:percent")
    notebook.metadata = nbformat.from_dict({"kernelspec": _KERNEL, "language_info": {"name": "python"}})
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    used: set[str] = set()
    for cell in notebook.cells:
        cell.source = _filled(cell.source, file)
        cell.id = _stable_id(cell, used)
        settings = cell.metadata.get("nbgrader")
        cell.metadata = nbformat.from_dict({"nbgrader": settings} if settings else {})
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            if settings and settings.get("grade"):
                _expect_check_cell(cell, file)
    nbformat.validate(notebook)
    return notebook


def _filled(source: str, file: Path) -> str:
    match = _PLACEHOLDER.match(source.strip())
    if match is None:
        if "{{" in source and re.search(r"\{\{(card|hints)", source):
            raise UsageError(f"{file.name}: a placeholder must be alone in its cell, and is not in: {source[:60]!r}")
        return source
    exercise = load_exercise(match[2])
    return card_text(exercise, exercise.card) if match[1] == "card" else hints_text(exercise.hints)


def _stable_id(cell: NotebookNode, used: set[str]) -> str:
    """Return an id that survives edits elsewhere in the notebook: the nbgrader id, or a hash of the text."""
    settings = cell.metadata.get("nbgrader")
    base = settings["grade_id"].replace("_", "-") if settings else hashlib.sha1(cell.source.encode()).hexdigest()[:10]
    chosen, count = base, 2
    while chosen in used:
        chosen, count = f"{base}-{count}", count + 1
    used.add(chosen)
    return chosen


def _expect_check_cell(cell: NotebookNode, file: Path) -> None:
    settings = cell.metadata.nbgrader
    exercise = load_exercise(settings["grade_id"].removesuffix("_check"))
    if cell.source.strip() != exercise.check_call:
        raise UsageError(f"{file.name}: the check cell of {exercise.name} must hold exactly: {exercise.check_call}")
    if settings["points"] != exercise.points:
        raise UsageError(
            f"{file.name}: {exercise.name} has {exercise.points} points, its check cell says {settings['points']}"
        )


def card_text(exercise: Exercise, card: Card) -> str:
    """Return an exercise's card as Markdown. Difficulty and importance are digits beside the dots."""
    rows = [
        ("Your task", card.goal),
        ("You may change", card.may_change),
        ("Time", f"about {card.minutes} minutes"),
        ("Difficulty", f"{card.difficulty} of 5 {_dots(card.difficulty)}"),
        ("Importance", f"{card.importance} of 5 {_dots(card.importance)}"),
        ("Points", str(exercise.points)),
        ("You need", "; ".join(card.prerequisites)),
    ]
    table = "\n".join(f"| **{name}** | {text} |" for name, text in rows)
    items = "\n".join(f"- {item}" for item in card.specification)
    return (
        f"### Exercise `{exercise.name}`\n\n| | |\n|---|---|\n{table}\n\n**What it must do**\n\n{items}\n\n"
        f"The cell after your code runs `{exercise.check_call}`: it compares what your code does with what torch does, "
        "and says in words where they part."
    )


def _dots(count: int) -> str:
    return "●" * count + "○" * (5 - count)


def hints_text(hints: Hints) -> str:
    """Return both hints as Markdown, each closed until the reader opens it; the second lies inside the first."""
    return (
        "<details>\n<summary>Stuck? First hint: a question</summary>\n\n"
        f"{hints.question}\n\n"
        "<details>\n<summary>Still stuck? Second hint: a template with gaps</summary>\n\n"
        f"```python\n{hints.template}\n```\n\n</details>\n\n</details>"
    )
