"""Preflight: what would break the grading of a notebook, told from its structure alone. Nothing of it is run."""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import nbformat

from autograder.authoring.build import chapters, student_file, student_text
from autograder.grading.limits import LARGEST_NOTEBOOK, MOST_VALUES, Limits
from autograder.lesson import progress
from autograder.messages import UsageError
from autograder.registry import exercise_names

LARGEST_OUTPUTS = 10 * 2**20
CLEAR = "clear the outputs (Edit, Clear Outputs of All Cells) and save"


class Fault(NamedTuple):
    """One thing found: ``serious`` breaks grading, otherwise it only costs points or time."""

    serious: bool
    what: str
    remedy: str


def preflight(root: Path, wanted: str, file: Path | None = None) -> list[Fault]:
    """Return what is wrong with a chapter's notebook, or with ``file`` handed in for it; empty when nothing is.

    Raises UsageError for an unknown chapter.
    """
    (chapter, *more) = chapters(root, [wanted])
    if more:
        raise UsageError(f"{wanted!r} fits {1 + len(more)} chapters; name one, such as {chapter}.")
    path = file or student_file(root, chapter)
    if not path.is_file():
        return [_missing(path)]
    found = list(_beside(path))
    if unreadable := list(_unreadable(path)):
        return [*found, *unreadable]
    notebook = nbformat.reads(path.read_text(encoding="utf-8-sig"), as_version=4)
    original = nbformat.reads(student_text(root, chapter), as_version=4)
    found.extend(_named(path, chapter))
    found.extend(_cells(notebook, original))
    found.extend(_answers(notebook))
    found.extend(_outputs(notebook))
    found.extend(_kernel(notebook))
    if file is None:
        names = [name for name, folder in exercise_names().items() if folder == chapter]
        found.extend(Fault(False, said, "save it in JupyterLab (Ctrl+S)") for said in unsaved(path, names))
    return found


def unsaved(path: Path, exercises: Iterable[str]) -> list[str]:
    """Return one sentence for each exercise whose check passed after the notebook was saved last.

    Nobody outside of JupyterLab can see what is typed there and not saved; the progress file knows when a check passed.
    """
    saved = path.stat().st_mtime
    passed = progress.last_passed()
    return [
        f"{name} passed its check after {path.name} was saved: that answer may not be in the file"
        for name in exercises
        # The progress file counts whole seconds.
        if name in passed and passed[name] > saved + 1
    ]


def _kernel(notebook: Any) -> Iterator[Fault]:
    language = notebook.metadata.get("kernelspec", {}).get("language", "python")
    name = notebook.metadata.get("kernelspec", {}).get("name", "python3")
    if name != "python3" or language != "python":
        yield Fault(
            False,
            f"it was saved with the kernel {name!r}; grading runs it with this course's Python 3",
            "choose Kernel, Change Kernel, Python 3 (ipykernel), run it all and save",
        )


def _missing(path: Path) -> Fault:
    others = sorted(one.name for one in path.parent.glob("*.ipynb")) if path.parent.is_dir() else []
    beside = f" Beside it: {', '.join(others)}." if others else ""
    return Fault(True, f"{path} is not there.{beside}", f"save or rename your notebook to {path.name}")


def _beside(path: Path) -> Iterator[Fault]:
    """Look over the files that travel with the notebook."""
    size = count = 0
    if path.is_symlink():
        yield Fault(True, f"{path.name} is a link", "hand in the notebook itself")
    for folder, folders, names in os.walk(path.parent):
        folders[:] = [name for name in folders if name not in (".ipynb_checkpoints", "__pycache__")]
        for file in (Path(folder) / name for name in (*names, *folders)):
            if file.is_symlink():
                shown = file.name.encode("utf-8", "replace").decode()
                yield Fault(False, f"{shown} is a link, and is not graded with the notebook", "put a copy in its place")
            elif file.is_file() and file.suffix != ".ipynb":
                size, count = size + file.stat().st_size, count + 1
    most = Limits()
    if size > most.files:
        yield Fault(True, f"the files beside it have {size >> 20} MB", f"keep them below {most.files >> 20} MB")
    if count > most.file_count:
        yield Fault(True, f"there are {count} files beside it", f"keep at most {most.file_count}")


