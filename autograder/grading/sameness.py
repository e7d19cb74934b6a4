"""Whether two runs of one submission gave the same: scores, and outputs cell by cell."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.utils import determine_grade, is_grade

from autograder.grading.grade import Graded

# What differs between any two runs: addresses, file names that hold a process number, clocks, and random names.
_CHANGING = (
    (re.compile(r"0x[0-9a-f]{6,}"), "0x…"),
    (re.compile(r"/tmp/[\w./-]+"), "/tmp/…"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "…"),
    (re.compile(r"\b\d+(\.\d+)? ?(ns|µs|μs|us|ms|s|seconds|min)\b"), "… s"),
    (re.compile(r"[ \t]+(?=\n|$)"), ""),
)
_SHOWN_AS_TEXT = ("text/", "application/json")


def differences(graded: Graded, folder: Path) -> list[str]:
    """Return sentences on how a result differs from the notebooks that lie in ``folder``; none when it does not."""
    if graded.problem:
        return [graded.problem]
    found = []
    for notebook in graded.notebooks:
        try:
            other = nbformat.read(folder / f"{notebook.name}.ipynb", as_version=4)
        except (OSError, ValueError) as error:
            found.append(f"{notebook.name}.ipynb cannot be read again: {error}")
            continue
        one = nbformat.reads(notebook.text, as_version=4)
        found.extend(notebook_differences(one, other, outputs=notebook.unfinished is None))
    return found


def notebook_differences(one: NotebookNode, other: NotebookNode, outputs: bool = True) -> list[str]:
    """Return sentences on how two executed notebooks differ.

    Without ``outputs`` in scores alone: a process that ended is told in other words by a cold kernel, which sees less.
    """
    if len(one.cells) != len(other.cells):
        return [f"{len(one.cells)} cells and {len(other.cells)} cells"]
    found = []
    for index, (cell, same) in enumerate(zip(one.cells, other.cells, strict=True)):
        if cell.cell_type != same.cell_type or cell.source != same.source:
            found.append(f"cell {index} is another cell")
        elif cell.cell_type == "code":
            if is_grade(cell) and determine_grade(cell) != determine_grade(same):
                name = cell.metadata.nbgrader["grade_id"]
                found.append(f"{name}: {determine_grade(cell)[0]} and {determine_grade(same)[0]} points")
            if outputs and (ours := plain_outputs(cell)) != (theirs := plain_outputs(same)):
                found.append(f"cell {index} shows something else: {ours!r:.300} and {theirs!r:.300}")
    return found


def plain_outputs(cell: NotebookNode) -> list[Any]:
    """Return a cell's outputs without what changes from run to run; text of one stream is put together."""
    plain: list[Any] = []
    streams: dict[str, str] = {}
    for output in cell.outputs:
        if output.output_type == "stream":
            streams[output.name] = streams.get(output.name, "") + output.text
        elif output.output_type == "error":
            plain.append(("error", output.ename, _steady(output.evalue)))
        else:
            data = {kind: _value(kind, value) for kind, value in sorted(output.data.items())}
            plain.append((output.output_type, data))
    return [*((name, _steady(text)) for name, text in sorted(streams.items())), *plain]


def _value(kind: str, value: Any) -> str:
    if not kind.startswith(_SHOWN_AS_TEXT):
        return "…"
    return _steady(value if isinstance(value, str) else repr(value))


def _steady(text: str) -> str:
    for pattern, replacement in _CHANGING:
        text = pattern.sub(replacement, text)
    return text
