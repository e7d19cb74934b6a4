"""A course folder with a class that has handed in, for the tests of grading."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook

from autograder.authoring.build import clean_copy

CHAPTER = "ch03_buffers_and_state"
SECRET = "a phrase that only the tests know"


def environment() -> dict[str, str]:
    """The environment for a program of this installation, started as in an activated environment."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": programs}


def run(course: Path, *command: str, seconds: float = 280) -> subprocess.CompletedProcess:
    """Run ``python -m …`` in a course's folder."""
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=course, capture_output=True, text=True, env=environment(), timeout=seconds
    )


def make_course(root: Path, folder: Path, config: str = "") -> Path:
    """Copy the course into a folder and release the chapter there."""
    folder.mkdir(parents=True, exist_ok=True)
    clean_copy(root, folder)
    with (folder / "nbgrader_config.py").open("a", encoding="utf-8") as file:
        file.write(f"\nc.ExecuteForGrading.grading_seed = {SECRET!r}\n{config}\n")
    done = run(folder, "nbgrader", "generate_assignment", CHAPTER, "--force")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def released(course: Path) -> NotebookNode:
    """The notebook that students got."""
    return nbformat.read(course / "notebooks" / CHAPTER / f"{CHAPTER}.ipynb", as_version=4)


def hand_in(course: Path, student: str, answers: Mapping[str, str], only: tuple[str, ...] = ()) -> Path:
    """Write a submission with these answers; with ``only``, without the prose and cells that it does not need."""
    notebook = copy.deepcopy(released(course))
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name in answers:
            cell.source = answers[name]
    if only:
        kept = {name for each in only for name in (each, f"{each}_check")}
        first = next(cell for cell in notebook.cells if cell.cell_type == "code")
        marked = [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id") in kept]
        notebook.cells = [first, *marked]
    return write(course, student, nbformat.writes(notebook))


def write(course: Path, student: str, text: str) -> Path:
    """Write a text as a student's notebook, and return its folder."""
    folder = course / "submitted" / student / CHAPTER
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{CHAPTER}.ipynb").write_text(text, encoding="utf-8")
    return folder


def scores(course: Path, database: str | None = None, *, but_unread: bool = False) -> dict[str, dict[str, float]]:
    """Student -> exercise -> points, as the course's gradebook, or the one at an address, has them.

    ``but_unread`` leaves out the submissions that nbgrader could not read: their notebooks wait for a person.
    """
    found: dict[str, dict[str, float]] = {}
    with Gradebook(database or f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        for submission in gradebook.assignment_submissions(CHAPTER):
            grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
            if any(grade.needs_manual_grade for grade in grades):
                assert but_unread, f"{submission.student.id} waits for a person"
                continue
            found[submission.student.id] = {grade.name.removesuffix("_check"): grade.auto_score for grade in grades}
    return found


def grade(course: Path, *options: str) -> tuple[subprocess.CompletedProcess, dict]:
    """Run ``autograder grade`` and return what it did, with its summary."""
    done = run(course, "autograder.cli", "grade", CHAPTER, "--json", "summary.json", *options)
    file = course / "summary.json"
    return done, json.loads(file.read_text()) if file.exists() else {}