def _unreadable(path: Path) -> Iterator[Fault]:
    if path.stat().st_size > LARGEST_NOTEBOOK:
        yield Fault(True, f"{path.name} has {path.stat().st_size >> 20} MB", CLEAR)
        return
    if sum(map(path.read_bytes().count, (b"[", b"{", b","))) > MOST_VALUES:
        yield Fault(True, f"{path.name} holds more than {MOST_VALUES} values", CLEAR)
        return
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        yield Fault(True, f"{path.name} is not UTF-8 text (byte {error.start})", "save it from JupyterLab again")
        return
    if re.search(r"^(<<<<<<<|>>>>>>>) ", text, re.MULTILINE):
        yield Fault(True, f"{path.name} holds the marks of a merge conflict", "choose one side, remove the marks, save")
        return
    try:
        data = json.loads(text)
        nbformat.validate(nbformat.reads(text, as_version=4))
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        yield Fault(True, f"{path.name} is cut off or damaged at {where}", "save it from JupyterLab again, or reset")
        return
    except Exception as error:
        said = str(error).splitlines()[0][:120]
        yield Fault(True, f"{path.name} is no valid notebook: {said}", "open it in JupyterLab and save it again")
        return
    if data.get("nbformat") != 4:
        yield Fault(
            True, f"{path.name} has notebook format {data.get('nbformat')}", "open it in JupyterLab and save it"
        )


def _named(path: Path, chapter: str) -> Iterator[Fault]:
    if path.name != f"{chapter}.ipynb":
        yield Fault(True, f"the file is called {path.name}", f"rename it to {chapter}.ipynb")


def _settings(cell: Mapping[str, Any]) -> Mapping[str, Any]:
    settings = cell.get("metadata", {}).get("nbgrader", {})
    return settings if isinstance(settings, dict) else {}


def _cells(notebook: Any, original: Any) -> Iterator[Fault]:
    reset = "take the cell from a fresh copy: make reset keeps your answers beside it"
    places: dict[str, list[int]] = {}
    for place, cell in enumerate(notebook.cells):
        if name := _settings(cell).get("grade_id"):
            places.setdefault(str(name), []).append(place)
    wanted = [cell for cell in original.cells if _settings(cell).get("grade_id")]
    if wanted and not places:
        yield Fault(True, "none of this chapter's exercise cells is here: is it another chapter's notebook?", reset)
        return
    for cell in wanted:
        settings = _settings(cell)
        name, graded = str(settings["grade_id"]), bool(settings.get("grade"))
        kind = "check cell" if graded else "answer cell"
        exercise = name.removesuffix("_check")
        there = places.get(name, [])
        if not there:
            yield Fault(True, f"the {kind} of {exercise} is missing", reset)
            continue
        if len(there) > 1:
            yield Fault(True, f"the {kind} of {exercise} is there {len(there)} times", "delete all but the last one")
        mine = notebook.cells[there[-1]]
        if mine.cell_type != cell.cell_type:
            yield Fault(True, f"the {kind} of {exercise} has become {mine.cell_type}", "change its type back to Code")
        elif any(_settings(mine).get(key) != settings.get(key) for key in ("grade", "solution", "points")):
            yield Fault(False, f"the {kind} of {exercise} was marked as something else; grading marks it back", reset)
        elif graded and mine.source.strip() != cell.source.strip():
            yield Fault(False, f"the check cell of {exercise} was changed; grading uses the original", reset)
        if graded and places.get(exercise, [-1])[-1] > there[-1]:
            yield Fault(True, f"the check cell of {exercise} stands before its answer", "move it below its answer")


def _answers(notebook: Any) -> Iterator[Fault]:
    from IPython.core.inputtransformer2 import TransformerManager

    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        name = _settings(cell).get("grade_id") if _settings(cell).get("solution") else None
        try:
            tree = ast.parse(TransformerManager().transform_cell(cell.source))
        except SyntaxError as error:
            where = f"the answer to {name}" if name else f"the cell that begins {cell.source.strip()[:40]!r}"
            yield Fault(True, f"{where} does not parse: {error.msg}, line {error.lineno}", "run it and mend it")
            continue
        raises = [node for node in ast.walk(tree) if isinstance(node, ast.Raise)]
        if name and any(f"NotImplementedError('{name}')" == ast.unparse(node.exc) for node in raises if node.exc):
            yield Fault(False, f"{name} is still to be written", "hand it in like this, and it gets 0 points")


def _outputs(notebook: Any) -> Iterator[Fault]:
    size = sum(len(json.dumps(cell.get("outputs", []))) for cell in notebook.cells)
    if size > LARGEST_OUTPUTS:
        yield Fault(False, f"the outputs have {size / 2**20:.0f} MB", CLEAR)


def report(chapter: str, found: list[Fault]) -> str:
    """Return the faults as text, the serious ones first, ending in what to do next."""
    lines = [
        f"{'✗' if one.serious else '!'} {one.what}\n    {one.remedy}"
        for one in sorted(found, key=lambda f: not f.serious)
    ]
    if any(one.serious for one in found):
        lines.append(f"Mend what is marked ✗ before you hand in {chapter}.")
    else:
        lines.append(f"{chapter} can be handed in." + (" What is marked ! is up to you." if found else ""))
    return "\n".join(lines)
