"""A class made up for measuring: right, wrong, broken and missing answers, no two submissions alike."""

from __future__ import annotations

import ast
import contextlib
import copy
import io
import logging
import os
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder.authoring.build import clean_copy, solution_file, student_file

_SWAPPED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Lt: ast.Gt, ast.Gt: ast.Lt}
# Every tenth student has left all as it was, every fifth has an answer that stops; of the rest a third are wrong.
_KINDS = ("right", "wrong", "right", "broken", "right", "wrong", "right", "broken", "right", "untouched")


def make_class(root: Path, folder: Path, chapter: str, size: int, stock: bool = False) -> Path:
    """Make a course in ``folder`` in which ``size`` students have handed in a chapter; return the folder.

    With ``stock``, nbgrader's own steps grade it: the course's configuration of them is taken out.
    """
    clean_copy(root, folder)
    with (folder / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        if stock:
            config.write('\nfor name in ("Autograde", "OverwriteCells", "ExecuteForGrading"):\n    c.pop(name, None)\n')
    release(folder, [chapter])
    for number in range(size):
        answer = _KINDS[number % len(_KINDS)]
        hand_in(folder, f"student{number:04}", chapter, submission(folder, chapter, answer, f"# student {number}\n"))
    return folder


def release(folder: Path, chapters: list[str]) -> None:
    """Release chapters in a course's folder, all in this process. Raises RuntimeError where nbgrader cannot."""
    from nbgrader.apps.api import NbGraderAPI

    from autograder.grading.course import load_course

    before = Path.cwd()
    try:
        course = load_course(folder)
        # nbgrader starts `alembic` by name when it makes a gradebook.
        with _programs_first(), contextlib.redirect_stdout(io.StringIO()):
            logging.getLogger("alembic").setLevel(logging.ERROR)
            for chapter in chapters:
                said = NbGraderAPI(course.directory, config=course.config).generate_assignment(chapter, force=True)
                if not said["success"]:
                    raise RuntimeError(f"{chapter} could not be released:\n{said.get('error') or said.get('log')}")
    finally:
        os.chdir(before)


@contextlib.contextmanager
def _programs_first():
    import sys

    before = os.environ["PATH"]
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{before}"
    try:
        yield
    finally:
        os.environ["PATH"] = before


def answers(folder: Path, chapter: str) -> dict[str, str]:
    """Return what the solution has in each answer cell."""
    solved = nbformat.read(solution_file(folder, chapter), as_version=4)
    return {_grade_id(cell): cell.source for cell in solved.cells if cell.metadata.get("nbgrader", {}).get("solution")}


def submission(folder: Path, chapter: str, kind: str, mark: str = "") -> NotebookNode:
    """Return the released notebook with answers of one kind: right, wrong, broken or untouched."""
    notebook = copy.deepcopy(nbformat.read(student_file(folder, chapter), as_version=4))
    given = {} if kind == "untouched" else answers(folder, chapter)
    for cell in notebook.cells:
        if (name := _grade_id(cell)) in given:
            cell.source = mark + _changed(given[name], kind)
    return notebook


def hand_in(folder: Path, student: str, chapter: str, notebook: NotebookNode) -> Path:
    """Write a student's submission and return its folder."""
    place = folder / "submitted" / student / chapter
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{chapter}.ipynb").write_text(nbformat.writes(notebook), encoding="utf-8")
    return place


def _grade_id(cell: NotebookNode) -> str | None:
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def _changed(source: str, kind: str) -> str:
    if kind == "broken":
        return f"{source}\n\nthis_name_was_never_defined\n"
    if kind == "wrong":
        tree = ast.parse(source)
        _swap_the_last(tree)
        return ast.unparse(tree)
    return source


def _swap_the_last(tree: ast.Module) -> None:
    """Turn the last sum, product or comparison into its opposite: wrong, and still a program."""
    for node in reversed(list(ast.walk(tree))):
        if isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in _SWAPPED:
            node.op = _SWAPPED[type(node.op)]()
            return
        if isinstance(node, ast.Compare) and type(node.ops[0]) in _SWAPPED:
            node.ops[0] = _SWAPPED[type(node.ops[0])]()
            return
