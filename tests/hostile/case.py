"""One submission of the corpus, and a class in which it sits beside nine honest students, graded for real."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from tests.grading import classroom
from tests.grading.classroom import CHAPTER
from tests.hostile.classmates import CLASSMATES, EXERCISES, RIGHT

FULL = {"my_batchnorm": 4.0, "my_dropout": 3.0, "save_and_resume": 4.0}
# No test waits for it: it ends what hangs. A run takes half a minute where nothing else is running.
LONGEST_RUN = 1500.0
NOTHING = dict.fromkeys(FULL, 0.0)


@dataclass(frozen=True)
class Case:
    """A submission: right answers, and what is different about this one.

    ``scores`` is what it must get, by exercise; None means that it cannot be graded and is reported by name.
    ``answers`` replaces answer cells, ``change`` edits the notebook, ``file`` turns its text into the file's bytes,
    and ``beside`` works on the submission's folder afterwards. ``says`` has to be read in the graded notebook or, for
    what is not graded, in the sentence that reports it.
    """

    name: str
    why: str
    scores: Mapping[str, float] | None
    answers: Mapping[str, str] = field(default_factory=dict)
    change: Callable[[NotebookNode], Any] | None = None
    file: Callable[[str], bytes] | None = None
    beside: Callable[[Path], Any] | None = None
    says: str = ""

    def hand_in(self, course: Path, blank: NotebookNode) -> None:
        """Write it into the class's folder."""
        notebook = answered(blank, {**RIGHT, **self.answers})
        if self.change is not None:
            self.change(notebook)
        text = nbformat.writes(notebook)
        folder = course / "submitted" / self.name / CHAPTER
        folder.mkdir(parents=True)
        data = text.encode() if self.file is None else self.file(text)
        (folder / f"{CHAPTER}.ipynb").write_bytes(data)
        if self.beside is not None:
            self.beside(folder)


def scored(**points: float) -> dict[str, float]:
    """Return full marks, except for what is named: ``scored(my_dropout=0)``."""
    return {**FULL, **points}


def answered(blank: NotebookNode, answers: Mapping[str, str]) -> NotebookNode:
    """Return a copy of the notebook with these answers in it."""
    notebook = copy.deepcopy(blank)
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name in answers:
            cell.source = answers[name]
    return notebook


def short_notebook(course: Path) -> NotebookNode:
    """Return the students' notebook with its imports, answers and checks, and without the lesson around them."""
    notebook = classroom.released(course)
    kept = {name for each in EXERCISES for name in (each, f"{each}_check")}
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    marked = [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id") in kept]
    notebook.cells = [first, *marked]
    return notebook


def marked(notebook: NotebookNode, name: str) -> NotebookNode:
    """Return the cell with a grade_id."""
    return next(cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == name)


def new_course(released: Path, folder: Path, **limits: float) -> Path:
    """Copy the released course, with limits for one submission such as ``timeout=4`` (seconds for a cell)."""
    shutil.copytree(released, folder)
    with (folder / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        config.writelines(f"c.ExecuteForGrading.{name} = {value}\n" for name, value in limits.items())
    return folder


@dataclass
class GradedClass:
    """What one run over a class left behind."""

    course: Path
    said: str
    exit_code: int
    outcomes: list[dict[str, Any]]
    notes: list[str]
    scores: dict[str, dict[str, float]]

    def sentence(self, student: str) -> str:
        """Return what the run said about a student."""
        return " ".join(outcome["sentence"] for outcome in self.outcomes if outcome["student"] == student)

    def text(self, student: str) -> str:
        """Return the text of a graded notebook's outputs."""
        file = self.course / "autograded" / student / CHAPTER / f"{CHAPTER}.ipynb"
        notebook = nbformat.read(file, as_version=4)
        return "\n".join(json.dumps(cell.get("outputs", []), ensure_ascii=False) for cell in notebook.cells)


def grade_class(course: Path, cases: Sequence[Case], *options: str, classmates: bool = True) -> GradedClass:
    """Hand in the cases and the classmates' notebooks, and grade all of them in one run of ``autograder grade``."""
    blank = short_notebook(course)
    for case in cases:
        case.hand_in(course, blank)
    for student, answers in CLASSMATES.items() if classmates else ():
        classroom.write(course, student, nbformat.writes(answered(blank, answers)))
    return run_again(course, *options)


def run_again(course: Path, *options: str) -> GradedClass:
    """Grade a class that has handed in."""
    (course / "summary.json").unlink(missing_ok=True)
    done = classroom.run(
        course, "autograder.cli", "grade", CHAPTER, "--json", "summary.json", *options, seconds=LONGEST_RUN
    )
    said = done.stdout + done.stderr
    assert (course / "summary.json").exists(), said
    summary = json.loads((course / "summary.json").read_text())
    return GradedClass(course, said, done.returncode, summary["outcomes"], summary["notes"], classroom.scores(course))
