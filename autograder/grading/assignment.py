"""An assignment as plain data, taken from the gradebook once, and nbgrader's own steps running on it.

nbgrader's sanitizers ask the gradebook for the instructor's cells. Here they ask this snapshot, so that they run in
any process and on any machine, and the gradebook has one user.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
from nbconvert.preprocessors import Preprocessor
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.preprocessors import (
    AssignLatePenalties,
    Execute,
    NbGraderPreprocessor,
    OverwriteCells,
    OverwriteKernelspec,
    SaveAutoGrades,
)
from traitlets.config import Config
from traitlets.utils.importstring import import_item

from autograder.grading.sandbox import Preload
from autograder.messages import UsageError
from autograder.registry import exercise_names

SCHEMA_VERSION = 3  # Of nbgrader's metadata, as nbgrader 0.9 writes it.


@dataclass(frozen=True)
class SourceNotebook:
    """What nbgrader knows of one released notebook."""

    name: str
    kernelspec: str | None
    source_cells: tuple[dict[str, Any], ...]
    grade_cells: tuple[dict[str, Any], ...]
    solution_cells: tuple[str, ...]
    task_cells: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Assignment:
    """One assignment: its notebooks, what to load before grading it, and the course's nbgrader configuration."""

    name: str
    notebooks: tuple[SourceNotebook, ...]
    preload: Preload
    config: dict[str, Any] = field(default_factory=dict)

    @functools.cached_property
    def digest(self) -> str:
        """Return a digest of everything in it: a worker that lives longer than one run knows it again by this."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True, default=str).encode()).hexdigest()

    def notebook(self, name: str) -> SourceNotebook:
        """Return a notebook by its name. Raises MissingEntry, as nbgrader's gradebook does, when there is none."""
        for notebook in self.notebooks:
            if notebook.name == name:
                return notebook
        raise MissingEntry(f"No such notebook: {name} in {self.name}")


def read_assignment(gradebook: Gradebook, name: str, source_folder: Path, config: Config) -> Assignment:
    """Take an assignment out of the gradebook. Raises UsageError when it is not there or has no notebooks."""
    try:
        found = gradebook.find_assignment(name)
    except MissingEntry:
        known = ", ".join(sorted(entry.name for entry in gradebook.assignments)) or "none yet"
        raise UsageError(
            f'The gradebook knows no assignment "{name}" (it knows: {known}). '
            f"Release it first: nbgrader generate_assignment {name}"
        ) from None
    notebooks = []
    for notebook in found.notebooks:
        cells = tuple(
            {key: getattr(cell, key) for key in ("name", "cell_type", "locked", "source", "checksum")}
            for cell in notebook.source_cells
        )
        graded = tuple({"name": cell.name, "max_score": cell.max_score} for cell in notebook.grade_cells)
        tasks = tuple({"name": cell.name, "max_score": cell.max_score} for cell in notebook.task_cells)
        solutions = tuple(cell.name for cell in notebook.solution_cells)
        notebooks.append(SourceNotebook(notebook.name, notebook.kernelspec, cells, graded, solutions, tasks))
    if not notebooks:
        raise UsageError(f'The gradebook has no notebooks for "{name}": nbgrader generate_assignment {name}')
    names = [notebook.name for notebook in notebooks]
    return Assignment(name, tuple(notebooks), preload_of(source_folder, names, notebooks), plain_config(config))


def preload_of(source_folder: Path, names: Sequence[str], notebooks: Iterable[SourceNotebook] = ()) -> Preload:
    """Return what the reference solutions of these notebooks load and check; nothing where they cannot be read."""
    cells: list[str] = []
    for name in names:
        file = source_folder / f"{name}.ipynb"
        try:
            notebook = nbformat.read(file, as_version=4)
        except (OSError, ValueError, AttributeError, KeyError):
            continue
        cells.extend(cell.source for cell in notebook.cells if cell.cell_type == "code")
    known = exercise_names()
    called = {name for source in cells for name in _checked(source) if name in known}
    return Preload(tuple(cells), tuple(name for name in known if name in called))


def _checked(source: str) -> Iterable[str]:
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "check" and node.args:
            if isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
                yield node.args[0].value


