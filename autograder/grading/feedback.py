"""A step of ``nbgrader generate_feedback``: what the checks have said stands first, and the page needs no kernel."""

from __future__ import annotations

import html
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell
from nbgrader.preprocessors import ClearHiddenTests, NbGraderPreprocessor
from nbgrader.utils import is_grade, is_solution

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
READABLE = {"text/html", "image/png", "image/svg+xml"}
# nbgrader's own list calls every exercise "Test cell"; Bootstrap takes away the triangle of what can be opened.
_STYLE = """<style>
#toc, a.anchor-link { display: none }
details { margin-top: 1em }
summary { display: list-item; cursor: pointer }
.results { margin: 0 0 2em; border-collapse: collapse }
.results td, .results th { padding: .4em .8em; border: 1px solid #bbb; vertical-align: top; text-align: left }
.results td.points { white-space: nowrap }
</style>"""


class VerdictsFirst(NbGraderPreprocessor):
    """Put a table of the exercises before the notebook, and leave out what a saved page cannot show.

    Comes after nbgrader's GetGrades, which brings points and comments. Where points were given by hand, the table
    says so, because the verdict below it still states what the check alone gave.
    """

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """Change one notebook on its way to a feedback page; its file stays as it is."""
        rows = [_row(cell) for cell in nb.cells if is_grade(cell)]
        rows += [_comment(cell) for cell in nb.cells if is_solution(cell) and _of(cell).get("comment")]
        if penalty := resources.get("nbgrader", {}).get("late_penalty"):
            rows.append(_cells("Handed in late", f"−{penalty:g}", ""))
        hidden = ClearHiddenTests(parent=self)
        for cell in nb.cells:
            if cell.cell_type == "code":
                cell.outputs = _shown(cell)
                _without_hidden_tests(cell, hidden)
        nb.metadata.pop("widgets", None)
        head = "<tr><th>Exercise</th><th>Points</th><th>What the check says</th></tr>"
        table = f'{_STYLE}\n<table class="results">{head}{"".join(rows)}</table>'
        nb.cells.insert(0, new_markdown_cell(table))
        return nb, resources


def _of(cell: NotebookNode) -> NotebookNode:
    return cell.metadata.nbgrader


def _cells(name: str, points: str, said: str) -> str:
    return f'<tr><td>{name}</td><td class="points">{points}</td><td>{said}</td></tr>'


def _row(cell: NotebookNode) -> str:
    marks, said = _of(cell), html.escape(_verdict(cell))
    name = html.escape(marks.grade_id.removesuffix("_check"))
    by_check = _points(cell)
    if by_check is not None and abs(by_check - marks.score) > 0.005:
        said += f" <strong>Your instructor changed the points; the check alone gave {by_check:g}.</strong>"
    return _cells(
        f'<a href="#{html.escape(marks.grade_id)}">{name}</a>', f"{marks.score:.4g} of {marks.points:g}", said
    )


def _comment(cell: NotebookNode) -> str:
    name = html.escape(_of(cell).grade_id)
    return _cells(f'<a href="#comment-{name}">{name}</a>', "", f"There is a comment: {html.escape(_of(cell).comment)}")


def _verdict(cell: NotebookNode) -> str:
    """Return the first line of the verdict without the exercise's name and its points, which have columns."""
    for output in cell.get("outputs", ()):
        text = output.get("data", {}).get("text/plain", "")
        if output.output_type == "display_data" and text.strip():
            name = _of(cell).grade_id.removesuffix("_check")
            return text.splitlines()[0].replace(f"{name}: ", "").rsplit(", ", 1)[0]
    return ""


def _points(cell: NotebookNode) -> float | None:
    for output in cell.get("outputs", ()):
        if output.output_type == "execute_result":
            try:
                return float(output.data.get("text/plain", ""))
            except ValueError:
                return None
    return None


def _without_hidden_tests(cell: NotebookNode, hidden: ClearHiddenTests) -> None:
    """Take out what an instructor has put between the marks of hidden tests, and tracebacks, which quote it."""
    shown = cell.source
    try:
        removed = hidden._remove_hidden_test_region(cell)
    except RuntimeError:  # A mark without its partner: whatever follows it may be meant.
        removed, cell.source = True, shown[: shown.index(hidden.begin_test_delimeter)].rpartition("\n")[0]
    if removed:
        for output in cell.outputs:
            if output.output_type == "error":
                output.traceback = [f"{output.ename}: {output.evalue}" if output.evalue else output.ename]


def _shown(cell: NotebookNode) -> list[NotebookNode]:
    """Return a cell's outputs without live views that have a readable one beside them, and without bare points."""
    readable = any(READABLE & set(output.get("data", {})) for output in cell.outputs)
    kept = []
    for output in cell.outputs:
        data = output.get("data", {})
        is_bare_points = readable and is_grade(cell) and output.output_type == "execute_result"
        if is_bare_points or (readable and WIDGET_VIEW in data):
            continue
        data.pop(WIDGET_VIEW, None)
        kept.append(output)
    return kept
