"""Another number of points for a chapter: in the check cells, by which nbgrader grades, and in the students' cards."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from nbformat import NotebookNode

from autograder.messages import UsageError

CENT = Fraction(1, 100)
_ROW = re.compile(r"(?m)^(\| \*\*Points\*\* \| )\S+( \|)$")
_TITLE = re.compile(r"(?m)^### Exercise `(\w+)`$")


def points_of(notebook: NotebookNode) -> dict[str, float]:
    """Return the points of every graded cell by its name, in the order of the notebook."""
    settings = [cell.metadata.get("nbgrader", {}) for cell in notebook.cells]
    return {each["grade_id"]: each["points"] for each in settings if each.get("grade") and each.get("points")}


def scaled(points: Mapping[str, float], total: float) -> dict[str, float]:
    """Return the points in the same proportions with another sum, in hundredths and adding up to it exactly.

    Raises UsageError for a total of which some exercise would get nothing.
    """
    wanted, whole = Fraction(str(total)), sum(Fraction(str(value)) for value in points.values())
    exact = {name: Fraction(str(value)) * wanted / whole for name, value in points.items()}
    given = {name: value // CENT * CENT for name, value in exact.items()}
    left = int((wanted - sum(given.values())) / CENT)
    for name in sorted(exact, key=lambda each: given[each] - exact[each])[:left]:
        given[name] += CENT
    if not all(given.values()):
        raise UsageError(f"{total:g} points cannot be shared out among {len(points)} exercises.")
    return {name: shown(float(value)) for name, value in given.items()}


def shown(value: float) -> int | float:
    """Return a whole number without its decimal point, as nbgrader and a card's reader expect it."""
    return int(value) if float(value).is_integer() else value


def scale_notebook(notebook: NotebookNode, total: float) -> None:
    """Give a chapter's notebook another total: its check cells and the row "Points" of its cards."""
    points = scaled(points_of(notebook), total)
    for cell in notebook.cells:
        settings = cell.metadata.get("nbgrader", {})
        if settings.get("grade_id") in points:
            settings["points"] = points[settings["grade_id"]]
        title = _TITLE.search(cell.source) if cell.cell_type == "markdown" else None
        if title and f"{title[1]}_check" in points:
            cell.source = _ROW.sub(rf"\g<1>{points[f'{title[1]}_check']}\g<2>", cell.source)