def plain_config(config: Config) -> dict[str, Any]:
    """Return a configuration as plain data: classes by their import string, and nothing that cannot be sent."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {str(key): plain(item) for key, item in value.items()}
        if isinstance(value, (list, tuple, set)):
            return [plain(item) for item in value]
        return f"{value.__module__}.{value.__qualname__}" if isinstance(value, type) else value

    sections = {name: section for name, section in config.items() if name[:1].isupper()}
    return plain({name: {k: v for k, v in entry.items() if _is_plain(v)} for name, entry in sections.items()})


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple, set)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    return isinstance(value, (str, int, float, bool, type, type(None)))


class _Snapshot:
    """Answers the three questions that the sanitizers ask a gradebook."""

    def __init__(self, assignment: Assignment) -> None:
        self.assignment = assignment
        self.found: dict[str, SimpleNamespace] = {}

    def find_notebook(self, name: str, assignment: str) -> SimpleNamespace:
        if name not in self.found:
            self.found[name] = self._notebook(self.assignment.notebook(name))
        return self.found[name]

    def _notebook(self, notebook: SourceNotebook) -> SimpleNamespace:
        return SimpleNamespace(
            kernelspec=notebook.kernelspec,
            source_cells=[SimpleNamespace(**cell) for cell in notebook.source_cells],
            grade_cells=[SimpleNamespace(**cell) for cell in notebook.grade_cells],
            solution_cells=[SimpleNamespace(name=each) for each in notebook.solution_cells],
            task_cells=[SimpleNamespace(**cell) for cell in notebook.task_cells],
        )

    def find_source_cell(self, name: str, notebook: str, assignment: str) -> SimpleNamespace:
        return self._named(self.find_notebook(notebook, assignment).source_cells, name)

    def find_graded_cell(self, name: str, notebook: str, assignment: str) -> SimpleNamespace:
        found = self.find_notebook(notebook, assignment)
        return self._named([*found.grade_cells, *found.task_cells], name)

    def _named(self, cells: Iterable[SimpleNamespace], name: str) -> SimpleNamespace:
        for cell in cells:
            if cell.name == name:
                return cell
        raise MissingEntry(f"No such cell: {name}")


class DropStrayMarks(NbGraderPreprocessor):
    """Remove nbgrader metadata that is none: the steps after this one expect a dictionary with a name in it."""

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict[str, Any], cell_index: int
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Leave the cell an ordinary one where its mark cannot be read."""
        mark = cell.metadata.get("nbgrader")
        if mark is not None and not (isinstance(mark, dict) and isinstance(mark.get("grade_id"), str)):
            self.log.warning("The nbgrader metadata of cell %d cannot be read, and is dropped.", cell_index)
            del cell.metadata["nbgrader"]
        return cell, resources


class RestoreCells(OverwriteCells):
    """nbgrader's step that puts the instructor's cells back, also where the cells around a missing one are gone too.

    What a cell is for (an answer, a check, how many points) is put back as well, and a cell that was marked by hand
    becomes an ordinary one.
    """

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict[str, Any], cell_index: int
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Put back a cell's mark, then its type and text."""
        if (name := _grade_id(cell)) is None:
            return cell, resources
        notebook = self.gradebook.find_notebook(self.notebook_id, self.assignment_id)
        source = next((each for each in notebook.source_cells if each.name == name), None)
        if source is None:
            self.log.warning("Cell '%s' is not one of the released cells; its mark is dropped.", name)
            del cell.metadata["nbgrader"]
            return cell, resources
        points = {each.name: each.max_score for each in (*notebook.grade_cells, *notebook.task_cells)}
        mark = {
            "grade_id": name,
            "grade": any(each.name == name for each in notebook.grade_cells),
            "solution": any(each.name == name for each in notebook.solution_cells),
            "task": any(each.name == name for each in notebook.task_cells),
            "locked": source.locked,
            "cell_type": source.cell_type,
            "schema_version": SCHEMA_VERSION,
        }
        if name in points:
            mark["points"] = points[name]
        cell.metadata["nbgrader"] = nbformat.from_dict(mark)
        return super().preprocess_cell(cell, resources, cell_index)

    def add_missing_grade_cells(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Put each missing graded cell after the nearest cell before it that is still there, or first.

        A cell from another notebook, or the copy of one that is here, has lost its name by now; nbgrader would stop
        at what is left of its metadata.
        """
        for cell in nb.cells:
            if "nbgrader" in cell.metadata and not _grade_id(cell):
                del cell.metadata["nbgrader"]
        source = self.gradebook.find_notebook(self.notebook_id, self.assignment_id)
        points = {cell.name: cell.max_score for cell in source.grade_cells}
        solutions = {cell.name for cell in source.solution_cells}
        place = 0
        for cell in source.source_cells:
            there = [index for index, each in enumerate(nb.cells) if _grade_id(each) == cell.name]
            if there:
                place = there[0] + 1
            elif cell.name in points:
                self.log.warning("The graded cell %s was missing and is put back.", cell.name)
                made = self.missing_cell_transform(cell, points[cell.name], is_solution=cell.name in solutions)
                nb.cells.insert(place, _with_id(nbformat.from_dict(made), nb))
                place += 1
        return nb, resources


def _grade_id(cell: NotebookNode) -> str | None:
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def _with_id(cell: NotebookNode, notebook: NotebookNode) -> NotebookNode:
    if (notebook.nbformat, notebook.nbformat_minor) >= (4, 5):
        wanted = re.sub(r"[^a-zA-Z0-9_-]", "-", _grade_id(cell) or "")[:56]
        taken = {each.get("id") for each in notebook.cells}
        numbered = (wanted if not number else f"{wanted}-{number}" for number in itertools.count())
        cell["id"] = next(name for name in numbered if name not in taken)
    return cell


class OverwriteFromSnapshot(RestoreCells):
    """nbgrader's step that puts the instructor's cells back, asking a snapshot."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """Put back what was changed or deleted."""
        self.notebook_id = resources["nbgrader"]["notebook"]
        self.assignment_id = resources["nbgrader"]["assignment"]
        self.gradebook = resources["snapshot"]
        nb, resources = NbGraderPreprocessor.preprocess(self, nb, resources)
        if self.add_missing_cells:
            nb, resources = self.add_missing_grade_cells(nb, resources)
            nb, resources = self.add_missing_task_cells(nb, resources)
        return nb, resources


class KernelspecFromSnapshot(OverwriteKernelspec):
    """nbgrader's step that puts the released kernelspec back, asking a snapshot."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """Put the kernelspec back."""
        names = resources["nbgrader"]
        spec = resources["snapshot"].find_notebook(names["notebook"], names["assignment"]).kernelspec
        if spec:
            nb.metadata["kernelspec"] = json.loads(spec)
        return nb, resources


_OURS = ((OverwriteCells, OverwriteFromSnapshot), (OverwriteKernelspec, KernelspecFromSnapshot))


class Steps:
    """nbgrader's sanitizing and autograding steps of one assignment, as the course has configured them.

    Execution, and the two steps that write to the gradebook, are left to others.
    """

    def __init__(self, assignment: Assignment) -> None:
        from nbgrader.converters import Autograde

        self.assignment = assignment
        config = Config(assignment.config)
        converter = Autograde(config=config)
        self.sanitizers = self._made(converter.sanitize_preprocessors, config)
        self.finishers = self._made(converter.autograde_preprocessors, config)
        self.snapshot = _Snapshot(assignment)

    def _made(self, classes: Sequence[Any], config: Config) -> list[Preprocessor]:
        from autograder.grading.execute import ExecuteForGrading

        elsewhere = (ExecuteForGrading, Execute, SaveAutoGrades, AssignLatePenalties)
        made = []
        for each in classes:
            kind = import_item(each) if isinstance(each, str) else each
            if not issubclass(kind, elsewhere):
                ours = next((ours for theirs, ours in _OURS if issubclass(kind, theirs)), kind)
                made.append(ours(config=config))
        return [step for step in made if step.enabled]

    def sanitize(self, notebook: NotebookNode, name: str) -> NotebookNode:
        """Return a submitted notebook as nbgrader would execute it. Raises what nbgrader's steps raise."""
        return self._apply(self.sanitizers, notebook, name)

    def finish(self, notebook: NotebookNode, name: str) -> NotebookNode:
        """Return an executed notebook as nbgrader would write it."""
        return self._apply(self.finishers, notebook, name)

    def _apply(self, steps: Sequence[Preprocessor], notebook: NotebookNode, name: str) -> NotebookNode:
        resources: dict[str, Any] = {
            "nbgrader": {"notebook": name, "assignment": self.assignment.name, "student": "", "db_url": ""},
            "snapshot": self.snapshot,
        }
        for step in steps:
            notebook, resources = step(notebook, resources)
        return notebook
